//! SourceOrder found through a sorted replica: a range of the key is one slice of it.
//!
//! Conditions on other columns that the replica carries are tested on the slice, where the rows lie together;
//! values of those columns are fetched from it as well. SourceOrder come back in the order of the source all the same.

use std::sync::{Arc, OnceLock};

use sieva_index::stats::Verdict;
use sieva_types::{Buffer, Bx, DType, KeySet, Result};

use crate::exec::access_path::Replica;
use crate::exec::order::radix::{PLACE_BITS, places_fit, sort};
use crate::mask::Mask;
use crate::raw::RawTest;

/// SourceOrder of a replica that are tested or copied at once.
const PIECE: u64 = 1 << 20;

/// A condition on a column of the replica: the column, its type, and the stored values.
pub type Test = (usize, DType, KeySet);

/// The rows of one slice or more of a replica that satisfy conditions.
pub struct Chosen {
    replica: Arc<Replica>,
    /// SourceOrder of the replica, ascending and disjoint.
    slices: Vec<std::ops::Range<u64>>,
    /// Which rows of the slices, put together, are chosen; `None`: all.
    kept: Option<Mask>,
    len: u64,
    rows: SourceOrder,
    columns: Vec<OnceLock<Buffer>>,
}

/// The chosen rows in the order of the source.
struct SourceOrder {
    /// C-order positions in the source, ascending.
    positions: Vec<u64>,
    /// For each, its place among the chosen rows in the order of the replica.
    places: Vec<u32>,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chosen({} rows of {:?})", self.len, self.slices)
    }
}

/// Counts the rows of `slices` that pass all tests, and tells which; `None`: all of them.
pub fn test(
    replica: &Replica,
    slices: &[std::ops::Range<u64>],
    tests: &[Test],
) -> Result<(Option<Mask>, u64)> {
    let n: u64 = slices.iter().map(|s| s.end - s.start).sum();
    if tests.is_empty() {
        return Ok((None, n));
    }
    let mut kept = Mask::ones(n as usize);
    let mut buffer = Buffer::default();
    for (column, dtype, set) in tests {
        let test = RawTest::new(*dtype, set);
        let mut at = 0;
        for piece in pieces(slices) {
            let rows = (piece.end - piece.start) as usize;
            replica.replica.read(*column, piece, &mut buffer)?;
            let mut found = Mask::zeros(rows);
            test.test(&buffer, found.words_mut());
            kept.and_range(at, &found, 0, rows);
            at += rows;
        }
    }
    let count = kept.count();
    Ok((Some(kept), count))
}

fn pieces(slices: &[std::ops::Range<u64>]) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
    slices
        .iter()
        .flat_map(|s| (s.start..s.end).step_by(PIECE as usize).map(|start| start..s.end.min(start + PIECE)))
}

impl Chosen {
    /// The rows of `slices` that `kept` marks (`len` of them), in the order of the source.
    ///
    /// # Errors
    /// `corrupt-index`, `io-error`.
    pub fn new(
        replica: Arc<Replica>,
        slices: Vec<std::ops::Range<u64>>,
        kept: Option<Mask>,
        len: u64,
    ) -> Result<Self> {
        let rows = if places_fit(replica.replica.rows(), len) {
            let mut packed = Vec::with_capacity(len as usize);
            for_each_position(&replica, &slices, kept.as_ref(), |position| {
                packed.push(position << PLACE_BITS | packed.len() as u64);
            })?;
            sort(&mut packed, replica.replica.rows());
            SourceOrder {
                positions: packed.iter().map(|p| p >> PLACE_BITS).collect(),
                places: packed.iter().map(|p| (p & ((1 << PLACE_BITS) - 1)) as u32).collect(),
            }
        } else {
            let mut pairs = Vec::with_capacity(len as usize);
            for_each_position(&replica, &slices, kept.as_ref(), |position| {
                pairs.push((position, pairs.len() as u32));
            })?;
            pairs.sort_unstable();
            let (positions, places) = pairs.into_iter().unzip();
            SourceOrder { positions, places }
        };
        let columns = replica.replica.columns().iter().map(|_| OnceLock::new()).collect();
        Ok(Self { replica, slices, kept, len, rows, columns })
    }

    /// Number of rows.
    pub fn count(&self) -> u64 {
        self.len
    }

    /// Their positions in the source, ascending.
    pub fn positions(&self) -> &[u64] {
        &self.rows.positions
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
        let from = self.rows.positions.partition_point(|&p| p < first);
        match self.rows.positions.get(from) {
            Some(&p) if p <= last => Verdict::Some,
            _ => Verdict::None,
        }
    }

    /// The rows in a box of the row space.
    pub fn mask(&self, shape: &[u64], bx: &Bx) -> Mask {
        let mut mask = Mask::zeros(bx.len() as usize);
        let row = bx.shape.last().copied().unwrap_or(1);
        let rows = bx.len().checked_div(row).unwrap_or(0);
        for r in 0..rows {
            let first = linear(shape, bx, r);
            let from = self.rows.positions.partition_point(|&p| p < first);
            for &p in self.rows.positions[from..].iter().take_while(|&&p| p < first + row) {
                mask.set((r * row + p - first) as usize);
            }
        }
        mask
    }

    /// The values of the schema's array `array` at `positions`, of `size` bytes each; `None` unless the replica
    /// carries it and the positions are consecutive ones of its own.
    ///
    /// # Errors
    /// `corrupt-index`, `io-error`.
    pub fn fetch(&self, array: usize, positions: &[u64], size: usize, out: &mut [u8]) -> Result<Option<()>> {
        let Some(&column) = self.replica.columns.get(&array) else { return Ok(None) };
        let Some(first) = positions.first() else { return Ok(Some(())) };
        let from = self.rows.positions.partition_point(|p| p < first);
        let here = from..from + positions.len();
        if self.rows.positions.get(here.clone()) != Some(positions) {
            return Ok(None);
        }
        let (values, places) = (self.column(column, size)?.bytes(), &self.rows.places[here]);
        match size {
            1 => take::<1>(values, places, out),
            2 => take::<2>(values, places, out),
            4 => take::<4>(values, places, out),
            _ => take::<8>(values, places, out),
        }
        Ok(Some(()))
    }

    /// The chosen rows' values of a column, in the order of the replica; read once.
    fn column(&self, column: usize, size: usize) -> Result<&Buffer> {
        if let Some(known) = self.columns[column].get() {
            return Ok(known);
        }
        let mut values = Buffer::default();
        if let (None, [slice]) = (&self.kept, &self.slices[..]) {
            self.replica.replica.read(column, slice.clone(), &mut values)?;
            return Ok(self.columns[column].get_or_init(|| values));
        }
        values.resize(self.len as usize * size);
        let (mut at, mut seen) = (0, 0);
        let mut buffer = Buffer::default();
        for piece in pieces(&self.slices) {
            let rows = (piece.end - piece.start) as usize;
            self.replica.replica.read(column, piece, &mut buffer)?;
            let source = buffer.bytes();
            match &self.kept {
                None => {
                    values.bytes_mut()[at..at + rows * size].copy_from_slice(&source[..rows * size]);
                    at += rows * size;
                }
                Some(kept) => {
                    let mut part = Mask::zeros(rows);
                    part.or_range(0, kept, seen, rows);
                    for i in part.ones_iter() {
                        values.bytes_mut()[at..at + size].copy_from_slice(&source[i * size..][..size]);
                        at += size;
                    }
                }
            }
            seen += rows;
        }
        Ok(self.columns[column].get_or_init(|| values))
    }
}

/// Copies the elements of `N` bytes at `places`.
fn take<const N: usize>(values: &[u8], places: &[u32], out: &mut [u8]) {
    let values = values.as_chunks::<N>().0;
    for (slot, &place) in out.as_chunks_mut::<N>().0.iter_mut().zip(places) {
        *slot = values[place as usize];
    }
}

/// Calls `with` for the position in the source of each chosen row, in the order of the replica.
pub fn for_each_position(
    replica: &Replica,
    slices: &[std::ops::Range<u64>],
    kept: Option<&Mask>,
    mut with: impl FnMut(u64),
) -> Result<()> {
    let mut positions = Vec::new();
    let mut seen = 0;
    for piece in pieces(slices) {
        let rows = (piece.end - piece.start) as usize;
        positions.clear();
        replica.replica.positions(piece, &mut positions)?;
        match kept {
            None => positions.iter().copied().for_each(&mut with),
            Some(kept) => {
                let mut part = Mask::zeros(rows);
                part.or_range(0, kept, seen, rows);
                part.ones_iter().for_each(|i| with(positions[i]));
            }
        }
        seen += rows;
    }
    Ok(())
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
