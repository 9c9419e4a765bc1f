//! The positions of a set laid out for looks at many short ranges of them, as reading a chunk has: a row of it is a range.
//!
//! A block of 2^16 positions is a list of its lower bits or 2^16 bits with counts, a long run is its ends. It takes two bytes
//! for each position, for many of them a bit for each of the block, and some 80 bytes for each block that has any.

use std::ops::Range;

use super::set::PositionSet;
use super::walk::{Chunk, Walker};

/// Runs of at least so many positions are kept by their ends.
const LONG: u64 = 1 << 12;
/// Positions of a block that are kept as a list, at most: more take more than the bits do.
const LIST: usize = 1 << 12;
/// log2 of the positions of a block.
const BLOCK_BITS: u32 = 16;
/// Words of bits that are counted together.
const GROUP: usize = 4;
/// Words of a block.
const WORDS: usize = 1 << (BLOCK_BITS - 6);

/// A selection's positions, by blocks: see [`super::Selection::marks`].
#[derive(Clone, Debug)]
pub struct Marks {
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    /// From its first position to its last one.
    span: Range<u64>,
    /// Positions before it.
    before: u64,
    len: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// All of its span.
    Run,
    /// The lower 16 bits.
    List(Box<[u16]>),
    Bits(Box<Bits>),
}

#[derive(Clone, Debug)]
struct Bits {
    words: [u64; WORDS],
    /// Those set before each group of words.
    before: [u16; WORDS / GROUP],
}

impl Bits {
    fn of(lows: &[u16]) -> Box<Self> {
        let mut bits = Box::new(Self { words: [0; WORDS], before: [0; WORDS / GROUP] });
        lows.iter().for_each(|low| bits.words[usize::from(low >> 6)] |= 1 << (low & 63));
        let mut sum = 0_u32;
        for (before, group) in bits.before.iter_mut().zip(bits.words.chunks_exact(GROUP)) {
            // Not all bits of a block are set, or it would be a run.
            *before = sum as u16;
            sum += group.iter().map(|word| word.count_ones()).sum::<u32>();
        }
        bits
    }

    /// How many of the first `n` are set; `n` is less than 2^16.
    fn rank(&self, n: usize) -> u64 {
        let (word, group) = (n / 64, n / 64 / GROUP);
        let whole: u32 = self.words[group * GROUP..word].iter().map(|word| word.count_ones()).sum();
        let part = (self.words[word] & ((1 << (n % 64)) - 1)).count_ones();
        u64::from(self.before[group]) + u64::from(whole + part)
    }

    /// Hands on the runs of those of `from..=last` that are set; runs are cut between words.
    fn each(&self, (from, last): (usize, usize), run: &mut impl FnMut(u64, u64)) {
        for word in from / 64..=last / 64 {
            let mut rest = self.words[word];
            if word == from / 64 {
                rest &= u64::MAX << (from % 64);
            }
            if word == last / 64 {
                rest &= u64::MAX >> (63 - last % 64);
            }
            while rest != 0 {
                let start = rest.trailing_zeros();
                let n = (!(rest >> start)).trailing_zeros();
                run(word as u64 * 64 + u64::from(start), u64::from(n));
                // The lowest run: what is carried out of it is above, and was not set.
                rest &= rest.wrapping_add(1 << start);
            }
        }
    }
}

impl Marks {
    pub(super) fn new(set: &PositionSet) -> Self {
        let mut made = Making::default();
        let mut walker = Walker::new(set);
        while let Some(chunk) = walker.next_chunk(u64::MAX) {
            match chunk {
                Chunk::Run { start, len } => made.run(start, len),
                Chunk::List { base, lows } => lows.iter().for_each(|low| made.one(base + u64::from(*low))),
            }
        }
        made.close();
        Self { blocks: made.blocks }
    }

    /// The number of positions below `position`.
    pub fn rank(&self, position: u64) -> u64 {
        let after = self.blocks.partition_point(|block| block.span.start < position);
        let Some(block) = after.checked_sub(1).map(|i| &self.blocks[i]) else { return 0 };
        if position >= block.span.end {
            return block.before + block.len;
        }
        block.before + block.rank(position)
    }

    /// Whether nothing of a range is selected.
    pub fn is_empty_in(&self, range: &Range<u64>) -> bool {
        let first = self.blocks.partition_point(|block| block.span.end <= range.start);
        match self.blocks.get(first) {
            None => true,
            Some(block) if block.span.start >= range.end => true,
            // Its first or its last position lies within, or nothing but what lies between.
            Some(block) if block.span.start >= range.start || block.span.end <= range.end => false,
            Some(block) => block.rank(range.start) == block.rank(range.end),
        }
    }

    /// Calls `run` with the consecutive positions of a range that are selected, in ascending order: how many selected ones lie
    /// below, the first one, and how many they are. Long runs may come in parts.
    pub fn each(&self, range: Range<u64>, mut run: impl FnMut(u64, u64, u64)) {
        let first = self.blocks.partition_point(|block| block.span.end <= range.start);
        for block in &self.blocks[first..] {
            let (from, end) = (range.start.max(block.span.start), range.end.min(block.span.end));
            if from >= end {
                return;
            }
            let mut rank =
                if from == block.span.start { block.before } else { block.before + block.rank(from) };
            let base = from >> BLOCK_BITS << BLOCK_BITS;
            let mut emit = |low: u64, n: u64| {
                run(rank, base + low, n);
                rank += n;
            };
            match &block.kind {
                Kind::Run => emit(from - base, end - from),
                Kind::Bits(bits) => bits.each(((from - base) as usize, (end - 1 - base) as usize), &mut emit),
                Kind::List(lows) => {
                    let (from, last) = ((from - base) as u16, (end - 1 - base) as u16);
                    let lows = &lows[lows.partition_point(|low| *low < from)..];
                    let lows = &lows[..lows.partition_point(|low| *low <= last)];
                    for same in lows.chunk_by(|a, b| a + 1 == *b) {
                        emit(u64::from(same[0]), same.len() as u64);
                    }
                }
            }
        }
    }
}

impl Block {
    /// How many of its positions lie below one of its span, or its end.
    fn rank(&self, position: u64) -> u64 {
        if position >= self.span.end {
            return self.len;
        }
        let low = position & ((1 << BLOCK_BITS) - 1);
        match &self.kind {
            Kind::Run => position - self.span.start,
            Kind::List(lows) => lows.partition_point(|l| u64::from(*l) < low) as u64,
            Kind::Bits(bits) => bits.rank(low as usize),
        }
    }
}

/// Blocks that are made of ascending positions.
#[derive(Default)]
struct Making {
    blocks: Vec<Block>,
    before: u64,
    /// The block that is open, and its positions.
    number: u64,
    lows: Vec<u16>,
}

impl Making {
    fn one(&mut self, position: u64) {
        if position >> BLOCK_BITS != self.number {
            self.close();
            self.number = position >> BLOCK_BITS;
        }
        self.lows.push(position as u16);
    }

    fn run(&mut self, start: u64, len: u64) {
        if len < LONG {
            return (start..start + len).for_each(|position| self.one(position));
        }
        self.close();
        self.push(start..start + len, len, Kind::Run);
    }

    /// Keeps the block that is open.
    fn close(&mut self) {
        let (Some(first), Some(last)) = (self.lows.first(), self.lows.last()) else { return };
        let (base, len) = (self.number << BLOCK_BITS, self.lows.len());
        let span = base + u64::from(*first)..base + u64::from(*last) + 1;
        let kind = match len {
            _ if len as u64 == span.end - span.start => Kind::Run,
            0..=LIST => Kind::List(self.lows[..].into()),
            _ => Kind::Bits(Bits::of(&self.lows)),
        };
        self.lows.clear();
        self.push(span, len as u64, kind);
    }

    fn push(&mut self, span: Range<u64>, len: u64, kind: Kind) {
        self.blocks.push(Block { span, before: self.before, len, kind });
        self.before += len;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Selection, SelectionBuilder};
    use super::*;

    fn of_runs(runs: &[(u64, u64)], n: u64) -> Selection {
        let mut builder = SelectionBuilder::new(vec!["x".into()], vec![n]).unwrap();
        runs.iter().for_each(|(start, len)| builder.push_run(*start, *len).unwrap());
        builder.finish()
    }

    fn check(selection: &Selection, ranges: impl IntoIterator<Item = Range<u64>>) {
        let marks = selection.marks();
        for range in ranges {
            let ends = (selection.rank(range.start), selection.rank(range.end));
            assert_eq!((marks.rank(range.start), marks.rank(range.end)), ends, "{range:?}");
            assert_eq!(marks.is_empty_in(&range), ends.0 == ends.1, "{range:?}");
            let mut next = ends.0;
            marks.each(range.clone(), |rank, start, len| {
                assert!(rank == next && len > 0);
                assert_eq!((selection.select(rank), selection.rank(start + len)), (Some(start), rank + len));
                next += len;
            });
            assert_eq!(next, ends.1, "{range:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn ranges_find_what_the_selection_has(
            gaps in proptest::collection::vec((prop_oneof![0..3_u64, 0..300_u64, 0..200_000_u64], prop_oneof![1..3_u64, 1..100_u64, 1..9000_u64]), 1..60),
            thick in (0..300_000_u64, 1..4_u64, 0..9_000_u64),
            ranges in proptest::collection::vec((0..1_000_000_u64, 0..200_000_u64), 1..20),
        ) {
            let (mut runs, mut at) = (Vec::new(), 0);
            for (gap, len) in gaps {
                at += gap;
                runs.push((at, len));
                at += len;
            }
            // Many short runs, which are kept as bits.
            let (from, step, n) = thick;
            at += from;
            runs.extend((0..n).map(|i| (at + i * (step + 1), step)));
            at += n * (step + 1);
            let selection = of_runs(&runs, at + 70_000);
            let cut = |(start, len): (u64, u64)| {
                let start = start.min(at + 60_000);
                start..(start + len).min(at + 70_000)
            };
            check(&selection, ranges.into_iter().map(cut).chain([0..at, 0..0, at..at + 1]));
        }
    }

    #[test]
    fn vast_runs_and_ends_of_blocks() {
        let n = 1 << 45;
        let block = 1 << BLOCK_BITS;
        check(&Selection::all(vec!["x".into()], vec![n]).unwrap(), [0..n, 5..7, n - 1..n, n..n]);
        check(&Selection::empty(vec!["x".into()], vec![n]).unwrap(), [0..n, 5..7]);
        let runs = [(block - 1, 2), (2 * block - 1, 1), (3 * block, 10 * block + 7), (13 * block + 9, 1)];
        let far = n - block;
        let ends = (0..40)
            .flat_map(|i| [(i * block / 2)..(i * block / 2 + 3), (i * block - i.min(1))..i * block + 2]);
        check(&of_runs(&[&runs[..], &[(far + 1, 1)]].concat(), n), ends.chain([far..n, 0..n]));
    }
}
