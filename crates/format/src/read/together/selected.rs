//! A selection of which requests want the elements: which of a row are wanted, and where each goes.

use std::ops::Range;
use std::sync::OnceLock;

use sieva_types::{Marks, Selection};

use super::pieces::Part;
use crate::read::direct::is_dense;

/// A selection, and its positions as rows find them.
pub(super) struct Selected<'a> {
    pub(super) selection: &'a Selection,
    marks: OnceLock<Marks>,
}

/// A row of an array of which some elements are selected: its bytes begin at `from` in the store, and at `to` in an array of
/// all elements. It may begin and end inside of an element, but then its elements lie one after another.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) len: u64,
    pub(super) stride: u64,
}

impl<'a> Selected<'a> {
    pub(super) fn new(selection: &'a Selection) -> Self {
        Self { selection, marks: OnceLock::new() }
    }

    pub(super) fn marks(&self) -> &Marks {
        self.marks.get_or_init(|| self.selection.marks())
    }

    /// Copies those of `positions` that are selected to where they go. The first of all lies at `base` of `bytes`, one comes
    /// `stride` bytes after the other.
    pub(super) fn copy(
        &self,
        positions: Range<u64>,
        size: usize,
        from: (&[u8], usize, usize),
        out: &mut [u8],
    ) {
        match size {
            1 => self.copy_by::<1>(positions, from, out),
            2 => self.copy_by::<2>(positions, from, out),
            4 => self.copy_by::<4>(positions, from, out),
            8 => self.copy_by::<8>(positions, from, out),
            _ => {
                let (bytes, base, stride) = from;
                let first = positions.start;
                self.marks().each(positions, |rank, start, n| {
                    for i in 0..n {
                        let (at, to) =
                            (base + (start + i - first) as usize * stride, (rank + i) as usize * size);
                        out[to..to + size].copy_from_slice(&bytes[at..at + size]);
                    }
                });
            }
        }
    }

    fn copy_by<const N: usize>(
        &self,
        positions: Range<u64>,
        (bytes, base, stride): (&[u8], usize, usize),
        out: &mut [u8],
    ) {
        let first = positions.start;
        self.marks().each(positions, |rank, start, n| {
            let (at, to, n) = (base + (start - first) as usize * stride, rank as usize * N, n as usize);
            if n > 1 && stride == N {
                out[to..to + n * N].copy_from_slice(&bytes[at..at + n * N]);
                return;
            }
            for i in 0..n {
                out[to + i * N..to + (i + 1) * N]
                    .copy_from_slice(&bytes[at + i * stride..at + i * stride + N]);
            }
        });
    }

    /// Hands on what is wanted of a row as runs, and as marked positions where they lie so densely that the bytes between
    /// them are read, too.
    pub(super) fn parts(&self, row: &Row, size: usize, emit: &mut dyn FnMut(Part)) {
        let (size, end) = (size as u64, row.to + row.len);
        let whole = row.to.div_ceil(size)..end / size;
        if whole.start > whole.end {
            return self.cut(row, row.to..end, size, emit);
        }
        self.cut(row, row.to..whole.start * size, size, emit);
        let mut open: Option<Part> = None;
        self.marks().each(whole.clone(), |rank, start, n| {
            // Elements that lie far apart are read one by one, though they follow one another in the array.
            let is_near = is_dense((n - 1).saturating_mul(row.stride).saturating_add(size), n * size);
            let each = if is_near { n } else { 1 };
            for (rank, start) in (rank..).zip(start..start + n).step_by(each as usize) {
                let (at, bytes) = (row.place(start, size), each * size);
                let last = at + (each - 1) * row.stride + size;
                if let Some(Part::Marked { from, end, wanted, .. }) = &mut open
                    && is_dense(last - *from, *wanted + bytes)
                {
                    (*end, *wanted) = (start + each, *wanted + bytes);
                    continue;
                }
                let end = start + each;
                let next = Part::Marked { from: at, first: start, end, stride: row.stride, wanted: bytes };
                if let Some(before) = open.replace(next) {
                    emit(self.simplest(before, rank, size));
                }
            }
        });
        if let Some(last) = open {
            emit(self.simplest(last, self.marks().rank(whole.end), size));
        }
        self.cut(row, whole.end * size..end, size, emit);
    }

    /// Marked positions as a run where they are one: `rank` is that behind them.
    fn simplest(&self, part: Part, rank: u64, size: u64) -> Part {
        match part {
            Part::Marked { from, first, end, stride, wanted }
                if wanted == (end - first) * size && (stride == size || wanted == size) =>
            {
                Part::Run { from, to: rank * size - wanted, len: wanted }
            }
            part => part,
        }
    }

    /// Hands on each element of marked positions, or run of elements, by itself.
    pub(super) fn each_run(&self, part: Part, size: usize, emit: &mut dyn FnMut(Part)) {
        let Part::Marked { from: base, first, end, stride, .. } = part else { return emit(part) };
        let size = size as u64;
        self.marks().each(first..end, |rank, start, n| {
            let (at, to) = (base + (start - first) * stride, rank * size);
            if stride == size {
                return emit(Part::Run { from: at, to, len: n * size });
            }
            (0..n).for_each(|i| emit(Part::Run { from: at + i * stride, to: to + i * size, len: size }));
        });
    }

    /// Hands on a part of one element, if that is selected.
    fn cut(&self, row: &Row, bytes: Range<u64>, size: u64, emit: &mut dyn FnMut(Part)) {
        let position = bytes.start / size;
        if bytes.is_empty() || self.marks().is_empty_in(&(position..position + 1)) {
            return;
        }
        let to = self.marks().rank(position) * size + (bytes.start - position * size);
        emit(Part::Run { from: row.from + (bytes.start - row.to), to, len: bytes.end - bytes.start });
    }
}

impl Row {
    /// Where a position lies.
    fn place(&self, position: u64, size: u64) -> u64 {
        if self.stride == size {
            return self.from + (position * size - self.to);
        }
        self.from + (position - self.to / size) * self.stride
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use sieva_types::{Bx, DType, Result};

    use super::super::tests::{Draw, Several, layout, made, reader};
    use super::super::{Alone, Ask, Crew, Wanted, read_together};
    use super::*;
    use crate::buffer::Buffer;
    use crate::filters::{Filter, Pipeline};
    use crate::layout::{ChunkIndex, ChunkRef, Layout, Placement, c_strides};
    use crate::read::Workspace;

    /// An array of 300 by 700: plain, as a member of a compound, and in chunks that are plain or encoded.
    fn layouts(dtype: DType) -> Vec<(Vec<u64>, Layout)> {
        let (extent, chunk, size) = ([300, 700], [64, 90], dtype.size() as u64);
        let plain = layout(dtype, &extent, &extent, Placement::Direct { offset: 100 });
        let member = Layout { base: 3, strides: c_strides(&extent, 13), ..plain.clone() };
        let bytes = chunk.iter().product::<u64>() * size;
        // Chunk 7 was never written.
        let of = |n| (n, ChunkRef { offset: 1 + n * bytes, size: bytes, filter_mask: 0 });
        let index = ChunkIndex::new(5 * 8, (0..5 * 8).filter(|n| *n != 7).map(of).collect());
        let raw = layout(dtype, &extent, &chunk, Placement::Chunks(index));
        let shuffled = Pipeline { filters: vec![Filter::Shuffle { element_size: dtype.size() }] };
        let encoded = Layout { pipeline: shuffled, ..raw.clone() };
        [plain, member, raw, encoded].map(|layout| (extent.to_vec(), layout)).into()
    }

    /// Runs and gaps of all lengths, or each position with the same probability.
    fn drawn(draw: &mut Draw, n: u64) -> Vec<u64> {
        let one_of = [1, 2, 50, 3000][draw.below(4) as usize];
        if draw.below(2) == 0 {
            return (0..n).filter(|_| draw.below(one_of) == 0).collect();
        }
        let (mut at, mut found) = (0, Vec::new());
        while at < n {
            at += draw.below(10 * one_of);
            let end = at + 1 + draw.below(5000 / one_of);
            found.extend(at..end.min(n));
            at = end;
        }
        found
    }

    fn of_positions(shape: &[u64], positions: Vec<u64>) -> Arc<Selection> {
        let dims = (0..shape.len()).map(|d| d.to_string()).collect();
        Arc::new(Selection::from_positions(dims, shape.to_vec(), positions).unwrap())
    }

    #[test]
    fn selected_elements_of_large_arrays_are_those_of_the_whole() {
        let mut draw = Draw(11);
        for (round, dtype) in
            [DType::U8, DType::I16, DType::F32, DType::F64].into_iter().cycle().take(16).enumerate()
        {
            let bytes = (0..3_500_000_u32).map(|i| (i * 31 % 251) as u8).collect();
            let source = made(layouts(dtype), bytes, vec![]);
            let readers: Vec<_> = (0..4).map(|array| reader(&source, array)).collect();
            // One is wanted of several arrays.
            let selections: Vec<_> =
                (0..3).map(|_| of_positions(&[300, 700], drawn(&mut draw, 300 * 700))).collect();
            let never = AtomicBool::new(false);
            let (mut asks, mut wanted) = (Vec::new(), Vec::new());
            for reader in &readers {
                let mut whole = Buffer::default();
                reader.read(&Bx::whole(&[300, 700]), &mut whole, &mut Workspace::default()).unwrap();
                for selection in &selections {
                    let each = |p: u64| whole.bytes()[p as usize * dtype.size()..][..dtype.size()].to_vec();
                    wanted.push(selection.iter().flat_map(each).collect::<Vec<u8>>());
                    let positions = Wanted::Positions(Arc::clone(selection));
                    asks.push(Ask { reader, wanted: positions, cancel: &never });
                }
            }
            let crew: &dyn Crew = if round % 2 == 0 { &Alone } else { &Several };
            for (got, want) in read_together(&asks, 1 << 30, crew).into_iter().zip(wanted) {
                assert!(got.unwrap().bytes() == want, "round {round}");
            }
        }
    }

    #[test]
    fn bytes_between_selected_elements_that_cannot_be_read_are_not_needed() {
        let n = 1000_u64;
        let plain = layout(DType::I32, &[n], &[n], Placement::Direct { offset: 0 });
        let member = Layout { strides: vec![8], ..plain.clone() };
        let bytes: Vec<u8> = (0..n * 8).map(|i| (i % 251) as u8).collect();
        // Element 51 of the first array, and what lies behind element 25 of the second.
        let source =
            made(vec![(vec![n], plain), (vec![n], member)], bytes, std::iter::once(204..205).collect());
        let read = |array: usize, positions: &[u64]| -> Result<Buffer> {
            let (reader, never) = (reader(&source, array), AtomicBool::new(false));
            let wanted = Wanted::Positions(of_positions(&[n], positions.to_vec()));
            let asks = [Ask { reader: &reader, wanted, cancel: &never }];
            read_together(&asks, 1 << 20, &Alone).remove(0)
        };
        for (array, stride) in [(0, 4), (1, 8)] {
            let positions = [3, 5, 6, 24, 25, 26, 30, 52, 53, 900];
            let want =
                positions.iter().flat_map(|p| (0..4).rev().map(move |b| ((p * stride + b) % 251) as u8));
            assert_eq!(read(array, &positions).unwrap().bytes(), want.collect::<Vec<u8>>());
        }
        assert!(read(1, &[3, 50, 51]).is_ok());
        let e = read(0, &[3, 50, 51, 52]).unwrap_err();
        assert!(e.message().contains("'a0'"), "{e}");
        assert!(read(0, &[51]).is_err());
    }
}
