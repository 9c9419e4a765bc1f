//! The positions of one block of 2^16, packed as a roaring bitmap keeps them, by whichever thread found them.
//!
//! What the builder does with a block is then no more than to keep it: the blocks of a bucket become a bitmap through the
//! format that roaring reads (RoaringFormatSpec: a header, then the lists and the bits as they lie in memory).

use std::io::{self, Read};

use roaring::RoaringBitmap;

use super::set::BITSET_BYTES;

/// log2 of the positions of a block.
pub(super) const BLOCK_BITS: u32 = 16;

/// Words of a block.
pub(super) const BLOCK_WORDS: usize = 1 << (BLOCK_BITS - 6);

/// Positions that are kept as a list, at most.
const LIST: usize = 4096;

/// Places of a word that are written at once.
const AT_ONCE: usize = 2;

/// What a bitmap without runs begins with.
const COOKIE: u32 = 12346;

/// Some positions of an aligned block of 2^16 positions.
#[derive(Clone, Debug)]
pub struct PositionBlock {
    number: u64,
    len: u32,
    last: u16,
    /// A list of 16-bit numbers or 2^16 bits, little-endian.
    bytes: Vec<u8>,
}

impl PositionBlock {
    /// The positions `base + i` for each bit `i` that is set: bit `i % 64`, from the least significant one, of
    /// `words[i / 64]`. `None` where they are no such block: `base` is no multiple of 2^16, there are more words than 1024, or
    /// nothing is set; and where runs would take less room.
    pub fn new(base: u64, words: &[u64]) -> Option<Self> {
        if !base.is_multiple_of(1 << BLOCK_BITS) || words.len() > BLOCK_WORDS {
            return None;
        }
        let (len, runs) = counted(words);
        let listed = len <= LIST;
        let bytes = if listed { 2 * len } else { BITSET_BYTES as usize };
        if len == 0 || bytes > 2 + 4 * runs {
            return None;
        }
        let last = words.iter().rposition(|&w| w != 0).map(|i| i * 64 + words[i].ilog2() as usize)?;
        let number = base >> BLOCK_BITS;
        let bytes = if listed { list(words, len) } else { bits(words) };
        Some(Self { number, len: len as u32, last: last as u16, bytes })
    }

    /// How many they are.
    pub fn count(&self) -> u64 {
        u64::from(self.len)
    }

    /// The bytes that it takes.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + size_of::<Self>()) as u64
    }

    /// The number of the block.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The greatest position.
    pub(super) fn last(&self) -> u64 {
        self.number << BLOCK_BITS | u64::from(self.last)
    }
}

/// The number of ones, and of runs of ones.
fn counted(words: &[u64]) -> (usize, usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        #[target_feature(enable = "popcnt")]
        fn fast(words: &[u64]) -> (usize, usize) {
            count(words)
        }
        // SAFETY: the feature was just detected.
        return unsafe { fast(words) };
    }
    count(words)
}

#[inline(always)]
fn count(words: &[u64]) -> (usize, usize) {
    let (mut ones, mut runs, mut last) = (0, 0, 0);
    for &word in words {
        ones += word.count_ones() as usize;
        runs += (word & !(word << 1 | last)).count_ones() as usize;
        last = word >> 63;
    }
    (ones, runs)
}

/// Places of a list, and those that are written behind it in vain.
type Places = [u16; LIST + AT_ONCE];

/// The places of the ones, of which there are `len`, at most [`LIST`].
fn list(words: &[u64], len: usize) -> Vec<u8> {
    let mut places = [0; LIST + AT_ONCE];
    find(words, &mut places);
    let mut bytes = vec![0; 2 * len];
    let (pairs, _) = bytes.as_chunks_mut::<2>();
    pairs.iter_mut().zip(&places).for_each(|(pair, place)| *pair = place.to_le_bytes());
    bytes
}

fn find(words: &[u64], places: &mut Places) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1") {
        #[target_feature(enable = "popcnt,bmi1")]
        fn fast(words: &[u64], places: &mut Places) {
            each_one(words, places);
        }
        // SAFETY: the features were just detected.
        return unsafe { fast(words, places) };
    }
    each_one(words, places);
}

/// Writes the places of two ones whether a word has them or not: how many it has is not to be foretold.
#[inline(always)]
fn each_one(words: &[u64], places: &mut Places) {
    let mut found = 0;
    for (i, &word) in words.iter().enumerate() {
        let (first, mut rest) = ((i * 64) as u16, word);
        let (mut at, end) = (found, found + word.count_ones() as usize);
        loop {
            let Some(few) = places.get_mut(at..).and_then(|room| room.first_chunk_mut::<AT_ONCE>()) else {
                return;
            };
            for place in few {
                *place = first | rest.trailing_zeros() as u16;
                rest &= rest.wrapping_sub(1);
            }
            at += AT_ONCE;
            if at >= end {
                break;
            }
        }
        found = end;
    }
}

/// All of a block's bits.
fn bits(words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; BITSET_BYTES as usize];
    let (eights, _) = bytes.as_chunks_mut::<8>();
    eights.iter_mut().zip(words).for_each(|(eight, word)| *eight = word.to_le_bytes());
    bytes
}

/// Blocks of one bucket, ascending, that are to become a bitmap.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<PositionBlock>,
    bytes: u64,
}

impl Blocks {
    /// The number of the last block.
    pub(super) fn last(&self) -> Option<u64> {
        self.blocks.last().map(PositionBlock::number)
    }

    /// Adds a block that comes after all others.
    pub(super) fn push(&mut self, block: PositionBlock) {
        self.bytes += block.memory_bytes();
        self.blocks.push(block);
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    /// The bitmap of all of them, and none are left; `None` where there were none.
    pub(super) fn take(&mut self) -> Option<RoaringBitmap> {
        let Self { blocks, .. } = std::mem::take(self);
        if blocks.is_empty() {
            return None;
        }
        let mut head = Vec::with_capacity(8 * (1 + blocks.len()));
        head.extend_from_slice(&COOKIE.to_le_bytes());
        head.extend_from_slice(&(blocks.len() as u32).to_le_bytes());
        for block in &blocks {
            head.extend_from_slice(&(block.number as u16).to_le_bytes());
            head.extend_from_slice(&((block.len - 1) as u16).to_le_bytes());
        }
        // Where each begins, which nobody looks at.
        head.resize(head.len() + 4 * blocks.len(), 0);
        let pieces = std::iter::once(&head[..]).chain(blocks.iter().map(|block| &block.bytes[..]));
        // What is read lies in memory, and is what was written.
        Some(RoaringBitmap::deserialize_unchecked_from(Joined { now: &[], pieces }).unwrap_or_default())
    }
}

/// Pieces read one after the other.
struct Joined<'a, I> {
    now: &'a [u8],
    pieces: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Read for Joined<'a, I> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            match self.pieces.next() {
                Some(piece) => self.now = piece,
                None => return Ok(0),
            }
        }
        self.now.read(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(places: &[u32]) -> Vec<u64> {
        let mut words = vec![0; BLOCK_WORDS];
        places.iter().for_each(|&p| words[p as usize / 64] |= 1 << (p % 64));
        words
    }

    /// The bitmap that roaring would make of a block's places.
    fn bitmap(number: u64, places: &[u32]) -> RoaringBitmap {
        let mut bits: RoaringBitmap = places.iter().map(|p| (number as u32) << 16 | p).collect();
        bits.optimize();
        bits
    }

    proptest! {
        #[test]
        fn blocks_are_what_roaring_makes(
            few in proptest::collection::btree_set(0..1_u32 << 16, 0..200),
            step in 1..40_u32, from in 0..1_u32 << 16, n in 0..9000_u32, thick in 1..4_u32, numbers in (0..100_u64, 101..65_536_u64),
        ) {
            let mut many = few.clone();
            many.extend((0..n).map(|i| from + i / thick * step + i % thick).filter(|&p| p < 1 << 16));
            let sets = [few.into_iter().collect::<Vec<_>>(), many.into_iter().collect()];
            let (mut blocks, mut want) = (Blocks::default(), RoaringBitmap::new());
            for (number, places) in [numbers.0, numbers.1].into_iter().zip(&sets) {
                let one = bitmap(number, places);
                let block = PositionBlock::new((3 << 32) | number << 16, &pack(places));
                let statistics = one.statistics();
                prop_assert_eq!(block.is_some(), !places.is_empty() && statistics.n_run_containers == 0);
                if let Some(block) = block {
                    prop_assert_eq!(block.count(), places.len() as u64);
                    prop_assert_eq!(block.last(), (3 << 32) | number << 16 | u64::from(*places.last().unwrap()));
                    blocks.push(block);
                    want |= one;
                }
            }
            let made = blocks.take();
            prop_assert_eq!(made.is_none(), want.is_empty());
            let made = made.unwrap_or_default();
            let kinds = |bits: &RoaringBitmap| {
                let s = bits.statistics();
                (s.n_array_containers, s.n_run_containers, s.n_bitset_containers, s.cardinality)
            };
            prop_assert_eq!(kinds(&made), kinds(&want));
            prop_assert_eq!(made, want);
            prop_assert!(blocks.last().is_none() && blocks.memory_bytes() == 0);
        }
    }

    #[test]
    fn what_is_no_block_is_none() {
        assert!(PositionBlock::new(0, &[0; 1024]).is_none());
        assert!(PositionBlock::new(64, &[1]).is_none());
        assert!(PositionBlock::new(0, &[1; 1025]).is_none());
        assert!(PositionBlock::new(0, &[u64::MAX; 1024]).is_none());
        assert!(PositionBlock::new(0, &[]).is_none());
        assert!(PositionBlock::new(1 << 16, &[5]).is_some());
    }
}
