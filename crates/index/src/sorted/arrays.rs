//! Reading ranges of the arrays of a replica: one read per shard, every chunk touched verified, and the seal of each file
//! that is opened.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_store::Counters;
use sieva_types::{Buffer, Error, ErrorKind, Result};

use super::files;
use super::layout::{CRC, Layout, swap_little_endian};
use super::seal::{SEAL, seal_of};
use crate::place::{Place, Readable};

/// The directory of an array's shards.
pub(super) const SHARDS: &str = "c";
/// Shard files that stay open; when there are more, all are closed and those in use opened again.
const OPEN_FILES: usize = 256;

/// The arrays of a replica by number.
#[derive(Debug)]
pub(super) struct Arrays {
    layout: Layout,
    arrays: Vec<Array>,
    /// What the files are sealed with.
    seal: Option<u64>,
    open: Mutex<HashMap<(usize, u64), Arc<Shard>>>,
    pub counters: Counters,
}

/// One array: its directory in the replica, where its shards are, the bytes of an element and the number of elements.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub path: String,
    pub shards: Place,
    pub size: usize,
    pub len: u64,
}

#[derive(Debug)]
struct Shard {
    file: Readable,
    path: String,
}

impl Arrays {
    pub fn new(layout: Layout, seal: Option<u64>, arrays: Vec<Array>) -> Self {
        Self { layout, arrays, seal, open: Mutex::default(), counters: Counters::default() }
    }

    /// Whether a network lies between.
    pub fn is_remote(&self) -> bool {
        self.arrays.iter().any(|array| array.shards.is_remote())
    }

    /// The elements `range` of `array` in native byte order.
    ///
    /// # Errors
    /// `invalid-value` for a range outside of the array, `corrupt-index` where a file is cut off or a chunk's
    /// checksum is wrong; memory is taken only for what files hold.
    pub fn read(&self, array: usize, range: Range<u64>, out: &mut Buffer) -> Result<()> {
        let Array { size, len, .. } = self.arrays[array];
        if range.start > range.end || range.end > len {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("rows {} to {} of {len} rows", range.start, range.end),
            ));
        }
        let (mut row, mut done) = (range.start, 0);
        while row < range.end {
            let shard = row / self.layout.shard_rows();
            let end = range.end.min((shard + 1) * self.layout.shard_rows());
            let first = shard * self.layout.shard_rows();
            self.read_shard(array, shard, (row - first) as usize..(end - first) as usize, done, out)?;
            done += (end - row) as usize * size;
            row = end;
        }
        out.resize(done);
        swap_little_endian(out.bytes_mut(), size);
        Ok(())
    }

    /// Appends `range` of the elements of a shard at byte `at` of `out`. The chunks are read into place with
    /// their checksums and heads, which are then moved out: no second buffer, no second pass over memory.
    fn read_shard(
        &self,
        array: usize,
        shard: u64,
        range: Range<usize>,
        at: usize,
        out: &mut Buffer,
    ) -> Result<()> {
        let (chunk, size) = (self.layout.chunk, self.arrays[array].size);
        let stride = self.layout.stride(size);
        let chunks = range.start / chunk..range.end.div_ceil(chunk);
        let (offset, span) = ((chunks.start * stride) as u64, chunks.len() * stride);
        let shard = self.shard(array, shard)?;
        if offset + span as u64 > shard.file.len() {
            return Err(files::corrupt(&shard.path, "the file is cut off"));
        }
        out.resize(at + span);
        let bytes = &mut out.bytes_mut()[at..];
        files::read_at(&shard.file, &shard.path, offset, bytes)?;
        self.counters.add_request(span as u64);
        let mut done = 0;
        for (i, number) in chunks.enumerate() {
            verify(&bytes[i * stride..(i + 1) * stride], &shard.path, number)?;
            let from = range.start.saturating_sub(number * chunk).min(chunk);
            let to = (range.end - number * chunk).min(chunk);
            bytes.copy_within(i * stride + from * size..i * stride + to * size, done);
            done += (to - from) * size;
        }
        Ok(())
    }

    fn shard(&self, array: usize, number: u64) -> Result<Arc<Shard>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = open.get(&(array, number)) {
            return Ok(shard.clone());
        }
        let (shards, name) = (&self.arrays[array].shards, number.to_string());
        let (file, path) = (files::open(shards, &name)?, shards.name_of(&name));
        self.check_seal(array, number, &file, &path)?;
        if open.len() >= OPEN_FILES {
            open.clear();
        }
        let shard = Arc::new(Shard { file, path });
        open.insert((array, number), shard.clone());
        Ok(shard)
    }
}

impl Arrays {
    /// That a shard was written for this replica, this array and this place.
    fn check_seal(&self, array: usize, number: u64, file: &Readable, path: &str) -> Result<()> {
        let Some(seal) = self.seal else { return Ok(()) };
        let Array { path: name, size, len, .. } = &self.arrays[array];
        let (mut found, chunks) = ([0; SEAL], self.layout.chunks_in(number, *len));
        let offset = (chunks * self.layout.stride(*size)) as u64;
        files::read_at(file, path, offset, &mut found)?;
        self.counters.add_request(SEAL as u64);
        if found == seal_of(seal, name, number) {
            return Ok(());
        }
        Err(files::corrupt(path, "the file was written for another replica, or another place in it"))
    }
}

/// The file of a shard of the array in `dir` (Zarr v3 chunk key encoding "default").
pub(super) fn shard_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(SHARDS).join(number.to_string())
}

fn verify(chunk: &[u8], path: &str, number: usize) -> Result<()> {
    let (elements, crc) = chunk.split_at(chunk.len() - CRC);
    if crc32c::crc32c(elements).to_le_bytes() == crc {
        return Ok(());
    }
    Err(files::corrupt(path, format!("the checksum of chunk {number} is wrong")))
}
