//! Building a selection from the blocks of bits and the runs that a scan hands on.
//!
//! Whatever comes is gathered in one block of 2^16 positions, the unit of a roaring bitmap, and becomes a container
//! of it at once: no position is ever handled by itself. Empty words are left out at the speed at which they are read.

use roaring::RoaringBitmap;

use super::Selection;
use super::block::{BLOCK_BITS, BLOCK_WORDS, Blocks, PositionBlock};
use super::set::{BITSET_BYTES, BUCKET_BITS, PositionSet, SetOp};
use crate::{Error, ErrorKind, Result};

/// Positions that are handed on together.
const RISING: usize = 1 << 10;

/// Collects positions into a [`Selection`].
///
/// Increasing order is fast. Any other order, and positions that come twice, give the same selection more slowly.
#[derive(Debug)]
pub struct SelectionBuilder {
    dims: Vec<String>,
    shape: Vec<u64>,
    /// All buckets before the one in work, unless positions came out of order.
    done: PositionSet,
    /// The bucket in work.
    bucket: u32,
    bits: RoaringBitmap,
    /// Blocks of it that came in order since others did, and are not among its bits yet.
    blocks: Blocks,
    /// The block in work, which belongs to `bucket`.
    block: u64,
    words: Box<[u64; BLOCK_WORDS]>,
    /// Whether there may be a bit in `words`.
    dirty: bool,
}

impl SelectionBuilder {
    /// A builder for the row space of these dimensions.
    ///
    /// Fails with [`ErrorKind::DimensionMismatch`] if there is not one extent for each name, and with
    /// [`ErrorKind::Overflow`] beyond 2^63 positions.
    pub fn new(dims: Vec<String>, shape: Vec<u64>) -> Result<Self> {
        let Selection { dims, shape, set } = Selection::empty(dims, shape)?;
        Ok(Self::over(dims, shape, set))
    }

    fn over(dims: Vec<String>, shape: Vec<u64>, done: PositionSet) -> Self {
        let words = Box::new([0; BLOCK_WORDS]);
        let (bits, blocks) = (RoaringBitmap::new(), Blocks::default());
        Self { dims, shape, done, bucket: 0, bits, blocks, block: 0, words, dirty: false }
    }

    /// Adds the position `base + i` for each bit `i < bits` that is set: bit `i % 64`, from the least significant
    /// one, of `words[i / 64]`. Further bits are ignored.
    pub fn push_bits(&mut self, base: u64, words: &[u64], bits: u64) -> Result<()> {
        if bits.div_ceil(64) > words.len() as u64 {
            let n = words.len();
            return Err(Error::new(ErrorKind::InvalidValue, format!("{bits} bits asked of {n} words of 64")));
        }
        self.check(base, bits)?;
        let (whole, rest) = ((bits / 64) as usize, bits % 64);
        self.or_words(base, &words[..whole]);
        if rest > 0 {
            self.or_words(base + 64 * whole as u64, &[words[whole] & ((1 << rest) - 1)]);
        }
        Ok(())
    }

    /// Adds the positions of a block.
    pub fn push_block(&mut self, block: PositionBlock) -> Result<()> {
        self.check(block.last(), 1)?;
        self.flush_block();
        self.enter_block(block.number());
        self.keep(block);
        Ok(())
    }

    /// Adds the positions `start..start + len`.
    pub fn push_run(&mut self, start: u64, len: u64) -> Result<()> {
        let end = self.check(start, len)?;
        self.add_run(start, end);
        Ok(())
    }

    /// Adds single positions; the way for those that lie far apart.
    pub fn push_positions(&mut self, positions: impl IntoIterator<Item = u64>) -> Result<()> {
        let mut rising = Vec::with_capacity(RISING);
        for p in positions {
            self.check(p, 1)?;
            let bucket = (p >> BUCKET_BITS) as u32;
            let follows = bucket == self.bucket && rising.last().is_none_or(|&last| last < p as u32);
            if !follows || rising.len() == RISING {
                self.append(&mut rising);
                self.enter_bucket(bucket);
            }
            rising.push(p as u32);
        }
        self.append(&mut rising);
        Ok(())
    }

    /// Adds increasing positions of the bucket in work: at its end in one go, where they lie behind all others.
    fn append(&mut self, rising: &mut Vec<u32>) {
        self.join_blocks();
        if self.bits.append(rising.iter().copied()).is_err() {
            self.bits.extend(rising.iter().copied());
        }
        rising.clear();
    }

    /// The memory that the positions take so far, about.
    pub fn memory_bytes(&self) -> u64 {
        let s = self.bits.statistics();
        let containers = s.n_bytes_array_containers
            + s.n_bytes_run_containers
            + u64::from(s.n_bitset_containers) * BITSET_BYTES;
        self.done.memory_bytes()
            + containers
            + self.blocks.memory_bytes()
            + (BLOCK_WORDS * size_of::<u64>()) as u64
    }

    /// The selection of all positions that were added.
    pub fn finish(mut self) -> Selection {
        self.flush_block();
        self.seal_bucket();
        Selection { dims: self.dims, shape: self.shape, set: self.done }
    }

    /// The end of `start..start + len`, which must lie in the row space.
    fn check(&self, start: u64, len: u64) -> Result<u64> {
        let extent = self.done.extent();
        start.checked_add(len).filter(|&end| end <= extent).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidValue,
                format!("{len} positions from {start} on do not lie in a row space of {extent}"),
            )
        })
    }

    /// Adds `at..end`: the buckets that it covers as such, what remains within its buckets.
    fn add_run(&mut self, mut at: u64, end: u64) {
        while at < end {
            let bucket = (at >> BUCKET_BITS) as u32;
            let base = u64::from(bucket) << BUCKET_BITS;
            let whole_to =
                if end == self.done.extent() { self.done.n_buckets() } else { (end >> BUCKET_BITS) as u32 };
            if at == base && whole_to > bucket {
                self.add_buckets(bucket, whole_to);
                at = (u64::from(whole_to) << BUCKET_BITS).min(end);
            } else {
                let stop = end.min(base + (1 << BUCKET_BITS));
                self.run_in_bucket(bucket, at, stop);
                at = stop;
            }
        }
    }

    fn or_words(&mut self, base: u64, words: &[u64]) {
        let (at, shift) = (base / 64, base % 64);
        match words {
            [] => {}
            _ if shift == 0 => self.or_aligned(at, words),
            [first, ..] => {
                self.or_aligned(at, &[first << shift]);
                self.or_shifted(at + 1, words, shift);
            }
        }
    }

    /// ORs what of `words`, shifted up by `shift` bits, lies in the words from `at` on, the second of the result.
    fn or_shifted(&mut self, at: u64, words: &[u64], shift: u64) {
        let mut shifted = [0; BLOCK_WORDS];
        let pairs = words.len() - 1;
        for begin in (0..pairs).step_by(BLOCK_WORDS) {
            let n = BLOCK_WORDS.min(pairs - begin);
            for (out, pair) in shifted.iter_mut().zip(words[begin..begin + n + 1].windows(2)) {
                *out = (pair[0] >> (64 - shift)) | (pair[1] << shift);
            }
            self.or_aligned(at + begin as u64, &shifted[..n]);
        }
        self.or_aligned(at + pairs as u64, &[words[pairs] >> (64 - shift)]);
    }

    /// ORs `words` into the row space's words from `at` on.
    fn or_aligned(&mut self, mut at: u64, mut words: &[u64]) {
        while !words.is_empty() {
            let first = (at % BLOCK_WORDS as u64) as usize;
            let (here, rest) = words.split_at(words.len().min(BLOCK_WORDS - first));
            if here.iter().fold(0, |any, w| any | w) != 0 {
                self.enter_block(at / BLOCK_WORDS as u64);
                for (word, more) in self.words[first..].iter_mut().zip(here) {
                    *word |= more;
                }
                self.dirty = true;
            }
            at += here.len() as u64;
            words = rest;
        }
    }

    /// Adds the buckets `first..end` wholly.
    fn add_buckets(&mut self, first: u32, end: u32) {
        self.flush_block();
        self.seal_bucket();
        if first >= self.done.end_bucket() {
            self.done.push_full(first, end);
        } else {
            let mut more = PositionSet::empty(self.done.extent());
            more.push_full(first, end);
            self.done = self.done.merge(&more, SetOp::Or);
        }
    }

    /// Adds `start..end`, which lies in `bucket`: its whole blocks as one run, what remains as bits.
    fn run_in_bucket(&mut self, bucket: u32, start: u64, end: u64) {
        let first_whole = start.next_multiple_of(1 << BLOCK_BITS);
        let end_whole = end >> BLOCK_BITS << BLOCK_BITS;
        if start < first_whole {
            self.run_in_block(start, end.min(first_whole));
        }
        if first_whole < end_whole {
            self.enter_bucket(bucket);
            self.join_blocks();
            self.bits.insert_range(first_whole as u32..=(end_whole - 1) as u32);
        }
        if first_whole <= end_whole && end_whole < end {
            self.run_in_block(end_whole, end);
        }
    }

    /// Adds `start..end`, which is not empty and lies in one block.
    fn run_in_block(&mut self, start: u64, end: u64) {
        self.enter_block(start >> BLOCK_BITS);
        let word = |p: u64| (p / 64) as usize % BLOCK_WORDS;
        let (first, last) = (word(start), word(end - 1));
        let (from, to) = (u64::MAX << (start % 64), u64::MAX >> (63 - (end - 1) % 64));
        if first == last {
            self.words[first] |= from & to;
        } else {
            self.words[first] |= from;
            self.words[first + 1..last].fill(u64::MAX);
            self.words[last] |= to;
        }
        self.dirty = true;
    }

    fn enter_block(&mut self, block: u64) {
        if block != self.block {
            // The bucket first: it writes the old block into the old bucket.
            self.enter_bucket((block >> (BUCKET_BITS - BLOCK_BITS)) as u32);
            self.flush_block();
            self.block = block;
        }
    }

    fn enter_bucket(&mut self, bucket: u32) {
        if bucket != self.bucket {
            self.flush_block();
            self.seal_bucket();
            self.bucket = bucket;
            self.block = u64::from(bucket) << (BUCKET_BITS - BLOCK_BITS);
        }
    }

    /// Moves the block in work into the bucket in work.
    fn flush_block(&mut self) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let base = (self.block << BLOCK_BITS) as u32;
        if self.words.iter().fold(u64::MAX, |all, w| all & w) == u64::MAX {
            self.join_blocks();
            self.bits.insert_range(base..=base + ((1 << BLOCK_BITS) - 1));
        } else if let Some(block) = PositionBlock::new(self.block << BLOCK_BITS, &self.words[..]) {
            self.keep(block);
        } else {
            self.join_blocks();
            let mut bytes = [0; BLOCK_WORDS * 8];
            for (to, word) in bytes.chunks_exact_mut(8).zip(self.words.iter()) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            let mut block = RoaringBitmap::from_lsb0_bytes(base, &bytes);
            // Now rather than at the end, so that blocks that are mostly runs do not pile up as bits.
            block.optimize();
            // By reference: for a value, roaring first counts all of the bucket to see which side is larger.
            self.bits |= &block;
        }
        self.words.fill(0);
    }

    /// Keeps a block of the bucket in work: behind the others if it comes after all of them.
    fn keep(&mut self, block: PositionBlock) {
        if self.blocks.last().is_some_and(|last| last >= block.number()) {
            self.join_blocks();
        }
        self.blocks.push(block);
    }

    /// Moves the blocks that are kept to the bits of the bucket in work.
    fn join_blocks(&mut self) {
        match self.blocks.take() {
            None => {}
            Some(more) if self.bits.is_empty() => self.bits = more,
            Some(more) => self.bits |= &more,
        }
    }

    /// Moves the bucket in work to those that are done.
    fn seal_bucket(&mut self) {
        // Blocks have the smallest form already.
        let are_blocks = self.bits.is_empty();
        self.join_blocks();
        let bits = std::mem::take(&mut self.bits);
        if bits.is_empty() {
            return;
        }
        if self.bucket >= self.done.end_bucket() {
            self.done.push(self.bucket, bits, are_blocks);
        } else {
            let mut more = PositionSet::empty(self.done.extent());
            more.push(self.bucket, bits, are_blocks);
            self.done = self.done.merge(&more, SetOp::Or);
        }
    }
}

/// The positions `start..end` of `0..extent`, as a set of their own.
pub(super) fn range(extent: u64, start: u64, end: u64) -> PositionSet {
    let mut builder = SelectionBuilder::over(Vec::new(), Vec::new(), PositionSet::empty(extent));
    builder.add_run(start, end);
    builder.finish().set
}
