//! What the statistics of a region tell about a set of values.
//!
//! A region's rows are of three sorts: NaN, which a set holds or not; missing, known as a number only; present,
//! known by extremes that occur and by a histogram.

use sieva_types::{DType, KeySet};

use super::RegionStats;

/// How many rows of a region have a value in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None of them.
    None,
    /// Some of them, or that cannot be told.
    Some,
    /// All of them.
    All,
}

/// The keys of all types: set operations within them cannot overflow.
const LEAST_KEY: i128 = i64::MIN as i128;
const GREATEST_KEY: i128 = u64::MAX as i128;

/// Least and greatest possible number of rows.
type Bounds = (u64, u64);

impl RegionStats {
    /// Whether none, some or all rows of the region have a value in `set`. `missing` is the set it was made with.
    ///
    /// Looks at the extremes only; [`RegionStats::count_bounds`] may exclude a region that this does not.
    /// A region without rows is decided as [`Verdict::None`].
    pub fn decide(&self, set: &KeySet, missing: &KeySet) -> Verdict {
        let (lower, upper) = add(self.absent_bounds(set, missing), self.present_bounds(set, missing, None));
        if upper == 0 {
            Verdict::None
        } else if lower >= self.rows {
            Verdict::All
        } else {
            Verdict::Some
        }
    }

    /// Least and greatest possible number of rows whose value is in `set`, by all that is known.
    ///
    /// `missing` is the set it was made with, `dtype` the type of the array (float16 and bool, or what they were
    /// widened to).
    pub fn count_bounds(&self, set: &KeySet, missing: &KeySet, dtype: DType) -> (u64, u64) {
        add(self.absent_bounds(set, missing), self.present_bounds(set, missing, Some(dtype)))
    }

    /// Rows that are NaN or missing.
    fn absent_bounds(&self, set: &KeySet, missing: &KeySet) -> Bounds {
        let of_nan = if set.nan { self.nan } else { 0 };
        let of_missing = if self.missing == 0 || !missing.ranges.iter().any(|r| touches(set, r.0, r.1)) {
            (0, 0)
        } else if missing.ranges.iter().all(|&(low, high)| covers(set, low, high)) {
            (self.missing, self.missing)
        } else {
            (0, self.missing)
        };
        add(of_missing, (of_nan, of_nan))
    }

    /// Present rows, by the extremes and, if the type is given, by the histogram.
    fn present_bounds(&self, set: &KeySet, missing: &KeySet, dtype: Option<DType>) -> Bounds {
        let present = self.present();
        let Some((low, high)) = self.bounds else { return (0, present) };
        if !touches(set, low, high) {
            return (0, 0);
        }
        if covers(set, low, high) {
            return (present, present);
        }
        let domain = domain((low, high), missing);
        let inside = domain.intersection(set);
        let outside = domain.difference(&inside);
        if inside.is_empty() || outside.is_empty() {
            return if inside.is_empty() { (0, 0) } else { (present, present) };
        }
        // Both extremes occur: one in the set is a hit, one outside of it is none.
        let hits = u64::from(set.contains(low)) + u64::from(set.contains(high));
        let (mut lower, mut upper) = (hits, present.saturating_sub(2 - hits));
        if let (Some(dtype), Some(histogram)) = (dtype, &self.histogram) {
            let (least, greatest) = histogram.count_split(dtype, &inside, &outside);
            (lower, upper) = (lower.max(least), upper.min(greatest));
        }
        // Of damaged statistics nothing is true, but even then the bounds are in order.
        (lower.min(upper), upper)
    }
}

/// The values that present rows with these extremes may have.
fn domain((low, high): (i128, i128), missing: &KeySet) -> KeySet {
    let keys = KeySet::interval(low.max(LEAST_KEY), high.min(GREATEST_KEY));
    keys.difference(&missing.intersection(&keys))
}

/// Whether a key of `low..=high` is in `set`.
pub(crate) fn touches(set: &KeySet, low: i128, high: i128) -> bool {
    let at = set.ranges.partition_point(|r| r.1 < low);
    set.ranges.get(at).is_some_and(|r| r.0 <= high)
}

/// Whether all keys of `low..=high` are in `set`.
fn covers(set: &KeySet, low: i128, high: i128) -> bool {
    let from = set.ranges.partition_point(|r| r.1 < low);
    let mut next = low;
    for &(start, end) in &set.ranges[from..] {
        if start > next {
            return false;
        }
        if end >= high {
            return true;
        }
        next = end + 1; // of adjoining intervals that no one has joined
    }
    false
}

fn add(a: Bounds, b: Bounds) -> Bounds {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}
