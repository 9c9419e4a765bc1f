//! What is known of a tile before it is read: from zone maps, masks and positions.

use sieva_index::ArrayIndex;
use sieva_index::stats::Verdict;
use sieva_types::{Bx, DType, KeySet};

use super::Execution;
use super::prepare::{Node, Prepared};
use super::tiles::Tiles;
use crate::bind::Condition;

/// A tile of which some positions may be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number among the tiles.
    pub tile: usize,
    /// Whether all of its positions are selected.
    pub all: bool,
}

/// Bounds of a number of positions.
pub type Bounds = (u64, u64);

impl Execution {
    /// The array's own box within a box of the row space.
    pub(super) fn own_box(&self, array: usize, bx: &Bx) -> Bx {
        let axes = &self.bound.arrays[array].axes;
        Bx::new(axes.iter().map(|&a| bx.start[a]).collect(), axes.iter().map(|&a| bx.shape[a]).collect())
    }

    /// The index of a bound array, where zone maps may be used for conditions on its stored values, `raw` or not.
    pub(super) fn zones(&self, array: usize, raw: bool) -> Option<&ArrayIndex> {
        let index = self.indexed[array].as_deref().filter(|_| self.options.access.zonemaps())?;
        self.keys_agree(array, raw, index.dtype()).then_some(index)
    }

    /// Whether sets of an array's stored values are sets of keys of `dtype`: what an attribute declares unsigned
    /// is indexed as such, and has other keys as raw values.
    pub(super) fn keys_agree(&self, array: usize, raw: bool, dtype: DType) -> bool {
        let bound = &self.bound.arrays[array];
        let domain = if raw { &bound.raw_domain } else { &bound.domain };
        match domain.dtype() {
            DType::F16 => dtype == DType::F32,
            DType::Bool => dtype == DType::U8,
            other => dtype == other,
        }
    }

    /// The tiles that may hold selected positions, in order.
    pub(super) fn candidates(&self, prepared: &Prepared, tiles: &Tiles) -> Vec<Candidate> {
        let judged =
            (0..tiles.len()).filter_map(|tile| match self.foresee(&prepared.node, &tiles.tile(tile)) {
                Verdict::None => None,
                Verdict::Some => Some(Candidate { tile, all: false }),
                Verdict::All => Some(Candidate { tile, all: true }),
            });
        judged.collect()
    }

    /// Whether none, some or all positions of a tile are selected, as far as it is known without reading.
    pub(super) fn foresee(&self, node: &Node, bx: &Bx) -> Verdict {
        match node {
            Node::Decided(true) => Verdict::All,
            Node::Decided(false) => Verdict::None,
            Node::Known(known) => {
                let part = known.of_tile(bx);
                if part.none() {
                    Verdict::None
                } else if part.all() {
                    Verdict::All
                } else {
                    Verdict::Some
                }
            }
            Node::Chosen(chosen) => chosen.foresee(&self.bound.rows.shape, bx),
            Node::All(parts) => all(parts.iter().map(|p| self.foresee(p, bx))),
            Node::Any(parts) => any(parts.iter().map(|p| self.foresee(p, bx))),
            Node::Leaf(condition) => self.foresee_condition(condition, bx),
        }
    }

    fn foresee_condition(&self, condition: &Condition, bx: &Bx) -> Verdict {
        match condition {
            Condition::Always => Verdict::All,
            Condition::Never => Verdict::None,
            Condition::All(parts) => all(parts.iter().map(|p| self.foresee_condition(p, bx))),
            Condition::Any(parts) => any(parts.iter().map(|p| self.foresee_condition(p, bx))),
            Condition::Stored { array, raw, set } => self.foresee_stored(*array, *raw, set, bx),
            Condition::Position { .. } | Condition::Computed(_) => Verdict::Some,
        }
    }

    /// What zone maps say of a condition on one array.
    pub(super) fn foresee_stored(&self, array: usize, raw: bool, set: &KeySet, bx: &Bx) -> Verdict {
        let Some(index) = self.zones(array, raw) else { return Verdict::Some };
        let own = self.own_box(array, bx);
        if let Some(region) = index.grid().only(&own) {
            return index.verdict(region, set);
        }
        let mut verdicts = index.grid().touched(&own).into_iter().map(|region| index.verdict(region, set));
        let Some(first) = verdicts.next() else { return Verdict::None };
        if verdicts.all(|v| v == first) { first } else { Verdict::Some }
    }

    /// Bounds of the number of selected positions, tile by tile; nothing is read.
    pub(super) fn bounds(&self, prepared: &Prepared, tiles: &Tiles) -> Bounds {
        let sum = |(low, high): Bounds, (l, h): Bounds| (low + l, high + h);
        (0..tiles.len()).map(|i| self.node_bounds(&prepared.node, &tiles.tile(i))).fold((0, 0), sum)
    }

    fn node_bounds(&self, node: &Node, bx: &Bx) -> Bounds {
        let n = bx.len();
        match node {
            Node::Decided(all) => {
                if *all {
                    (n, n)
                } else {
                    (0, 0)
                }
            }
            Node::Known(known) => {
                let part = known.of_tile(bx);
                let count = part.count() * (n / (part.len() as u64).max(1));
                (count, count)
            }
            Node::Chosen(chosen) => match chosen.foresee(&self.bound.rows.shape, bx) {
                Verdict::None => (0, 0),
                _ => (0, n.min(chosen.count())),
            },
            Node::All(parts) => all_bounds(n, parts.iter().map(|p| self.node_bounds(p, bx))),
            Node::Any(parts) => any_bounds(n, parts.iter().map(|p| self.node_bounds(p, bx))),
            Node::Leaf(condition) => self.condition_bounds(condition, bx),
        }
    }

    fn condition_bounds(&self, condition: &Condition, bx: &Bx) -> Bounds {
        let n = bx.len();
        match condition {
            Condition::Always => (n, n),
            Condition::Never => (0, 0),
            Condition::All(parts) => all_bounds(n, parts.iter().map(|p| self.condition_bounds(p, bx))),
            Condition::Any(parts) => any_bounds(n, parts.iter().map(|p| self.condition_bounds(p, bx))),
            Condition::Stored { array, raw, set } => self.stored_bounds(*array, *raw, set, bx),
            Condition::Position { .. } | Condition::Computed(_) => (0, n),
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

fn all(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut result = Verdict::All;
    for verdict in verdicts {
        match verdict {
            Verdict::None => return Verdict::None,
            Verdict::Some => result = Verdict::Some,
            Verdict::All => {}
        }
    }
    result
}

fn any(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut result = Verdict::None;
    for verdict in verdicts {
        match verdict {
            Verdict::All => return Verdict::All,
            Verdict::Some => result = Verdict::Some,
            Verdict::None => {}
        }
    }
    result
}

/// Bounds of an intersection of sets of `n` positions.
fn all_bounds(n: u64, parts: impl Iterator<Item = Bounds>) -> Bounds {
    let both = |(low, high): Bounds, (l, h): Bounds| ((low + l).saturating_sub(n), high.min(h));
    parts.fold((n, n), both)
}

/// Bounds of a union of sets of `n` positions.
fn any_bounds(n: u64, parts: impl Iterator<Item = Bounds>) -> Bounds {
    parts.fold((0, 0), |(low, high), (l, h)| (low.max(l), (high + h).min(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_combine_as_three_valued_logic() {
        use Verdict::{All, None, Some};
        assert!(matches!(all([All, Some, None].into_iter()), None));
        assert!(matches!(all([All, Some].into_iter()), Some));
        assert!(matches!(all([].into_iter()), All));
        assert!(matches!(any([None, Some, All].into_iter()), All));
        assert!(matches!(any([None, Some].into_iter()), Some));
        assert!(matches!(any([].into_iter()), None));
    }

    #[test]
    fn bounds_combine_without_knowing_the_overlap() {
        assert_eq!(all_bounds(100, [(70, 80), (60, 90)].into_iter()), (30, 80));
        assert_eq!(all_bounds(100, [(10, 20), (20, 30)].into_iter()), (0, 20));
        assert_eq!(any_bounds(100, [(70, 80), (60, 90)].into_iter()), (70, 100));
        assert_eq!(any_bounds(100, [(1, 2), (3, 4)].into_iter()), (3, 6));
    }
}
