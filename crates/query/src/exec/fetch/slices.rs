//! Sorted positions of an array, cut by the blocks in which they lie.
//!
//! What selections have in common is that positions come in rows of the innermost dimension: work is done for each row of
//! each block, and positions within one are copied, so that a dense selection costs little more than its bytes.

use std::ops::Range;

use sieva_types::Bx;

/// Positions that lie in one block and in one row of the innermost dimension: which of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Number of the block in C order.
    block: u64,
    /// Number of the row in C order.
    row: u64,
    /// Where in the list they stand.
    pub at: Range<usize>,
}

/// The slices of one block, and the bounding box of their positions.
pub struct Job {
    pub slices: Range<usize>,
    pub bx: Bx,
}

/// Ascending positions of an array, in slices ordered by block.
pub struct Slices<'p> {
    positions: &'p [u64],
    shape: &'p [u64],
    /// Whether no position is there twice.
    is_strict: bool,
    pub all: Vec<Slice>,
}

impl<'p> Slices<'p> {
    /// Cuts `positions`, which ascend, of an array of shape `shape` that is read in blocks of shape `block`.
    pub fn new(positions: &'p [u64], shape: &'p [u64], block: &[u64]) -> Self {
        let (inner, width) = innermost(shape, block);
        let (mut all, mut at, mut row, mut base) = (Vec::new(), 0, u64::MAX, 0);
        let across = inner.div_ceil(width);
        while let Some(&p) = positions.get(at) {
            if row == u64::MAX || p - row * inner >= inner {
                row = p / inner;
                base = outer_block(row, shape, block) * across;
            }
            let start = row * inner;
            let number = (p - start) / width;
            let end = start + ((number + 1) * width).min(inner);
            let n = positions[at..].iter().take_while(|&&p| p < end).count();
            all.push(Slice { block: base + number, row, at: at..at + n });
            at += n;
        }
        all.sort_unstable_by_key(|s: &Slice| (s.block, s.at.start));
        Self { positions, shape, is_strict: positions.is_sorted_by(|a, b| a < b), all }
    }

    /// One job for each block.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        let mut first = 0;
        for group in self.all.chunk_by(|a, b| a.block == b.block) {
            jobs.push(Job { slices: first..first + group.len(), bx: self.bounding_box(group) });
            first += group.len();
        }
        jobs
    }

    /// The smallest box in which all positions of some slices lie.
    fn bounding_box(&self, group: &[Slice]) -> Bx {
        let (rank, inner) = (self.shape.len(), self.shape.last().copied().unwrap_or(1));
        let (mut low, mut high) = (vec![u64::MAX; rank], vec![0; rank]);
        let mut seen = u64::MAX;
        for slice in group {
            let columns = [slice.at.start, slice.at.end - 1].map(|i| self.positions[i] - slice.row * inner);
            if let (Some(low), Some(high)) = (low.last_mut(), high.last_mut()) {
                (*low, *high) = ((*low).min(columns[0]), (*high).max(columns[1]));
            }
            if slice.row == seen {
                continue;
            }
            seen = slice.row;
            let mut rest = slice.row;
            for d in (0..rank.saturating_sub(1)).rev() {
                let index = rest % self.shape[d];
                (low[d], high[d]) = (low[d].min(index), high[d].max(index));
                rest /= self.shape[d];
            }
        }
        let extent = low.iter().zip(&high).map(|(l, h)| h - l + 1).collect();
        Bx::new(low, extent)
    }

    /// Where in the dense box `bx` the row of a slice begins, as if the box began with the array's first column:
    /// what is to be added to a position of the slice to find its element.
    fn shift(&self, slice: &Slice, bx: &Bx) -> i64 {
        let rank = self.shape.len();
        let Some(last) = rank.checked_sub(1) else { return 0 };
        let (mut rest, mut at, mut stride) = (slice.row, 0, bx.shape[last]);
        for d in (0..last).rev() {
            at += (rest % self.shape[d] - bx.start[d]) * stride;
            rest /= self.shape[d];
            stride *= bx.shape[d];
        }
        at as i64 - (slice.row * self.shape[last] + bx.start[last]) as i64
    }

    /// Places in the dense box `bx` of the elements of a slice.
    pub fn places<'s>(&'s self, slice: &Slice, bx: &Bx) -> impl Iterator<Item = usize> + use<'s, 'p> {
        let shift = self.shift(slice, bx);
        self.positions[slice.at.clone()].iter().map(move |&p| (p as i64 + shift) as usize)
    }

    /// Appends the elements of a slice, of `size` bytes each, from the bytes of the dense box `bx`.
    pub fn pick(&self, slice: &Slice, bx: &Bx, block: &[u8], size: usize, out: &mut Vec<u8>) {
        let positions = &self.positions[slice.at.clone()];
        let shift = self.shift(slice, bx);
        let first = (positions[0] as i64 + shift) as usize;
        if self.is_strict && positions[positions.len() - 1] - positions[0] + 1 == positions.len() as u64 {
            out.extend_from_slice(&block[first * size..(first + positions.len()) * size]);
            return;
        }
        match size {
            1 => by::<1>(block, positions, shift, out),
            2 => by::<2>(block, positions, shift, out),
            4 => by::<4>(block, positions, shift, out),
            _ => by::<8>(block, positions, shift, out),
        }
    }
}

fn by<const N: usize>(block: &[u8], positions: &[u64], shift: i64, out: &mut Vec<u8>) {
    let (block, start) = (block.as_chunks::<N>().0, out.len());
    out.resize(start + positions.len() * N, 0);
    for (slot, &p) in out[start..].as_chunks_mut::<N>().0.iter_mut().zip(positions) {
        *slot = block[(p as i64 + shift) as usize];
    }
}

/// Lengths of the array and of a block along the innermost dimension.
fn innermost(shape: &[u64], block: &[u64]) -> (u64, u64) {
    (shape.last().map_or(1, |&n| n.max(1)), block.last().map_or(1, |&n| n.max(1)))
}

/// The number of the block, leaving the innermost dimension out, in which a row lies.
fn outer_block(row: u64, shape: &[u64], block: &[u64]) -> u64 {
    let (mut rest, mut number, mut stride) = (row, 0, 1);
    for d in (0..shape.len().saturating_sub(1)).rev() {
        number += rest % shape[d] / block[d] * stride;
        rest /= shape[d];
        stride *= shape[d].div_ceil(block[d]);
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An array's elements are their positions: what is picked must be the positions themselves.
    fn picked(positions: &[u64], shape: &[u64], block: &[u64]) -> Vec<u64> {
        let slices = Slices::new(positions, shape, block);
        let mut found = vec![u64::MAX; positions.len()];
        for job in slices.jobs() {
            let mut strides = vec![1; shape.len()];
            for d in (1..shape.len()).rev() {
                strides[d - 1] = strides[d] * shape[d];
            }
            let dense: Vec<u8> = (0..job.bx.len())
                .flat_map(|i| {
                    let (mut rest, mut p) = (i, 0);
                    for d in (0..shape.len()).rev() {
                        p += (job.bx.start[d] + rest % job.bx.shape[d]) * strides[d];
                        rest /= job.bx.shape[d];
                    }
                    p.to_ne_bytes()
                })
                .collect();
            assert!(job.bx.shape.iter().zip(block).all(|(b, most)| b <= most), "a box of one block");
            for slice in &slices.all[job.slices.clone()] {
                let mut out = Vec::new();
                slices.pick(slice, &job.bx, &dense, 8, &mut out);
                let values = out.as_chunks::<8>().0.iter().map(|b| u64::from_ne_bytes(*b));
                let places: Vec<usize> = slices.places(slice, &job.bx).collect();
                for ((i, value), place) in slice.at.clone().zip(values).zip(places) {
                    found[i] = value;
                    assert_eq!(dense[place * 8..][..8], value.to_ne_bytes());
                }
            }
        }
        found
    }

    #[test]
    fn a_scalar_and_an_empty_list() {
        assert_eq!(picked(&[0], &[], &[]), [0]);
        assert_eq!(picked(&[], &[4, 6], &[2, 3]), [0_u64; 0]);
    }

    proptest! {
        #[test]
        fn each_position_gets_its_own_element(
            dims in prop::collection::vec((1_u64..9, 1_u64..9), 1..5),
            seed in prop::collection::vec(any::<u64>(), 0..200),
            all in any::<bool>(),
        ) {
            let (shape, block): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
            let n: u64 = shape.iter().product();
            let mut positions: Vec<u64> = if all { (0..n).collect() } else { seed.iter().map(|s| s % n).collect() };
            positions.sort_unstable();
            let found = picked(&positions, &shape, &block);
            prop_assert_eq!(found, positions);
        }
    }
}
