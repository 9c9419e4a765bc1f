//! Writing arrays of the replica from many threads: any rows in any order, each once.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use sieva_types::{DType, Error, ErrorKind, Result};

use super::arrays::shard_path;
use super::files;
use super::layout::{CRC, Layout, swap_little_endian};
use super::meta::array_text;
use super::seal::seal_of;

/// Chunks that are written at once.
pub(super) const CHUNKS_AT_ONCE: usize = 8;
/// Complete shards that may wait to be made durable before writers wait too.
const SHARDS_WAITING: usize = 16;

/// An array to be written.
pub(super) struct NewArray {
    dir: PathBuf,
    size: usize,
    len: u64,
    /// The number of the replica, and the array's directory in it.
    seal: (u64, String),
    /// Chunks that are written here.
    chunks: Range<u64>,
    /// Those of them that are not yet written, of each shard.
    missing: Vec<AtomicUsize>,
}

impl NewArray {
    /// Creates the directory and the metadata of an array of `len` elements.
    pub fn create(dir: PathBuf, layout: Layout, array: (DType, &str), len: u64, seal: u64) -> Result<Self> {
        let (dtype, name) = array;
        fs::create_dir(&dir).map_err(|e| files::unwritten(&dir, &e))?;
        files::create_dir(&dir.join("c"))?;
        files::write_small(&dir.join("zarr.json"), &array_text(layout, dtype, len, json!({"name": name}))?)?;
        Ok(Self::open(dir, layout, (dtype, len), 0..len, seal))
    }

    /// An array that was created, of which `rows` are written here; they begin and end where chunks do.
    pub fn open(dir: PathBuf, layout: Layout, array: (DType, u64), rows: Range<u64>, seal: u64) -> Self {
        let (dtype, len) = array;
        let chunks = rows.start / layout.chunk as u64..layout.chunks(rows.end);
        let of = |shard: u64| {
            let first = shard * layout.shard as u64;
            let end = first + layout.chunks_in(shard, len) as u64;
            chunks.end.min(end).saturating_sub(chunks.start.max(first)) as usize
        };
        let missing = (0..layout.shards(len)).map(|shard| AtomicUsize::new(of(shard))).collect();
        let path = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { dir, size: dtype.size(), len, seal: (seal, path), chunks, missing }
    }
}

/// Arrays that are written to.
pub(super) struct Writer {
    layout: Layout,
    pub arrays: Vec<NewArray>,
    /// Chunks of which only a part was given so far, by array and number.
    parts: Mutex<HashMap<(usize, u64), Part>>,
    /// The bytes of the first element of each chunk of array 0.
    fences: Vec<AtomicU64>,
    complete: SyncSender<(File, PathBuf)>,
}

/// Elements of a chunk.
struct Part {
    bytes: Vec<u8>,
    given: usize,
}

impl Writer {
    /// Also the shards that are complete, for [`make_durable`].
    fn new(layout: Layout, arrays: Vec<NewArray>) -> (Self, Receiver<(File, PathBuf)>) {
        let (complete, waiting) = sync_channel(SHARDS_WAITING);
        let chunks = arrays.first().map_or(0, |a| layout.chunks(a.len));
        let fences = (0..chunks).map(|_| AtomicU64::new(0)).collect();
        (Self { layout, arrays, parts: Mutex::default(), fences, complete }, waiting)
    }

    /// Writes elements `rows` of `array`, which `fill(range, out)` gives in native byte order, `range` counted
    /// from the first of `rows`. `scratch` is memory to be used.
    pub fn write(
        &self,
        array: usize,
        rows: Range<u64>,
        scratch: &mut Vec<u8>,
        fill: impl Fn(Range<usize>, &mut [u8]),
    ) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let (chunk, first) = (row / self.layout.chunk as u64, (row - rows.start) as usize);
            let chunk_end = ((chunk + 1) * self.layout.chunk as u64).min(self.arrays[array].len);
            let whole = self.whole_chunks(array, row..rows.end);
            if whole > 0 {
                let end = ((chunk + whole as u64) * self.layout.chunk as u64).min(self.arrays[array].len);
                self.write_chunks(array, chunk, first..first + (end - row) as usize, scratch, &fill)?;
                row = end;
            } else {
                let end = chunk_end.min(rows.end);
                let within = (row % self.layout.chunk as u64) as usize;
                self.add_part(array, chunk, within, first..first + (end - row) as usize, &fill)?;
                row = end;
            }
        }
        Ok(())
    }

    /// The number of chunks from the start of `rows` on that are wholly theirs, in one shard and one write.
    fn whole_chunks(&self, array: usize, rows: Range<u64>) -> usize {
        let chunk = self.layout.chunk as u64;
        if !rows.start.is_multiple_of(chunk) {
            return 0;
        }
        let end =
            if rows.end == self.arrays[array].len { rows.end.next_multiple_of(chunk) } else { rows.end };
        let in_shard = self.layout.shard as u64 - rows.start / chunk % self.layout.shard as u64;
        ((end - rows.start) / chunk).min(in_shard).min(CHUNKS_AT_ONCE as u64) as usize
    }

    fn write_chunks(
        &self,
        array: usize,
        chunk: u64,
        elements: Range<usize>,
        scratch: &mut Vec<u8>,
        fill: &impl Fn(Range<usize>, &mut [u8]),
    ) -> Result<()> {
        let (size, stride) = (self.arrays[array].size, self.layout.stride(self.arrays[array].size));
        scratch.clear();
        scratch.resize(elements.len().div_ceil(self.layout.chunk) * stride, 0);
        for (i, bytes) in scratch.chunks_exact_mut(stride).enumerate() {
            let from = elements.start + i * self.layout.chunk;
            let range = from..elements.end.min(from + self.layout.chunk);
            fill(range.clone(), &mut bytes[..range.len() * size]);
            self.finish_chunk(array, chunk + i as u64, bytes);
        }
        self.put(array, chunk, scratch)
    }

    /// Adds elements to a chunk that other calls have parts of too, and writes it where it is complete then.
    fn add_part(
        &self,
        array: usize,
        chunk: u64,
        at: usize,
        elements: Range<usize>,
        fill: &impl Fn(Range<usize>, &mut [u8]),
    ) -> Result<()> {
        let (size, count) = (self.arrays[array].size, elements.len());
        let whole = (self.arrays[array].len - chunk * self.layout.chunk as u64).min(self.layout.chunk as u64);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Part { bytes: vec![0; self.layout.stride(size)], given: 0 };
        let part = parts.entry((array, chunk)).or_insert_with(new);
        fill(elements, &mut part.bytes[at * size..(at + count) * size]);
        part.given += count;
        if (part.given as u64) < whole {
            return Ok(());
        }
        let complete = parts.remove(&(array, chunk));
        drop(parts);
        if let Some(Part { mut bytes, .. }) = complete {
            self.finish_chunk(array, chunk, &mut bytes);
            self.put(array, chunk, &bytes)?;
        }
        Ok(())
    }

    /// Notes the fence of a chunk, brings it into the stored byte order and adds its checksum.
    fn finish_chunk(&self, array: usize, chunk: u64, bytes: &mut [u8]) {
        let size = self.arrays[array].size;
        let (elements, crc) = bytes.split_at_mut(self.layout.chunk * size);
        if array == 0 {
            let mut first = [0; 8];
            first[..size].copy_from_slice(&elements[..size]);
            self.fences[chunk as usize].store(u64::from_ne_bytes(first), Relaxed);
        }
        swap_little_endian(elements, size);
        crc[..CRC].copy_from_slice(&crc32c::crc32c(elements).to_le_bytes());
    }

    /// Writes chunks to their place, and the index of the shard where they were the last ones of it.
    fn put(&self, array: usize, chunk: u64, chunks: &[u8]) -> Result<()> {
        let NewArray { dir, size, len, missing, seal: (seal, name), .. } = &self.arrays[array];
        let (shard, within) = (chunk / self.layout.shard as u64, chunk % self.layout.shard as u64);
        let (path, stride) = (shard_path(dir, shard), self.layout.stride(*size));
        let file = files::open_to_write(&path)?;
        files::write_at(&file, &path, within * stride as u64, chunks)?;
        let written = chunks.len() / stride;
        if missing[shard as usize].fetch_sub(written, Relaxed) == written {
            let chunks = self.layout.chunks_in(shard, *len);
            // Whoever writes the last chunk of a shard writes its seal and index, which depend on nothing else.
            if shard * self.layout.shard as u64 + chunks as u64 <= self.arrays[array].chunks.end {
                let mut end = seal_of(*seal, name, shard).to_vec();
                end.extend(self.layout.index(chunks, *size));
                files::write_at(&file, &path, (chunks * stride) as u64, &end)?;
            }
            // A receiver that is gone has failed, which is the error that counts.
            let _ = self.complete.send((file, path));
        }
        Ok(())
    }

    /// The first element of each chunk of array 0 that was written here, in native byte order.
    pub fn fences(&self) -> Vec<u8> {
        let NewArray { size, chunks, .. } = &self.arrays[0];
        let written = &self.fences[chunks.start as usize..chunks.end as usize];
        let size = *size;
        written.iter().flat_map(|f| f.load(Relaxed).to_ne_bytes()[..size].to_vec()).collect()
    }
}

/// Does `work` with a writer of arrays; shards are made durable as they come, beside the threads that work.
pub(super) fn written<R>(
    layout: Layout,
    arrays: Vec<NewArray>,
    cancel: &AtomicBool,
    work: impl FnOnce(&Writer) -> Result<R>,
) -> Result<R> {
    let (writer, complete) = Writer::new(layout, arrays);
    std::thread::scope(|scope| {
        let durable = scope.spawn(|| make_durable(complete, cancel));
        let done = work(&writer);
        drop(writer);
        let durable = durable.join();
        let done = done?;
        durable.map_err(|_| Error::new(ErrorKind::Internal, "making shards durable failed"))??;
        Ok(done)
    })
}

/// Stops working where the build is over.
fn make_durable(shards: Receiver<(File, PathBuf)>, cancel: &AtomicBool) -> Result<()> {
    for (file, path) in shards {
        if !cancel.load(Relaxed) {
            file.sync_all().map_err(|e| files::unwritten(&path, &e))?;
        }
    }
    Ok(())
}

/// Makes the entries of an array's directories durable.
pub(super) fn sync_directories(dir: &Path) -> Result<()> {
    files::sync(&dir.join("c"))?;
    files::sync(dir)
}
