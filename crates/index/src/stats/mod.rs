//! Zone maps and mergeable histograms of regions.
//!
//! A [`RegionStats`] holds the extremes of a region's values and how they are spread. It decides most regions that a
//! condition selects wholly or not at all, and bounds the number of hits in the others. It is made in two passes over
//! elements in cache: `zone` finds the extremes, `tally` counts the bins that they lead to (`bins`).
//!
//! The bytes that it is kept as are in `docs/reference/statistics-format.md`.

mod bins;
mod codec;
mod decide;
mod histogram;
mod lane;
mod sums;
mod tally;
#[cfg(test)]
mod tests;
mod zone;

pub use decide::Verdict;
pub(crate) use decide::touches;
pub use histogram::{Histogram, MERGED_BINS};
pub use sums::{Decoded, Sums, Total};

use sieva_types::KeySet;
use sieva_types::keys::key_range;

use crate::{Elements, each};

/// What is known of the values of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionStats {
    /// Number of elements.
    pub rows: u64,
    /// Number of NaNs, missing or not.
    pub nan: u64,
    /// Number of elements whose key is in the missing set; NaN is not counted.
    pub missing: u64,
    /// Least and greatest key of the other elements, those *present*; `None` if there is none.
    pub bounds: Option<(i128, i128)>,
    /// Exact sums of the present values, where they are known.
    pub sums: Option<Box<Sums>>,
    /// How the present values are spread, where that was asked for.
    pub histogram: Option<Histogram>,
}

impl RegionStats {
    /// The extremes of `elements`, without a histogram. One pass, at the speed of the cache.
    pub fn zone(elements: Elements<'_>, missing: &KeySet) -> Self {
        let zone = each!(elements, data => zone::zone(data, missing));
        Self {
            rows: elements.len() as u64,
            nan: zone.nan,
            missing: zone.missing,
            bounds: zone.bounds,
            sums: None,
            histogram: None,
        }
    }

    /// The extremes of `elements` and their histogram.
    pub fn full(elements: Elements<'_>, missing: &KeySet) -> Self {
        let mut stats = Self::zone(elements, missing);
        stats.histogram = Some(stats.histogram_of(elements, missing));
        stats
    }

    /// The same with the exact sums of `elements`, which it was made of; `packing` is the scale and the offset of packed data.
    #[must_use]
    pub fn with_sums(self, elements: Elements<'_>, missing: &KeySet, packing: Option<(f64, f64)>) -> Self {
        let sums = Sums::of(elements, missing, &self, packing);
        Self { sums: Some(Box::new(sums)), ..self }
    }

    fn histogram_of(&self, elements: Elements<'_>, missing: &KeySet) -> Histogram {
        let (infinities, finite) = self.without_infinities(elements, missing);
        let Some(finite) = finite else { return Histogram { infinities, ..Histogram::EMPTY } };
        let bins = bins::Bins::new(elements.dtype(), finite);
        let counts = each!(elements, data => tally::tally(data, missing, finite, bins));
        Histogram { exponent: bins.exponent, first: bins.first, counts, infinities }
    }

    /// Numbers of -infinity and +infinity, and the bounds of all other present values.
    ///
    /// Infinities are rare, so their regions are passed over again as if they were missing.
    fn without_infinities(
        &self,
        elements: Elements<'_>,
        missing: &KeySet,
    ) -> ((u64, u64), Option<(i128, i128)>) {
        let infinity =
            if elements.dtype().is_float() { key_range(elements.dtype()) } else { (i128::MIN, i128::MAX) };
        let (mut left_out, mut rest, mut numbers) = (missing.clone(), self.clone(), [0; 2]);
        for (key, number) in [infinity.0, infinity.1].into_iter().zip(&mut numbers) {
            if rest.bounds.is_some_and(|(low, high)| low == key || high == key) {
                left_out = left_out.union(&KeySet::interval(key, key));
                let without = Self::zone(elements, &left_out);
                *number = without.missing - rest.missing;
                rest = without;
            }
        }
        (numbers.into(), rest.bounds)
    }

    /// Number of elements that are neither NaN nor missing.
    pub fn present(&self) -> u64 {
        self.rows.saturating_sub(self.nan).saturating_sub(self.missing)
    }

    /// Makes it the statistics of both regions, which are of one array and were made with one missing set.
    ///
    /// The histogram stays only if both have one, or the one that has none has no present values either; so do sums.
    /// Commutative and associative.
    pub fn merge(&mut self, other: &Self) {
        self.histogram = match (self.histogram.take(), &other.histogram) {
            (Some(mut mine), Some(theirs)) => {
                mine.merge(theirs);
                Some(mine)
            }
            (Some(mine), None) if other.present() == 0 => Some(mine),
            (None, Some(theirs)) if self.present() == 0 => Some(theirs.clone()),
            _ => None,
        };
        self.sums = match (self.sums.take(), &other.sums) {
            (Some(mine), Some(theirs)) => mine.plus(theirs).map(Box::new),
            (Some(mine), None) if other.present() == 0 => Some(mine),
            (None, Some(theirs)) if self.present() == 0 => Some(theirs.clone()),
            _ => None,
        };
        self.bounds = match (self.bounds, other.bounds) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.rows = self.rows.saturating_add(other.rows);
        self.nan = self.nan.saturating_add(other.nan);
        self.missing = self.missing.saturating_add(other.missing);
    }
}

/// Whether the instructions that the widest loops are compiled to are there.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}
