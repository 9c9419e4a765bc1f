//! What of the storage boxes take, told before they are read: a network then brings it meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use sieva_types::Bx;

use super::chunks::{Piece, advance};
use super::direct::{is_dense, rows_of_span};
use super::{BlockReader, dot, span_bytes};
use crate::layout::Placement;

/// Most ranges that one box is told in: boxes of more lie so scattered that nothing is gained.
const MOST_RANGES: usize = 1 << 12;

/// Files that an array of many files is told of at once: half of what a reader keeps open, as two batches are on their way.
const MOST_PIECES: usize = super::parts::KEPT / 2;

/// Byte ranges and chunks of one array that are about to be read, each once.
#[derive(Debug, Default)]
pub struct Wants {
    ranges: BTreeSet<(u64, u64)>,
    numbers: BTreeSet<u64>,
    /// Boxes of pieces of an array of many files: what they take is known when their files are open.
    pub(super) boxes: BTreeMap<usize, Vec<Bx>>,
    bytes: u64,
}

impl Wants {
    /// Bytes that they take, as stored; as decoded, where the stored length of a chunk is not known before.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The byte ranges, ascending.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|&(start, end)| start..end)
    }

    /// How many chunks are objects of their own.
    pub fn objects(&self) -> usize {
        self.numbers.len()
    }

    /// Whether no more should be told at once, however few bytes they are.
    pub fn is_full(&self) -> bool {
        self.boxes.len() >= MOST_PIECES
    }

    /// Takes over the byte ranges of another array of the same source, which goes on counting their bytes.
    pub fn absorb(&mut self, other: &mut Self) {
        self.ranges.append(&mut other.ranges);
    }

    fn range(&mut self, start: u64, len: u64) {
        if self.ranges.insert((start, start.saturating_add(len))) {
            self.bytes = self.bytes.saturating_add(len);
        }
    }
}

impl BlockReader {
    /// Whether telling what is wanted is of any use: the source is behind a network.
    pub fn is_remote(&self) -> bool {
        self.source.store().is_remote()
    }

    /// Adds what reading the box `bx` takes. Nothing where that is not known without reading: of arrays that only a library
    /// reads. Of an array of many files no more are told at once than are held open.
    pub fn wants(&self, bx: &Bx, wants: &mut Wants) {
        let Some(inside) = bx.intersect(&Bx::whole(&self.layout.extent)).filter(|b| !b.is_empty()) else {
            return;
        };
        match &self.layout.placement {
            Placement::Chunks(index) => {
                self.want_chunks(&inside, wants, |number| Some(Piece::In(index.get(number)?)));
            }
            Placement::Objects => self.want_chunks(&inside, wants, |number| Some(Piece::Object(number))),
            Placement::Direct { offset } => {
                let base = offset.saturating_add(self.layout.base);
                let first = base.saturating_add(dot(&inside.start, &self.layout.strides));
                let most = wants.ranges.len() + MOST_RANGES;
                self.want_spans(first, &inside.shape, &self.layout.strides, most, wants);
            }
            Placement::Parts(parts) => {
                for (piece, part) in parts.cut(&inside) {
                    if wants.is_full() && !wants.boxes.contains_key(&piece) {
                        return;
                    }
                    let bytes = part.len().saturating_mul(self.layout.element_size as u64);
                    wants.bytes = wants.bytes.saturating_add(bytes);
                    wants.boxes.entry(piece).or_default().push(parts.within(piece, &part));
                }
            }
            Placement::Unallocated | Placement::Inline(_) | Placement::Foreign(_) | Placement::Library(_) => {
            }
        }
    }

    /// The same for [`BlockReader::read_run`].
    pub fn wants_run(&self, start: u64, n: u64, wants: &mut Wants) {
        let Some((inner, stride)) = self.records else {
            return self.wants(&Bx::new(vec![start], vec![n]), wants);
        };
        let Placement::Direct { offset } = self.layout.placement else { return };
        let size = self.layout.element_size as u64;
        let (mut at, end) = (start, start.saturating_add(n));
        while at < end && wants.ranges.len() < MOST_RANGES {
            let take = (inner - at % inner).min(end - at);
            let place = (at / inner).saturating_mul(stride).saturating_add(at % inner * size);
            wants.range(offset.saturating_add(place), take.saturating_mul(size));
            at += take;
        }
    }

    /// Has the storage bring them, without waiting.
    pub fn will_need(&self, wants: &Wants) {
        let ranges: Vec<Range<u64>> = wants.ranges.iter().map(|&(start, end)| start..end).collect();
        if !ranges.is_empty() {
            self.source.store().will_need(&ranges);
        }
        self.will_need_chunks(wants);
    }

    /// The same for what is no byte range of the source, but a chunk of this array, or lies in other files.
    pub fn will_need_chunks(&self, wants: &Wants) {
        self.will_need_pieces(wants);
        let numbers: Vec<u64> = wants.numbers.iter().copied().collect();
        if let (false, Some(chunks)) = (numbers.is_empty(), self.source.object_chunks()) {
            chunks.will_need_chunks(self.array, &numbers);
        }
    }

    fn want_chunks(&self, bx: &Bx, wants: &mut Wants, find: impl Fn(u64) -> Option<Piece>) {
        let layout = &*self.layout;
        let grid = layout.grid();
        let first: Vec<u64> = bx.start.iter().zip(&layout.chunk_shape).map(|(s, c)| s / c).collect();
        let last: Vec<u64> = (0..bx.rank()).map(|d| (bx.end(d) - 1) / layout.chunk_shape[d]).collect();
        let mut coords = first.clone();
        loop {
            match find(coords.iter().zip(&grid).fold(0, |n, (c, g)| n * g + c)) {
                Some(Piece::In(chunk)) if !self.is_cached(Piece::In(chunk)) => {
                    wants.range(chunk.offset, chunk.size);
                }
                Some(Piece::Object(n)) if !self.is_cached(Piece::Object(n)) && wants.numbers.insert(n) => {
                    wants.bytes = wants.bytes.saturating_add(layout.chunk_bytes);
                }
                _ => {}
            }
            if !advance(&mut coords, &first, &last) {
                return;
            }
        }
    }

    fn want_spans(&self, first: u64, shape: &[u64], strides: &[u64], most: usize, wants: &mut Wants) {
        let size = self.layout.element_size;
        let span = span_bytes(shape, strides, size);
        if is_dense(span, shape.iter().product::<u64>() * size as u64) {
            return wants.range(first, span);
        }
        let rows = rows_of_span(shape, strides, size);
        let mut part = shape.to_vec();
        let mut row = 0;
        while row < shape[0] && wants.ranges.len() < most {
            let at = first + row * strides[0];
            part[0] = rows.min(shape[0] - row);
            match part[0] {
                1 => self.want_spans(at, &shape[1..], &strides[1..], most, wants),
                _ => self.want_spans(at, &part, strides, most, wants),
            }
            row += part[0];
        }
    }
}
