//! ORDER BY with LIMIT: the first rows of an order without putting all of them in order.
//!
//! Tiles are gone through by all threads, each of which keeps the best rows that it has seen. The last of as many as are
//! wanted bounds what is still of interest: stored values are compared with it a block at a time before anything is decoded,
//! and tiles are left out of which zone maps tell that nothing in them comes before it. The tiles that promise most come
//! first.

pub(super) mod all;
pub(super) mod distinct;
mod encoded;
pub(super) mod keys;
mod merge;
mod open;
mod picked;
mod positions;
pub(super) mod radix;
mod runs;
mod sort;
mod spill;
mod top;

use std::sync::Arc;

use sieva_index::stats::Verdict;
use sieva_types::{Bx, KeySet, Result, Selection};

use crate::bind::{Bound, Condition, OrderKey, Value};
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::fetch::Gatherer;
use crate::exec::fetch::rows::Points;
use crate::exec::pool::{check, fold};
use crate::exec::prefetch::{Ahead, Work};
use crate::exec::tile::Tiles;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::condition::apply;
use crate::exec::tile::evaluate::{Provider, evaluate};
use crate::exec::tile::prepare::{Node, Prepared};
use crate::exec::tile::windows::{Window, Windows};
use crate::exec::{ExecStats, Execution};
use crate::mask::Mask;
use crate::values::{ValueType, Vector};
pub(super) use encoded::Encoded;
use open::FirstKey;
use picked::{Picked, positions_of};
pub use positions::PositionList;
pub(super) use sort::{HINT, Sorter, make_room, needed};
use top::SharedBound;
pub(super) use top::Top;

/// Where no more than one of so many positions of a tile is left, its values are fetched one by one.
const SPARSE: u64 = 32;
/// Where more rows than this of a tile may be among the first, one of so many is looked at before the others.
const SAMPLED: u64 = 1 << 12;
const SAMPLE: usize = 64;

/// The positions of the rows that ORDER BY, OFFSET and LIMIT leave, in order, and how they were found; `None` where the rows
/// are to be put in order by [`crate::exec::OrderedRows`] or [`crate::exec::RowStream`]: there is no limit, or so many rows are wanted
/// that they are not kept by each thread, or a value may fail, so that all of them have to be looked at.
///
/// `selection` are the rows where they are known already.
///
/// # Errors
/// Reading errors, `cancelled`, `memory-limit`.
pub fn first_in_order(
    execution: &Arc<Execution>,
    selection: Option<&Selection>,
) -> Result<Option<(Vec<u64>, ExecStats)>> {
    let Some(most) = wanted(execution) else { return Ok(None) };
    if selection.is_none() && has_computed(&execution.bound.condition) {
        return Ok(None);
    }
    if execution.bound.limit == Some(0) {
        return Ok(Some((Vec::new(), ExecStats::default())));
    }
    let mut search = Search::new(execution, most);
    match selection {
        Some(s) if s.len().saturating_mul(SPARSE) < s.n_rows() => {
            search.listed(s.len(), |first, n| s.iter_from(first).take(n).collect())?;
        }
        Some(s) => {
            let area = Bx::whole(&execution.bound.rows.shape);
            search.tiles(&Prepared { area, node: Node::Decided(true) }, Some(s))?;
        }
        None => {
            let prepared = execution.prepare()?;
            search.stats = execution.replica_stats();
            match &prepared.node {
                Node::Chosen(chosen) if chosen.rows_in(&prepared.area) => {
                    let some =
                        |first: u64, n: usize| chosen.positions(first as usize..first as usize + n).collect();
                    search.listed(chosen.count(), some)?;
                }
                _ => search.tiles(&prepared, None)?,
            }
        }
    }
    search.finish().map(Some)
}

/// How many of the first rows are wanted, where that is no more than all threads may keep, and no key can fail.
pub(crate) fn wanted(execution: &Execution) -> Option<usize> {
    let (bound, options) = (&execution.bound, &execution.options);
    let most = usize::try_from(bound.rows_wanted().filter(|_| !bound.order_by.is_empty())?).ok()?;
    if bound.order_by.iter().any(|key| may_fail(bound, &key.value)) {
        return None;
    }
    let row = bound.order_by.iter().map(|key| execution.column_bytes(&key.value).max(9)).sum::<u64>();
    let kept = Top::bytes_kept(most as u64, row).saturating_mul(options.threads as u64 + 1);
    (kept <= options.room().bytes).then_some(most)
}

/// Bytes of the keys of each row, where all have as many.
pub(super) fn key_width(execution: &Execution) -> Option<usize> {
    let is_text = |v: &Value| execution.bound.type_of(v) == Some(ValueType::Str);
    width_of(&execution.bound.order_by, is_text)
}

/// Bytes of some keys of each row, where none of them is a text.
pub(super) fn width_of(keys: &[OrderKey], is_text: impl Fn(&Value) -> bool) -> Option<usize> {
    (!keys.iter().any(|k| is_text(&k.value))).then(|| encoded::NUMBER_BYTES * keys.len())
}

/// Whether a value of some row may be one that cannot be represented: an integer that is computed.
fn may_fail(bound: &Bound, value: &Value) -> bool {
    let mut found = false;
    value.walk(&mut |v| {
        let is_given = matches!(v, Value::Array { .. } | Value::Position { .. } | Value::Constant(_));
        let is_safe = matches!(bound.type_of(v), Some(ValueType::F64 | ValueType::Bool | ValueType::Str));
        found |= !is_given && !is_safe;
    });
    found
}

/// Whether a condition is computed from values: then where it fails is found by looking at all rows.
fn has_computed(condition: &Condition) -> bool {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().any(has_computed),
        Condition::Computed(_) => true,
        _ => false,
    }
}

/// The search for the first rows of an order.
struct Search<'e> {
    execution: &'e Arc<Execution>,
    first: Option<FirstKey>,
    bound: SharedBound,
    best: Top,
    /// How many keep rows at once.
    shares: u64,
    stats: ExecStats,
}

/// What a thread works with.
struct Worker<'e> {
    leaves: Leaves<'e>,
    gatherer: Gatherer,
    top: Top,
    stats: ExecStats,
}

/// The tiles to be gone through, and what is selected in them.
struct Jobs<'j> {
    tiles: &'j Tiles,
    node: &'j Node,
    /// The rows, where they are known.
    selection: Option<&'j Selection>,
    candidates: &'j [Candidate],
}

impl<'e> Search<'e> {
    fn new(execution: &'e Arc<Execution>, most: usize) -> Self {
        Self {
            execution,
            first: FirstKey::of(execution),
            bound: SharedBound::default(),
            best: Top::new(most, key_width(execution)),
            shares: execution.options.threads as u64 + 1,
            stats: ExecStats::default(),
        }
    }

    fn worker(&self) -> Worker<'e> {
        let mut gatherer = Gatherer::new(Arc::clone(self.execution));
        gatherer.use_threads(1);
        let top = self.best.empty();
        Worker { leaves: Leaves::new(self.execution), gatherer, top, stats: ExecStats::default() }
    }

    /// Goes through the tiles of a condition, or those of rows that are known.
    fn tiles(&mut self, prepared: &Prepared, selection: Option<&Selection>) -> Result<()> {
        let execution: &'e Execution = self.execution;
        let (arrays, row) = key_needs(execution);
        let tiles = execution.tiles_of(prepared, &arrays, row);
        let judge = |bx: &Bx| match execution.foresee(&prepared.node, bx) {
            Verdict::None => Verdict::None,
            _ if self.is_behind(bx, None) => Verdict::None,
            verdict => verdict,
        };
        let (mut best, mut stats) = (self.best.empty(), ExecStats::default());
        for window in Windows::new(&tiles, judge, |_| false) {
            check(&execution.options.cancel)?;
            stats.tiles_skipped += window.skipped();
            if let Window::Open(_, mut candidates) = window {
                if let Some(first) = &self.first {
                    candidates.sort_by_cached_key(|c| first.promise(execution, &tiles.tile(c.tile)));
                }
                let jobs = Jobs { tiles: &tiles, node: &prepared.node, selection, candidates: &candidates };
                let (top, did) = self.window(prepared, &jobs, &arrays)?;
                best.take_in(top, &execution.options.cancel)?;
                stats.merge(&did);
            }
        }
        self.best = best;
        self.stats.merge(&stats);
        Ok(())
    }

    /// The first rows of some tiles.
    fn window(&self, prepared: &Prepared, jobs: &Jobs<'_>, arrays: &[usize]) -> Result<(Top, ExecStats)> {
        let n = jobs.candidates.len();
        let ahead = Ahead::new(self.execution, prepared, arrays, false);
        let work = Work { jobs: n, tiles: jobs.tiles, tile: |job: usize| Some(jobs.candidates[job].tile) };
        let threads = self.execution.threads_for(n, jobs.tiles);
        let each = |worker: &mut Worker<'e>, i: usize| {
            let bx = jobs.tiles.tile(jobs.candidates[i].tile);
            worker.top.tighten(&self.bound);
            if self.is_behind(&bx, Some(&worker.top)) {
                worker.stats.tiles_skipped += 1;
                return Ok(());
            }
            if let Some(ahead) = &ahead {
                ahead.before(i, &work);
            }
            self.tile(worker, jobs, jobs.candidates[i].all, &bx)?;
            if let Some(ahead) = &ahead {
                ahead.after(&bx, &worker.leaves);
            }
            Ok(())
        };
        self.joined(fold(n, threads, &self.execution.options.cancel, || self.worker(), each)?)
    }

    /// Goes through positions in C order; `list` gives so many from one on.
    fn listed(&mut self, len: u64, list: impl Fn(u64, usize) -> Vec<u64> + Sync) -> Result<()> {
        let (execution, options) = (self.execution, &self.execution.options);
        let batch = execution.rows_keyed(len);
        let jobs = usize::try_from(len.div_ceil(batch)).unwrap_or(usize::MAX);
        let each = |worker: &mut Worker<'e>, i: usize| {
            let first = i as u64 * batch;
            let positions = list(first, batch.min(len - first) as usize);
            worker.top.tighten(&self.bound);
            self.fetch(worker, &positions)
        };
        let threads = options.threads.min(jobs).max(1);
        let (top, did) = self.joined(fold(jobs, threads, &options.cancel, || self.worker(), each)?)?;
        self.stats.merge(&did);
        self.best.take_in(top, &options.cancel)
    }

    fn joined(&self, workers: Vec<Worker<'e>>) -> Result<(Top, ExecStats)> {
        let (mut all, mut stats) = (self.best.empty(), ExecStats::default());
        for worker in workers {
            all.take_in(worker.top, &self.execution.options.cancel)?;
            stats.merge(&worker.stats);
        }
        Ok((all, stats))
    }

    /// The stored values of the first key with which a row of a box may be among the first; `None`: any.
    fn open(&self, top: Option<&Top>, bx: &Bx) -> Option<KeySet> {
        let (first, shape) = (self.first.as_ref()?, &self.execution.bound.rows.shape);
        let known = match top {
            Some(top) => top.bound().cloned(),
            None => self.bound.get(),
        };
        first.open(self.execution, known.as_deref()?, crate::exec::access_path::sorted::linear(shape, bx, 0))
    }

    /// Whether it is known without reading that no row of a box is among the first.
    fn is_behind(&self, bx: &Bx, top: Option<&Top>) -> bool {
        let (Some(first), Some(open)) = (&self.first, self.open(top, bx)) else { return false };
        self.execution.foresee_stored(first.array, first.raw, &open, bx) == Verdict::None
    }

    /// Takes in the rows of a tile.
    fn tile(&self, worker: &mut Worker<'e>, jobs: &Jobs<'_>, all: bool, bx: &Bx) -> Result<()> {
        let shape = &self.execution.bound.rows.shape;
        let mut mask = match jobs.selection {
            Some(s) if s.len() < s.n_rows() => mask_of(s, shape, bx),
            _ if all => Mask::ones(bx.len() as usize),
            _ => {
                let (mask, did) = self.execution.tile_mask(jobs.node, bx, &mut worker.leaves)?;
                worker.stats.merge(&ExecStats { tiles_scanned: 0, tiles_skipped: 0, ..did });
                mask
            }
        };
        worker.stats.tiles_scanned += 1;
        let n = mask.count();
        if n == 0 {
            return Ok(());
        }
        if n.saturating_mul(SPARSE) <= bx.len() && !self.holds(&worker.leaves, bx) {
            let places: Vec<usize> = mask.ones_iter().collect();
            return self.fetch(worker, &positions_of(shape, bx, &places));
        }
        self.narrow(worker, bx, &mut mask)?;
        // Where many are left, some of them tell what of the others may be among the first.
        if self.first.is_some() && mask.count() > SAMPLED.max(16_u64.saturating_mul(self.best.most as u64)) {
            let sample: Vec<usize> = mask.ones_iter().step_by(SAMPLE).collect();
            self.take(worker, bx, &sample)?;
            sample.into_iter().for_each(|place| mask.clear_range(place, 1));
            self.narrow(worker, bx, &mut mask)?;
        }
        self.take(worker, bx, &mask.ones_iter().collect::<Vec<_>>())
    }

    /// Keeps the places of a tile whose stored values may be those of rows among the first.
    fn narrow(&self, worker: &mut Worker<'e>, bx: &Bx, mask: &mut Mask) -> Result<()> {
        if let (Some(first), Some(open)) = (&self.first, self.open(Some(&worker.top), bx)) {
            let (axes, found) = worker.leaves.test(first.array, first.raw, &open, bx)?;
            apply(mask, bx, &found, &axes);
        }
        Ok(())
    }

    /// Takes in the rows at some places of a tile.
    fn take(&self, worker: &mut Worker<'e>, bx: &Bx, places: &[usize]) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let positions = positions_of(&self.execution.bound.rows.shape, bx, places);
        let mut picked = Picked::new(&mut worker.leaves, self.execution, bx, places);
        let keys = self.keys(&mut picked, places.len())?;
        self.add(&mut worker.top, &keys, &positions)
    }

    /// Whether a part of an array that the keys need has been read for the condition.
    fn holds(&self, leaves: &Leaves<'_>, bx: &Bx) -> bool {
        let Some(first) = &self.first else { return false };
        leaves.holds(first.array, &self.execution.own_box(first.array, bx))
    }

    /// Takes in the rows at some positions, whose keys are fetched.
    fn fetch(&self, worker: &mut Worker<'e>, positions: &[u64]) -> Result<()> {
        let keys = self.keys(&mut Points { gatherer: &mut worker.gatherer, positions }, positions.len())?;
        self.add(&mut worker.top, &keys, positions)
    }

    fn keys(&self, from: &mut dyn Provider, n: usize) -> Result<Encoded> {
        let keys = &self.execution.bound.order_by;
        let sound = |value: &Value, from: &mut dyn Provider| evaluate(value, from)?.into_rows(n)?.sound();
        let vectors = keys.iter().map(|k| sound(&k.value, from)).collect::<Result<Vec<Vector>>>()?;
        Ok(Encoded::of(keys, &vectors, n, self.best.width()))
    }

    fn add(&self, top: &mut Top, keys: &Encoded, positions: &[u64]) -> Result<()> {
        top.add(keys, positions, &self.execution.options.cancel)?;
        top.share(&self.bound);
        let what = format_args!("the first {} rows of ORDER BY", top.most);
        // Each thread has one, and there is the one that they are put together in.
        self.execution.options.room().check(top.memory_bytes().saturating_mul(self.shares), what)
    }

    fn finish(self) -> Result<(Vec<u64>, ExecStats)> {
        let offset = usize::try_from(self.execution.bound.offset).unwrap_or(usize::MAX);
        let mut positions = self.best.finish(&self.execution.options.cancel)?;
        positions.drain(..offset.min(positions.len()));
        Ok((positions, self.stats))
    }
}

/// Which places of a box are selected.
fn mask_of(selection: &Selection, shape: &[u64], bx: &Bx) -> Mask {
    let mut mask = Mask::zeros(bx.len() as usize);
    let row = bx.shape.last().copied().unwrap_or(1);
    for r in 0..bx.len().checked_div(row).unwrap_or(0) {
        let first = crate::exec::access_path::sorted::linear(shape, bx, r);
        let here = selection.iter_from(selection.rank(first)).take_while(|&p| p - first < row);
        here.for_each(|p| mask.set((r * row + p - first) as usize));
    }
    mask
}

/// The arrays that the keys of ORDER BY are computed from, and bytes that a row takes meanwhile.
pub(crate) fn key_needs(execution: &Execution) -> (Vec<usize>, u64) {
    let (mut arrays, mut held, mut most) = (Vec::new(), 16, 0);
    for key in &execution.bound.order_by {
        key.value.walk(&mut |v| {
            if let Value::Array { array, .. } | Value::Date(_, array) = v {
                arrays.push(*array);
            }
        });
        held += 2 * execution.column_bytes(&key.value) + encoded::NUMBER_BYTES as u64;
        most = most.max(execution.computing_bytes(&key.value));
    }
    arrays.sort_unstable();
    arrays.dedup();
    (arrays, held + most)
}
