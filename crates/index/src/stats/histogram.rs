//! Histograms whose bins are powers of two wide, so that any two align.
//!
//! After Tang et al., "PDC-Query", section IV, Algorithm 1: the width of a bin is a power of two, its edges are
//! whole multiples of the width, and a merged histogram has the greater of the widths. Ours differs in that the
//! extremes are exact instead of sampled (a value outside of the bins cannot occur), that widths are any power of two
//! that the type can tell apart, and that a merged histogram is kept to [`MERGED_BINS`] bins by doubling the width.
//! The merge is canonical: its result depends on what was merged, not on the order.

use sieva_types::{DType, KeySet};

use super::bins::{coarser, edge, lower_key, value_keys};
use super::decide::touches;

/// Most bins of a merged histogram.
pub const MERGED_BINS: usize = 1024;

/// Counts of finite stored values in bins `[i * 2^k, (i + 1) * 2^k)`, and of infinities.
///
/// The first and the last bin are occupied. -0.0 lies in the bin of 0.0. Missing values and NaN are not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub(super) exponent: i32,
    pub(super) first: i128,
    pub(super) counts: Vec<u64>,
    pub(super) infinities: (u64, u64),
}

impl Histogram {
    /// The histogram of no values.
    pub const EMPTY: Histogram =
        Histogram { exponent: super::bins::LEAST_EXPONENT, first: 0, counts: Vec::new(), infinities: (0, 0) };

    /// k: bins are `2^k` wide. Meaningless where there are no bins.
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    /// i of the first bin, which starts at `i * 2^k`.
    pub fn first(&self) -> i128 {
        self.first
    }

    /// Number of values per bin; at most [`MERGED_BINS`] bins, none if no value is finite.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Numbers of values that are -infinity and +infinity.
    pub fn infinities(&self) -> (u64, u64) {
        self.infinities
    }

    /// Edges of the bins, one more than there are bins.
    ///
    /// Exact for floats, but for an edge beyond the greatest float, which is infinite; rounded up to a float for
    /// integers of more than 53 digits. [`Histogram::first`] and [`Histogram::exponent`] are always exact.
    pub fn edges(&self) -> Vec<f64> {
        (0..=self.counts.len() as i128).map(|j| edge(self.first + j, self.exponent)).collect()
    }

    /// Number of values, infinities included.
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .fold(self.infinities.0.saturating_add(self.infinities.1), |n, &c| n.saturating_add(c))
    }

    /// Adds the counts of `other`, a histogram of values of the same type.
    ///
    /// The width becomes the least that is no less than either and makes at most [`MERGED_BINS`] bins. Commutative and
    /// associative, as a bin of one width lies within one bin of every greater width.
    pub fn merge(&mut self, other: &Self) {
        self.infinities.0 = self.infinities.0.saturating_add(other.infinities.0);
        self.infinities.1 = self.infinities.1.saturating_add(other.infinities.1);
        if other.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            *self = Self { infinities: self.infinities, ..other.clone() };
            return;
        }
        let mut exponent = self.exponent.max(other.exponent);
        let (first, len) = loop {
            let (a, b) = (self.span(exponent), other.span(exponent));
            let (first, last) = (a.0.min(b.0), a.1.max(b.1));
            if last - first < MERGED_BINS as i128 {
                break (first, (last - first + 1) as usize);
            }
            exponent += 1;
        };
        let mut counts = vec![0; len];
        self.pour(exponent, first, &mut counts);
        other.pour(exponent, first, &mut counts);
        *self = Self { exponent, first, counts, infinities: self.infinities };
    }

    /// First and last bin at another exponent, which is no less than its own.
    fn span(&self, exponent: i32) -> (i128, i128) {
        let last = self.first + self.counts.len() as i128 - 1;
        (coarser(self.first, exponent - self.exponent), coarser(last, exponent - self.exponent))
    }

    /// Adds its counts to bins of `exponent` that start at bin `first`.
    fn pour(&self, exponent: i32, first: i128, counts: &mut [u64]) {
        for (i, n) in (self.first..).zip(&self.counts) {
            let bin = coarser(i, exponent - self.exponent) - first;
            if let Some(count) = counts.get_mut(bin as usize) {
                *count = count.saturating_add(*n);
            }
        }
    }

    /// Least and greatest possible number of its values that are in `set`; `dtype` is the type that it counts.
    pub fn count_bounds(&self, set: &KeySet, dtype: DType) -> (u64, u64) {
        let (low, high) = value_keys(dtype);
        let values = KeySet::interval(low, high);
        let inside = values.intersection(set);
        self.count_split(dtype, &inside, &values.difference(&inside))
    }

    /// Least and greatest possible number of its values that are in `inside`, where the others are in `outside`.
    pub(super) fn count_split(&self, dtype: DType, inside: &KeySet, outside: &KeySet) -> (u64, u64) {
        let (mut lower, mut upper) = (0_u64, 0_u64);
        let mut add = |low: i128, high: i128, n: u64| {
            if n > 0 && touches(inside, low, high) {
                upper = upper.saturating_add(n);
                lower = lower.saturating_add(if touches(outside, low, high) { 0 } else { n });
            }
        };
        let mut low = lower_key(dtype, self.first, self.exponent);
        for (next, &n) in (self.first + 1..).zip(&self.counts) {
            let end = lower_key(dtype, next, self.exponent);
            add(low, end.saturating_sub(1), n);
            low = end;
        }
        let (least, greatest) = value_keys(dtype);
        add(least, least, self.infinities.0);
        add(greatest, greatest, self.infinities.1);
        (lower, upper)
    }
}
