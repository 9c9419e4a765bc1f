//! A physical plan in words: EXPLAIN, and the bounds that are known before anything is read.

use sieva_format::layout::Placement;
use sieva_types::{Bx, Result};

use super::{Fetched, PhysicalPlan, ReplicaPath, Step};
use crate::bind::{Body, Condition, Value};
use crate::exec::access_path::zone_map::MOST_PLANNED;
use crate::exec::tile::Tiles;
use crate::exec::tile::windows::{Window, Windows};
use crate::exec::{Execution, arrays_of_groups};
use crate::raw::KeySet;

/// A physical plan that can be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The row space: names and lengths of its dimensions.
    pub rows: Vec<(String, u64)>,
    /// For each of them, the arrays that line up along it, and why.
    pub aligned: Vec<Vec<(String, &'static str)>>,
    /// The box of it that ranges of positions leave.
    pub area: Bx,
    /// Tiles that the area is cut into, and their shape.
    pub tiles: usize,
    /// Shape of one tile.
    pub tile_shape: Vec<u64>,
    /// Of the tiles, those known to hold nothing, those known to be selected wholly, and those left to be tested.
    pub foreseen: [usize; 3],
    /// Bounds of the number of selected positions.
    pub estimate: (u64, u64),
    /// The first stage: what is read and evaluated once, before the first tile; a line each.
    pub first_stage: Vec<String>,
    /// The condition, a line each: depth and text.
    pub condition: Vec<(usize, String)>,
    /// How the number of rows alone is found, where that is another way.
    pub count: Option<String>,
    /// How many tiles aggregates take from statistics, without reading their data, of how many that they are worked on in.
    pub aggregates: Option<(u64, u64)>,
    /// The arrays of the result, and how their values are fetched.
    pub fetch: Vec<(String, String)>,
    /// What comes out.
    pub output: String,
    /// Arrays that the format's own reader gives box by box, with the reason.
    pub by_library: Vec<(String, String)>,
    /// Why augmentations that exist are not used, and what of them is damaged.
    pub notes: Vec<String>,
}

/// What the first stage of a plan found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The box of the rows that it left.
    pub area: Bx,
    /// Tiles that this is cut into.
    pub tiles: usize,
    /// What is known of conditions, a line each.
    pub known: Vec<String>,
    /// Bounds of the number of selected positions.
    pub estimate: (u64, u64),
}

impl Execution {
    /// The physical plan of this query in words. Reads nothing.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn describe(&self) -> Result<Description> {
        let plan = self.physical();
        let tiles = plan.tiles(self);
        let (outlook, estimate) = self.planned_rows(plan, &tiles)?;
        let n = |tiles: u64| usize::try_from(tiles).unwrap_or(usize::MAX);
        let rows = &self.bound.rows;
        Ok(Description {
            rows: rows.names.iter().cloned().zip(rows.shape.iter().copied()).collect(),
            aligned: (0..rows.shape.len()).map(|axis| self.along(axis)).collect(),
            foreseen: [n(outlook.none), n(outlook.all), n(outlook.open)],
            tiles: tiles.len(),
            tile_shape: tiles.shape().to_vec(),
            estimate,
            area: plan.area.clone(),
            first_stage: self.first_stage_lines(plan),
            condition: self.condition_lines(plan, &tiles),
            count: plan.counted_by.as_ref().map(|path| {
                format!("by the ends of the slice of {}, without a position", self.replica_name(path))
            }),
            aggregates: self.known_tiles(plan)?,
            fetch: plan.fetch.iter().map(|f| (self.array_path(f.array), way_of(f.way))).collect(),
            output: self.output(),
            by_library: self.by_library(),
            notes: self.indexes.notes(),
        })
    }

    /// Bounds of the number of positions that satisfy the condition: reads what the first stage reads, once.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn estimate(&self) -> Result<(u64, u64)> {
        self.found().map(|found| found.estimate)
    }

    /// What the first stage finds; it is run unless it was.
    ///
    /// # Errors
    /// As [`Execution::estimate`].
    pub fn found(&self) -> Result<Found> {
        let prepared = self.prepare()?;
        let tiles = self.tiles(&prepared, &[]);
        let outlook = self.outlook(&prepared, &tiles)?;
        let estimate = crate::exec::product(&prepared).map_or(outlook.rows, |n| (n, n));
        let (mut known, area) = (Vec::new(), prepared.area.clone());
        prepared.node.known_lines(&self.bound.rows.names, &mut known);
        Ok(Found { area, tiles: tiles.len(), known, estimate })
    }

    fn first_stage_lines(&self, plan: &PhysicalPlan) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(path) = &plan.replica {
            let (low, high) = path.rows;
            let tests = match path.tests.len() {
                0 => String::new(),
                n => format!(", {n} more condition{} tested on them", if n == 1 { "" } else { "s" }),
            };
            lines.push(format!("rows from {}: {low} to {high}{tests}", self.replica_name(path)));
        }
        let mut masks = Vec::new();
        plan.steps.iter().for_each(|step| step.masks(&mut masks));
        lines.extend(masks.iter().map(|(condition, axes)| {
            let names: Vec<&str> = axes.iter().map(|&a| self.bound.rows.names[a].as_str()).collect();
            let n: u64 = axes.iter().fold(1, |n, &a| n.saturating_mul(plan.area.shape[a]));
            let mut arrays = Vec::new();
            self.arrays_of(condition, &mut arrays);
            arrays.dedup();
            let arrays: Vec<String> = arrays.iter().map(|&a| self.array_path(a)).collect();
            let of = if arrays.is_empty() { "positions".to_string() } else { arrays.join(", ") };
            format!("mask on ({}) of {of}: {n} positions", names.join(", "))
        }));
        lines
    }

    fn condition_lines(&self, plan: &PhysicalPlan, tiles: &Tiles) -> Vec<(usize, String)> {
        let mut lines = Vec::new();
        let several = plan.steps.len() + usize::from(plan.replica.is_some()) > 1;
        let depth = usize::from(several);
        if several {
            lines.push((0, "all of, in this order".to_string()));
        }
        if let Some(path) = &plan.replica {
            let n = path.answered.len();
            let text =
                format!("{n} condition{} by {}", if n == 1 { "" } else { "s" }, self.replica_name(path));
            lines.push((depth, text));
        }
        plan.steps.iter().for_each(|step| self.step_lines(step, depth, tiles, &mut lines));
        if lines.is_empty() {
            lines.push((0, "every position of the area".to_string()));
        }
        lines
    }

    fn step_lines(&self, step: &Step, depth: usize, tiles: &Tiles, out: &mut Vec<(usize, String)>) {
        let mut group = |what: &str, parts: &[Step]| {
            out.push((depth, what.to_string()));
            parts.iter().for_each(|p| self.step_lines(p, depth + 1, tiles, out));
        };
        match step {
            Step::All(parts) => group("all of", parts),
            Step::Any(parts) => group("any of", parts),
            Step::Decided(all) => {
                out.push((depth, if *all { "every position" } else { "no position" }.into()));
            }
            Step::Mask { condition, .. } => self.condition_line(condition, depth, None, out),
            Step::Test(condition) => self.condition_line(condition, depth, Some(tiles), out),
        }
    }

    /// A condition as lines; `tiles` where it is tested on them, in place of being evaluated before.
    fn condition_line(
        &self,
        condition: &Condition,
        depth: usize,
        tiles: Option<&Tiles>,
        out: &mut Vec<(usize, String)>,
    ) {
        let text = match condition {
            Condition::Stored { array, raw, set } => {
                let path = self.array_path(*array);
                let path = if *raw { format!("raw({path})") } else { path };
                let way = tiles.map_or("in the first stage".into(), |t| self.way(*array, *raw, set, t));
                format!("{path}: stored value in {}; {way}", intervals(set))
            }
            Condition::Position { dim, ranges } => {
                format!("position along {}: {ranges:?}", self.source.schema().dims[*dim].name)
            }
            Condition::Computed(value) => format!("compute from {}", self.arrays_in(value).join(", ")),
            Condition::All(parts) | Condition::Any(parts) => {
                let what = if matches!(condition, Condition::All(_)) { "all of" } else { "any of" };
                out.push((depth, what.into()));
                parts.iter().for_each(|p| self.condition_line(p, depth + 1, tiles, out));
                return;
            }
            Condition::Always => "every position".into(),
            Condition::Never => "no position".into(),
        };
        out.push((depth, text));
    }

    fn replica_name(&self, path: &ReplicaPath) -> String {
        format!("the replica sorted by {}", self.source.schema().arrays[path.replica.key].path)
    }

    fn array_path(&self, bound: usize) -> String {
        self.path(self.bound.arrays[bound].index)
    }

    /// The arrays along an axis of the row space, and why they line up there.
    fn along(&self, axis: usize) -> Vec<(String, &'static str)> {
        let schema = self.source.schema();
        let mut along = Vec::new();
        for array in &self.bound.arrays {
            let own = array.axes.iter().position(|&a| a == axis);
            along.extend(own.map(|k| {
                let info = &schema.arrays[array.index];
                (info.path.clone(), schema.dims[info.dims[k]].naming.words())
            }));
        }
        along
    }

    fn output(&self) -> String {
        let names: Vec<&str> = self.bound.outputs.iter().map(|o| o.name.as_str()).collect();
        let what = match &self.bound.body {
            Body::Rows => "rows of",
            Body::Groups { keys, .. } if keys.is_empty() => "one group:",
            Body::Groups { .. } => "groups:",
        };
        format!("{what} {}", names.join(", "))
    }

    /// Tiles of which statistics tell all that is aggregated, of how many; `None` of a query that does not aggregate.
    pub(super) fn known_tiles(&self, plan: &PhysicalPlan) -> Result<Option<(u64, u64)>> {
        if let Some(known) = plan.known.get() {
            return Ok(*known);
        }
        let counted = self.count_known_tiles(plan)?;
        Ok(*plan.known.get_or_init(|| counted))
    }

    fn count_known_tiles(&self, plan: &PhysicalPlan) -> Result<Option<(u64, u64)>> {
        let Body::Groups { keys, aggregates, .. } = &self.bound.body else { return Ok(None) };
        if self.reduces_in_order() {
            return Ok(None);
        }
        let tiles = &plan.tiles_with(self, &arrays_of_groups(keys, aggregates));
        let (condition, all) = (&self.bound.condition, tiles.len() as u64);
        if plan.replica.is_some() || !self.is_foreseeable(condition) {
            return Ok(Some((0, all)));
        }
        let is_known = |bx: &Bx| self.is_one_group(keys, aggregates, bx);
        let mut windows = Windows::new(tiles, |bx| self.foresee_condition(condition, bx), is_known);
        let (mut known, mut judged) = (0, 0);
        while judged < MOST_PLANNED
            && let Some(window) = windows.next()
        {
            crate::exec::pool::check(&self.options.cancel)?;
            match window {
                Window::None(_) => {}
                Window::All(_, n, _) => known += n,
                Window::Open(n, candidates) => {
                    judged += n;
                    let whole = candidates.iter().filter(|c| c.all && is_known(&tiles.tile(c.tile)));
                    known += whole.count() as u64;
                }
            }
        }
        Ok(Some((known, all)))
    }

    fn by_library(&self) -> Vec<(String, String)> {
        let arrays = self.bound.arrays.iter().zip(&self.readers);
        let reasons = arrays.filter_map(|(a, r)| match &r.layout().placement {
            Placement::Library(why) | Placement::Foreign(why) => Some((self.path(a.index), why.clone())),
            _ => None,
        });
        reasons.collect()
    }

    fn path(&self, index: usize) -> String {
        self.source.schema().arrays[index].path.clone()
    }

    /// How a condition on one array is going to be answered.
    fn way(&self, array: usize, raw: bool, set: &KeySet, tiles: &Tiles) -> String {
        let Some(index) = self.zones(array, raw).filter(|i| i.any_known()) else {
            return "scan".into();
        };
        let (mut none, mut all, mut judged) = (0, 0, 0);
        for window in Windows::new(tiles, |bx| self.foresee_stored(array, raw, set, bx), |_| true) {
            match window {
                Window::None(n) => none += n,
                Window::All(_, n, _) => all += n,
                Window::Open(n, candidates) => {
                    judged += n;
                    none += n - candidates.len() as u64;
                    all += candidates.iter().filter(|c| c.all).count() as u64;
                }
            }
            if judged >= MOST_PLANNED {
                break;
            }
        }
        let bitmaps = self.options.access.bitmaps() && index.has_bitmaps();
        let way = if bitmaps { "bitmap or scan" } else { "scan" };
        let share = index
            .share(set)
            .map_or_else(String::new, |s| format!("about {:.4} % of the values; ", 100.0 * s));
        format!(
            "{share}zone maps: {none} tiles none, {all} all, {} by {way}",
            tiles.len() as u64 - none - all
        )
    }

    fn arrays_in(&self, value: &Value) -> Vec<String> {
        let mut paths = Vec::new();
        value.walk(&mut |v| {
            if let Value::Array { array, .. } | Value::Date(_, array) = v {
                paths.push(self.path(self.bound.arrays[*array].index));
            }
        });
        paths.dedup();
        paths
    }
}

fn way_of(way: Fetched) -> String {
    match way {
        Fetched::Whole => "whole, once".into(),
        Fetched::Replica => "from the replica".into(),
        Fetched::Chunks => "the chunks that have selected positions".into(),
        Fetched::Runs(gap) => format!("run by run, across gaps of up to {gap} bytes"),
        Fetched::Boxes => "box by box".into(),
        Fetched::Tiles => "with the tiles that have selected positions".into(),
    }
}

fn intervals(set: &KeySet) -> String {
    let n = set.ranges.len();
    let nan = if set.nan { " or NaN" } else { "" };
    format!("{n} interval{}{nan}", if n == 1 { "" } else { "s" })
}
