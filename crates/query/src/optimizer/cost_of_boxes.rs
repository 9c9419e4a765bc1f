//! The most that reading boxes of an array takes, from its layout alone.

use sieva_format::layout::{ChunkIndex, Layout, Placement};
use sieva_types::Bx;

use super::price::UNBOUNDED;
use crate::exec::Execution;
use crate::exec::tile::Tiles;

/// Chunks of a box that are looked at one by one; of more each is taken to be the largest of the array.
const MOST_CHUNKS: u64 = 1 << 10;
/// Rows are read together with what lies between where at least one of so many bytes is wanted, or where it is no more than
/// so many bytes.
const LEAST_DENSITY: u64 = 8;
const FREE: u64 = 16 << 10;
/// What a chunk takes in a cache besides its bytes.
const ENTRY_BYTES: u64 = 256;
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

    pub(super) fn max(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes), requests: self.requests.max(other.requests) }
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
    /// The most that reading the array's part of each of `boxes` of the row space takes; `scattered` is whether single
    /// elements of them may be read.
    pub(super) fn cost_of_listed(&self, array: usize, boxes: &[Bx], scattered: bool) -> Cost {
        let mut all = Cost::default();
        for bx in boxes {
            let own = self.own_box(array, bx);
            // A single element tells whether a computed condition holds in all of the box, and is looked at before.
            let times = if scattered && own.len() == 1 { 4 } else { 1 };
            all.add(self.cost_of_box(array, &own, scattered).times(times));
        }
        self.with_whole(array, all, boxes.len() as u64)
    }

    /// The same of all tiles along some axes of the row space.
    pub(super) fn cost_of_grid(&self, array: usize, tiles: &Tiles, axes: &[usize], scattered: bool) -> Cost {
        let place = |a: &usize| axes.iter().position(|x| x == a);
        let own: Vec<Option<usize>> = self.bound.arrays[array].axes.iter().map(place).collect();
        let others = (0..axes.len()).filter(|d| !own.contains(&Some(*d)));
        let repeats = others.map(|d| tiles.count_along(&[d]) as u64).fold(1_u64, u64::saturating_mul);
        let layout = self.readers[array].layout();
        let uncut = Bx::whole(&own.iter().map(|d| d.map_or(1, |d| tiles.shape()[d])).collect::<Vec<_>>());
        let mut cost = match &layout.placement {
            Placement::Chunks(index) if !self.source.store().is_remote() => {
                chunks_of_grid(layout, index, tiles, &own).times(repeats)
            }
            // None of them is larger than one that no edge cuts.
            _ => self.cost_of_box(array, &uncut, scattered).times(tiles.len() as u64),
        };
        if scattered {
            // Those of a single element are looked at more than once: all of them, or some at the corners.
            let corners = if uncut.len() == 1 {
                tiles.len() as u64
            } else {
                repeats.saturating_mul(1 << uncut.rank().min(32))
            };
            let looked_at = self.cost_of_block(array).times(corners.saturating_mul(3));
            cost.add(looked_at.min(cost.times(3)));
        }
        self.with_whole(array, cost, tiles.len() as u64)
    }

    /// Of an array that is kept whole once something of it was read, all of it; for each of `n` boxes anew where it may be
    /// driven out.
    fn with_whole(&self, array: usize, cost: Cost, n: u64) -> Cost {
        let whole = self.whole_if_kept(array);
        if whole.bytes == 0 {
            return cost;
        }
        cost.max(whole.times(if self.may_be_driven_out() { n } else { 1 }))
    }

    /// Whether the query may read more than it may keep.
    fn may_be_driven_out(&self) -> bool {
        let held = self.readers.iter().enumerate().map(|(array, reader)| {
            let layout = reader.layout();
            let chunks = match &layout.placement {
                Placement::Chunks(index) => index.stored() as u64,
                _ => 1,
            };
            // Values at the rows that were fetched are kept, too.
            let values = self.positions().saturating_mul(self.element_bytes(array).saturating_mul(2));
            let decoded = match &layout.placement {
                Placement::Direct { .. } => self.cost_of_whole(array).bytes,
                _ => layout.chunk_bytes.saturating_add(ENTRY_BYTES).saturating_mul(chunks),
            };
            decoded.saturating_add(values).saturating_add(ENTRY_BYTES)
        });
        held.fold(0, u64::saturating_add) > self.options.memory / 4
    }

    /// The positions of the rows.
    fn positions(&self) -> u64 {
        self.bound.rows.shape.iter().fold(1, |n: u64, &m| n.saturating_mul(m))
    }

    fn whole_if_kept(&self, array: usize) -> Cost {
        let reader = &self.readers[array];
        let is_plain = matches!(reader.layout().placement, Placement::Direct { .. });
        if is_plain && reader.is_kept_whole() { self.cost_of_whole(array) } else { Cost::default() }
    }

    /// The most that reading an array takes once for all rows in their order, in `parts` that follow one another.
    pub(super) fn cost_in_order(&self, array: usize, parts: u64) -> Cost {
        let (whole, layout) = (self.cost_of_whole(array), self.readers[array].layout());
        let anywhere = whole.times(parts);
        let Placement::Chunks(index) = &layout.placement else { return anywhere };
        if !self.spans_rows(array) || layout.chunk_shape.len() < self.bound.rows.shape.len() {
            return anywhere;
        }
        // Where one part ends and the next begins, chunks of one band at most have positions on both sides.
        let shape = &self.bound.rows.shape;
        let cut = (0..shape.len()).find(|&d| shape[d] > 1 && layout.chunk_shape[d] > 1);
        let band = match cut {
            None => Cost::default(),
            Some(d) => largest_band(layout, index, d),
        };
        let mut cost = whole;
        cost.add(band.times(parts.saturating_sub(1)));
        cost.min(anywhere)
    }

    /// The most that reading an array whole takes.
    pub(super) fn cost_of_whole(&self, array: usize) -> Cost {
        let shape = &self.source.schema().arrays[self.bound.arrays[array].index].shape;
        self.cost_of_box(array, &Bx::whole(shape), true)
    }

    /// What reading usually takes that takes so much at most: nothing twice, and chunks that are not encoded in one request.
    pub(super) fn usual(&self, array: usize, most: Cost) -> Cost {
        let shape = &self.source.schema().arrays[self.bound.arrays[array].index].shape;
        let cost = most.min(self.cost_of_box(array, &Bx::whole(shape), false));
        let layout = self.readers[array].layout();
        match &layout.placement {
            Placement::Chunks(_) => {
                Cost { requests: cost.requests.div_ceil(requests_of_chunk(layout).max(1)), ..cost }
            }
            _ => cost,
        }
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
                let bytes = self.cost_of_whole(array).bytes.min(2 << 20).max(self.whole_if_kept(array).bytes);
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
    let rows = rows(shape);
    // What lies between rows is read where it is not much more than what is wanted.
    let wanted = shape.iter().fold(layout.element_size as u64, |n, &m| n.saturating_mul(m));
    let apart = wanted.saturating_mul(LEAST_DENSITY).saturating_add(rows.saturating_mul(FREE));
    let all = span(shape, &layout.strides);
    let bytes = if scattered { all } else { all.min(apart) };
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

/// All chunks, each as often as tiles have a part of it; `own` are the axes of the tiles that those of the array are.
fn chunks_of_grid(layout: &Layout, index: &ChunkIndex, tiles: &Tiles, own: &[Option<usize>]) -> Cost {
    let (grid, each) = (layout.grid(), requests_of_chunk(layout));
    let touching = |k: usize, i: u64| {
        let Some(d) = own.get(k).copied().flatten() else { return 1 };
        let (size, tile, area) = (layout.chunk_shape[k].max(1), tiles.shape()[d].max(1), tiles.area());
        let (low, high) = ((i * size).max(area.start[d]), (i + 1).saturating_mul(size).min(area.end(d)));
        if low < high { (high - 1) / tile - low / tile + 1 } else { 0 }
    };
    let mut cost = Cost::default();
    for (number, chunk) in index.numbered() {
        let (mut rest, mut times) = (number, 1_u64);
        for k in (0..grid.len()).rev() {
            times = times.saturating_mul(touching(k, rest % grid[k].max(1)));
            rest /= grid[k].max(1);
        }
        cost.add(Cost { bytes: chunk.size, requests: each }.times(times));
    }
    cost
}

/// The chunks that have one index along dimension `d` and all those before: the most of them.
fn largest_band(layout: &Layout, index: &ChunkIndex, d: usize) -> Cost {
    let inner = layout.grid()[d + 1..].iter().fold(1_u64, |n, &m| n.saturating_mul(m.max(1)));
    let each = requests_of_chunk(layout);
    let (mut largest, mut band, mut at) = (Cost::default(), Cost::default(), 0);
    for (number, chunk) in index.numbered() {
        if number / inner != at {
            (at, band) = (number / inner, Cost::default());
        }
        band.add(Cost { bytes: chunk.size, requests: each });
        largest =
            Cost { bytes: largest.bytes.max(band.bytes), requests: largest.requests.max(band.requests) };
    }
    largest
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
