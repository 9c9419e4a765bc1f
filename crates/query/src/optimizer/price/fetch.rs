//! What fetching reads: values of the result and keys of ORDER BY, in steps of rows, or with the tiles of groups.

use sieva_types::{DType, Result};

use super::{BATCH, Cost, Expected};
use crate::aggregate::Aggregate;
use crate::bind::{Body, Value};
use crate::exec::{Execution, MOST_TOGETHER, ROWS_COMPARED};
use crate::optimizer::cost_of_boxes::LEAST_GAP;
use crate::optimizer::{FetchPath, Fetched, PhysicalPlan};

/// Rows that are fetched, so many at once.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// How many at most, and about.
    rows: (u64, u64),
    /// Steps at most.
    steps: u64,
    /// Whether they come in the order of the arrays.
    in_order: bool,
    /// Who reads small arrays, each for itself.
    readers: u64,
}

/// The passes over the values of the result, and over the keys of ORDER BY.
#[derive(Debug, Default)]
struct Passes {
    result: Vec<Pass>,
    keys: Vec<Pass>,
}

impl Execution {
    /// The values of the result and the keys of its order: the most, and what is likely.
    pub(super) fn cost_of_result(&self, plan: &PhysicalPlan, hits: Expected<u64>) -> Result<(Cost, Cost)> {
        match &self.bound.body {
            Body::Groups { keys, aggregates, .. } if self.reduces_in_order() => {
                Ok(self.cost_of_reduced(plan, keys, aggregates, hits))
            }
            Body::Groups { keys, aggregates, .. } => {
                let scanned = match self.known_tiles(plan)? {
                    Some((known, all)) if known > 0 => 1.0 - known as f64 / all as f64,
                    _ => 1.0,
                };
                Ok(self.cost_of_groups(plan, keys, aggregates, scanned))
            }
            Body::Rows => Ok(self.cost_of_rows(plan, hits)),
        }
    }

    fn cost_of_groups(
        &self,
        plan: &PhysicalPlan,
        keys: &[Value],
        aggregates: &[(Aggregate, Option<Value>)],
        scanned: f64,
    ) -> (Cost, Cost) {
        // A histogram whose ends are not known takes two passes.
        let passes = 1 + u64::from(aggregates.iter().any(|(a, _)| a.needs_range()));
        let reads: Vec<_> = self.tilings(plan).iter().map(|tiles| self.candidates(tiles, true)).collect();
        let (mut most, mut likely) = (Cost::default(), Cost::default());
        for path in &plan.fetch {
            let array = path.array;
            let costs = reads.iter().map(|read| self.cost_of_read(array, read, false));
            let cost = costs.reduce(Cost::max).unwrap_or_default();
            // Keys are numbered before, or looked at; of texts nothing is held from one to the next who wants them.
            let is_key = mentions(keys.iter(), array) > 0;
            let values = keys.iter().chain(aggregates.iter().filter_map(|(_, v)| v.as_ref()));
            let times = if self.is_text(array) { mentions(values, array) } else { 1 };
            most.add(self.of_panels(array, cost).times(passes * (times + u64::from(is_key))));
            if scanned > 0.0 {
                likely.add(self.usual(array, cost).share(scanned));
            }
        }
        (most, likely)
    }

    /// Of groups with reductions that came as code rows are fetched in their order, once their positions are known.
    fn cost_of_reduced(
        &self,
        plan: &PhysicalPlan,
        keys: &[Value],
        aggregates: &[(Aggregate, Option<Value>)],
        hits: Expected<u64>,
    ) -> (Cost, Cost) {
        let values = || keys.iter().chain(aggregates.iter().filter_map(|(_, v)| v.as_ref()));
        let steps = hits.high.div_ceil(self.rows_reduced(values()) as u64);
        let pass = Pass { rows: (hits.high, hits.expected), steps, in_order: true, readers: 1 };
        // The ends of a histogram are looked for before, by tiles.
        let before = match aggregates.iter().any(|(a, _)| a.needs_range()) {
            true => self.cost_of_groups(plan, &[], aggregates, 1.0),
            false => Default::default(),
        };
        let (mut most, mut likely) = before;
        for path in &plan.fetch {
            let times = mentions(values(), path.array);
            most.add(self.cost_of_pass(path, pass, times));
            likely.add(self.likely_of_pass(path, pass, times, hits, false));
        }
        (most, likely)
    }

    /// Of an array that lies plainly, tiles may be narrow, so that rows are read in parts.
    fn of_panels(&self, array: usize, cost: Cost) -> Cost {
        if !self.is_plain(array) {
            return cost;
        }
        cost.max(self.cost_of_whole(array))
    }

    fn is_text(&self, array: usize) -> bool {
        self.source.schema().arrays[self.bound.arrays[array].index].dtype == DType::Str
    }

    fn cost_of_rows(&self, plan: &PhysicalPlan, hits: Expected<u64>) -> (Cost, Cost) {
        let passes = self.passes(hits);
        let outputs = || self.bound.outputs.iter().map(|o| &o.value);
        let keys = || self.bound.order_by.iter().map(|k| &k.value);
        let by_tiles: Vec<_> = self
            .tiles_of_keys(plan)
            .map(|tiles| (tiles.len(), self.candidates(&tiles, true)))
            .into_iter()
            .collect();
        let (mut most, mut likely) = (Cost::default(), Cost::default());
        for path in &plan.fetch {
            let (named, ordered) = (mentions(outputs(), path.array), mentions(keys(), path.array));
            let mut known = false;
            let mut add = |passes: &[Pass], times: u64, by_tiles: Cost| {
                let (mut high, mut about) = (Cost::default(), Cost::default());
                for pass in passes {
                    high.add(self.cost_of_pass(path, *pass, times));
                    about.add(self.likely_of_pass(path, *pass, times, hits, known));
                    known = true;
                }
                most.add(high.max(by_tiles));
                likely.add(about);
            };
            if ordered > 0 {
                let costs = by_tiles.iter().map(|(tiles, read)| {
                    // Values of a text are read anew for each who wants them, of a sample and of the others.
                    let times = if self.is_text(path.array) { 2 * ordered } else { ordered };
                    let cost = self.cost_of_read(path.array, read, false).times(times);
                    // Small arrays are read whole by each thread, of each window of tiles.
                    let windows = (*tiles as u64 / WINDOW_TILES).saturating_add(1);
                    let readers = windows.saturating_mul(self.options.threads as u64).min(*tiles as u64);
                    let whole = if path.way == Fetched::Whole {
                        self.cost_of_whole(path.array)
                    } else {
                        Cost::default()
                    };
                    cost.max(whole.times(readers))
                });
                add(&passes.keys, ordered, costs.reduce(Cost::max).unwrap_or_default());
            }
            if named > 0 {
                add(&passes.result, named, Cost::default());
            }
        }
        (most, likely)
    }

    /// The passes that giving back the rows takes.
    fn passes(&self, hits: Expected<u64>) -> Passes {
        let bound = &self.bound;
        let outputs = || bound.outputs.iter().map(|o| &o.value);
        let keys = || bound.order_by.iter().map(|k| &k.value);
        let most = self.rows_fetched(outputs());
        let batch = (BATCH as usize).clamp(1, most);
        let step = self.least_step(outputs(), batch, most);
        let (together, compared) = (batch.max(most.min(MOST_TOGETHER)), ROWS_COMPARED.clamp(1, most));
        let (all, window) = ((hits.high, hits.expected), |n: u64| {
            n.saturating_sub(bound.offset).min(bound.limit.unwrap_or(u64::MAX))
        });
        let given = if bound.distinct { all } else { (window(all.0), window(all.1)) };
        let pass = |rows: (u64, u64), at_once: usize, in_order| Pass {
            rows,
            steps: rows.0.div_ceil(at_once.max(1) as u64),
            in_order,
            readers: 1,
        };
        // Of DISTINCT, what the table of rows has no room for is fetched again in the end.
        let again = (bound.distinct && self.may_spill_distinct(hits.high)).then_some((hits.high, 0));
        let mut passes = Passes::default();
        if bound.order_by.is_empty() {
            let is_cut = bound.distinct && bound.limit.is_some();
            let step = if is_cut { batch } else { step };
            passes.result.push(pass(given, step, true));
            passes.result.extend(again.map(|rows| pass(rows, step, true)));
            return passes;
        }
        if bound.distinct {
            // DISTINCT goes first where it can.
            let step = self.least_step(outputs(), compared, most);
            passes.result.push(pass(all, step, true));
            passes.result.extend(again.map(|rows| pass(rows, step, true)));
        }
        let threads = self.options.threads.max(1);
        let room = (self.rows_fetched(keys()) / threads).max(1);
        let single = room.min(BATCH as usize);
        let steps = hits.high.div_ceil(self.least_step(keys(), single, room) as u64);
        // There are parts for all threads.
        let steps = steps.max(8 * threads as u64 + 1).min(hits.high.div_ceil(single as u64));
        passes.keys.push(Pass { rows: all, steps, in_order: true, readers: threads as u64 });
        passes.result.push(pass(given, together, false));
        passes.result.extend(again.map(|rows| pass(rows, together, false)));
        passes
    }

    /// Rows of a step at least, whatever the size of batches is.
    fn least_step<'v>(
        &self,
        values: impl Iterator<Item = &'v Value> + Clone,
        batch: usize,
        most: usize,
    ) -> usize {
        let (sharing, step) = (self.rows_sharing(values.clone()), self.rows_in_step(values, batch, most));
        // Where there is no room for all that share chunks, a step is as many batches as there is room for.
        if step as u64 >= sharing { step } else { (step / 2).max(batch) }
    }

    /// What fetching an array in a pass takes at most, where so many values want it.
    fn cost_of_pass(&self, path: &FetchPath, pass: Pass, times: u64) -> Cost {
        let (array, way) = (path.array, self.way_in_source(path));
        if pass.rows.0 == 0 {
            return Cost::default();
        }
        let (whole, steps) = (self.cost_of_whole(array), pass.steps.max(1));
        let cost = match way {
            Fetched::Whole => return whole.times(pass.readers),
            // Steps follow one another: of an array that has every row once, no byte is in the way of two of them.
            Fetched::Runs(gap) if pass.in_order && self.has_each_row(array) => {
                // Of two ranges with a gap between them, the next begins two elements on at least.
                let size = self.readers[array].layout().element_size.max(1) as u64;
                let between = size * (gap.min(LEAST_GAP) / size + 2);
                let cuts = whole.requests.saturating_add(steps.saturating_mul(2));
                Cost { requests: (whole.bytes / between).saturating_add(cuts), ..whole }
            }
            // An element may be wanted for several rows, in ranges of which one ends and the next begins with it.
            Fetched::Runs(_) => whole.times(steps.saturating_mul(2)),
            _ if pass.in_order => self.cost_in_order(array, steps),
            _ => whole.times(steps),
        };
        cost.min(self.cost_of_block(array).times(pass.rows.0)).times(times)
    }

    /// How an array is fetched where no replica gives its values: it may turn out to be damaged.
    fn way_in_source(&self, path: &FetchPath) -> Fetched {
        if path.way == Fetched::Replica { self.fetched(path.array, None) } else { path.way }
    }

    /// What is likely of the same; `known` is whether an earlier pass read it.
    fn likely_of_pass(
        &self,
        path: &FetchPath,
        pass: Pass,
        times: u64,
        hits: Expected<u64>,
        known: bool,
    ) -> Cost {
        let (array, rows) = (path.array, pass.rows.1);
        let (all, block) = (self.cost_of_whole(array), self.cost_of_block(array));
        let whole = self.usual(array, all);
        let steps = (rows as f64 / hits.high.max(1) as f64 * pass.steps as f64).ceil().max(1.0) as u64;
        let layout = self.readers[array].layout();
        match path.way {
            Fetched::Replica => Cost::default(),
            _ if rows == 0 => Cost::default(),
            Fetched::Whole if known => Cost::default(),
            Fetched::Whole => whole,
            Fetched::Runs(gap) => {
                let each = self.element_bytes(array).saturating_add(gap);
                let requests = rows.min(whole.bytes / (gap + 1) + 1);
                let once = whole.min(Cost { bytes: rows.saturating_mul(each), requests });
                once.times(times).times(if pass.in_order { 1 } else { steps })
            }
            // Chunks that were decoded are kept where there is room for them.
            _ if known
                && !layout.pipeline.filters.is_empty()
                && whole.requests.saturating_mul(layout.chunk_bytes) <= self.options.memory / 4 =>
            {
                Cost::default()
            }
            _ => {
                let share =
                    rows as f64 / self.bound.rows.shape.iter().map(|&n| n as f64).product::<f64>().max(1.0);
                let per = (block.positions.max(1) as f64).min(1e18);
                let once = whole.share(1.0 - (1.0 - share.min(1.0)).powf(per)).min(block.cost().times(rows));
                once.times(if pass.in_order { 1 } else { steps })
            }
        }
    }

    /// The least that is read for values that lie plainly, each of which is read for a row of its own.
    pub(super) fn least_fetched(&self, plan: &PhysicalPlan, rows: u64) -> u64 {
        let plain = |p: &&FetchPath| matches!(p.way, Fetched::Runs(_)) && self.has_each_row(p.array);
        if self.source.store().is_remote() || self.bound.distinct {
            return 0;
        }
        let size = |p: &FetchPath| self.readers[p.array].layout().element_size as u64;
        plan.fetch.iter().filter(plain).map(|p| rows.saturating_mul(size(p))).fold(0, u64::saturating_add)
    }

    /// Whether an array has an element of its own for each row, and these lie plainly.
    fn has_each_row(&self, array: usize) -> bool {
        self.spans_rows(array) && self.is_plain(array)
    }
}

/// Tiles of a window, at least, where there are several.
const WINDOW_TILES: u64 = 1 << 12;

/// How often an array is named in some values.
fn mentions<'v>(values: impl Iterator<Item = &'v Value>, wanted: usize) -> u64 {
    let mut n = 0;
    values.for_each(|value| {
        value.walk(&mut |v| {
            if let Value::Array { array, .. } | Value::Date(_, array) = v {
                n += u64::from(*array == wanted);
            }
        });
    });
    n
}
