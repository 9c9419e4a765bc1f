//! The price of a query: what giving back its whole result takes, told before it is run and without reading a value.
//!
//! Each quantity has bounds that hold and an expectation. The bounds suppose nothing of caches: a query that finds what it
//! needs in memory reads less, never more. What cannot be bounded (over a network, through a library, objects whose stored
//! length is not known) says so by a bound of [`UNBOUNDED`].

use sieva_types::{Bx, DType, Result};

use super::cost_of_boxes::{Cost, LEAST_GAP};
use super::{Bounds, FetchPath, Fetched, PhysicalPlan};
use crate::aggregate::Aggregate;
use crate::bind::{Body, Condition, Value};
use crate::exec::Execution;
use crate::exec::tile::Tiles;
use crate::exec::tile::windows::{Window, Windows};
use crate::values::ValueType;

/// The upper bound of what has none.
pub const UNBOUNDED: u64 = u64::MAX;
/// Rows of a batch, if a query's are not asked for in another size.
const BATCH: u64 = 1 << 16;
/// Tiles that are priced one by one; of more the largest is taken for each.
const MOST_PRICED: usize = 1 << 12;
/// Tiles that are judged for the price.
const MOST_LOOKED_AT: u64 = 1 << 14;
/// Bytes of a request, about, where nothing is known of it.
const BLOCK: u64 = 1 << 20;
/// Bytes of a text or a list, about.
const USUAL_WIDTH: u64 = 16;
/// Bytes of a date: a number of 64 bits, or a text where those do not reach.
const DATE_WIDTH: Bounds = (0, 64);
/// Bytes that a row of groups takes at work, at most about: what their tiles are cut for.
const GROUP_ROW: u64 = 1 << 12;

/// A quantity that is not known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected<T> {
    /// It is at least this,
    pub low: T,
    /// about this,
    pub expected: T,
    /// and at most this.
    pub high: T,
}

/// What a query takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Rows that come back.
    pub rows: Expected<u64>,
    /// Bytes read from the source.
    pub bytes_read: Expected<u64>,
    /// Bytes of the values that come back.
    pub bytes_returned: Expected<u64>,
    /// Requests for the bytes read.
    pub requests: Expected<u64>,
    /// Seconds: an estimate, its bounds too.
    pub seconds: Expected<f64>,
}

impl Price {
    /// Adds what another query takes, that is run after it.
    pub fn add(&mut self, other: &Self) {
        let plus = |a: &mut Expected<u64>, b: Expected<u64>| {
            a.low = a.low.saturating_add(b.low);
            a.expected = a.expected.saturating_add(b.expected);
            a.high = a.high.saturating_add(b.high);
        };
        plus(&mut self.rows, other.rows);
        plus(&mut self.bytes_read, other.bytes_read);
        plus(&mut self.bytes_returned, other.bytes_returned);
        plus(&mut self.requests, other.requests);
        let (s, more) = (&mut self.seconds, other.seconds);
        (s.low, s.expected, s.high) = (s.low + more.low, s.expected + more.expected, s.high + more.high);
    }
}

impl Execution {
    /// What giving back all rows takes, in batches of 65 536 rows or more.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn price(&self) -> Result<Price> {
        let plan = self.physical();
        let tiles = plan.tiles(self);
        let (_, hits) = self.planned_rows(plan, &tiles)?;
        let share = self.selectivity(&self.bound.condition).clamp(0.0, 1.0);
        let about = (share * self.positions() as f64) as u64;
        let hits = Expected { low: hits.0, expected: about.clamp(hits.0, hits.1), high: hits.1 };
        let rows = self.rows_of(hits);
        let mut most = Cost::default();
        self.add_first_stage(plan, &mut most);
        let (condition, about) = self.cost_of_conditions(plan, &tiles, share);
        most.add(condition);
        let mut likely = most.min(about);
        // What dates mean is told by the ends of the whole coordinate.
        for output in &self.bound.outputs {
            if let Value::Array { array, .. } = output.value
                && self.bound.arrays[array].time.is_some()
            {
                most.add(self.cost_of_whole(array).times(2));
            }
        }
        let scanned = match self.known_tiles(plan)? {
            Some((known, all)) if known > 0 => 1.0 - known as f64 / all as f64,
            _ => 1.0,
        };
        for path in &plan.fetch {
            let (high, about) = self.cost_of_fetch(plan, path, hits);
            most.add(high);
            match path.way {
                Fetched::Tiles if scanned == 0.0 => {}
                Fetched::Tiles => likely.add(about.share(scanned)),
                _ => likely.add(about),
            }
        }
        let likely = self.bounded(likely);
        let least = self.least_fetched(plan, rows.low);
        let bytes_read = Expected { low: least, expected: likely.bytes.max(least), high: most.bytes };
        let requests =
            Expected { low: least.min(1), expected: likely.requests.max(least.min(1)), high: most.requests };
        let seconds = self.seconds(
            plan,
            [(0, least), (requests.expected, bytes_read.expected), (most.requests, most.bytes)],
        );
        Ok(Price { rows, bytes_read, bytes_returned: self.bytes_of_rows(rows), requests, seconds })
    }

    /// What is likely where nothing bounds it (a network, several files): the elements as they are decoded, in blocks.
    fn bounded(&self, likely: Cost) -> Cost {
        let all = self.bound.arrays.iter().enumerate().map(|(array, bound)| {
            let shape = &self.source.schema().arrays[bound.index].shape;
            let elements = shape.iter().fold(1_u64, |n, &m| n.saturating_mul(m));
            elements.saturating_mul(self.element_bytes(array))
        });
        let bytes = all.fold(0_u64, u64::saturating_add);
        let is_known = |n: u64| n < UNBOUNDED >> 8;
        Cost {
            bytes: if is_known(likely.bytes) { likely.bytes } else { bytes },
            requests: if is_known(likely.requests) { likely.requests } else { bytes / BLOCK + 1 },
        }
    }

    fn positions(&self) -> u64 {
        self.bound.rows.shape.iter().fold(1, |n: u64, &m| n.saturating_mul(m))
    }

    /// The rows that come back of so many selected positions.
    fn rows_of(&self, hits: Expected<u64>) -> Expected<u64> {
        let bound = &self.bound;
        let (low, about, high) = match &bound.body {
            Body::Groups { keys, having, .. } => {
                let most = keys.iter().fold(1_u64, |n, key| n.saturating_mul(self.different(key)));
                let high = if keys.is_empty() { 1 } else { most.min(hits.high) };
                let low = if keys.is_empty() { 1 } else { hits.low.min(1) };
                (if having.is_some() { 0 } else { low }, high.min(hits.expected.max(1)), high)
            }
            Body::Rows if bound.distinct => (hits.low.min(1), hits.expected, hits.high),
            Body::Rows => (hits.low, hits.expected, hits.high),
        };
        let window = |n: u64| n.saturating_sub(bound.offset).min(bound.limit.unwrap_or(u64::MAX));
        let (low, high) = (window(low), window(high));
        Expected { low, expected: window(about).clamp(low, high), high }
    }

    /// The most different values that a key has.
    fn different(&self, key: &Value) -> u64 {
        let axes = self.bound.axes_of(key);
        axes.iter().fold(1, |n: u64, &a| n.saturating_mul(self.bound.rows.shape[a]))
    }

    /// Bytes of the values of so many rows that come back.
    pub fn bytes_of_rows(&self, rows: Expected<u64>) -> Expected<u64> {
        let (mut low, mut about, mut high) = (0_u64, 0_u64, 0_u64);
        for output in &self.bound.outputs {
            let (least, most) = self.width(&output.value);
            // Texts and lists may be of any length.
            let usual = if most == UNBOUNDED { USUAL_WIDTH } else { most.min(8) };
            (low, about) = (low.saturating_add(least), about.saturating_add(usual.max(least)));
            high = high.saturating_add(most);
        }
        let of = |rows: u64, width: u64| rows.saturating_mul(width);
        let least = of(rows.low, low);
        Expected { low: least, expected: of(rows.expected, about).max(least), high: of(rows.high, high) }
    }

    /// Bytes of a value of a column: its number, and what says that it is there.
    fn width(&self, value: &Value) -> Bounds {
        // Keys of groups and extremes of dates come back as dates do.
        let within = match (value, &self.bound.body) {
            (Value::Key(n), Body::Groups { keys, .. }) => keys.get(*n),
            (Value::Aggregated(n), Body::Groups { aggregates, .. }) => match aggregates.get(*n) {
                Some((Aggregate::Min | Aggregate::Max, argument)) => argument.as_ref(),
                _ => None,
            },
            _ => None,
        };
        if let Some(Value::Array { array, raw: false }) = within
            && self.bound.arrays[*array].time.is_some()
        {
            return DATE_WIDTH;
        }
        if let Value::Array { array, raw } = value {
            let bound = &self.bound.arrays[*array];
            let info = &self.source.schema().arrays[bound.index];
            let dtype = if *raw { info.dtype } else { info.decoding.decoded() };
            return match dtype {
                DType::Str => (0, UNBOUNDED),
                DType::Bool => (0, 2),
                _ if bound.time.is_some() => DATE_WIDTH,
                other => (other.size() as u64, 1 + other.size().max(4) as u64),
            };
        }
        match self.bound.type_of(value) {
            Some(ValueType::Str) => (0, UNBOUNDED),
            Some(ValueType::Bool) => (0, 2),
            _ if self.is_list(value) => (0, UNBOUNDED),
            _ => (0, 9),
        }
    }

    /// Whether a value is a histogram.
    fn is_list(&self, value: &Value) -> bool {
        let (Value::Aggregated(n), Body::Groups { aggregates, .. }) = (value, &self.bound.body) else {
            return false;
        };
        !aggregates.get(*n).is_some_and(|(aggregate, _)| !matches!(aggregate, Aggregate::Histogram { .. }))
    }

    /// Conditions of the first stage.
    fn add_first_stage(&self, plan: &PhysicalPlan, most: &mut Cost) {
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
            let mut boxes: Vec<Bx> = (0..n.min(MOST_PRICED)).map(|i| whole(&tiles.tile(i))).collect();
            if n > MOST_PRICED {
                boxes.push(whole(&uncut(&tiles)));
            }
            for &array in &arrays {
                let again = self.times_looked_at(array, &boxes);
                most.add(self.cost_of_tiles(array, &boxes, n as u64, true).times(again));
            }
        }
    }

    /// Conditions on tiles: the most, and what is likely.
    fn cost_of_conditions(&self, plan: &PhysicalPlan, tiles: &Tiles, share: f64) -> (Cost, Cost) {
        let mut tested = Vec::new();
        plan.steps.iter().for_each(|step| step.tested(&mut tested));
        if tested.is_empty() {
            return (Cost::default(), Cost::default());
        }
        let (boxes, n) = self.candidates(tiles, false);
        let (mut most, mut likely) = (Cost::default(), Cost::default());
        for condition in tested {
            let mut arrays = Vec::new();
            self.arrays_of(condition, &mut arrays);
            if matches!(condition, Condition::Computed(_)) {
                // Where the first stage leaves one position, its value is looked at before the tile is.
                arrays.iter().for_each(|&array| most.add(self.cost_of_block(array).times(2)));
            }
            for &array in &arrays {
                let cost = self.cost_of_tiles(array, &boxes, n, true);
                most.add(cost.times(self.times_looked_at(array, &boxes)));
                likely.add(if self.by_bitmaps(condition, array) { cost.share(share / 64.0) } else { cost });
            }
        }
        (most, likely)
    }

    /// How often a part of a tile is read: a single element tells whether a computed condition holds in all of it, and is
    /// looked at before.
    fn times_looked_at(&self, array: usize, boxes: &[Bx]) -> u64 {
        if boxes.iter().any(|bx| self.own_box(array, bx).len() == 1) { 4 } else { 1 }
    }

    fn by_bitmaps(&self, condition: &Condition, array: usize) -> bool {
        let Condition::Stored { raw, .. } = condition else { return false };
        !self.scans_what_is_open(array, *raw)
    }

    /// Tiles of which something may be selected, at most so many as are priced, and the number of all; those that are
    /// selected wholly only if they are read too.
    fn candidates(&self, tiles: &Tiles, wholly: bool) -> (Vec<Bx>, u64) {
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
                boxes.truncate(MOST_PRICED);
                boxes.push(uncut(tiles));
                return (boxes, tiles.len() as u64);
            }
        }
        let n = boxes.len() as u64;
        (boxes, n)
    }

    /// The values of an array of the result: the most, and what is likely.
    fn cost_of_fetch(&self, plan: &PhysicalPlan, path: &FetchPath, hits: Expected<u64>) -> (Cost, Cost) {
        let array = path.array;
        let values = self.result_values();
        let batch = BATCH.min(self.rows_fetched(values) as u64).max(1);
        let again = 1 + u64::from(!self.bound.order_by.is_empty());
        let batches = (hits.high.div_ceil(batch) + 1).saturating_mul(again);
        let (whole, chunk) = (self.cost_of_whole(array), self.cost_of_block(array));
        match path.way {
            Fetched::Replica => (whole.times(batches), Cost::default()),
            Fetched::Whole => (whole.times(again), whole),
            Fetched::Tiles => {
                let arrays: Vec<usize> = plan.fetch.iter().map(|p| p.array).collect();
                let mut tested = Vec::new();
                plan.steps.iter().for_each(|step| step.tested(&mut tested));
                let tiles = self.tiles_over(&plan.area, &tested, &arrays, GROUP_ROW);
                let (boxes, n) = self.candidates(&tiles, true);
                let cost = self.cost_of_tiles(array, &boxes, n, false);
                // A histogram whose ends are not known takes two passes.
                (cost.times(2), cost.min(whole))
            }
            Fetched::Chunks | Fetched::Boxes | Fetched::Runs(_) => {
                let anywhere = whole.times(batches).min(chunk.times(hits.high.saturating_mul(again)));
                // Batches follow one another: of an array that has every row once, no byte is in the way of two of them.
                let most = match path.way {
                    Fetched::Runs(gap) if again == 1 && self.has_each_row(array) => {
                        // Of two ranges with a gap between them, the next begins two elements on at least.
                        let size = self.readers[array].layout().element_size.max(1) as u64;
                        let between = size * (gap.min(LEAST_GAP) / size + 2);
                        let cuts = whole.requests.saturating_add(batches.saturating_mul(2));
                        let requests = (whole.bytes / between).saturating_add(cuts);
                        anywhere.min(Cost { requests, ..whole })
                    }
                    _ => anywhere,
                };
                let share = hits.expected as f64 / self.positions().max(1) as f64;
                let likely = match path.way {
                    Fetched::Runs(gap) => {
                        let each = self.element_bytes(array).saturating_add(gap);
                        let requests = hits.expected.min(whole.bytes / (gap + 1) + 1);
                        whole.min(Cost { bytes: hits.expected.saturating_mul(each), requests })
                    }
                    _ => {
                        let per = (chunk.positions.max(1) as f64).min(1e18);
                        whole.share(1.0 - (1.0 - share).powf(per)).min(chunk.cost().times(hits.expected))
                    }
                };
                (most, likely)
            }
        }
    }

    /// The least that is read for values that lie plainly, each of which is read for a row of its own.
    fn least_fetched(&self, plan: &PhysicalPlan, rows: u64) -> u64 {
        let plain = |p: &&FetchPath| matches!(p.way, Fetched::Runs(_)) && self.has_each_row(p.array);
        if self.source.store().is_remote() || self.bound.distinct {
            return 0;
        }
        let size = |p: &FetchPath| self.readers[p.array].layout().element_size as u64;
        plan.fetch.iter().filter(plain).map(|p| rows.saturating_mul(size(p))).fold(0, u64::saturating_add)
    }

    /// Whether an array has an element of its own for each row, and these lie plainly.
    fn has_each_row(&self, array: usize) -> bool {
        self.bound.arrays[array].axes.len() == self.bound.rows.shape.len() && self.is_plain(array)
    }

    fn seconds(&self, plan: &PhysicalPlan, work: [(u64, u64); 3]) -> Expected<f64> {
        let chunked = plan.fetch.iter().any(|p| self.readers[p.array].layout().is_chunked())
            || self.readers.iter().any(|r| r.layout().is_chunked());
        let costs = if chunked { &self.indexes.costs.chunked } else { &self.indexes.costs.direct };
        let [low, expected, high] = work.map(|(requests, bytes)| costs.price(requests, bytes) / 1e9);
        let is_bounded = work[2].0 != UNBOUNDED && work[2].1 != UNBOUNDED;
        let high = if is_bounded { high.max(expected) } else { f64::INFINITY };
        Expected { low: low / self.options.threads as f64, expected, high }
    }
}

/// A tile that no edge cuts.
fn uncut(tiles: &Tiles) -> Bx {
    Bx::new(vec![0; tiles.shape().len()], tiles.shape().to_vec())
}
