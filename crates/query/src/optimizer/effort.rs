//! How much work evaluating a query is, for whoever shares it out: about, and without a word on what comes back.

use sieva_types::Result;

use crate::bind::Body;
use crate::exec::Execution;

/// Nanoseconds of a thread for each row of a tile that is tested, and for each that is taken into groups.
const TESTED: f64 = 0.5;
const GROUPED: f64 = 5.0;

impl Execution {
    /// Seconds of one thread that finding the rows takes (their number alone, if `counts`), or the groups.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn effort(&self, counts: bool) -> Result<f64> {
        if counts && self.is_counted() {
            return Ok(0.0);
        }
        let plan = self.physical();
        let is_grouped = matches!(self.bound.body, Body::Groups { .. });
        if let Some(path) = plan.replica.as_ref().filter(|path| path.answers_all && !is_grouped) {
            return Ok(self.lookup_cost(path) / 1e9);
        }
        let tiles = plan.tiles(self);
        let (outlook, _) = self.planned_rows(plan, &tiles)?;
        let all = (outlook.none + outlook.all + outlook.open).max(1) as f64;
        // Of a great many tiles the first ones tell.
        let share = |n: u64| n as f64 / all * plan.area.len() as f64;
        if is_grouped {
            let known = self.known_tiles(plan)?.map_or(0.0, |(known, all)| known as f64 / all.max(1) as f64);
            let rows = share(outlook.open + outlook.all) * (1.0 - known);
            return Ok(self.price()?.seconds.expected + rows * GROUPED / 1e9);
        }
        let mut arrays = Vec::new();
        self.arrays_of(&self.bound.condition, &mut arrays);
        arrays.sort_unstable();
        arrays.dedup();
        let reading: f64 =
            arrays.iter().map(|&array| self.scan_cost(array, &self.own_box(array, &plan.area))).sum();
        let open = outlook.open as f64 / all;
        Ok((reading * open + share(outlook.open) * TESTED) / 1e9)
    }

    /// Whether a replica tells the number of rows without reading a position.
    pub fn is_counted(&self) -> bool {
        self.physical().counted_by.is_some()
    }
}
