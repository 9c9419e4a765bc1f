//! A task: a block of one array, and where its elements go. A request is one task, or one for each file that it touches.

use std::borrow::Cow;
use std::ops::Range;

use sieva_types::{Bx, Selection};

use super::pieces::{Block, Part};
use super::sink::Sink;
use crate::read::BlockReader;
use crate::read::strided::{self, Side};

/// A block of an array, and where it goes.
pub(super) struct Task<'a> {
    pub(super) reader: &'a BlockReader,
    /// Within the stored extent, of the layout's rank, not empty.
    pub(super) bx: Cow<'a, Bx>,
    /// Where its first element goes, and the byte stride of each dimension: in the sink, or, of a selection, in an array of
    /// all elements, of which those that are selected lie in the sink one after another.
    pub(super) base: u64,
    pub(super) strides: Vec<u64>,
    pub(super) selection: Option<&'a Selection>,
    pub(super) sink: &'a Sink<'a>,
}

impl Task<'_> {
    /// Bytes of an element.
    pub(super) fn size(&self) -> usize {
        self.reader.layout.element_size
    }

    /// Where the first element of `part` goes.
    pub(super) fn place_of(&self, part: &Bx) -> u64 {
        let away = part.start.iter().zip(&self.bx.start).zip(&self.strides);
        self.base + away.map(|((p, s), stride)| (p - s) * stride).sum::<u64>()
    }

    /// Fills `part` with the value of what was never written.
    pub(super) fn fill(&self, part: &Bx) {
        // The memory of a selection was filled with it before.
        if self.selection.is_none() {
            let to = Side { base: self.place_of(part) as usize, strides: &self.strides };
            strided::fill(&part.shape, &self.reader.layout.fill, self.sink.lock().bytes_mut(), to);
        }
    }

    /// Copies `part` out of a block of bytes in which its first element lies at `base`, by these strides.
    pub(super) fn copy(&self, part: &Bx, bytes: &[u8], base: u64, strides: &[u64]) {
        let (size, to) = (self.size(), self.place_of(part));
        if self.selection.is_none() {
            let (from, to) = (Side { base: base as usize, strides }, to as usize);
            let to = Side { base: to, strides: &self.strides };
            return strided::copy(&part.shape, size, bytes, from, self.sink.lock().bytes_mut(), to);
        }
        let mut sink = self.sink.lock();
        let out = sink.bytes_mut();
        self.pieces((base, to), &part.shape, strides, &(0..u64::MAX), &mut |piece| {
            let Part::Run { from, to, len } = piece else { return };
            let (from, to, len) = (from as usize, to as usize, len as usize);
            out[to..to + len].copy_from_slice(&bytes[from..from + len]);
        });
    }

    /// Hands on what of a block of `shape`, whose first element lies at `from` and goes to `to`, lies in a range of bytes, by
    /// its place in the sink. Of a selection these are runs.
    pub(super) fn pieces(
        &self,
        first: (u64, u64),
        shape: &[u64],
        strides: &[u64],
        range: &Range<u64>,
        emit: &mut dyn FnMut(Part),
    ) {
        let block = Block::new(shape, self.size(), strides, &self.strides);
        let Some(selection) = self.selection else {
            return block.within(first, range, &|_, _| false, emit);
        };
        let size = self.size() as u64;
        let ranks = |to: u64, len: u64| {
            (selection.rank(to / size), selection.rank((to + len).div_ceil(size).min(selection.n_rows())))
        };
        let passes = |to: u64, len: u64| {
            let (first, last) = ranks(to, len);
            first == last
        };
        block.by_rows().within(first, range, &passes, &mut |part| {
            // The bytes of the place that are meant, each element's place, and its place among those selected.
            let (to, len) = match part {
                Part::Run { to, len, .. } => (to, len),
                Part::Grid { to, rows, .. } => (to, rows * size),
            };
            let (rank, end) = ranks(to, len);
            let selected = selection.iter_from(rank).take((end - rank) as usize);
            for (rank, position) in (rank..end).zip(selected) {
                let (begin, finish) = ((position * size).max(to), ((position + 1) * size).min(to + len));
                let from = match part {
                    Part::Run { from, .. } => from + (begin - to),
                    Part::Grid { from, depth, .. } => from + (begin - to) / size * strides[depth],
                };
                let to = rank * size + (begin - position * size);
                emit(Part::Run { from, to, len: finish - begin });
            }
        });
    }
}
