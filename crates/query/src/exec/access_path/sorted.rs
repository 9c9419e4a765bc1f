//! Rows found through a sorted replica: a range of the key is one slice of it.
//!
//! Conditions on other columns that the replica carries are tested on the slice, where the rows lie together;
//! values of those columns are fetched from it as well. Rows come back in the order of the source all the same.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use sieva_index::stats::Verdict;
use sieva_types::{Buffer, Bx, DType, Error, ErrorKind, KeySet, Result};

use super::path::{AccessPath, Offer, Question};
use crate::exec::access_path::replica_parts::{Part, parts_of, shared_out};
use crate::exec::access_path::source_order::SourceOrder;
use crate::exec::access_path::{Access, Replica};
use crate::exec::pool::fold;
use crate::exec::threads::lock;
use crate::exec::{ExecOptions, Execution};
use crate::mask::Mask;
use crate::raw::RawTest;

/// Rows whose values a thread puts in order at once.
const PIECE: usize = 1 << 15;

/// A condition on a column of the replica: the column, its type, and the stored values.
pub type Test = (usize, DType, KeySet);

/// The rows of one slice or more of a replica that satisfy conditions.
pub struct Chosen {
    replica: Arc<Replica>,
    /// Those of the slices.
    parts: Vec<Part>,
    /// Which rows of the parts, put together, are chosen; `None`: all.
    kept: Option<Mask>,
    order: SourceOrder,
    /// Of each column the values of the chosen rows, in the order of the replica, once they were read.
    columns: Vec<OnceLock<Buffer>>,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chosen({} rows)", self.count())
    }
}

/// Sorted replicas: they give the rows of a query as a whole, before there are tiles.
pub(super) struct SortedPath;

impl AccessPath for SortedPath {
    fn forced_by(&self) -> Option<Access> {
        Some(Access::Sorted)
    }

    fn is_there(&self, execution: &Execution, array: usize) -> bool {
        execution.indexes.replicas.iter().any(|r| r.key == execution.bound.arrays[array].index)
    }

    fn offer<'e>(&self, _: &'e Execution, _: &Question<'_>, _: Option<&Mask>) -> Option<Offer<'e>> {
        None
    }
}

/// Counts the rows of `slices` that pass all tests, and tells which; `None`: all of them.
pub fn test(
    replica: &Replica,
    slices: &[Range<u64>],
    tests: &[Test],
    (threads, cancel): (usize, &AtomicBool),
) -> Result<(Option<Mask>, u64)> {
    let n: u64 = slices.iter().map(|s| s.end - s.start).sum();
    if tests.is_empty() {
        return Ok((None, n));
    }
    let parts = parts_of(replica, slices, None);
    let found: Vec<Mutex<Option<Mask>>> = parts.iter().map(|_| Mutex::default()).collect();
    let tests: Vec<_> = tests.iter().map(|(c, dtype, set)| (*c, RawTest::new(*dtype, set))).collect();
    fold(parts.len(), threads, cancel, Buffer::default, |buffer, i| {
        let mut own = Mask::ones(parts[i].len());
        for (column, test) in &tests {
            if own.none() {
                break;
            }
            replica.replica.read(*column, parts[i].rows.clone(), buffer)?;
            let mut passed = Mask::zeros(own.len());
            test.test(buffer, passed.words_mut());
            own.and(&passed);
        }
        *lock(&found[i]) = Some(own);
        Ok(())
    })?;
    let mut kept = Mask::zeros(n as usize);
    for (part, own) in parts.iter().zip(&found) {
        if let Some(own) = &*lock(own) {
            kept.or_range(part.before, own, 0, own.len());
        }
    }
    let count = kept.count();
    Ok((Some(kept), count))
}

impl Chosen {
    /// The rows of `slices` that `kept` marks, in the order of the source.
    ///
    /// # Errors
    /// `corrupt-index`, `io-error`, `cancelled`.
    pub fn new(
        replica: Arc<Replica>,
        slices: &[Range<u64>],
        kept: Option<Mask>,
        options: &ExecOptions,
    ) -> Result<Self> {
        let parts = parts_of(&replica, slices, kept.as_ref());
        let order = SourceOrder::of(&replica, &parts, kept.as_ref(), options.threads, &options.cancel)?;
        let columns = replica.replica.columns().iter().map(|_| OnceLock::new()).collect();
        Ok(Self { replica, parts, kept, order, columns })
    }

    /// Number of rows.
    pub fn count(&self) -> u64 {
        self.order.len() as u64
    }

    /// The positions of some rows in the source, ascending.
    pub fn positions(&self, rows: Range<usize>) -> impl Iterator<Item = u64> + '_ {
        rows.map(|row| self.order.position(row))
    }

    /// Bytes that it takes for each row.
    pub const ROW_BYTES: u64 = 40;

    /// Whether all of its rows lie in a box of the row space.
    pub fn rows_in(&self, area: &Bx) -> bool {
        area.len() == self.replica.replica.rows()
    }

    /// Whether any of the rows can lie in a box of the row space.
    pub fn foresee(&self, shape: &[u64], bx: &Bx) -> Verdict {
        let Some((first, last)) = ends(shape, bx) else { return Verdict::None };
        let from = self.order.first_at_least(first);
        let is_there = from < self.order.len() && self.order.position(from) <= last;
        if is_there { Verdict::Some } else { Verdict::None }
    }

    /// The rows in a box of the row space.
    pub fn mask(&self, shape: &[u64], bx: &Bx) -> Mask {
        let mut mask = Mask::zeros(bx.len() as usize);
        let row = bx.shape.last().copied().unwrap_or(1);
        let rows = bx.len().checked_div(row).unwrap_or(0);
        for r in 0..rows {
            let first = linear(shape, bx, r);
            let from = self.order.first_at_least(first);
            for p in self.positions(from..self.order.len()).take_while(|&p| p < first + row) {
                mask.set((r * row + p - first) as usize);
            }
        }
        mask
    }

    /// The values of the schema's array `array` at `positions`, of `size` bytes each; `None` unless the replica
    /// carries it and the positions are consecutive ones of its own.
    ///
    /// # Errors
    /// `corrupt-index`, `io-error`, `cancelled`.
    pub fn fetch(
        &self,
        array: usize,
        positions: &[u64],
        (size, out): (usize, &mut [u8]),
        options: &ExecOptions,
    ) -> Result<Option<()>> {
        let Some(first) = positions.first() else { return Ok(Some(())) };
        let from = self.order.first_at_least(*first);
        let rows = from..from + positions.len();
        if rows.end > self.order.len() || !self.positions(rows.clone()).eq(positions.iter().copied()) {
            return Ok(None);
        }
        self.fetch_rows(array, rows, (size, out), options)
    }

    /// The same of rows by their numbers; `None` unless the replica carries the array.
    ///
    /// # Errors
    /// As [`Chosen::fetch`].
    pub fn fetch_rows(
        &self,
        array: usize,
        rows: Range<usize>,
        (size, out): (usize, &mut [u8]),
        options: &ExecOptions,
    ) -> Result<Option<()>> {
        let Some(&column) = self.replica.columns.get(&array) else { return Ok(None) };
        self.load(&[(array, size)], options)?;
        let Some(values) = self.columns[column].get() else { return Ok(None) };
        let starts: Vec<usize> = rows.clone().step_by(PIECE).collect();
        let of = |i: usize| starts[i]..rows.end.min(starts[i] + PIECE);
        let outs = shared_out(out, (0..starts.len()).map(|i| of(i).len() * size));
        fold(
            starts.len(),
            options.threads,
            &options.cancel,
            || (),
            |(), i| {
                let (rows, mut out) = (of(i), lock(&outs[i]));
                match size {
                    1 => self.order.take::<1>(values.bytes(), rows, &mut out),
                    2 => self.order.take::<2>(values.bytes(), rows, &mut out),
                    4 => self.order.take::<4>(values.bytes(), rows, &mut out),
                    _ => self.order.take::<8>(values.bytes(), rows, &mut out),
                }
                Ok(())
            },
        )?;
        Ok(Some(()))
    }

    /// Reads the columns of the schema's arrays, with the bytes of their elements, that the replica carries and that were not
    /// read yet.
    ///
    /// # Errors
    /// `corrupt-index`, `io-error`, `cancelled`.
    pub fn load(&self, arrays: &[(usize, usize)], options: &ExecOptions) -> Result<()> {
        let mut wanted: Vec<(usize, usize, Buffer)> = Vec::new();
        for (array, size) in arrays {
            let Some(&column) = self.replica.columns.get(array) else { continue };
            if self.columns[column].get().is_none() && wanted.iter().all(|(c, ..)| *c != column) {
                wanted.push((column, *size, self.replica.spare.take(self.order.len() * size)));
            }
        }
        let columns: Vec<(usize, usize)> = wanted.iter().map(|(column, size, _)| (*column, *size)).collect();
        let outs: Vec<Vec<Mutex<&mut [u8]>>> = wanted
            .iter_mut()
            .map(|(_, size, values)| {
                shared_out(values.bytes_mut(), self.parts.iter().map(|p| p.chosen * *size))
            })
            .collect();
        let jobs = columns.len() * self.parts.len();
        fold(jobs, options.threads, &options.cancel, Buffer::default, |buffer, job| {
            let (c, i) = (job / self.parts.len(), job % self.parts.len());
            let (column, size) = columns[c];
            self.read_part(column, size, &self.parts[i], buffer, &mut lock(&outs[c][i]))
        })?;
        drop(outs);
        for (column, _, values) in wanted {
            self.columns[column].get_or_init(|| values);
        }
        Ok(())
    }

    /// Reads a column of the chosen rows of a part.
    fn read_part(
        &self,
        column: usize,
        size: usize,
        part: &Part,
        buffer: &mut Buffer,
        out: &mut [u8],
    ) -> Result<()> {
        if part.chosen == 0 {
            return Ok(());
        }
        self.replica.replica.read(column, part.rows.clone(), buffer)?;
        let source = buffer.bytes();
        if source.len() != part.len() * size {
            let message = format!("column {column} of a sorted replica has no elements of {size} bytes");
            return Err(Error::new(ErrorKind::CorruptIndex, message));
        }
        if self.kept.is_none() {
            out.copy_from_slice(source);
            return Ok(());
        }
        let mut slots = out.chunks_exact_mut(size);
        part.for_each_chosen(self.kept.as_ref(), |row| {
            if let Some(slot) = slots.next() {
                slot.copy_from_slice(&source[row * size..][..size]);
            }
        });
        Ok(())
    }
}

impl Drop for Chosen {
    fn drop(&mut self) {
        let columns = self.columns.iter_mut().filter_map(OnceLock::take);
        let order = self.order.take_memory();
        columns.chain(order).for_each(|buffer| self.replica.spare.give(buffer));
    }
}

/// First and last position of a box of the row space.
fn ends(shape: &[u64], bx: &Bx) -> Option<(u64, u64)> {
    if bx.is_empty() {
        return None;
    }
    let (mut first, mut last) = (0, 0);
    for ((n, start), m) in shape.iter().zip(&bx.start).zip(&bx.shape) {
        first = first * n + start;
        last = last * n + start + m - 1;
    }
    Some((first, last))
}

/// The first position of innermost row `r` of a box.
pub(in crate::exec) fn linear(shape: &[u64], bx: &Bx, mut r: u64) -> u64 {
    let (mut at, mut stride) = (0, 1);
    for d in (0..shape.len()).rev() {
        let i = if d + 1 == shape.len() {
            0
        } else {
            let i = r % bx.shape[d];
            r /= bx.shape[d];
            i
        };
        at += (bx.start[d] + i) * stride;
        stride *= shape[d];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_boxes() {
        let (shape, bx) = ([4, 5, 6], Bx::new(vec![1, 2, 3], vec![2, 2, 2]));
        assert_eq!(ends(&shape, &bx), Some((45, 45 + 30 + 6 + 1)));
        assert_eq!((0..4).map(|r| linear(&shape, &bx, r)).collect::<Vec<_>>(), [45, 51, 75, 81]);
        assert_eq!(ends(&shape, &Bx::new(vec![0, 0, 0], vec![0, 5, 6])), None);
        assert_eq!((ends(&[], &Bx::whole(&[])), linear(&[], &Bx::whole(&[]), 0)), (Some((0, 0)), 0));
    }
}
