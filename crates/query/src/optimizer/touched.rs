//! Which boxes of which arrays a query reads, as far as it is known before it is run: for those who want to know where their
//! bytes lie.

use std::collections::HashSet;

use sieva_types::{Bx, Result};

use super::{Fetched, PhysicalPlan};
use crate::exec::Execution;
use crate::exec::tile::Tiles;
use crate::exec::tile::windows::{Window, Windows};

/// Most boxes of one array that are told one by one.
const MOST_BOXES: usize = 1 << 14;

/// What a query reads of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The number of the array in the schema.
    pub array: usize,
    /// For what: `first stage`, `condition` or `result`.
    pub reason: &'static str,
    /// Boxes of the array, none twice, in the order in which they are read: those of tiles of which something may be
    /// selected. More is read of none of them; whether less is read depends on values.
    pub boxes: Vec<Bx>,
    /// Whether there were too many to tell, so that the last one is all that the others are of, read or not.
    pub is_cut: bool,
}

impl Execution {
    /// The boxes of its source that the query reads, by array and reason; what augmentations answer is not among them. No
    /// value is read.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn touched(&self) -> Result<Vec<Touched>> {
        self.options.check_cancel()?;
        let plan = self.physical();
        let mut out = Vec::new();
        self.touched_first(plan, &mut out);
        self.touched_by_conditions(plan, &mut out);
        self.touched_by_results(plan, &mut out);
        Ok(out)
    }

    fn touched_first(&self, plan: &PhysicalPlan, out: &mut Vec<Touched>) {
        let mut masks = Vec::new();
        plan.steps.iter().for_each(|step| step.masks(&mut masks));
        for (condition, _) in masks {
            let mut arrays = Vec::new();
            self.arrays_of(condition, &mut arrays);
            for array in arrays {
                let boxes = vec![self.own_box(array, &plan.area)];
                out.push(self.touched_of(array, "first stage", boxes, false));
            }
        }
    }

    fn touched_by_conditions(&self, plan: &PhysicalPlan, out: &mut Vec<Touched>) {
        let mut tested = Vec::new();
        plan.steps.iter().for_each(|step| step.tested(&mut tested));
        let mut arrays = Vec::new();
        tested.iter().for_each(|condition| self.arrays_of(condition, &mut arrays));
        arrays.sort_unstable();
        arrays.dedup();
        let tiles = plan.tiles(self);
        for array in arrays {
            let (boxes, is_cut) = self.boxes_of(array, &tiles, false);
            out.push(self.touched_of(array, "condition", boxes, is_cut));
        }
    }

    fn touched_by_results(&self, plan: &PhysicalPlan, out: &mut Vec<Touched>) {
        let tiles = plan.tiles(self);
        for path in &plan.fetch {
            if path.way == Fetched::Replica {
                // Of its own files.
                continue;
            }
            let (mut boxes, mut is_cut) = self.boxes_of(path.array, &tiles, true);
            if path.way == Fetched::Whole && !boxes.is_empty() {
                let index = self.bound.arrays[path.array].index;
                (boxes, is_cut) = (vec![Bx::whole(&self.source.schema().arrays[index].shape)], false);
            }
            out.push(self.touched_of(path.array, "result", boxes, is_cut));
        }
    }

    /// Boxes of an array, of tiles of which something may be selected; of those that are selected wholly only if `wholly`.
    fn boxes_of(&self, array: usize, tiles: &Tiles, wholly: bool) -> (Vec<Bx>, bool) {
        let judge = |bx: &Bx| self.foresee_condition(&self.bound.condition, bx);
        let (mut boxes, mut seen) = (Vec::new(), HashSet::new());
        let mut add = |bx: &Bx| {
            let own = self.own_box(array, bx);
            if seen.insert(own.clone()) {
                boxes.push(own);
            }
            boxes.len() > MOST_BOXES
        };
        for window in Windows::new(tiles, judge, |_| true) {
            let is_full = match window {
                Window::None(_) => false,
                Window::All(_, _, bx) => wholly && add(&bx),
                Window::Open(_, candidates) => {
                    let mut read = candidates.iter().filter(|c| wholly || !c.all);
                    read.any(|c| add(&tiles.tile(c.tile)))
                }
            };
            if is_full {
                boxes.truncate(MOST_BOXES);
                boxes.push(self.own_box(array, tiles.area()));
                return (boxes, true);
            }
        }
        (boxes, false)
    }

    fn touched_of(&self, array: usize, reason: &'static str, boxes: Vec<Bx>, is_cut: bool) -> Touched {
        let boxes = boxes.into_iter().filter(|bx| !bx.is_empty()).collect();
        Touched { array: self.bound.arrays[array].index, reason, boxes, is_cut }
    }
}
