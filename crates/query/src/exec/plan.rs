//! What a query will do, in words: EXPLAIN, and the bounds that are known before data are read.

use sieva_format::layout::Placement;
use sieva_index::stats::Verdict;
use sieva_types::{Bx, Result};

use super::Execution;
use super::prepare::{Node, Prepared};
use super::tiles::Tiles;
use crate::bind::{Body, Condition, Value};
use crate::raw::KeySet;

/// A plan that can be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The row space: names and lengths of its dimensions.
    pub rows: Vec<(String, u64)>,
    /// The box of it that conditions on coordinates and on fewer dimensions leave.
    pub area: Bx,
    /// Tiles that the area is cut into, and their shape.
    pub tiles: usize,
    /// Shape of one tile.
    pub tile_shape: Vec<u64>,
    /// Of the tiles, those known to hold nothing, those known to be selected wholly, and those left to be tested.
    pub foreseen: [usize; 3],
    /// Bounds of the number of selected positions.
    pub estimate: (u64, u64),
    /// The condition, a line each: depth and text.
    pub condition: Vec<(usize, String)>,
    /// What comes out.
    pub output: String,
    /// Arrays that the format's own reader gives box by box, with the reason.
    pub by_library: Vec<(String, String)>,
    /// Why augmentations that exist are not used, and what of them is damaged.
    pub notes: Vec<String>,
}

impl Execution {
    /// The plan of this query. Reads only what conditions on fewer dimensions need.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn plan(&self) -> Result<Plan> {
        let prepared = self.prepare()?;
        let tiles = self.tiles(&prepared, &[]);
        let mut condition = Vec::new();
        self.describe(&prepared.node, 0, &tiles, &mut condition);
        let candidates = self.candidates(&prepared, &tiles);
        let all = candidates.iter().filter(|c| c.all).count();
        let rows = &self.bound.rows;
        Ok(Plan {
            rows: rows.names.iter().cloned().zip(rows.shape.iter().copied()).collect(),
            foreseen: [tiles.len() - candidates.len(), all, candidates.len() - all],
            tiles: tiles.len(),
            tile_shape: tiles.shape().to_vec(),
            estimate: self.estimate(&prepared, &tiles),
            area: prepared.area,
            condition,
            output: self.output(),
            by_library: self.by_library(),
            notes: self.indexes.notes(),
        })
    }

    /// Bounds of the number of positions: exact where masks say it all, else from zone maps and histograms.
    fn estimate(&self, prepared: &Prepared, tiles: &Tiles) -> (u64, u64) {
        match super::select::product(prepared) {
            Some(n) => (n, n),
            None => self.bounds(prepared, tiles),
        }
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

    fn describe(&self, node: &Node, depth: usize, tiles: &Tiles, out: &mut Vec<(usize, String)>) {
        let mut group = |what: &str, parts: &[Node]| {
            out.push((depth, what.to_string()));
            parts.iter().for_each(|p| self.describe(p, depth + 1, tiles, out));
        };
        match node {
            Node::All(parts) => group("all of, the cheapest first", parts),
            Node::Any(parts) => group("any of", parts),
            Node::Decided(all) => {
                out.push((depth, if *all { "every position" } else { "no position" }.into()))
            }
            Node::Known(known) => {
                let axes: Vec<&str> = known.axes.iter().map(|&a| self.bound.rows.names[a].as_str()).collect();
                let (n, all) = (known.mask.count(), known.mask.len());
                out.push((depth, format!("known on ({}): {n} of {all} positions", axes.join(", "))));
            }
            Node::Chosen(chosen) => {
                out.push((depth, format!("sorted replica: {} rows", chosen.count())));
            }
            Node::Leaf(condition) => self.describe_leaf(condition, depth, tiles, out),
        }
    }

    fn describe_leaf(
        &self,
        condition: &Condition,
        depth: usize,
        tiles: &Tiles,
        out: &mut Vec<(usize, String)>,
    ) {
        let text = match condition {
            Condition::Stored { array, raw, set } => {
                let path = self.path(self.bound.arrays[*array].index);
                let path = if *raw { format!("raw({path})") } else { path };
                format!("{path}: stored value in {}; {}", intervals(set), self.way(*array, *raw, set, tiles))
            }
            Condition::Position { dim, ranges } => {
                format!("position along {}: {ranges:?}", self.source.schema().dims[*dim].name)
            }
            Condition::Computed(value) => format!("compute from {}", self.arrays_in(value).join(", ")),
            Condition::All(parts) | Condition::Any(parts) => {
                let what = if matches!(condition, Condition::All(_)) { "all of" } else { "any of" };
                out.push((depth, what.into()));
                parts.iter().for_each(|p| self.describe_leaf(p, depth + 1, tiles, out));
                return;
            }
            Condition::Always => "every position".into(),
            Condition::Never => "no position".into(),
        };
        out.push((depth, text));
    }

    /// How a condition on one array is going to be answered.
    fn way(&self, array: usize, raw: bool, set: &KeySet, tiles: &Tiles) -> String {
        let Some(index) = self.zones(array, raw).filter(|i| i.any_known()) else {
            return "scan".into();
        };
        let (mut none, mut all) = (0, 0);
        for i in 0..tiles.len() {
            match self.foresee_stored(array, raw, set, &tiles.tile(i)) {
                Verdict::None => none += 1,
                Verdict::All => all += 1,
                Verdict::Some => {}
            }
        }
        let bitmaps = self.options.access.bitmaps() && index.has_bitmaps();
        let way = if bitmaps { "bitmap or scan" } else { "scan" };
        let share = index
            .share(set)
            .map_or_else(String::new, |s| format!("about {:.4} % of the values; ", 100.0 * s));
        format!("{share}zone maps: {none} tiles none, {all} all, {} by {way}", tiles.len() - none - all)
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

fn intervals(set: &KeySet) -> String {
    let n = set.ranges.len();
    let nan = if set.nan { " or NaN" } else { "" };
    format!("{n} interval{}{nan}", if n == 1 { "" } else { "s" })
}
