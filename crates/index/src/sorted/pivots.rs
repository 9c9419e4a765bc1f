//! Sampling: the boundaries between buckets.
//!
//! Sample sort as in SDS, section III.A.2 (after Li et al., parallel sorting by regular sampling, 1993), with
//! samples from random places, since the data is not sorted beforehand. They are pairs of code and position,
//! which are all different: however often a value occurs, buckets come out even.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use sieva_types::{Buffer, Result};

use super::code::code_at;
use super::run::Run;
use super::source::{Schema, Source};

/// A code and the position that tells it from its equals.
pub type Pivot = (u64, u64);

/// Segments that are read for samples, at most.
const SAMPLED_SEGMENTS: usize = 128;
/// Samples for each bucket: its size is off by a factor of 1.5 once in some thousand buckets.
pub(super) const SAMPLES_PER_BUCKET: usize = 64;

/// Samples that are aimed at.
fn samples(buckets: usize) -> usize {
    (buckets * SAMPLES_PER_BUCKET).max(256)
}

/// The first pivots of all buckets but the first: ascending, at most `buckets - 1`.
pub(super) fn choose(
    run: &Run<'_>,
    source: &dyn Source,
    schema: &Schema,
    buckets: usize,
) -> Result<Vec<Pivot>> {
    if buckets < 2 {
        return Ok(Vec::new());
    }
    let all = sample(run, source, schema, buckets, 0..sampled(source))?;
    Ok(select(all, buckets))
}

/// How many segments are read for samples.
pub(super) fn sampled(source: &dyn Source) -> usize {
    source.segments().min(SAMPLED_SEGMENTS)
}

/// The samples of some of the segments that are read for them.
pub(super) fn sample(
    run: &Run<'_>,
    source: &dyn Source,
    schema: &Schema,
    buckets: usize,
    some: Range<usize>,
) -> Result<Vec<Pivot>> {
    let read = sampled(source);
    let each = samples(buckets).div_ceil(read.max(1));
    let all = Mutex::new(Vec::with_capacity(some.len() * each));
    run.parallel(some.len(), |_, i| {
        let taken = sample_segment(source, schema, (some.start + i) * source.segments() / read, each)?;
        all.lock().unwrap_or_else(PoisonError::into_inner).extend(taken);
        Ok(())
    })?;
    Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The pivots among all samples.
pub(super) fn select(mut all: Vec<Pivot>, buckets: usize) -> Vec<Pivot> {
    all.sort_unstable();
    all.dedup();
    // Never the first sample: a bucket below it might be empty, and a bucket that is cut again must shrink.
    let mut pivots: Vec<Pivot> =
        (1..buckets).filter_map(|b| all.get((b * all.len() / buckets).max(1)).copied()).collect();
    pivots.dedup();
    pivots
}

/// `count` rows of a segment at pseudo-random places, the same ones each time.
fn sample_segment(source: &dyn Source, schema: &Schema, segment: usize, count: usize) -> Result<Vec<Pivot>> {
    let (mut keys, mut positions) = (Buffer::default(), Buffer::default());
    source.read(segment, 0, &mut keys)?;
    source.read(segment, schema.positions(), &mut positions)?;
    let rows = source.rows(segment);
    if rows == 0 {
        return Ok(Vec::new());
    }
    // Each place once where there are few; else drawn by a linear congruential generator (Knuth's MMIX).
    let mut state = segment as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let place = |i: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if rows <= count { i } else { ((u128::from(state) * rows as u128) >> 64) as usize }
    };
    let pivot = |i| (code_at(schema.key, keys.bytes(), i), schema.position(&positions, i));
    Ok((0..count.min(rows)).map(place).map(pivot).collect())
}

/// The boundaries of buckets, searched for each row.
pub(super) struct Boundaries {
    codes: Vec<u64>,
    positions: Vec<u64>,
}

impl Boundaries {
    pub fn new(pivots: &[Pivot]) -> Self {
        let (codes, positions) = pivots.iter().copied().unzip();
        Self { codes, positions }
    }

    /// Number of buckets.
    pub fn buckets(&self) -> usize {
        self.codes.len() + 1
    }

    /// The bucket of a row: the number of boundaries not above it.
    #[inline]
    pub fn bucket(&self, code: u64, position: impl FnOnce() -> u64) -> usize {
        let at = self.codes.partition_point(|&c| c < code);
        if self.codes.get(at) != Some(&code) {
            return at;
        }
        let equal = self.codes[at..].partition_point(|&c| c == code);
        let position = position();
        at + self.positions[at..at + equal].partition_point(|&p| p <= position)
    }
}
