//! A sorted replica opened for queries.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use sieva_types::{Buffer, DType, Error, ErrorKind, KeySet, Result, keys};

use super::Column;
use super::arrays::{Array, Arrays, SHARDS};
use super::code::{code_at, code_of_key, for_each_code, key_of_code, nan_code};
use super::layout::{FENCE, ROW, swap_little_endian};
use super::meta::Meta;
use crate::place::Place;

/// Positions are converted this many rows at a time.
const ROWS_AT_ONCE: u64 = 1 << 19;

/// Rows of arrays ordered by one of them. Only the first key of each chunk is held in memory.
///
/// A condition on the key is a slice of rows, found by a search among those keys and the reading of the two
/// chunks that its ends lie in (SDS, section III.A.2; PDC, section III.D.3).
#[derive(Debug)]
pub struct SortedReplica {
    meta: Meta,
    arrays: Arrays,
    /// Code of the first key of each chunk, ascending.
    fences: Vec<u64>,
    buffers: Mutex<Vec<Buffer>>,
}

impl SortedReplica {
    /// Opens the replica in `dir`, reading its metadata and fences.
    ///
    /// # Errors
    /// `corrupt-index` for anything missing, damaged or contradictory; `io-error`, `permission-denied` where
    /// the system refuses.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_at(&dir.into())
    }

    /// Opens the replica in `place`, which may lie beside a remote object.
    ///
    /// # Errors
    /// As [`SortedReplica::open`], and those of the network.
    pub fn open_at(place: &Place) -> Result<Self> {
        let meta = Meta::read(place)?;
        let rows = meta.rows();
        let array = |path: &str, size, len| {
            let shards = place.child(path).child(SHARDS);
            Array { path: path.to_owned(), shards, size, len }
        };
        let mut arrays: Vec<Array> =
            meta.columns.iter().zip(&meta.paths).map(|(c, p)| array(p, c.dtype.size(), rows)).collect();
        arrays.push(array(ROW, row_dtype(rows).size(), rows));
        arrays.push(array(FENCE, meta.columns[0].dtype.size(), meta.layout.chunks(rows)));
        let arrays = Arrays::new(meta.layout, meta.seal, arrays);
        let fences =
            read_fences(&meta, &arrays).map_err(|e| e.at(format_args!("sorted replica '{place}'")))?;
        Ok(Self { meta, arrays, fences, buffers: Mutex::default() })
    }

    /// The shape that the arrays have in the source.
    pub fn shape(&self) -> &[u64] {
        &self.meta.shape
    }

    /// The columns, the key first.
    pub fn columns(&self) -> &[Column] {
        &self.meta.columns
    }

    /// The number that its files are sealed with, which tells it from others; none of those of before.
    pub fn seal(&self) -> Option<u64> {
        self.meta.seal
    }

    /// Whether a network lies between.
    pub fn is_remote(&self) -> bool {
        self.arrays.is_remote()
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.meta.rows()
    }

    /// What the builder was given to be found again.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.meta.source
    }

    /// The number of the column of this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.meta.columns.iter().position(|c| c.name == name)
    }

    /// The rows whose keys are in `set`: ascending slices, at most one per interval and one for NaN; slices
    /// that touch are one.
    ///
    /// # Errors
    /// `corrupt-index` where a chunk that an end of a slice lies in is damaged.
    pub fn slices(&self, set: &KeySet) -> Result<Vec<Range<u64>>> {
        let mut search = Search { replica: self, chunk: None, buffer: self.buffer() };
        let mut slices: Vec<Range<u64>> = Vec::new();
        let mut push = |slice: Range<u64>| match slices.last_mut() {
            _ if slice.is_empty() => {}
            Some(last) if last.end == slice.start => last.end = slice.end,
            _ => slices.push(slice),
        };
        for (low, high) in self.code_ranges(set) {
            push(search.first_at_least(low)?..search.first_above(high)?);
        }
        if set.nan {
            push(self.meta.numbers..self.rows());
        }
        self.recycle(search.buffer);
        Ok(slices)
    }

    /// Bounds of the number of rows whose keys are in `set`, from the fences alone.
    pub fn estimate(&self, set: &KeySet) -> (u64, u64) {
        let nan = if set.nan { self.rows() - self.meta.numbers } else { 0 };
        let (mut least, mut most) = (nan, nan);
        for (low, high) in self.code_ranges(set) {
            let from = self.bounds(self.fences.partition_point(|&f| f < low));
            let to = self.bounds(self.fences.partition_point(|&f| f <= high));
            least = least.saturating_add(to.0.saturating_sub(from.1));
            most = most.saturating_add(to.1.saturating_sub(from.0));
        }
        (least, most.min(self.rows()))
    }

    /// Keys that cut the rows whose keys are in `set` into about `n` equal parts, ascending: each is the first of its part, none
    /// is NaN. Of few rows there are fewer; nothing is read, as they are the first keys of chunks.
    pub fn cuts(&self, set: &KeySet, n: usize) -> Vec<i128> {
        let within = self.code_ranges(set).flat_map(|(low, high)| {
            let first = self.fences.partition_point(|&f| f <= low);
            let end = self.fences.partition_point(|&f| f <= high);
            &self.fences[first.min(end)..end]
        });
        let (inner, n) = (within.copied().collect::<Vec<u64>>(), n.max(1));
        let parts = n.min(inner.len() + 1);
        let dtype = self.meta.columns[0].dtype;
        let at = |k: usize| inner[(k * (inner.len() + 1) / parts).saturating_sub(1)];
        let mut cuts: Vec<i128> = (1..parts).map(|k| key_of_code(dtype, at(k))).collect();
        cuts.dedup();
        cuts
    }

    /// The elements `rows` of a column, in native byte order.
    ///
    /// # Errors
    /// `invalid-value` for a column or rows that there are not, `corrupt-index` where a chunk is damaged.
    pub fn read(&self, column: usize, rows: Range<u64>, out: &mut Buffer) -> Result<()> {
        if column >= self.meta.columns.len() {
            return Err(Error::new(ErrorKind::InvalidValue, format!("no column {column} in the replica")));
        }
        self.arrays.read(column, rows, out)
    }

    /// Where `rows` lie in the source: positions in C order, in the order of the rows.
    ///
    /// # Errors
    /// As [`SortedReplica::read`].
    pub fn positions(&self, rows: Range<u64>, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        let mut buffer = self.buffer();
        let mut at = rows.start;
        while at < rows.end {
            let end = rows.end.min((at / ROWS_AT_ONCE + 1) * ROWS_AT_ONCE);
            self.arrays.read(self.meta.columns.len(), at..end, &mut buffer)?;
            match row_dtype(self.rows()) {
                DType::U32 => out.extend(buffer.as_slice::<u32>().iter().map(|&p| u64::from(p))),
                _ => out.extend_from_slice(buffer.as_slice::<u64>()),
            }
            at = end;
        }
        self.recycle(buffer);
        match out.iter().max() {
            Some(&last) if last >= self.rows() => {
                Err(Error::new(ErrorKind::CorruptIndex, format!("no position {last} in the source")))
            }
            _ => Ok(()),
        }
    }

    /// Bytes asked of the storage.
    pub fn bytes_read(&self) -> u64 {
        self.arrays.counters.snapshot().bytes_read
    }

    /// Reads made.
    pub fn requests(&self) -> u64 {
        self.arrays.counters.snapshot().requests
    }

    /// The intervals of `set` as codes, within those of the key's type.
    fn code_ranges(&self, set: &KeySet) -> impl Iterator<Item = (u64, u64)> {
        let dtype = self.meta.columns[0].dtype;
        let (first, last) = keys::key_range(dtype);
        (set.ranges.iter())
            .map(move |&(low, high)| (low.max(first), high.min(last)))
            .filter(|(low, high)| low <= high)
            .map(move |(low, high)| (code_of_key(dtype, low), code_of_key(dtype, high)))
    }

    /// Bounds of the first row of a condition that `fences` of the fences do not fulfil.
    fn bounds(&self, fences: usize) -> (u64, u64) {
        let chunk = self.meta.layout.chunk as u64;
        match fences as u64 {
            0 => (0, 0),
            n => ((n - 1) * chunk + 1, (n * chunk).min(self.meta.numbers)),
        }
    }

    fn buffer(&self) -> Buffer {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn recycle(&self, buffer: Buffer) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// A search for rows, which keeps the chunk that it last read: ends of slices are often neighbours.
struct Search<'a> {
    replica: &'a SortedReplica,
    chunk: Option<u64>,
    buffer: Buffer,
}

impl Search<'_> {
    fn first_above(&mut self, code: u64) -> Result<u64> {
        match code.checked_add(1) {
            Some(next) => self.first_at_least(next),
            None => Ok(self.replica.meta.numbers),
        }
    }

    /// The first row whose key's code is at least `code`; the number of numbers where there is none.
    fn first_at_least(&mut self, code: u64) -> Result<u64> {
        let Some(chunk) = self.replica.fences.partition_point(|&f| f < code).checked_sub(1) else {
            return Ok(0);
        };
        self.load(chunk)?;
        let dtype = self.replica.meta.columns[0].dtype;
        let (mut low, mut high) = (0, self.buffer.bytes().len() / dtype.size());
        while low < high {
            let middle = low + (high - low) / 2;
            match code_at(dtype, self.buffer.bytes(), middle) < code {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let row = chunk as u64 * self.replica.meta.layout.chunk as u64 + low as u64;
        Ok(row.min(self.replica.meta.numbers))
    }

    /// Reads the keys of a chunk, whose first and last must agree with the fences around it.
    fn load(&mut self, chunk: usize) -> Result<()> {
        if self.chunk == Some(chunk as u64) {
            return Ok(());
        }
        self.chunk = None;
        let replica = self.replica;
        let (first, len) =
            (chunk as u64 * replica.meta.layout.chunk as u64, replica.meta.layout.chunk as u64);
        let rows = first..replica.rows().min(first + len);
        let last = (rows.end - rows.start) as usize - 1;
        replica.arrays.read(0, rows, &mut self.buffer)?;
        let code = |i| code_at(replica.meta.columns[0].dtype, self.buffer.bytes(), i);
        let next = replica.fences.get(chunk + 1).copied().unwrap_or(u64::MAX);
        if code(0) != replica.fences[chunk] || code(last) > next {
            return Err(Error::new(
                ErrorKind::CorruptIndex,
                format!("the keys of chunk {chunk} are not those that the fences announce"),
            ));
        }
        self.chunk = Some(chunk as u64);
        Ok(())
    }
}

/// The type of positions of that many rows.
pub(super) fn row_dtype(rows: u64) -> DType {
    if rows <= 1 << 32 { DType::U32 } else { DType::U64 }
}

/// The codes of the fences: those of this build, ascending, NaN from where the metadata says on.
fn read_fences(meta: &Meta, arrays: &Arrays) -> Result<Vec<u64>> {
    let dtype = meta.columns[0].dtype;
    let (chunks, mut buffer) = (meta.layout.chunks(meta.rows()), Buffer::default());
    arrays.read(meta.columns.len() + 1, 0..chunks, &mut buffer)?;
    let mut codes = vec![0; buffer.bytes().len() / dtype.size()];
    for_each_code(dtype, buffer.bytes(), |i, code| codes[i] = code);
    swap_little_endian(buffer.bytes_mut(), dtype.size());
    let numbers = meta.layout.chunks(meta.numbers) as usize;
    let nan = nan_code(dtype);
    let fits = crc32c::crc32c(buffer.bytes()) == meta.fences
        && codes.is_sorted()
        && (codes.iter().enumerate()).all(|(i, &code)| (i >= numbers) == (Some(code) == nan));
    if fits {
        return Ok(codes);
    }
    Err(Error::new(ErrorKind::CorruptIndex, "the fences are not those of the replica"))
}
