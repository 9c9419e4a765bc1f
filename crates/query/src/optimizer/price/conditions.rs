//! What conditions read: in the first stage, and on tiles.

use sieva_types::Bx;

use super::Cost;
use crate::bind::{Body, Condition};
use crate::exec::tile::Tiles;
use crate::exec::tile::windows::{Window, Windows};
use crate::exec::{Execution, key_needs, wanted_first};
use crate::optimizer::PhysicalPlan;

/// Tiles that are priced one by one; of more all are taken to be read.
const MOST_PRICED: usize = 1 << 12;
/// Tiles that are judged for the price.
const MOST_LOOKED_AT: u64 = 1 << 14;

/// Tiles that are read.
pub(super) enum Read {
    /// These boxes of the row space.
    Listed(Vec<Bx>),
    /// All of these, along some of its axes.
    All(Tiles, Vec<usize>),
}

impl Execution {
    /// What reading an array's part of tiles takes at most.
    pub(super) fn cost_of_read(&self, array: usize, read: &Read, scattered: bool) -> Cost {
        match read {
            Read::Listed(boxes) => self.cost_of_listed(array, boxes, scattered),
            Read::All(tiles, axes) => self.cost_of_grid(array, tiles, axes, scattered),
        }
    }

    /// Conditions of the first stage.
    pub(super) fn add_first_stage(&self, plan: &PhysicalPlan, most: &mut Cost) {
        let mut masks = Vec::new();
        plan.steps.iter().for_each(|step| step.masks(&mut masks));
        for (condition, axes) in masks {
            let mut arrays = Vec::new();
            self.arrays_of(condition, &mut arrays);
            let area = Bx::new(
                axes.iter().map(|&a| plan.area.start[a]).collect(),
                axes.iter().map(|&a| plan.area.shape[a]).collect(),
            );
            let tiles = Tiles::new(area, self.tile_shape(&arrays, axes));
            let whole = |part: &Bx| {
                let mut bx = Bx::new(plan.area.start.clone(), vec![1; plan.area.rank()]);
                for (d, &a) in axes.iter().enumerate() {
                    (bx.start[a], bx.shape[a]) = (part.start[d], part.shape[d]);
                }
                bx
            };
            let n = tiles.len();
            let read = match n <= MOST_PRICED {
                true => Read::Listed((0..n).map(|i| whole(&tiles.tile(i))).collect()),
                false => Read::All(tiles, axes.to_vec()),
            };
            arrays.iter().for_each(|&array| most.add(self.cost_of_read(array, &read, true)));
        }
    }

    /// Conditions on tiles: the most, and what is likely.
    pub(super) fn cost_of_conditions(&self, plan: &PhysicalPlan, share: f64) -> (Cost, Cost) {
        let mut tested = Vec::new();
        plan.steps.iter().for_each(|step| step.tested(&mut tested));
        if tested.is_empty() {
            return (Cost::default(), Cost::default());
        }
        let reads: Vec<Read> = self.tilings(plan).iter().map(|tiles| self.candidates(tiles, false)).collect();
        let (mut most, mut likely) = (Cost::default(), Cost::default());
        for condition in tested {
            let mut arrays = Vec::new();
            self.arrays_of(condition, &mut arrays);
            if matches!(condition, Condition::Computed(_)) {
                // Where the first stage leaves one position, its value is looked at before the tile is.
                arrays.iter().for_each(|&array| most.add(self.cost_of_block(array).times(2)));
            }
            for &array in &arrays {
                let each = reads.iter().map(|read| self.cost_of_read(array, read, true));
                let cost = each.reduce(Cost::max).unwrap_or_default();
                most.add(cost);
                let about = reads.first().map_or(cost, |read| self.cost_of_read(array, read, false));
                let about = self.usual(array, about);
                likely.add(if self.by_bitmaps(condition, array) { about.share(share / 64.0) } else { about });
            }
        }
        (most, likely)
    }

    /// The tiles on which conditions may be tested: which they are depends on what is asked for, and on what of it there is
    /// room for.
    pub(super) fn tilings(&self, plan: &PhysicalPlan) -> Vec<Tiles> {
        let mut tested = Vec::new();
        plan.steps.iter().for_each(|step| step.tested(&mut tested));
        match &self.bound.body {
            Body::Groups { .. } if self.reduces_in_order() => vec![plan.tiles(self)],
            Body::Groups { keys, aggregates, .. } => {
                let arrays: Vec<usize> = plan.fetch.iter().map(|p| p.array).collect();
                let rows = self.group_row_bytes(keys, aggregates);
                rows.map(|row| self.tiles_over(&plan.area, &tested, &arrays, row)).into()
            }
            Body::Rows => std::iter::once(plan.tiles(self)).chain(self.tiles_of_keys(plan)).collect(),
        }
    }

    /// The tiles on which the first rows of an order are looked for, where they may be.
    pub(super) fn tiles_of_keys(&self, plan: &PhysicalPlan) -> Option<Tiles> {
        wanted_first(self)?;
        let mut tested = Vec::new();
        plan.steps.iter().for_each(|step| step.tested(&mut tested));
        let (arrays, row) = key_needs(self);
        Some(self.tiles_over(&plan.area, &tested, &arrays, row))
    }

    fn by_bitmaps(&self, condition: &Condition, array: usize) -> bool {
        let Condition::Stored { raw, .. } = condition else { return false };
        !self.scans_what_is_open(array, *raw)
    }

    /// Tiles of which something may be selected; those that are selected wholly only if they are read too.
    pub(super) fn candidates(&self, tiles: &Tiles, wholly: bool) -> Read {
        let judge = |bx: &Bx| self.foresee_condition(&self.bound.condition, bx);
        let (mut boxes, mut judged) = (Vec::new(), 0);
        for window in Windows::new(tiles, judge, |_| !wholly) {
            match window {
                Window::None(_) | Window::All(..) => {}
                Window::Open(n, candidates) => {
                    judged += n;
                    boxes.extend(candidates.iter().filter(|c| wholly || !c.all).map(|c| tiles.tile(c.tile)));
                }
            }
            if boxes.len() > MOST_PRICED || judged > MOST_LOOKED_AT {
                return Read::All(tiles.clone(), (0..tiles.area().rank()).collect());
            }
        }
        Read::Listed(boxes)
    }
}
