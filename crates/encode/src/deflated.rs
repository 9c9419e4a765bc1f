//! A result whose values lie in deflated chunks: any of them can be made at any time, but where they lie is known when
//! all that come before have been made.
//!
//! So the file has two ways out. Who takes it whole, in any order, gets the chunks as they are made, by all threads, and
//! the head that tells their places at last: nothing is kept. Who asks for its length, or for a part of it, has it
//! written first, to a temporary file.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use libdeflater::{CompressionError, CompressionLvl, Compressor};
use sieva::{Attr, Error, ErrorKind, Result, ResultColumns};

use crate::elements::{Order, encode};
use crate::encoded::Encoded;
use crate::hdf5::chunked::{Chunked, Stored, is_shuffled};
use crate::spool::{Spool, failed};
use crate::variable::Variable;

/// The highest level: libdeflate has slower ones, which zlib does not know.
pub(crate) const MOST_LEVEL: u32 = 9;

/// A file of deflated chunks.
pub(crate) struct Deflated {
    rows: ResultColumns,
    variables: Vec<Variable>,
    attrs: Vec<Attr>,
    plan: Chunked,
    /// Where it is written to be read in parts, and how much may be.
    spool: (PathBuf, u64),
    written: Mutex<Option<Arc<Spool>>>,
}

/// Chunks of one variable that are made at once, because their rows share chunks of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    variable: usize,
    /// Numbers among those of the variable.
    chunks: Range<u64>,
    /// Number of the chunk behind it among those of the file.
    pub next: u64,
    /// Bytes of its values.
    pub raw: u64,
}

impl Deflated {
    /// The file of these rows.
    pub fn new(
        rows: ResultColumns,
        variables: Vec<Variable>,
        attrs: Vec<Attr>,
        plan: Chunked,
        spool: (PathBuf, u64),
    ) -> Self {
        Self { rows, variables, attrs, plan, spool, written: Mutex::default() }
    }

    /// Bytes before the first chunk.
    pub fn head_len(&self) -> u64 {
        self.plan.head
    }

    /// Chunks of the file.
    pub fn chunks(&self) -> u64 {
        self.plan.chunks.iter().map(|c| c.count).sum()
    }

    /// The part that begins with chunk `first` of the file and is best made at once; of at most `most` bytes, or of one
    /// chunk. `None` behind the last.
    pub fn part(&self, first: u64, most: u64) -> Option<Part> {
        let mut before = 0;
        let found = self.plan.chunks.iter().position(|c| {
            before += c.count;
            first < before
        });
        let variable = found?;
        let chunks = self.plan.chunks[variable];
        let begin = first - (before - chunks.count);
        let width = self.variables[variable].width() as u64;
        let row = begin * chunks.rows;
        let wanted = (row + chunks.rows).min(self.plan.rows);
        let limit = (row + most / width).clamp(wanted, self.plan.rows);
        let end_row = self.rows.part_end(variable, row, wanted, limit);
        // A part that ends within a chunk would leave it to two.
        let end = if end_row >= self.plan.rows { chunks.count } else { end_row / chunks.rows };
        let end = end.clamp(begin + 1, chunks.count);
        let last_row = (end * chunks.rows).min(self.plan.rows);
        Some(Part { variable, chunks: begin..end, next: first + end - begin, raw: (last_row - row) * width })
    }

    /// The chunks of a part, one behind the other in `out`, and how each is stored.
    ///
    /// # Errors
    /// Reading errors; `stale-source`; `invalid-value` where a value is equal to the fill value.
    pub fn make(&self, part: &Part, out: &mut Vec<u8>) -> Result<Vec<Stored>> {
        self.rows.query().source().reader().store().check_unchanged()?;
        let (variable, chunks) = (&self.variables[part.variable], self.plan.chunks[part.variable]);
        let width = variable.width();
        let rows = part.chunks.start * chunks.rows..(part.chunks.end * chunks.rows).min(self.plan.rows);
        let mut values = vec![0; (rows.end - rows.start) as usize * width];
        encode(&self.rows.read(part.variable, rows, 1)?, variable, Order::Little, &mut values)?;
        let mut compressor = Compressor::new(level(self.plan.level())?);
        let chunk = chunks.rows as usize * width;
        let mut shuffled = vec![0; if is_shuffled(variable) { chunk } else { 0 }];
        let mut scratch = vec![0; chunk];
        out.clear();
        let mut stored = Vec::with_capacity((part.chunks.end - part.chunks.start) as usize);
        for number in 0..part.chunks.end - part.chunks.start {
            let begin = number as usize * chunk;
            // The last one is stored whole, as all are.
            if values.len() < begin + chunk {
                values.resize(begin + chunk, 0);
            }
            let plain = &values[begin..begin + chunk];
            let input = if is_shuffled(variable) {
                shuffle(plain, width, &mut shuffled);
                &shuffled
            } else {
                plain
            };
            stored.push(compress(&mut compressor, input, plain, &mut scratch, out));
        }
        Ok(stored)
    }

    /// The head of the file.
    ///
    /// # Errors
    /// None that the plan did not have.
    pub fn head(&self, stored: &[Stored]) -> Result<Vec<u8>> {
        self.plan.head(&self.variables, &self.attrs, stored)
    }

    /// The file, written once, to be read in parts. `whole` is this file.
    ///
    /// # Errors
    /// Reading errors; `memory-limit` where it has more bytes than it may; `io-error` of writing.
    pub fn written(&self, whole: &Encoded) -> Result<Arc<Spool>> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spool) = &*written {
            return Ok(Arc::clone(spool));
        }
        let (dir, limit) = &self.spool;
        let (mut spool, head) = Spool::write(dir, *limit, |out| {
            use std::io::Write;
            // The room of the head, which comes last.
            std::io::copy(&mut std::io::Read::take(std::io::repeat(0), self.head_len()), out)
                .map_err(|e| failed(&e))?;
            let stream = whole.stream_any_order(crate::BLOCK)?;
            let (mut block, mut head) = (vec![0; crate::BLOCK], Vec::new());
            loop {
                let (offset, n) = stream.next_block(&mut block)?;
                match (offset < self.head_len(), n) {
                    (_, 0) => return Ok(head),
                    (true, n) => head.extend(&block[..n]),
                    (false, n) => out.write_all(&block[..n]).map_err(|e| failed(&e))?,
                }
            }
        })?;
        spool.rewrite(&head)?;
        let spool = Arc::new(spool);
        *written = Some(Arc::clone(&spool));
        Ok(spool)
    }
}

/// A level that zlib has.
///
/// # Errors
/// `invalid-value`.
pub(crate) fn level(n: u32) -> Result<CompressionLvl> {
    let known = i32::try_from(n).ok().filter(|_| (1..=MOST_LEVEL).contains(&n));
    known.and_then(|n| CompressionLvl::new(n).ok()).ok_or_else(|| {
        let message =
            format!("deflate={n}: levels are 0 (not compressed), and 1 (fast) to {MOST_LEVEL} (small)");
        Error::new(ErrorKind::InvalidValue, message)
    })
}

/// Appends a chunk: `input` compressed, or where that is no smaller, `plain`. `scratch` is as long as they are.
fn compress(
    compressor: &mut Compressor,
    input: &[u8],
    plain: &[u8],
    scratch: &mut [u8],
    out: &mut Vec<u8>,
) -> Stored {
    let made = compressor.zlib_compress(input, scratch);
    let bytes = match &made {
        Ok(n) => &scratch[..*n],
        Err(CompressionError::InsufficientSpace) => plain,
    };
    out.extend_from_slice(bytes);
    Stored { bytes: bytes.len() as u32, deflated: made.is_ok() }
}

/// Brings the first bytes of all values together, then the second ones, and so on.
fn shuffle(values: &[u8], width: usize, to: &mut [u8]) {
    // Of a width that is known the compiler makes vector instructions.
    fn planes<const W: usize>(values: &[u8], to: &mut [u8]) {
        let n = values.len() / W;
        for (place, plane) in to.chunks_exact_mut(n.max(1)).enumerate() {
            for (byte, value) in plane.iter_mut().zip(values.as_chunks::<W>().0) {
                *byte = value[place];
            }
        }
    }
    match width {
        2 => planes::<2>(values, to),
        4 => planes::<4>(values, to),
        _ => planes::<8>(values, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_brought_together() {
        let mut to = [0; 8];
        shuffle(&[1, 2, 3, 4, 5, 6, 7, 8], 4, &mut to);
        assert_eq!(to, [1, 5, 2, 6, 3, 7, 4, 8]);
        shuffle(&[1, 2, 3, 4, 5, 6, 7, 8], 2, &mut to);
        assert_eq!(to, [1, 3, 5, 7, 2, 4, 6, 8]);
        shuffle(&[1, 2, 3, 4, 5, 6, 7, 8], 8, &mut to);
        assert_eq!(to, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn what_does_not_become_smaller_is_stored_as_it_is() {
        let mut compressor = Compressor::new(level(1).unwrap());
        let mut out = vec![9];
        let noise: Vec<u8> =
            (0..4096_u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let stored = compress(&mut compressor, &noise[..64], &noise[64..128], &mut [0; 64], &mut out);
        assert_eq!(stored, Stored { bytes: 64, deflated: false });
        assert_eq!(out[1..], noise[64..128]);
        let stored = compress(&mut compressor, &[0; 4096], &[0; 4096], &mut [0; 4096], &mut out);
        assert!(stored.deflated && stored.bytes < 64);
        assert_eq!(out.len(), 65 + stored.bytes as usize);
        assert!(level(0).is_err() && level(10).is_err());
    }
}
