//! Sources whose arrays are read by foreign code: another language's library, a simulation's memory, a test.
//!
//! Who brings such a source gives its [`Schema`] as plain data and a [`ForeignReader`] that fills boxes; everything
//! else (names, decoding, conditions, indexes) is as for any file. What is given is checked here once, so that a
//! description that contradicts itself is an error and nothing worse.

mod blocks;
mod memory;
mod naming;
mod store;

use std::collections::HashSet;
use std::sync::Arc;

use sieva_store::RangedRead;
use sieva_types::{Bx, Endian, Error, ErrorKind, Result, Texts, checked_len};

use crate::filters::Pipeline;
use crate::layout::{Layout, Placement, c_strides};
use crate::schema::{ArrayInfo, Schema};
use crate::source::BlockBounds;
use crate::{ArraySource, LibraryReader};
pub use memory::{Loan, MemoryArrays, MemoryValues};
pub use naming::{Places, groups_of, owner_of};
pub use store::ForeignStore;

/// What fills the boxes of a source's arrays; called from many threads at once.
pub trait ForeignReader: Send + Sync {
    /// Fills `out` with box `bx` of the array at `path`, in C order and native byte order.
    ///
    /// # Errors
    /// What went wrong, as `io-error`, `corrupt-file` or `unsupported`.
    fn read(&self, path: &str, bx: &Bx, out: &mut [u8]) -> Result<()>;

    /// The texts of box `bx` of the text array at `path`, in C order.
    ///
    /// # Errors
    /// As [`ForeignReader::read`].
    fn read_texts(&self, path: &str, bx: &Bx) -> Result<Texts>;

    /// What is known of the values of the array at `path` without reading them, as [`ArraySource::limits`].
    fn limits(&self, path: &str) -> BlockBounds {
        let _ = path;
        BlockBounds::new()
    }
}

/// What is said of one array besides its schema.
#[derive(Clone, Debug, Default)]
pub struct ForeignArray {
    /// The shape of the blocks that it is kept in, where it is in blocks: boxes along them are the cheapest.
    pub block: Option<Vec<u64>>,
}

/// A source that a [`ForeignReader`] reads.
pub struct ForeignSource {
    schema: Schema,
    layouts: Vec<Arc<Layout>>,
    store: Arc<dyn RangedRead>,
    reader: Box<dyn ForeignReader>,
}

impl ForeignSource {
    /// A source of this schema, whose decoding and coordinates are still to be found, with one of `arrays` for each
    /// array. `how` says who reads it: `read by adios2`.
    ///
    /// # Errors
    /// `invalid-value` where the description contradicts itself; `corrupt-file` where a shape overflows.
    pub fn new(
        mut schema: Schema,
        arrays: &[ForeignArray],
        how: &str,
        store: ForeignStore,
        reader: Box<dyn ForeignReader>,
    ) -> Result<Self> {
        if arrays.len() != schema.arrays.len() {
            return Err(invalid(format!(
                "{} arrays, {} of them described",
                schema.arrays.len(),
                arrays.len()
            )));
        }
        let mut paths = HashSet::new();
        for info in &schema.arrays {
            check(&schema, info)?;
            if !paths.insert(info.path.as_str()) {
                return Err(invalid(format!("two arrays are called '{}'", info.path)));
            }
        }
        let mut layouts = Vec::with_capacity(arrays.len());
        for (info, array) in schema.arrays.iter_mut().zip(arrays) {
            layouts.push(Arc::new(layout(info, array, how)?));
            info.storage.layout = if array.block.is_some() { "chunked" } else { "contiguous" };
            info.storage.chunk_shape.clone_from(&array.block);
        }
        schema.resolve();
        Ok(Self { schema, layouts, store: Arc::new(store), reader })
    }

    /// Gives arrays' dimensions the names that a user wants: array path and names, outermost first.
    ///
    /// # Errors
    /// As [`Schema::name_dims`].
    pub fn name_dims(&mut self, given: &[(String, Vec<String>)]) -> Result<()> {
        for (path, names) in given {
            self.schema.name_dims(path, names).map_err(|e| e.at(self.store.name()))?;
        }
        self.schema.resolve();
        Ok(())
    }
}

impl ArraySource for ForeignSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        let message = || format!("array {array} asked for, the source has {}", self.layouts.len());
        self.layouts.get(array).cloned().ok_or_else(|| Error::new(ErrorKind::Internal, message()))
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn limits(&self, array: usize) -> BlockBounds {
        let info = &self.schema.arrays[array];
        let whole = Bx::whole(&info.shape);
        let fits = |bx: &Bx| {
            let ends = bx.start.iter().zip(&bx.shape).all(|(s, n)| s.checked_add(*n).is_some());
            bx.start.len() == whole.rank() && bx.rank() == whole.rank() && ends && whole.contains(bx)
        };
        let limits = self.reader.limits(&info.path);
        // A block that lies elsewhere says nothing of this array, and the others may be no better.
        if limits.iter().all(|(bx, _)| fits(bx)) { limits } else { BlockBounds::new() }
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl LibraryReader for ForeignSource {
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        self.reader.read(&self.schema.arrays[array].path, bx, out)?;
        self.store.counters().add_library_read(out.len() as u64);
        Ok(())
    }

    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Texts> {
        let path = &self.schema.arrays[array].path;
        let texts = self.reader.read_texts(path, bx)?;
        if texts.len() as u64 != bx.len() {
            return Err(invalid(format!("'{path}': {} texts read, {} asked for", texts.len(), bx.len())));
        }
        self.store.counters().add_library_read(texts.as_str().len() as u64);
        Ok(texts)
    }
}

/// An array's dimensions are there, are its shape, and are each used once; its elements can be counted.
fn check(schema: &Schema, info: &ArrayInfo) -> Result<()> {
    let path = &info.path;
    let lengths: Option<Vec<u64>> = info.dims.iter().map(|&d| schema.dims.get(d).map(|d| d.len)).collect();
    if lengths.as_ref() != Some(&info.shape) {
        return Err(invalid(format!("'{path}' has shape {:?}, its dimensions have {lengths:?}", info.shape)));
    }
    let distinct: HashSet<usize> = info.dims.iter().copied().collect();
    if distinct.len() != info.dims.len() {
        return Err(invalid(format!("'{path}' has one dimension twice")));
    }
    let elements = checked_len(&info.shape).map_err(|e| e.at(format!("'{path}'")))?;
    let bytes = elements.checked_mul(info.dtype.size().max(1) as u64).filter(|&b| b <= i64::MAX as u64);
    let too_large = || Error::corrupt(format!("'{path}' of shape {:?} has more than 2^63 bytes", info.shape));
    bytes.map(|_| ()).ok_or_else(too_large)
}

fn layout(info: &ArrayInfo, array: &ForeignArray, how: &str) -> Result<Layout> {
    let chunk_shape = match &array.block {
        None => info.shape.clone(),
        Some(block) if block.len() == info.shape.len() && !block.contains(&0) => {
            blocks::read_shape(&info.shape, block)
        }
        Some(block) => {
            let (path, shape) = (&info.path, &info.shape);
            return Err(invalid(format!("blocks of {block:?} do not cut '{path}' of shape {shape:?}")));
        }
    };
    let element_size = info.dtype.size();
    Ok(Layout {
        dtype: info.dtype,
        endian: Endian::NATIVE,
        element_size,
        extent: info.shape.clone(),
        strides: c_strides(&chunk_shape, element_size as u64),
        base: 0,
        chunk_bytes: chunk_shape.iter().product::<u64>().saturating_mul(element_size as u64),
        chunk_shape,
        pipeline: Pipeline::default(),
        placement: Placement::Foreign(how.to_string()),
        fill: vec![0; element_size],
        char_dim: false,
        space_padded: false,
    })
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
        .hint("the description of the source contradicts itself: who made it has to mend it")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
