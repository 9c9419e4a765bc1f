//! What a file's own writer noted of the values of its blocks, as bounds for regions.
//!
//! Such notes tell no counts of missing values or NaNs, and often not the extremes themselves but rounded ones: they
//! exclude a region, and never select one.

use sieva_types::{Bx, KeySet};

use crate::RegionGrid;

/// Blocks and regions that are looked at together; a file with more of them is scanned instead.
const MAX_TOUCHED: u64 = 1 << 24;

/// Bounds of the keys of all values but NaN of each region, where they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionLimits(Vec<Option<(i128, i128)>>);

impl RegionLimits {
    /// The limits of regions from those of blocks: a region keeps to what all blocks in it keep to. Regions that blocks
    /// do not cover have none, nor have those with a block of which nothing is known.
    pub fn of_blocks(grid: &RegionGrid, blocks: &[(Bx, Option<(i128, i128)>)]) -> Self {
        let mut found: Vec<Found> = (0..grid.len()).map(|_| Found::default()).collect();
        let mut touched = 0_u64;
        for (bx, limits) in blocks {
            touched = touched.saturating_add(grid.count_touched(bx));
            if touched > MAX_TOUCHED {
                return Self::default();
            }
            for region in grid.touched(bx) {
                found[region].add(grid.bx(region).intersect(bx).map_or(0, |b| b.len()), *limits);
            }
        }
        let known = found.into_iter().enumerate().map(|(region, f)| f.limits(grid.bx(region).len()));
        Self(known.collect())
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Whether a region is known to have no value in `set`.
    pub fn exclude(&self, region: usize, set: &KeySet) -> bool {
        let Some(&Some((low, high))) = self.0.get(region) else { return false };
        !set.nan && !crate::stats::touches(set, low, high)
    }
}

/// What blocks tell of one region.
#[derive(Default)]
struct Found {
    covered: u64,
    unknown: bool,
    bounds: Option<(i128, i128)>,
}

impl Found {
    fn add(&mut self, elements: u64, limits: Option<(i128, i128)>) {
        self.covered = self.covered.saturating_add(elements);
        match (limits, self.bounds) {
            (Some((low, high)), Some(b)) => self.bounds = Some((b.0.min(low), b.1.max(high))),
            (Some(limits), None) => self.bounds = Some(limits),
            (None, _) => self.unknown = true,
        }
    }

    fn limits(self, elements: u64) -> Option<(i128, i128)> {
        self.bounds.filter(|(low, high)| !self.unknown && self.covered >= elements && low <= high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: &[u64], shape: &[u64], limits: Option<(i128, i128)>) -> (Bx, Option<(i128, i128)>) {
        (Bx::new(start.to_vec(), shape.to_vec()), limits)
    }

    #[test]
    fn a_region_keeps_to_what_all_of_its_blocks_keep_to() {
        let grid = RegionGrid::new(&[4, 6], &[2, 4]).unwrap();
        let blocks = [
            block(&[0, 0], &[4, 3], Some((1, 5))),
            block(&[0, 3], &[2, 3], Some((4, 9))),
            block(&[2, 3], &[2, 2], None),
        ];
        let limits = RegionLimits::of_blocks(&grid, &blocks);
        // The third region has a block without limits, the fourth one that, and a hole.
        assert_eq!(limits.0, [Some((1, 9)), Some((4, 9)), None, None]);
        assert!(limits.any() && limits.exclude(1, &KeySet::interval(1, 3)));
        assert!(
            !limits.exclude(0, &KeySet::interval(1, 3)) && !limits.exclude(2, &KeySet::interval(100, 200))
        );
        assert!(!limits.exclude(1, &KeySet { ranges: Vec::new(), nan: true }));
        assert!(limits.exclude(1, &KeySet::EMPTY) && !limits.exclude(77, &KeySet::EMPTY));
    }

    #[test]
    fn limits_that_are_upside_down_are_none() {
        let grid = RegionGrid::new(&[2], &[2]).unwrap();
        assert!(!RegionLimits::of_blocks(&grid, &[block(&[0], &[2], Some((5, 1)))]).any());
    }

    #[test]
    fn too_many_blocks_say_nothing_and_take_no_time() {
        let grid = RegionGrid::new(&[1 << 20], &[1]).unwrap();
        let blocks = vec![block(&[0], &[1 << 20], Some((0, 1))); 1 << 10];
        assert!(!RegionLimits::of_blocks(&grid, &blocks).any());
    }
}
