//! A task: a block of one array, and where its elements go. A request is one task, or one for each file that it touches.

use std::borrow::Cow;
use std::ops::Range;

use sieva_types::Bx;

use super::pieces::{Block, Part};
use super::selected::{Row, Selected};
use super::sink::Sink;
use crate::read::BlockReader;
use crate::read::strided::{self, Side};

/// Bytes that are written before somebody looks whether they are still wanted. Elements that are numbers fit in whole.
pub(super) const PIECE: usize = 4 << 20;

/// A block of an array, and where it goes.
pub(super) struct Task<'a> {
    pub(super) reader: &'a BlockReader,
    /// Within the stored extent, of the layout's rank, not empty.
    pub(super) bx: Cow<'a, Bx>,
    /// Where its first element goes, and the byte stride of each dimension: in the sink, or, of a selection, in an array of
    /// all elements, of which those that are selected lie in the sink one after another.
    pub(super) base: u64,
    pub(super) strides: Vec<u64>,
    pub(super) selection: Option<&'a Selected<'a>>,
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
            self.in_pieces(part, &mut |piece| {
                let to = Side { base: self.place_of(piece) as usize, strides: &self.strides };
                strided::fill(&piece.shape, &self.reader.layout.fill, self.sink.lock().bytes_mut(), to);
            });
        }
    }

    /// Copies `part` out of a block of bytes in which its first element lies at `base`, by these strides.
    pub(super) fn copy(&self, part: &Bx, bytes: &[u8], base: u64, strides: &[u64]) {
        self.in_pieces(part, &mut |piece| {
            let away = piece.start.iter().zip(&part.start).zip(strides);
            let base = base + away.map(|((at, start), stride)| (at - start) * stride).sum::<u64>();
            self.copy_piece(piece, bytes, base, strides);
        });
    }

    /// Calls `work` with pieces of `part`, in C order, as long as the request is wanted.
    fn in_pieces(&self, part: &Bx, work: &mut dyn FnMut(&Bx)) {
        in_pieces(part, self.size(), &|| self.sink.is_wanted(), work);
    }

    fn copy_piece(&self, part: &Bx, bytes: &[u8], base: u64, strides: &[u64]) {
        let (size, to) = (self.size(), self.place_of(part));
        let Some(selected) = self.selection else {
            let (from, to) = (Side { base: base as usize, strides }, to as usize);
            let to = Side { base: to, strides: &self.strides };
            return strided::copy(&part.shape, size, bytes, from, self.sink.lock().bytes_mut(), to);
        };
        let mut sink = self.sink.lock();
        let out = sink.bytes_mut();
        self.rows(selected, (base, to), (&part.shape, strides), &(0..u64::MAX), &mut |row| {
            let first = row.to / size as u64;
            let positions = first..first + row.len / size as u64;
            selected.copy(positions, size, (bytes, row.from as usize, row.stride as usize), out);
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
        let Some(selected) = self.selection else {
            let block = Block::new(shape, self.size(), strides, &self.strides);
            return block.within(first, range, &|_, _| false, emit);
        };
        self.rows(selected, first, (shape, strides), range, &mut |row| {
            selected.parts(&row, self.size(), emit)
        });
    }

    /// Hands on the rows of a block of which anything is selected.
    fn rows(
        &self,
        selected: &Selected<'_>,
        first: (u64, u64),
        (shape, strides): (&[u64], &[u64]),
        range: &Range<u64>,
        emit: &mut dyn FnMut(Row),
    ) {
        let (size, marks) = (self.size() as u64, selected.marks());
        let passes = |to: u64, len: u64| marks.is_empty_in(&(to / size..(to + len).div_ceil(size)));
        let block = Block::new(shape, self.size(), strides, &self.strides).by_rows();
        block.within(first, range, &passes, &mut |part| match part {
            Part::Run { from, to, len } => emit(Row { from, to, len, stride: size }),
            Part::Grid { from, to, rows, depth } => {
                emit(Row { from, to, len: rows * size, stride: strides[depth] });
            }
            Part::Marked { .. } => {}
        });
    }
}

/// Calls `work` with pieces of a box of elements of `size` bytes, none of much more than [`PIECE`], in C order, as long as
/// `is_wanted` says so.
fn in_pieces(bx: &Bx, size: usize, is_wanted: &dyn Fn() -> bool, work: &mut dyn FnMut(&Bx)) {
    if !is_wanted() {
        return;
    }
    let is_small = bx.len().saturating_mul(size as u64) <= PIECE as u64;
    let Some(d) = bx.shape.iter().position(|n| *n > 1).filter(|_| !is_small) else {
        return work(bx);
    };
    let (mut first, mut second) = (bx.clone(), bx.clone());
    first.shape[d] = bx.shape[d] / 2;
    second.start[d] += first.shape[d];
    second.shape[d] -= first.shape[d];
    in_pieces(&first, size, is_wanted, work);
    in_pieces(&second, size, is_wanted, work);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn pieces_make_up_a_box_and_end_when_it_is_not_wanted() {
        let whole = Bx::new(vec![5, 0, 7], vec![3, 1000, 3000]);
        let (mut pieces, calls) = (Vec::new(), Cell::new(0));
        in_pieces(&whole, 8, &|| true, &mut |piece| pieces.push(piece.clone()));
        assert!(pieces.iter().all(|piece| piece.len() * 8 <= PIECE as u64));
        assert_eq!(pieces.iter().map(Bx::len).sum::<u64>(), whole.len());
        assert!(pieces.is_sorted_by(|a, b| a.start < b.start) && pieces.len() < 40);
        for n in 0..5 {
            calls.set(0);
            in_pieces(&whole, 8, &|| calls.get() < n, &mut |_| calls.set(calls.get() + 1));
            assert_eq!(calls.get(), n);
        }
        // One element is one piece, however large it is.
        let one = Bx::new(vec![2], vec![1]);
        in_pieces(&one, PIECE + 1, &|| true, &mut |piece| assert_eq!(*piece, one));
    }
}
