//! Walking over the positions of a set in increasing order: in runs and lists, not one by one.

use std::iter::FusedIterator;
use std::ops::{Range, RangeInclusive};

use roaring::RoaringBitmap;

use super::set::{Part, Piece, PositionSet};

/// At least this many consecutive positions are handed on as a run; fewer go into a list with what follows them.
const MIN_RUN: u64 = 32;

/// Positions in a list at most: few enough for the first-level cache.
const LIST: usize = 2048;

/// Positions that [`Positions`] decodes at once.
const READ_AHEAD: usize = 1024;

/// Some of the positions of a set.
pub(super) enum Chunk<'w> {
    /// `start..start + len`.
    Run { start: u64, len: u64 },
    /// `base + low` for each `low`, in increasing order.
    List { base: u64, lows: &'w [u32] },
}

/// Walks over a set from one position on.
#[derive(Clone, Debug)]
pub(super) struct Walker<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    /// The rest of a run that has been begun.
    run: Range<u64>,
    /// The rest of a bucket that has been begun, after `run`.
    bits: Option<Bits<'a>>,
    lows: Vec<u32>,
}

/// What is still to come of a bitmap.
#[derive(Clone)]
struct Bits<'a> {
    base: u64,
    map: &'a RoaringBitmap,
    rest: roaring::bitmap::Iter<'a>,
    /// A block of 2^16 positions, and how many of them are still to come, where that has been counted.
    counted: Option<(u32, u64)>,
}

impl std::fmt::Debug for Bits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bits")
            .field("base", &self.base)
            .field("counted", &self.counted)
            .finish_non_exhaustive()
    }
}

impl<'a> Bits<'a> {
    fn new(base: u64, map: &'a RoaringBitmap) -> Self {
        Self { base, map, rest: map.iter(), counted: None }
    }

    /// The next consecutive positions, less `base`.
    fn next_range(&mut self) -> Option<RangeInclusive<u32>> {
        let range = self.rest.next_range()?;
        // A block that has been counted has been entered, so the range begins in it.
        self.counted = self
            .counted
            .filter(|(block, _)| *block == range.end() >> 16)
            .map(|(block, left)| (block, left - u64::from(range.end() - range.start()) - 1));
        Some(range)
    }

    /// The next positions after `last` within its block, as many as `out` holds; says how many.
    ///
    /// Not beyond the block: roaring 0.12's `next_many` leaves out a block that is one run of 2^16 (the length
    /// overflows), which the block of `last` is not, if what follows `last` there is not `last + 1`.
    fn next_in_block(&mut self, last: u32, out: &mut [u32]) -> usize {
        let map = self.map;
        let count = || {
            (last >> 16, last.checked_add(1).map_or(0, |next| map.range_cardinality(next..=last | 0xffff)))
        };
        let (_, left) = self.counted.get_or_insert_with(count);
        let n = (out.len() as u64).min(*left) as usize;
        let n = self.rest.next_many(&mut out[..n]).len();
        *left -= n as u64;
        n
    }
}

impl<'a> Walker<'a> {
    /// From the first position on.
    pub(super) fn new(set: &'a PositionSet) -> Self {
        Self { pieces: set.pieces().iter(), run: 0..0, bits: None, lows: Vec::new() }
    }

    /// From the position on of which `rank` positions of the set lie below.
    pub(super) fn from_rank(set: &'a PositionSet, from: u64) -> Self {
        let mut walker = Self::new(set);
        let mut rank = from;
        for piece in walker.pieces.by_ref() {
            if rank >= piece.len {
                rank -= piece.len;
                continue;
            }
            match &piece.part {
                Part::Full => walker.run = piece.base() + rank..piece.base() + piece.len,
                Part::Bits(bits) => {
                    let mut rest = Bits::new(piece.base(), bits);
                    // Of a rank of 0 nothing needs to be counted.
                    if let Some(position) = (rank > 0).then(|| set.select(from)).flatten() {
                        rest.rest.advance_to((position - piece.base()) as u32);
                    }
                    walker.bits = Some(rest);
                }
            }
            break;
        }
        walker
    }

    /// The next positions, `max` of them at most (and at least one; `max` is not 0).
    pub(super) fn next_chunk(&mut self, max: u64) -> Option<Chunk<'_>> {
        loop {
            if !self.run.is_empty() {
                let start = self.run.start;
                let len = (self.run.end - start).min(max);
                self.run.start += len;
                return Some(Chunk::Run { start, len });
            }
            let Some(bits) = &mut self.bits else {
                self.open_next()?;
                continue;
            };
            let Some(range) = bits.next_range() else {
                self.bits = None;
                continue;
            };
            let len = u64::from(range.end() - range.start()) + 1;
            if len < MIN_RUN && len <= max {
                return Some(self.list(range, max));
            }
            let start = bits.base + u64::from(*range.start());
            self.run = start..start + len;
        }
    }

    /// A short run, and what follows it in its block.
    fn list(&mut self, head: RangeInclusive<u32>, max: u64) -> Chunk<'_> {
        let Some(bits) = &mut self.bits else { return Chunk::List { base: 0, lows: &[] } };
        self.lows.resize(LIST, 0);
        let (last, mut n) = (*head.end(), 0);
        for low in head {
            self.lows[n] = low;
            n += 1;
        }
        let room = max.min(LIST as u64) as usize;
        n += bits.next_in_block(last, &mut self.lows[n..room]);
        Chunk::List { base: bits.base, lows: &self.lows[..n] }
    }

    fn open_next(&mut self) -> Option<()> {
        let piece = self.pieces.next()?;
        match &piece.part {
            Part::Full => self.run = piece.base()..piece.base() + piece.len,
            Part::Bits(bits) => self.bits = Some(Bits::new(piece.base(), bits)),
        }
        Some(())
    }

    /// Appends the next positions to `out`, `max` of them unless the set ends before.
    fn read(&mut self, max: usize, out: &mut Vec<u64>) {
        let mut left = max as u64;
        while left > 0 {
            match self.next_chunk(left) {
                None => return,
                Some(Chunk::Run { start, len }) => {
                    out.extend(start..start + len);
                    left -= len;
                }
                Some(Chunk::List { base, lows }) => {
                    out.extend(lows.iter().map(|&low| base + u64::from(low)));
                    left -= lows.len() as u64;
                }
            }
        }
    }
}

/// The positions of a selection in increasing order, one by one.
///
/// [`Batches`] is faster where many are wanted.
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    walker: Walker<'a>,
    ahead: std::vec::IntoIter<u64>,
    /// What `walker` still holds.
    left: u64,
}

impl<'a> Positions<'a> {
    pub(super) fn from_rank(set: &'a PositionSet, rank: u64) -> Self {
        let left = set.len().saturating_sub(rank);
        Self { walker: Walker::from_rank(set, rank), ahead: Vec::new().into_iter(), left }
    }

    #[cold]
    fn refill(&mut self) -> Option<u64> {
        let n = self.left.min(READ_AHEAD as u64) as usize;
        let mut ahead = Vec::with_capacity(n);
        self.walker.read(n, &mut ahead);
        self.left -= n as u64;
        self.ahead = ahead.into_iter();
        self.ahead.next()
    }
}

impl Iterator for Positions<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self.ahead.next() {
            Some(p) => Some(p),
            None => self.refill(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.left.saturating_add(self.ahead.len() as u64);
        (usize::try_from(n).unwrap_or(usize::MAX), usize::try_from(n).ok())
    }
}

impl FusedIterator for Positions<'_> {}

/// The positions of a selection in increasing order, in vectors of one length (the last may be shorter).
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    walker: Walker<'a>,
    size: usize,
    /// What `walker` still holds.
    left: u64,
}

impl<'a> Batches<'a> {
    pub(super) fn new(set: &'a PositionSet, size: usize) -> Self {
        Self { walker: Walker::new(set), size: size.max(1), left: set.len() }
    }

    /// As [`Iterator::next`], into a vector that is used again; `false` at the end.
    pub fn next_into(&mut self, out: &mut Vec<u64>) -> bool {
        out.clear();
        let n = self.left.min(self.size as u64) as usize;
        out.reserve(n);
        self.walker.read(n, out);
        self.left -= n as u64;
        n > 0
    }
}

impl Iterator for Batches<'_> {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let mut out = Vec::new();
        self.next_into(&mut out).then_some(out)
    }
}

impl FusedIterator for Batches<'_> {}

/// The maximal runs of consecutive positions of a selection, in increasing order, as `(start, length)`.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    walker: Walker<'a>,
    /// Runs that are known, in decreasing order; the last in the set's order may go on beyond its end.
    ready: Vec<Range<u64>>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(set: &'a PositionSet) -> Self {
        Self { walker: Walker::new(set), ready: Vec::new() }
    }

    /// Finds further runs, of which the first goes on with the one that is known; `false` at the end.
    fn refill(&mut self) -> bool {
        match self.walker.next_chunk(u64::MAX) {
            None => return false,
            Some(Chunk::Run { start, len }) => append(&mut self.ready, start..start + len),
            Some(Chunk::List { base, lows }) => {
                for &low in lows {
                    let p = base + u64::from(low);
                    append(&mut self.ready, p..p + 1);
                }
            }
        }
        self.ready.reverse();
        true
    }
}

fn append(runs: &mut Vec<Range<u64>>, next: Range<u64>) {
    match runs.last_mut() {
        Some(run) if run.end == next.start => run.end = next.end,
        _ => runs.push(next),
    }
}

impl Iterator for Runs<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        while self.ready.len() < 2 && self.refill() {}
        self.ready.pop().map(|run| (run.start, run.end - run.start))
    }
}

impl FusedIterator for Runs<'_> {}
