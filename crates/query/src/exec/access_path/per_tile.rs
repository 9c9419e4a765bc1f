//! The access paths of a condition on one array over one tile: each judges, offers and evaluates; the cheapest offer is taken.
//!
//! A path that answers only in part (a bitmap, whose outermost bins have to be checked) leaves what is open to the others. A new
//! path is a file of its own and a line in [`PATHS`]; which augmentation it lives on is built and dropped by the engine
//! (`engine/src/augment`). Sorted replicas give the rows of a query, not those of a tile: the optimizer chooses them before.

use sieva_index::stats::Verdict;
use sieva_types::{Bx, KeySet, Result};

use super::bitmap::BitmapPath;
use super::path::{AccessPath, Answer, Question};
use super::points::PointsPath;
use super::scan::ScanPath;
use super::sorted::SortedPath;
use super::zone_map::ZoneMapPath;
use crate::exec::Execution;
use crate::exec::tile::condition::{Evaluator, apply};
use crate::mask::Mask;

/// All paths. Scanning can always be done, and leaves nothing open.
static PATHS: [&dyn AccessPath; 5] = [&ZoneMapPath, &BitmapPath, &PointsPath, &SortedPath, &ScanPath];

impl Evaluator<'_, '_> {
    /// Keeps the positions of `mask` at which the stored values of `array` belong to `set`.
    pub(in crate::exec) fn stored(
        &mut self,
        array: usize,
        raw: bool,
        set: &KeySet,
        bx: &Bx,
        mask: &mut Mask,
    ) -> Result<()> {
        let own = self.execution.own_box(array, bx);
        // What another query read costs nothing more.
        let is_there = self.leaves.is_shared(array, &own);
        let scan = if is_there { 0.0 } else { self.execution.scan_cost(array, &own) };
        let asked = Question { array, raw, set, bx, own, scan };
        for path in PATHS {
            match path.judge(self.execution, &asked) {
                Verdict::None => {
                    *mask = Mask::zeros(mask.len());
                    return Ok(());
                }
                Verdict::All => return Ok(()),
                Verdict::Some => {}
            }
        }
        let is_all_open = mask.all();
        let open = (mask.len() as u64 == asked.own.len() && !is_all_open).then_some(&*mask);
        let held = self.by_cheapest(&asked, open, &PATHS)?;
        if is_all_open && held.len() == mask.len() {
            *mask = held;
        } else {
            apply(mask, bx, &held, &self.leaves.axes(array));
        }
        Ok(())
    }

    /// Where the condition holds among the positions `open`, by the cheapest of `paths`, and what it leaves open by the others.
    fn by_cheapest(
        &mut self,
        asked: &Question<'_>,
        open: Option<&Mask>,
        paths: &[&dyn AccessPath],
    ) -> Result<Mask> {
        let execution = self.execution;
        let offers =
            paths.iter().enumerate().filter_map(|(i, p)| Some((i, p.offer(execution, asked, open)?)));
        let best = offers.min_by(|(_, a), (_, b)| a.cost.total_cmp(&b.cost));
        let (taken, offer) = best.unwrap_or_else(|| (paths.len(), super::scan::offer(asked)));
        let Answer { mut sure, check } = (offer.evaluate)(self, asked, open)?;
        let Some(mut check) = check else { return Ok(sure) };
        if let Some(open) = open {
            check.and(open);
        }
        if !check.none() {
            let others: Vec<&dyn AccessPath> =
                paths.iter().enumerate().filter(|(i, _)| *i != taken).map(|(_, p)| *p).collect();
            let mut held = self.by_cheapest(asked, Some(&check), &others)?;
            held.and(&check);
            sure.or(&held);
        }
        Ok(sure)
    }
}

impl Execution {
    /// Whether the path that the query's access forces has what it needs of an array; others need nothing.
    pub(crate) fn is_access_there(&self, array: usize) -> bool {
        let access = self.options.access;
        PATHS.iter().filter(|p| p.forced_by() == Some(access)).all(|p| p.is_there(self, array))
    }
}
