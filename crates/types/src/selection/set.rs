//! Sets of positions in `0..extent`, in buckets of 2^32 positions.
//!
//! A bucket of which nothing is selected is not stored; neighbouring buckets that are selected wholly are one
//! piece, whatever their number; any other bucket is a roaring bitmap. So the set of all of 10^12 positions is one
//! piece of a few bytes, where a plain tree of bitmaps would need 15 million containers.
//! "Wholly" means every position below `extent`: the last bucket may be shorter than 2^32.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::ranks::Ranks;

/// Bytes of a container that has a bit for each of its positions. What roaring tells of them (0.12) is the number of bits.
pub(super) const BITSET_BYTES: u64 = 1 << 13;

/// log2 of the number of positions in a bucket.
pub(super) const BUCKET_BITS: u32 = 32;

/// Positions of one bucket, or of neighbouring buckets.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// Every position.
    Full,
    /// Some, at least one, of a single bucket. Shared, so that algebra need not copy what it does not change.
    Bits(Arc<RoaringBitmap>),
}

/// The buckets `first..end`, and what is selected of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) first: u32,
    pub(super) end: u32,
    /// Number of selected positions, never 0.
    pub(super) len: u64,
    pub(super) part: Part,
}

impl Piece {
    /// The first position of the first bucket.
    pub(super) fn base(&self) -> u64 {
        u64::from(self.first) << BUCKET_BITS
    }
}

/// A set operation on two operands.
#[derive(Clone, Copy, Debug)]
pub(super) enum SetOp {
    And,
    Or,
    Sub,
    Xor,
}

/// The set: pieces in increasing order, in the one form that equal sets share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PositionSet {
    extent: u64,
    len: u64,
    pieces: Vec<Piece>,
    ranks: Ranks,
}

impl PositionSet {
    /// Nothing of `0..extent`; `extent` is at most 2^63.
    pub(super) fn empty(extent: u64) -> Self {
        Self { extent, len: 0, pieces: Vec::new(), ranks: Ranks::default() }
    }

    /// Everything of `0..extent`.
    pub(super) fn all(extent: u64) -> Self {
        let mut set = Self::empty(extent);
        set.push_full(0, set.n_buckets());
        set
    }

    pub(super) fn extent(&self) -> u64 {
        self.extent
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The number of buckets of `0..extent`; fits because `extent` is at most 2^63.
    pub(super) fn n_buckets(&self) -> u32 {
        self.extent.div_ceil(1 << BUCKET_BITS) as u32
    }

    /// The first bucket after all pieces.
    pub(super) fn end_bucket(&self) -> u32 {
        self.pieces.last().map_or(0, |p| p.end)
    }

    /// The number of positions of the buckets `first..end`.
    pub(super) fn capacity(&self, first: u32, end: u32) -> u64 {
        let stop = (u64::from(end) << BUCKET_BITS).min(self.extent);
        stop.saturating_sub(u64::from(first) << BUCKET_BITS)
    }

    /// Appends whole buckets, which must come after all pieces.
    pub(super) fn push_full(&mut self, first: u32, end: u32) {
        debug_assert!(first >= self.end_bucket());
        let len = self.capacity(first, end);
        if len == 0 {
            return;
        }
        self.len += len;
        self.ranks = Ranks::default();
        match self.pieces.last_mut() {
            Some(p) if p.end == first && p.part == Part::Full => {
                p.end = end;
                p.len += len;
            }
            _ => self.pieces.push(Piece { first, end, len, part: Part::Full }),
        }
    }

    /// Appends one bucket, which must come after all pieces.
    pub(super) fn push_bits(&mut self, bucket: u32, mut bits: RoaringBitmap) {
        bits.optimize();
        self.push_shared(bucket, Arc::new(bits));
    }

    /// As [`PositionSet::push_bits`], of bits that may have the smallest form.
    pub(super) fn push(&mut self, bucket: u32, bits: RoaringBitmap, is_smallest: bool) {
        if is_smallest { self.push_shared(bucket, Arc::new(bits)) } else { self.push_bits(bucket, bits) }
    }

    fn push_shared(&mut self, bucket: u32, bits: Arc<RoaringBitmap>) {
        debug_assert!(bucket >= self.end_bucket());
        let len = bits.len();
        if len == self.capacity(bucket, bucket + 1) {
            self.push_full(bucket, bucket + 1);
        } else if len > 0 {
            self.len += len;
            self.ranks = Ranks::default();
            self.pieces.push(Piece { first: bucket, end: bucket + 1, len, part: Part::Bits(bits) });
        }
    }

    /// What is selected of `bucket` (`None`: nothing), and the first bucket of which that is not known any more.
    /// `i` is the first piece that ends after `bucket`.
    fn part_at(&self, i: usize, bucket: u32) -> (Option<&Part>, u32) {
        match self.pieces.get(i) {
            Some(p) if p.first <= bucket => (Some(&p.part), p.end),
            Some(p) => (None, p.first),
            None => (None, self.n_buckets()),
        }
    }

    /// The set operation `op` of two sets of one extent.
    pub(super) fn merge(&self, other: &Self, op: SetOp) -> Self {
        debug_assert_eq!(self.extent, other.extent);
        let mut out = Self::empty(self.extent);
        let (mut i, mut j, mut bucket) = (0, 0, 0);
        while bucket < self.n_buckets() {
            let (a, a_end) = self.part_at(i, bucket);
            let (b, b_end) = other.part_at(j, bucket);
            let end = a_end.min(b_end);
            out.push_merged(bucket, end, a, b, op);
            i += usize::from(a.is_some() && a_end == end);
            j += usize::from(b.is_some() && b_end == end);
            bucket = end;
        }
        out
    }

    fn push_merged(&mut self, first: u32, end: u32, a: Option<&Part>, b: Option<&Part>, op: SetOp) {
        use Part::{Bits, Full};
        match (op, a, b) {
            (SetOp::And, Some(x), Some(Full)) | (SetOp::And, Some(Full), Some(x)) => {
                self.push_part(first, end, x)
            }
            (SetOp::And, Some(Bits(x)), Some(Bits(y))) => self.push_bits(first, &**x & &**y),
            (SetOp::And, ..) => {}
            (SetOp::Or, Some(Full), _) | (SetOp::Or, _, Some(Full)) => self.push_full(first, end),
            (SetOp::Or, Some(Bits(x)), Some(Bits(y))) => self.push_bits(first, &**x | &**y),
            (SetOp::Sub, _, Some(Full)) | (SetOp::Xor, Some(Full), Some(Full)) => {}
            (SetOp::Sub | SetOp::Xor, Some(Full), Some(Bits(y)))
            | (SetOp::Xor, Some(Bits(y)), Some(Full)) => self.push_rest(first, y),
            (SetOp::Sub, Some(Bits(x)), Some(Bits(y))) => self.push_bits(first, &**x - &**y),
            (SetOp::Xor, Some(Bits(x)), Some(Bits(y))) => self.push_bits(first, &**x ^ &**y),
            (_, Some(x), None) | (SetOp::Or | SetOp::Xor, None, Some(x)) => self.push_part(first, end, x),
            (SetOp::Sub, None, _) | (_, None, None) => {}
        }
    }

    fn push_part(&mut self, first: u32, end: u32, part: &Part) {
        match part {
            Part::Full => self.push_full(first, end),
            Part::Bits(bits) => self.push_shared(first, Arc::clone(bits)),
        }
    }

    /// Appends the positions of `bucket` that are not in `bits`.
    fn push_rest(&mut self, bucket: u32, bits: &RoaringBitmap) {
        let mut rest = RoaringBitmap::new();
        // The bucket is not empty, and holds at most 2^32 positions.
        rest.insert_range(0..=(self.capacity(bucket, bucket + 1) - 1) as u32);
        rest -= bits;
        self.push_bits(bucket, rest);
    }

    pub(super) fn contains(&self, position: u64) -> bool {
        if position >= self.extent {
            return false;
        }
        let bucket = (position >> BUCKET_BITS) as u32;
        let i = self.pieces.partition_point(|p| p.end <= bucket);
        match self.part_at(i, bucket).0 {
            None => false,
            Some(Part::Full) => true,
            Some(Part::Bits(bits)) => bits.contains(position as u32),
        }
    }

    /// The position of which `rank` positions of the set lie below.
    pub(super) fn select(&self, rank: u64) -> Option<u64> {
        if rank >= self.len { None } else { self.ranks.select(&self.pieces, rank) }
    }

    /// The number of positions of the set below `position`.
    pub(super) fn rank(&self, position: u64) -> u64 {
        self.ranks.rank(&self.pieces, position)
    }

    /// The largest position.
    pub(super) fn max(&self) -> Option<u64> {
        let last = self.pieces.last()?;
        match &last.part {
            Part::Full => Some(last.base() + last.len - 1),
            Part::Bits(bits) => bits.max().map(|low| last.base() + u64::from(low)),
        }
    }

    /// Bytes on the heap, with the containers' bookkeeping estimated.
    pub(super) fn memory_bytes(&self) -> u64 {
        /// A container's entry in its bitmap and the header of its allocation.
        const PER_CONTAINER: u64 = 48;
        let bitmaps = self.pieces.iter().map(|p| match &p.part {
            Part::Full => 0,
            Part::Bits(bits) => {
                let s = bits.statistics();
                s.n_bytes_array_containers
                    + s.n_bytes_run_containers
                    + u64::from(s.n_bitset_containers) * BITSET_BYTES
                    + u64::from(s.n_containers) * PER_CONTAINER
            }
        });
        bitmaps.sum::<u64>() + (self.pieces.len() * size_of::<Piece>()) as u64
    }
}
