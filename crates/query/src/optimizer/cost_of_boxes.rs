//! The most that reading boxes of an array takes, from its layout alone.

use sieva_format::layout::{ChunkIndex, Layout, Placement};
use sieva_types::Bx;

use super::price::UNBOUNDED;
use crate::exec::Execution;

/// Chunks of a box that are looked at one by one; of more each is taken to be the largest of the array.
const MOST_CHUNKS: u64 = 1 << 10;
/// Two ranges that are read apart lie at least this far from each other.
pub(super) const LEAST_GAP: u64 = 64;

/// Bytes, and the requests for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) bytes: u64,
    pub(super) requests: u64,
}

/// What is read at once where a single element is wanted, and the elements that it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) bytes: u64,
    pub(super) requests: u64,
    pub(super) positions: u64,
}

impl Block {
    pub(super) fn cost(self) -> Cost {
        Cost { bytes: self.bytes, requests: self.requests }
    }

    pub(super) fn times(self, n: u64) -> Cost {
        self.cost().times(n)
    }
}

impl Cost {
    const UNKNOWN: Self = Self { bytes: UNBOUNDED, requests: UNBOUNDED };

    pub(super) fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.requests = self.requests.saturating_add(other.requests);
    }

    pub(super) fn times(self, n: u64) -> Self {
        Self { bytes: self.bytes.saturating_mul(n), requests: self.requests.saturating_mul(n) }
    }

    pub(super) fn min(self, other: Self) -> Self {
        Self { bytes: self.bytes.min(other.bytes), requests: self.requests.min(other.requests) }
    }

    pub(super) fn share(self, share: f64) -> Self {
        let of = |n: u64| (n as f64 * share.clamp(0.0, 1.0)) as u64;
        Self { bytes: of(self.bytes), requests: of(self.requests).max(u64::from(self.requests > 0)) }
    }
}

impl Execution {
    /// The most that reading the array's part of each of `boxes` of the row space takes, where those stand for `n`;
    /// `scattered` is whether single elements of them may be read.
    pub(super) fn cost_of_tiles(&self, array: usize, boxes: &[Bx], n: u64, scattered: bool) -> Cost {
        let each = boxes.iter().map(|bx| self.cost_of_box(array, &self.own_box(array, bx), scattered));
        if boxes.len() as u64 == n {
            let mut all = Cost::default();
            each.for_each(|cost| all.add(cost));
            return all;
        }
        // None of them is larger than one that no edge cuts.
        let mut largest = Bx::whole(&[]);
        for bx in boxes {
            let own = self.own_box(array, bx);
            if own.len() > largest.len() || largest.rank() == 0 {
                largest = own;
            }
        }
        let layout = self.readers[array].layout();
        let touched = (0..largest.rank())
            .map(|d| (largest.shape[d].max(1) - 1) / layout.chunk_shape[d].max(1) + 2)
            .fold(1_u64, u64::saturating_mul);
        let cost = match &layout.placement {
            Placement::Chunks(_) => self.cost_of_block(array).times(touched),
            _ => self.cost_of_box(array, &largest, scattered),
        };
        cost.times(n)
    }

    /// The most that reading an array whole takes.
    pub(super) fn cost_of_whole(&self, array: usize) -> Cost {
        let shape = &self.source.schema().arrays[self.bound.arrays[array].index].shape;
        self.cost_of_box(array, &Bx::whole(shape), true)
    }

    /// The most that reading one element takes.
    pub(super) fn cost_of_block(&self, array: usize) -> Block {
        let layout = self.readers[array].layout();
        let positions = layout.chunk_shape.iter().fold(1_u64, |n, &m| n.saturating_mul(m));
        match &layout.placement {
            Placement::Chunks(index) => {
                let bytes = index.chunks().map(|c| c.size).max().unwrap_or(0);
                Block { bytes, requests: requests_of_chunk(layout), positions }
            }
            Placement::Direct { .. } => {
                // What lies within a block of rows may be read with it.
                let bytes = self.cost_of_whole(array).bytes.min(2 << 20);
                Block { bytes, requests: bytes / LEAST_GAP + 1, positions: 1 }
            }
            Placement::Unallocated | Placement::Inline(_) => Block { bytes: 0, requests: 0, positions },
            _ => Block { bytes: UNBOUNDED, requests: UNBOUNDED, positions },
        }
    }

    fn cost_of_box(&self, array: usize, own: &Bx, scattered: bool) -> Cost {
        let layout = self.readers[array].layout();
        let mut own = own.clone();
        if layout.char_dim {
            own.start.push(0);
            own.shape.push(layout.extent.last().copied().unwrap_or(0));
        }
        let Some(own) = own.intersect(&Bx::whole(&layout.extent)).filter(|b| !b.is_empty()) else {
            return Cost::default();
        };
        if self.source.store().is_remote() {
            return Cost::UNKNOWN;
        }
        match &layout.placement {
            Placement::Unallocated | Placement::Inline(_) => Cost::default(),
            Placement::Direct { .. } => plain(layout, &own.shape, scattered),
            Placement::Chunks(index) => chunks(layout, index, &own),
            Placement::Objects | Placement::Parts(_) | Placement::Library(_) | Placement::Foreign(_) => {
                Cost::UNKNOWN
            }
        }
    }

    /// Whether the bytes of an array's elements are those of the file, one after the other.
    pub(super) fn is_plain(&self, array: usize) -> bool {
        let layout = self.readers[array].layout();
        matches!(layout.placement, Placement::Direct { .. })
            && layout.extent == self.source.schema().arrays[self.bound.arrays[array].index].shape
    }
}

/// A box of elements that lie plainly: at most all that lies between the first and the last of them.
fn plain(layout: &Layout, shape: &[u64], scattered: bool) -> Cost {
    let span = |shape: &[u64], strides: &[u64]| {
        let last = shape.iter().zip(strides);
        last.fold(layout.element_size as u64, |sum: u64, (n, s)| {
            sum.saturating_add((n.max(&1) - 1).saturating_mul(*s))
        })
    };
    let bytes = span(shape, &layout.strides);
    let rows = rows(shape);
    // Elements that are read one by one lie apart, but rows and records are read one by one anyway.
    let is_dense = shape.len() == 1 && layout.strides.iter().all(|&s| s == layout.element_size as u64);
    let records = if is_dense { 0 } else { shape.first().copied().unwrap_or(0) };
    let single = if scattered { bytes / LEAST_GAP + 1 + records } else { 0 };
    Cost { bytes, requests: rows.max(single) }
}

fn chunks(layout: &Layout, index: &ChunkIndex, own: &Bx) -> Cost {
    let grid = layout.grid();
    let first: Vec<u64> = own.start.iter().zip(&layout.chunk_shape).map(|(s, c)| s / c.max(&1)).collect();
    let last: Vec<u64> = (0..own.rank()).map(|d| (own.end(d) - 1) / layout.chunk_shape[d].max(1)).collect();
    let touched = first.iter().zip(&last).fold(1_u64, |n, (a, b)| n.saturating_mul(b - a + 1));
    let each = requests_of_chunk(layout);
    if touched > MOST_CHUNKS {
        let (bytes, n) = index.chunks().fold((0_u64, 0_u64), |(b, n), c| (b.saturating_add(c.size), n + 1));
        return Cost { bytes, requests: n.min(touched).saturating_mul(each) };
    }
    let (mut cost, mut coords) = (Cost::default(), first.clone());
    loop {
        let number =
            coords.iter().zip(&grid).fold(0_u64, |n, (c, g)| n.saturating_mul(*g).saturating_add(*c));
        if let Some(chunk) = index.get(number) {
            cost.add(Cost { bytes: chunk.size, requests: each });
        }
        let Some(d) = (0..coords.len()).rev().find(|&d| coords[d] < last[d]) else { return cost };
        coords[d] += 1;
        coords[d + 1..].copy_from_slice(&first[d + 1..]);
    }
}

/// Requests for a chunk: of one that is not encoded its rows may be read one by one.
fn requests_of_chunk(layout: &Layout) -> u64 {
    if layout.pipeline.filters.is_empty() { rows(&layout.chunk_shape) } else { 1 }
}

/// Rows of the innermost dimension.
fn rows(shape: &[u64]) -> u64 {
    let outer = shape.len().saturating_sub(1);
    shape[..outer].iter().fold(1, |n: u64, &m| n.saturating_mul(m.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_and_never_wrap() {
        let mut cost = Cost { bytes: 10, requests: 1 };
        cost.add(Cost { bytes: 5, requests: 2 });
        assert_eq!(cost, Cost { bytes: 15, requests: 3 });
        assert_eq!(cost.times(2), Cost { bytes: 30, requests: 6 });
        assert_eq!(cost.share(0.1), Cost { bytes: 1, requests: 1 });
        cost.add(Cost::UNKNOWN);
        assert_eq!(cost.times(3), Cost::UNKNOWN);
        assert_eq!(rows(&[4, 5, 6]), 20);
        assert_eq!(rows(&[]), 1);
    }
}
