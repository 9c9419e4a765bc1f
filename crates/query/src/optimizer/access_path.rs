//! The access path of a query as a whole: whether a sorted replica gives its rows, or their number.
//!
//! What a tile takes (zone map, bitmap, single elements, scan) is decided where the tile is evaluated, by the same costs.

use std::sync::Arc;

use sieva_index::stats::Verdict;
use sieva_types::{Bx, Error, ErrorKind, KeySet, Result};

use crate::bind::{Body, Condition, Value};
use crate::exec::Execution;
use crate::exec::access_path::sorted::{Chosen, Test};
use crate::exec::access_path::{Access, Replica};
use crate::exec::tile::Tiles;

/// So few rows are always best found by a replica.
const FEW: u64 = 1 << 12;
/// Nanoseconds of a thread for reading a row's position and putting it in its place, about; all threads share them.
const ROW_COST: f64 = 25.0;
/// Tiles that tell how many are left open by zone maps.
const SAMPLED_TILES: usize = 64;

/// A sorted replica that answers conditions.
pub(crate) struct ReplicaPath {
    pub(crate) replica: Arc<Replica>,
    /// The keys that are wanted.
    pub(crate) keys: KeySet,
    /// What else is tested on the rows with those keys.
    pub(crate) tests: Vec<Test>,
    /// Which of the conditions that must all hold it answers.
    pub(crate) answered: Vec<usize>,
    /// Whether those are all of them.
    pub(crate) answers_all: bool,
    /// Bounds of the number of rows with these keys.
    pub(crate) rows: (u64, u64),
}

impl std::fmt::Debug for ReplicaPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReplicaPath({:?} rows, conditions {:?})", self.rows, self.answered)
    }
}

/// A replica that can answer a condition.
struct Offer<'c> {
    replica: Arc<Replica>,
    /// Which of the conditions is on its key.
    part: usize,
    /// The array of its key.
    array: usize,
    keys: &'c KeySet,
    /// Bounds of the number of its rows.
    estimate: (u64, u64),
}

impl Execution {
    /// Whether the access that is forced can be taken for any condition on stored values.
    ///
    /// # Errors
    /// `no-index` where it cannot.
    pub fn check_access(&self) -> Result<()> {
        let access = self.options.access;
        let mut arrays = Vec::new();
        stored_arrays(&self.bound.condition, &mut arrays);
        if arrays.is_empty() || arrays.iter().any(|&a| self.is_access_there(a)) {
            return Ok(());
        }
        let schema = self.source.schema();
        let mut names: Vec<&str> =
            arrays.iter().map(|&a| schema.arrays[self.bound.arrays[a].index].path.as_str()).collect();
        names.dedup();
        let notes = self.indexes.notes();
        let why = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        Err(Error::new(
            ErrorKind::NoIndex,
            format!("access '{}' needs an index of that kind of {}{why}", access.name(), names.join(" or ")),
        )
        .hint(format!(
            "sieva index SOURCE --var {} --kind {}, or use access auto",
            names.first().unwrap_or(&""),
            access.name()
        )))
    }

    /// The best replica for one of `parts` (which all must hold), if it pays or is asked for.
    pub(super) fn replica_path(&self, parts: &[Condition]) -> Option<ReplicaPath> {
        let offer = self.best_offer(parts)?;
        if self.options.access == Access::Auto && !self.pays(&offer, parts) {
            return None;
        }
        let (mut tests, mut answered) = (Vec::new(), vec![offer.part]);
        for (i, condition) in parts.iter().enumerate().filter(|(i, _)| *i != offer.part) {
            if let Some(test) = self.test_of(&offer.replica, condition) {
                tests.push(test);
                answered.push(i);
            }
        }
        let answers_all = answered.len() == parts.len();
        let (keys, rows) = (offer.keys.clone(), offer.estimate);
        Some(ReplicaPath { replica: offer.replica, keys, tests, answered, answers_all, rows })
    }

    /// The replica that tells the number of rows without reading a position: where its key's is the only condition.
    pub(super) fn counting_path(&self, parts: &[Condition]) -> Option<ReplicaPath> {
        let [Condition::Stored { .. }] = parts else { return None };
        let offer = self.best_offer(parts)?;
        let (keys, rows) = (offer.keys.clone(), offer.estimate);
        let (tests, answered, answers_all) = (Vec::new(), vec![0], true);
        Some(ReplicaPath { replica: offer.replica, keys, tests, answered, answers_all, rows })
    }

    /// The replica whose key's condition leaves the fewest rows.
    fn best_offer<'c>(&self, parts: &'c [Condition]) -> Option<Offer<'c>> {
        if !self.options.access.replicas() {
            return None;
        }
        let offers = parts.iter().enumerate().flat_map(|(part, condition)| {
            let keyed = match condition {
                Condition::Stored { array, raw, set } if self.spans_rows(*array) => Some((*array, *raw, set)),
                _ => None,
            };
            self.indexes.replicas.iter().filter_map(move |replica| {
                let (array, raw, keys) = keyed?;
                let dtype = replica.replica.columns().first()?.dtype;
                let fits =
                    replica.key == self.bound.arrays[array].index && self.keys_agree(array, raw, dtype);
                let estimate = fits.then(|| replica.replica.estimate(keys))?;
                Some(Offer { replica: Arc::clone(replica), part, array, keys, estimate })
            })
        });
        offers.min_by_key(|o| o.estimate.1)
    }

    /// Whether an array's positions are those of the row space.
    pub(crate) fn spans_rows(&self, array: usize) -> bool {
        let axes = &self.bound.arrays[array].axes;
        axes.len() == self.bound.rows.shape.len() && axes.is_sorted()
    }

    /// Whether a replica is cheaper than going through the tiles that zone maps leave.
    fn pays(&self, offer: &Offer<'_>, parts: &[Condition]) -> bool {
        let (low, high) = offer.estimate;
        if high <= FEW {
            return true;
        }
        if high * Chosen::ROW_BYTES > self.options.memory / 4 {
            return false;
        }
        let tests = parts.iter().enumerate().filter(|(i, _)| *i != offer.part);
        let tests = tests.filter(|(_, c)| self.test_of(&offer.replica, c).is_some()).count() as f64;
        let rows = (low + high) as f64 / 2.0;
        let (columns, fetch) = self.spared(offer, rows);
        let threads = self.options.threads as f64;
        let by_replica = self.slice_cost(rows, tests + columns);
        // What the zone maps leave must be read, if only once.
        let axes: Vec<usize> = (0..self.bound.rows.shape.len()).collect();
        let mut arrays = Vec::new();
        parts.iter().for_each(|c| self.arrays_of(c, &mut arrays));
        let tiles = Tiles::new(Bx::whole(&self.bound.rows.shape), self.tile_shape(&arrays, &axes));
        let tile = Bx::new(vec![0; tiles.shape().len()], tiles.shape().to_vec());
        let of_tile = self.scan_cost(offer.array, &self.own_box(offer.array, &tile)) / threads;
        if by_replica >= tiles.len() as f64 * of_tile + fetch / threads {
            return false;
        }
        // Some of them tell how many of all are left open.
        let step = tiles.len().div_ceil(SAMPLED_TILES).max(1);
        let open = (0..tiles.len()).step_by(step).filter(|&i| {
            let tile = tiles.tile(i);
            !parts.iter().any(|c| self.foresee_condition(c, &tile) == Verdict::None)
        });
        by_replica < (open.count() * step) as f64 * of_tile + fetch / threads
    }

    /// Whether reading the slice of a replica, of one column, is cheaper than reading `n` values from all over the file.
    pub(crate) fn slice_pays(&self, path: &ReplicaPath, n: u64) -> bool {
        let Some(key) = self.bound.arrays.iter().position(|a| a.index == path.replica.key) else {
            return false;
        };
        let rows = (path.rows.0 + path.rows.1) as f64 / 2.0;
        let by_slice = self.slice_cost(rows, path.tests.len() as f64 + 1.0);
        by_slice < self.scattered_cost(key, n as f64) / self.options.threads as f64
    }

    /// Nanoseconds of a thread for finding the rows of a replica that answers a condition.
    pub(super) fn lookup_cost(&self, path: &ReplicaPath) -> f64 {
        let rows = (path.rows.0 + path.rows.1) as f64 / 2.0;
        self.slice_cost(rows, path.tests.len() as f64) * self.options.threads as f64
    }

    /// Nanoseconds of reading `rows` rows of a slice: their positions, and so many columns.
    fn slice_cost(&self, rows: f64, columns: f64) -> f64 {
        rows * (ROW_COST + 4.0 * (1.0 + columns) * self.indexes.costs.index.byte.get())
            / self.options.threads as f64
    }

    /// Nanoseconds of a thread for reading `n` values of a bound array from all over the file: one by one, or all there are.
    fn scattered_cost(&self, array: usize, n: f64) -> f64 {
        let whole = Bx::whole(&self.bound.rows.shape);
        let layout = self.readers[array].layout();
        let block = if layout.is_chunked() { layout.chunk_bytes } else { layout.element_size as u64 };
        let single = self.read_costs(array).price(1, block);
        (n * single).min(self.scan_cost(array, &self.own_box(array, &whole)))
    }

    /// The columns of a replica that the result wants, and nanoseconds of fetching `rows` values of each from all over the
    /// file, which the replica spares.
    fn spared(&self, offer: &Offer<'_>, rows: f64) -> (f64, f64) {
        if !matches!(self.bound.body, Body::Rows) {
            return (0.0, 0.0);
        }
        let mut arrays = Vec::new();
        for output in &self.bound.outputs {
            output.value.walk(&mut |v| {
                if let Value::Array { array, .. } = v
                    && !arrays.contains(array)
                    && offer.replica.columns.contains_key(&self.bound.arrays[*array].index)
                {
                    arrays.push(*array);
                }
            });
        }
        (arrays.len() as f64, arrays.iter().map(|&array| self.scattered_cost(array, rows)).sum())
    }

    /// The test on the replica's slice that a condition comes to, where it is on a column that it carries.
    fn test_of(&self, replica: &Replica, condition: &Condition) -> Option<Test> {
        let Condition::Stored { array, raw, set } = condition else { return None };
        let bound = &self.bound.arrays[*array];
        let column = *replica.columns.get(&bound.index).filter(|_| self.spans_rows(*array))?;
        if !self.keys_agree(*array, *raw, replica.replica.columns()[column].dtype) {
            return None;
        }
        let domain = if *raw { &bound.raw_domain } else { &bound.domain };
        let set: KeySet = set.clone();
        Some((column, domain.dtype(), set))
    }
}

/// The bound arrays that conditions on stored values are on.
fn stored_arrays(condition: &Condition, out: &mut Vec<usize>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|p| stored_arrays(p, out)),
        Condition::Stored { array, .. } => out.push(*array),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Costs;

    /// PDC's first question on 100 million particles: 294 688 rows by the replica, or 1526 tiles and three columns.
    fn takes_replica(costs: &Costs) -> bool {
        let (rows, columns, threads) = (294_688.0, 4.0, 2.0);
        let by_replica = rows * (ROW_COST + 4.0 * (1.0 + columns) * costs.index.byte.get()) / threads;
        let tile = costs.direct.price(1, 4 << 16);
        let whole = costs.direct.price(1526, 400_000_000);
        let fetch = columns * (rows * costs.direct.price(1, 4)).min(whole);
        by_replica < (1526.0 * tile + fetch) / threads
    }

    #[test]
    fn other_load_does_not_change_the_choice() {
        for seed in 0..100_u64 {
            let costs = Costs::default();
            let mut state = seed;
            let mut noise = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1_u64 << 53) as f64
            };
            let mut now = 0.0;
            // 200 queries; in every third of them something else has the processor most of the time. Only the way
            // that is taken is learnt of, as in truth.
            for query in 0..200 {
                let busy = query % 3 == 1;
                for _ in 0..40 {
                    let slow = if busy && noise() < 0.7 { 2.0 + 8.0 * noise() } else { 0.9 + 0.2 * noise() };
                    let taken = if takes_replica(&costs) { &costs.index } else { &costs.direct };
                    let (request, byte) = if takes_replica(&costs) { (600.0, 0.15) } else { (400.0, 0.07) };
                    taken.byte.observe_at(byte * slow, now);
                    taken.request.observe_at(request * slow, now);
                    now += 0.0005;
                }
                assert!(takes_replica(&costs), "query {query} of seed {seed}");
            }
        }
    }
}
