//! The values of small coordinate arrays, kept so that many files can be lined up without opening one.

use std::collections::BTreeMap;
use std::sync::Arc;

use sieva_types::wire::Reader;
use sieva_types::{Bx, DType, Endian, Result};

use super::Manifest;
use crate::ArraySource;
use crate::buffer::{Buffer, swap_bytes};
use crate::read::{BlockReader, ChunkCache, Workspace};
use crate::schema::{ArrayInfo, Schema};

impl Manifest {
    /// Keeps the stored values of all 1-D coordinate arrays of numbers that take at most `max_bytes` bytes each. One
    /// that cannot be read is not kept: reading it later says why.
    ///
    /// # Errors
    /// `stale-source` where the source is not the one that the manifest was taken of.
    pub fn keep_values(&mut self, source: &Arc<dyn ArraySource>, max_bytes: usize) -> Result<()> {
        self.check_object(&**source.store())?;
        let schema = Arc::clone(&self.schema);
        let cache = Arc::new(ChunkCache::new(max_bytes));
        for array in schema.dims.iter().filter_map(|d| d.coordinate) {
            let info = &schema.arrays[array];
            let bytes = element_bytes(info.dtype).and_then(|size| info.shape[0].checked_mul(size));
            if bytes.is_none_or(|bytes| bytes > max_bytes as u64) {
                continue;
            }
            let (source, cache) = (Arc::clone(source), Arc::clone(&cache));
            // Whole chunks are decoded for few values: at most as much as a reader would at its least.
            let memory = (max_bytes as u64).max(64 << 20);
            let Ok(reader) = BlockReader::new(source, array, cache, memory) else { continue };
            let mut out = Buffer::default();
            if reader.read(&Bx::whole(&info.shape), &mut out, &mut Workspace::default()).is_ok() {
                self.values.insert(array, Arc::from(out.bytes_mut() as &[u8]));
            }
        }
        source.store().check_unchanged()
    }

    /// The stored values of a coordinate array, where they are kept: dense, in native byte order, not decoded (CF);
    /// float16 as float32, bool as bytes 0 and 1.
    pub fn values(&self, array: usize) -> Option<&[u8]> {
        self.values.get(&array).map(|bytes| &bytes[..])
    }
}

/// Bytes of a value as it is kept, of numbers.
fn element_bytes(dtype: DType) -> Option<u64> {
    match dtype {
        DType::Str => None,
        DType::F16 => Some(4),
        other => Some(other.size() as u64),
    }
}

/// `bytes` of elements of `info` turned from native to little-endian order, or back.
pub(super) fn reorder(info: &ArrayInfo, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if Endian::NATIVE == Endian::Big {
        swap_bytes(&mut bytes, element_bytes(info.dtype).unwrap_or(1) as usize);
    }
    bytes
}

/// Reads what was kept.
pub(super) fn read(r: &mut Reader<'_>, schema: &Schema) -> Result<BTreeMap<usize, Arc<[u8]>>> {
    let kept = r.list(|r| {
        let array = r.index()?;
        let info = schema.arrays.get(array);
        let info = info.ok_or_else(|| r.damaged(format!("values of array {array}, which is none")))?;
        Ok((array, read_one(r, info)?))
    })?;
    Ok(kept.into_iter().collect())
}

/// Reads what was kept of one array.
pub(super) fn read_one(r: &mut Reader<'_>, info: &ArrayInfo) -> Result<Arc<[u8]>> {
    let [len] = info.shape[..] else {
        return Err(r.damaged(format!("values of '{}', which is no coordinate", info.path)));
    };
    let bytes = r.blob()?;
    if element_bytes(info.dtype).and_then(|n| n.checked_mul(len)) != Some(bytes.len() as u64) {
        return Err(r.damaged(format!("values of '{}' that are more or fewer than it has", info.path)));
    }
    Ok(Arc::from(reorder(info, bytes)))
}
