//! Bounds of the number of positions of a tile that satisfy a condition, by histograms.

use sieva_index::stats::Verdict;
use sieva_types::{Bx, KeySet};

use crate::bind::Condition;
use crate::exec::Execution;

/// Bounds of a number of positions.
pub(crate) type Bounds = (u64, u64);

impl Execution {
    /// Bounds of the number of positions of a box that satisfy a condition.
    pub(crate) fn condition_bounds(&self, condition: &Condition, bx: &Bx) -> Bounds {
        let n = bx.len();
        match condition {
            Condition::Always => (n, n),
            Condition::Never => (0, 0),
            Condition::All(parts) => all_bounds(n, parts.iter().map(|p| self.condition_bounds(p, bx))),
            Condition::Any(parts) => any_bounds(n, parts.iter().map(|p| self.condition_bounds(p, bx))),
            Condition::Stored { array, raw, set } => self.stored_bounds(*array, *raw, set, bx),
            Condition::Position { .. } => match self.foresee_condition(condition, bx) {
                Verdict::None => (0, 0),
                Verdict::All => (n, n),
                Verdict::Some => (0, n),
            },
            Condition::Computed(value) => match self.foresee_unwritten(value, bx) {
                Verdict::None => (0, 0),
                Verdict::All => (n, n),
                Verdict::Some => (0, n),
            },
        }
    }

    fn stored_bounds(&self, array: usize, raw: bool, set: &KeySet, bx: &Bx) -> Bounds {
        let n = bx.len();
        let Some(index) = self.zones(array, raw) else { return (0, n) };
        let own = self.own_box(array, bx);
        let of_region = |region: usize| {
            let (low, high) = index.count_bounds(region, set);
            let rows = index.grid().bx(region);
            // What of the region lies outside of the tile may hold any of its hits.
            let inside = rows.intersect(&own).map_or(0, |b| b.len());
            (low.saturating_sub(rows.len() - inside), high.min(inside))
        };
        let regions = index.grid().touched(&own);
        let (low, high) = regions.into_iter().map(of_region).fold((0, 0), |(a, b), (l, h)| (a + l, b + h));
        let repeats = n / own.len().max(1);
        (low * repeats, high * repeats)
    }
}

/// Bounds of an intersection of sets of `n` positions.
pub(crate) fn all_bounds(n: u64, parts: impl Iterator<Item = Bounds>) -> Bounds {
    let both = |(low, high): Bounds, (l, h): Bounds| ((low + l).saturating_sub(n), high.min(h));
    parts.fold((n, n), both)
}

/// Bounds of a union of sets of `n` positions.
pub(crate) fn any_bounds(n: u64, parts: impl Iterator<Item = Bounds>) -> Bounds {
    parts.fold((0, 0), |(low, high), (l, h)| (low.max(l), (high + h).min(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_combine_without_knowing_the_overlap() {
        assert_eq!(all_bounds(100, [(70, 80), (60, 90)].into_iter()), (30, 80));
        assert_eq!(all_bounds(100, [(10, 20), (20, 30)].into_iter()), (0, 20));
        assert_eq!(any_bounds(100, [(70, 80), (60, 90)].into_iter()), (70, 100));
        assert_eq!(any_bounds(100, [(1, 2), (3, 4)].into_iter()), (3, 6));
    }
}
