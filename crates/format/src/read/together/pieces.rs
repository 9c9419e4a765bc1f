//! What of a block of elements lies in a range of bytes: the intersection of a request with a part of the layout.
//!
//! A block (elements at `first + Σ index·stride`) meets a range of bytes in runs, which are dense on both sides and may
//! begin and end inside of an element, and in grids, which lie so densely that their span is read whole. All of it
//! follows from shape and strides: rows outside of the range are stepped over by division, not visited. Dimensions may lie in
//! any order (chunks of Zarr in Fortran's order); parts come in the order of their places where they lie in C order.

use std::ops::Range;

use crate::read::direct::{MAX_SPAN, MIN_DENSITY, is_dense};

/// A part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `len` bytes at `from` that go to `to`.
    Run { from: u64, to: u64, len: u64 },
    /// The first `rows` indices of dimension `depth`, and all of the inner ones, of a block that begins at `from`.
    Grid { from: u64, to: u64, rows: u64, depth: usize },
    /// Those of the positions `first..end` that are selected, which a [`super::task::Task`] finds in a row: the first of
    /// all lies at `from`, one comes `stride` bytes after the other, and the selected ones have `wanted` bytes.
    Marked { from: u64, first: u64, end: u64, stride: u64, wanted: u64 },
}

/// The shape of a grid of a block of `shape`.
pub(super) fn shape_of_grid(shape: &[u64], rows: u64, depth: usize) -> Vec<u64> {
    let mut shape = shape[depth..].to_vec();
    if let Some(first) = shape.first_mut() {
        *first = rows;
    }
    shape
}

/// A block of elements: where they lie, and where they go.
pub(super) struct Block<'a> {
    shape: &'a [u64],
    strides: &'a [u64],
    to: &'a [u64],
    /// From dimension d on: bytes from the first element's begin to the last one's end, on both sides, and bytes of
    /// elements.
    inner: Vec<(u64, u64, u64)>,
    /// The first dimension from which on the dimensions lie in the same order on both sides, the last one innermost.
    ordered: usize,
    /// Whether grids are rows of one dimension, however sparse: what is copied of them is known by their elements.
    by_rows: bool,
}

impl<'a> Block<'a> {
    /// A block of `shape`, of elements of `size` bytes; none of its extents is 0.
    pub(super) fn new(shape: &'a [u64], size: usize, strides: &'a [u64], to: &'a [u64]) -> Self {
        let mut inner = vec![(size as u64, size as u64, size as u64); shape.len() + 1];
        for d in (0..shape.len()).rev() {
            let (span, to_span, wanted) = inner[d + 1];
            let n = shape[d];
            let spread = |span: u64, stride: u64| span.saturating_add((n - 1).saturating_mul(stride));
            inner[d] = (spread(span, strides[d]), spread(to_span, to[d]), wanted.saturating_mul(n));
        }
        // A dimension of one index has no order, and its stride is not used.
        let is_outside =
            |d: usize| shape[d] == 1 || (strides[d] >= inner[d + 1].0 && to[d] >= inner[d + 1].1);
        let ordered = (0..shape.len()).rev().find(|&d| !is_outside(d)).map_or(0, |d| d + 1);
        Self { shape, strides, to, inner, ordered, by_rows: false }
    }

    /// The same, whose grids are rows of one dimension.
    pub(super) fn by_rows(self) -> Self {
        Self { by_rows: true, ..self }
    }

    /// Hands on what of the block, whose first element lies at `from` and goes to `to`, lies in `range`, in ascending
    /// order of the place. `passes` says of bytes (`to`, length) of the other side that nothing of them is wanted.
    pub(super) fn within(
        &self,
        (from, to): (u64, u64),
        range: &Range<u64>,
        passes: &dyn Fn(u64, u64) -> bool,
        emit: &mut dyn FnMut(Part),
    ) {
        let rows = self.shape.first().copied().unwrap_or(1);
        Walk { block: self, range, passes, emit }.go(0, rows, from, to);
    }
}

struct Walk<'a, 'b> {
    block: &'b Block<'a>,
    range: &'b Range<u64>,
    passes: &'b dyn Fn(u64, u64) -> bool,
    emit: &'b mut dyn FnMut(Part),
}

impl Walk<'_, '_> {
    /// The first `rows` rows of dimension `depth` of a block at `from`.
    fn go(&mut self, depth: usize, rows: u64, from: u64, to: u64) {
        let block = self.block;
        let (span, to_span, wanted) = match block.shape.get(depth) {
            None => block.inner[depth],
            Some(_) => {
                let (span, to_span, wanted) = block.inner[depth + 1];
                let spread = |span: u64, stride: u64| span.saturating_add((rows - 1).saturating_mul(stride));
                let spans = (spread(span, block.strides[depth]), spread(to_span, block.to[depth]));
                (spans.0, spans.1, wanted.saturating_mul(rows))
            }
        };
        let end = from.saturating_add(span);
        if from >= self.range.end || end <= self.range.start || (self.passes)(to, to_span) {
            return;
        }
        if span == wanted && to_span == wanted && depth >= block.ordered {
            let (first, last) = (from.max(self.range.start), end.min(self.range.end));
            return (self.emit)(Part::Run { from: first, to: to + (first - from), len: last - first });
        }
        let is_inside = self.range.start <= from && end <= self.range.end;
        let is_last = depth + 1 == block.shape.len();
        if is_inside && if block.by_rows { is_last } else { is_dense(span, wanted) } {
            return (self.emit)(Part::Grid { from, to, rows, depth });
        }
        if rows == 1 {
            let inner = block.shape.get(depth + 1).copied().unwrap_or(1);
            return self.go(depth + 1, inner, from, to);
        }
        self.split(depth, rows, from, to);
    }

    /// The same, row by row or as many rows at once as one span may take, without those outside of the range.
    fn split(&mut self, depth: usize, rows: u64, from: u64, to: u64) {
        let block = self.block;
        let (stride, row_span) = (block.strides[depth].max(1), block.inner[depth + 1].0);
        let before = self.range.start.saturating_sub(from);
        let first = if before < row_span { 0 } else { (before - row_span) / stride + 1 };
        let last = (self.range.end - from.min(self.range.end)).div_ceil(stride).min(rows);
        let step = self.step(depth, rows);
        let mut row = first;
        while row < last {
            let at = from.saturating_add(row.saturating_mul(stride));
            // As many as lie wholly within the range, or else one, which may be cut.
            let room = self.range.end.saturating_sub(at.saturating_add(row_span)) / stride + 1;
            let fits = at >= self.range.start && at.saturating_add(row_span) <= self.range.end;
            let take = if fits { step.min(room).min(last - row) } else { 1 };
            self.go(depth, take, at, to + row * block.to[depth]);
            row += take;
        }
    }

    /// The rows that are taken together.
    fn step(&self, depth: usize, rows: u64) -> u64 {
        let block = self.block;
        if block.by_rows {
            return if depth + 1 == block.shape.len() { rows } else { 1 };
        }
        let (span, _, wanted) = block.inner[depth + 1];
        let stride = block.strides[depth].max(1);
        let spans = span.saturating_add((rows - 1).saturating_mul(stride));
        let is_dense = spans <= MIN_DENSITY.saturating_mul(wanted.saturating_mul(rows));
        if is_dense { (MAX_SPAN / stride).clamp(1, (rows - 1).max(1)) } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::c_strides;

    /// Each byte of a block that lies in the range, as (from, to), by visiting all elements.
    fn by_hand(
        shape: &[u64],
        size: u64,
        strides: &[u64],
        to: &[u64],
        first: (u64, u64),
        range: &Range<u64>,
    ) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        for i in 0..shape.iter().product::<u64>() {
            let (mut rest, mut at, mut place) = (i, first.0, first.1);
            for d in (0..shape.len()).rev() {
                let index = rest % shape[d];
                (rest, at, place) = (rest / shape[d], at + index * strides[d], place + index * to[d]);
            }
            out.extend((0..size).map(|b| (at + b, place + b)).filter(|(at, _)| range.contains(at)));
        }
        out.sort_unstable();
        out
    }

    fn bytes_of(block: &Block<'_>, size: u64, first: (u64, u64), range: &Range<u64>) -> Vec<(u64, u64)> {
        let is_in_order = block.ordered == 0;
        let (mut out, mut lowest) = (Vec::new(), 0);
        block.within(first, range, &|_, _| false, &mut |part| {
            let from = match part {
                Part::Run { from, to, len } => {
                    out.extend((0..len).map(|b| (from + b, to + b)));
                    from
                }
                Part::Grid { from, to, rows, depth } => {
                    let shape = shape_of_grid(block.shape, rows, depth);
                    let (strides, places) = (&block.strides[depth..], &block.to[depth..]);
                    let span = crate::read::span_bytes(&shape, strides, size as usize);
                    assert!(from >= range.start && from + span <= range.end);
                    out.extend(by_hand(&shape, size, strides, places, (from, to), range));
                    from
                }
                Part::Marked { .. } => unreachable!("a block selects nothing"),
            };
            assert!(from >= lowest || !is_in_order, "parts ascend");
            lowest = from;
        });
        out.sort_unstable();
        out
    }

    #[test]
    fn any_ranges_cut_any_block_into_its_bytes() {
        let mut seed = 12345_u64;
        let mut draw = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for round in 0..3000 {
            let rank = draw(5) as usize;
            let size = [1, 2, 3, 4, 8, 16][draw(6) as usize];
            let whole: Vec<u64> = (0..rank).map(|_| 1 + draw(6)).collect();
            let shape: Vec<u64> = whole.iter().map(|n| 1 + draw(*n)).collect();
            // Members of compounds are not dense, nor are records.
            let item = size + [0, 0, 5][draw(3) as usize];
            let mut strides = c_strides(&whole, item);
            if rank > 0 && draw(3) == 0 {
                strides[0] += [11, 400, 70_000][draw(3) as usize];
            }
            // Fortran's order, and those between.
            if rank > 1 && draw(3) == 0 {
                let (a, b) = (draw(rank as u64) as usize, draw(rank as u64) as usize);
                let mut permuted: Vec<usize> = (0..rank).collect();
                permuted.swap(a, b);
                let lie = c_strides(&permuted.iter().map(|&d| whole[d]).collect::<Vec<_>>(), item);
                permuted.iter().zip(lie).for_each(|(&d, stride)| strides[d] = stride);
            }
            let wider: Vec<u64> = shape.iter().map(|n| n + draw(2)).collect();
            let (to, first) = (c_strides(&wider, size), (draw(100), draw(50)));
            let end = first.0 + 1 + strides.iter().zip(&shape).map(|(s, n)| s * n).sum::<u64>();
            let low = draw(end);
            let range = if round % 3 == 0 { 0..end + 100 } else { low..low + 1 + draw(end) };
            let block = Block::new(&shape, size as usize, &strides, &to);
            let want = by_hand(&shape, size, &strides, &to, first, &range);
            assert_eq!(bytes_of(&block, size, first, &range), want, "{shape:?} {strides:?} {range:?}");
            let rows = Block::new(&shape, size as usize, &strides, &to).by_rows();
            assert_eq!(bytes_of(&rows, size, first, &range), want, "{shape:?} {strides:?} {range:?} by rows");
        }
    }

    #[test]
    fn far_rows_are_stepped_over() {
        // 2^40 rows, of which the range holds three.
        let (shape, strides, to) = ([1 << 40, 2], [1 << 20, 4], [8, 4]);
        let block = Block::new(&shape, 4, &strides, &to);
        let middle = 1_u64 << 59;
        let mut found = Vec::new();
        let range = middle..middle + (3 << 20);
        block.within((0, 0), &range, &|_, _| false, &mut |part| found.push(part));
        let row = middle >> 20;
        let run = |i: u64| Part::Run { from: (row + i) << 20, to: (row + i) * 8, len: 8 };
        assert_eq!(found, [run(0), run(1), run(2)]);
    }
}
