//! What is known of a tile before it is read, once the first stage was run: by masks, and by what the optimizer knows of
//! conditions.

use sieva_index::stats::Verdict;
use sieva_types::{Bx, Result};

use super::path::{AccessPath, Offer, Question};
use crate::exec::Execution;
use crate::exec::access_path::Access;
use crate::exec::tile::Tiles;
use crate::exec::tile::prepare::{Node, Prepared};
use crate::exec::tile::windows::{Window, Windows};
use crate::mask::Mask;
use crate::optimizer::{Bounds, PhysicalPlan, all_bounds, any_bounds, within_all, within_any};

/// A tile of which some positions may be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number among the tiles.
    pub tile: usize,
    /// Whether all of its positions are selected.
    pub all: bool,
}

/// Most tiles that are judged one by one for what is foreseen of them.
pub(crate) const MOST_JUDGED: u64 = 1 << 18;

/// The same while a query is planned, which takes a few hundredths of a second at most.
pub(crate) const MOST_PLANNED: u64 = 1 << 15;

/// What is foreseen of tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outlook {
    /// Tiles of which nothing is selected, of which all is, and of which it is not known.
    pub none: u64,
    pub all: u64,
    pub open: u64,
    /// Bounds of the number of selected positions.
    pub rows: Bounds,
    /// About how many that are.
    pub likely: f64,
}

impl Outlook {
    fn add(&mut self, (low, high): Bounds, likely: f64) {
        self.rows = (self.rows.0.saturating_add(low), self.rows.1.saturating_add(high));
        self.likely += likely.clamp(low as f64, high as f64);
    }
}

/// Zone maps of regions, and the fill value where nothing was ever written: they judge.
pub(super) struct ZoneMapPath;

impl AccessPath for ZoneMapPath {
    fn forced_by(&self) -> Option<Access> {
        Some(Access::ZoneMap)
    }

    fn is_there(&self, execution: &Execution, array: usize) -> bool {
        execution.indexed[array].as_ref().is_some_and(|i| i.any_known())
    }

    fn judge(&self, execution: &Execution, asked: &Question<'_>) -> Verdict {
        execution.foresee_stored(asked.array, asked.raw, asked.set, asked.bx)
    }

    fn offer<'e>(&self, _: &'e Execution, _: &Question<'_>, _: Option<&Mask>) -> Option<Offer<'e>> {
        None
    }
}

impl Execution {
    /// Whether none, some or all positions of a tile are selected, as far as it is known without reading.
    pub(crate) fn foresee(&self, node: &Node, bx: &Bx) -> Verdict {
        match node {
            Node::Decided(true) => Verdict::All,
            Node::Decided(false) => Verdict::None,
            Node::Known(known) => {
                let part = known.of_tile(bx);
                if part.none() {
                    Verdict::None
                } else if part.all() && known.failed_of_tile(bx).is_none() {
                    Verdict::All
                } else {
                    Verdict::Some
                }
            }
            Node::Chosen(chosen) => chosen.foresee(&self.bound.rows.shape, bx),
            Node::All(parts) => within_all(parts.iter().map(|p| self.foresee(p, bx))),
            Node::Any(parts) => within_any(parts.iter().map(|p| self.foresee(p, bx))),
            Node::Leaf(condition) => self.judge(condition, bx, &|value, bx| self.foresee_computed(value, bx)),
        }
    }

    /// What is foreseen of the tiles once the first stage was run.
    pub(crate) fn outlook(&self, prepared: &Prepared, tiles: &Tiles) -> Result<Outlook> {
        let judge = |bx: &Bx| self.foresee(&prepared.node, bx);
        let shares = self.node_shares(&prepared.node);
        self.outlook_by((tiles, MOST_JUDGED), judge, |bx| {
            let share = match bx {
                Some(bx) => self.node_share(&prepared.node, bx, &mut shares.iter()),
                None => self.node_share(&prepared.node, &prepared.area, &mut shares.iter()),
            };
            (bx.map_or((0, prepared.area.len()), |bx| self.node_bounds(&prepared.node, bx)), share)
        })
    }

    /// What is foreseen of the tiles of a plan, before anything is read.
    pub(crate) fn outlook_of(&self, plan: &PhysicalPlan, tiles: &Tiles) -> Result<Outlook> {
        let condition = &self.bound.condition;
        let shares = self.leaf_shares(condition);
        let share = |bx: Option<&Bx>| self.likely_share(condition, bx, &mut shares.iter());
        if !self.is_foreseeable(condition) {
            let likely = share(Some(&plan.area)) * plan.area.len() as f64;
            let (open, rows) = (tiles.len() as u64, (0, plan.area.len()));
            return Ok(Outlook { open, rows, likely, ..Outlook::default() });
        }
        let judge = |bx: &Bx| self.foresee_condition(condition, bx);
        self.outlook_by((tiles, MOST_PLANNED), judge, |bx| {
            (bx.map_or((0, plan.area.len()), |bx| self.condition_bounds(condition, bx)), share(bx))
        })
    }

    /// The same by any judge: of a great many tiles the first ones tell. `bounds` tells those of the rows of a box, and the
    /// share of it that they are about; of all where there is none.
    fn outlook_by(
        &self,
        (tiles, most): (&Tiles, u64),
        judge: impl FnMut(&Bx) -> Verdict,
        bounds: impl Fn(Option<&Bx>) -> (Bounds, f64),
    ) -> Result<Outlook> {
        let mut windows = Windows::new(tiles, judge, |_| true);
        let mut found = Outlook::default();
        let mut judged = 0;
        while judged < most
            && let Some(window) = windows.next()
        {
            crate::exec::pool::check(&self.options.cancel)?;
            match window {
                Window::None(n) => found.none += n,
                Window::All(_, n, bx) => {
                    found.all += n;
                    found.add((bx.len(), bx.len()), bx.len() as f64);
                }
                Window::Open(n, candidates) => {
                    judged += n;
                    found.none += n - candidates.len() as u64;
                    for Candidate { tile, all } in candidates {
                        let bx = tiles.tile(tile);
                        if all {
                            found.all += 1;
                            found.add((bx.len(), bx.len()), bx.len() as f64);
                        } else {
                            found.open += 1;
                            let (rows, share) = bounds(Some(&bx));
                            found.add(rows, share * bx.len() as f64);
                        }
                    }
                }
            }
        }
        let left = windows.left();
        if left > 0 {
            found.open += left;
            let ((low, positions), share) = bounds(None);
            found.add((low, positions), share * positions as f64 * left as f64 / tiles.len() as f64);
            found.rows.1 = found.rows.1.min(positions);
        }
        found.likely = found.likely.clamp(found.rows.0 as f64, found.rows.1 as f64);
        Ok(found)
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
                let repeats = n / (part.len() as u64).max(1);
                let failed = known.failed_of_tile(bx).map_or(0, |f| f.count());
                ((part.count() - failed) * repeats, part.count() * repeats)
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
}
