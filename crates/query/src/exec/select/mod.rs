//! Counting and selecting: the positions of the row space that satisfy the condition.

pub(super) mod bands;
mod caught;
pub(super) mod kept;
mod picked;

use sieva_types::{Bx, Error, Result, Selection, SelectionBuilder};

use crate::bind::Condition;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::pool::{Flow, check, fold, in_order_batched};
use crate::exec::prefetch::{Ahead, Work};
use crate::exec::select::bands::Bands;
use crate::exec::select::caught::Catch;
use crate::exec::select::kept::{Found, Hits, Keeping};
use crate::exec::select::picked::Picked;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::condition::Evaluator;
use crate::exec::tile::prepare::{KnownMask, Node, Prepared};
use crate::exec::tile::windows::Window;
use crate::exec::tile::{self, Tiles};
use crate::exec::{ExecOptions, ExecStats, Execution};
use crate::mask::Mask;

impl Execution {
    /// The bound arrays that a condition reads.
    pub(crate) fn arrays_of(&self, condition: &Condition, out: &mut Vec<usize>) {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().for_each(|p| self.arrays_of(p, out))
            }
            Condition::Stored { array, .. } => out.push(*array),
            Condition::Computed(value) => value.walk(&mut |v| {
                if let crate::bind::Value::Array { array, .. } | crate::bind::Value::Date(_, array) = v {
                    out.push(*array);
                }
            }),
            _ => {}
        }
    }

    /// The tiles of a prepared query; `also` are arrays read besides those of the condition.
    pub(crate) fn tiles(&self, prepared: &Prepared, also: &[usize]) -> Tiles {
        self.tiles_of(prepared, also, 0)
    }

    /// As [`Execution::tiles`], for work that takes `row` bytes for each position besides the condition.
    pub(in crate::exec) fn tiles_of(&self, prepared: &Prepared, also: &[usize], row: u64) -> Tiles {
        let mut tested = Vec::new();
        leaf_conditions(&prepared.node, &mut |c| tested.push(c));
        self.tiles_over(&prepared.area, &tested, also, row)
    }

    /// The tiles of `area`, on which the conditions `tested` are evaluated.
    pub(crate) fn tiles_over(&self, area: &Bx, tested: &[&Condition], also: &[usize], row: u64) -> Tiles {
        let mut arrays = also.to_vec();
        tested.iter().for_each(|c| self.arrays_of(c, &mut arrays));
        let most = tested.iter().map(|c| self.condition_bytes(c)).max().unwrap_or(0);
        let axes: Vec<usize> = (0..self.bound.rows.shape.len()).collect();
        let mut shape = self.tile_shape(&arrays, &axes);
        arrays.sort_unstable();
        arrays.dedup();
        let held: u64 = arrays.iter().map(|&a| self.element_bytes(a)).sum();
        let rows = self.options.rows_at_work(most.max(row) + held + 1);
        let cut = if self.follows_regions(&arrays) { tile::halve_to } else { tile::cut_to };
        cut(&mut shape, rows);
        Tiles::new(area.clone(), shape)
    }

    /// Bytes that a position takes while a condition is evaluated, the arrays' elements left out.
    pub(in crate::exec) fn condition_bytes(&self, condition: &Condition) -> u64 {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().map(|p| self.condition_bytes(p)).max().unwrap_or(0) + 1
            }
            Condition::Computed(value) => self.computing_bytes(value),
            _ => 1,
        }
    }

    /// The positions of one tile that satisfy the condition, and the way that they were found.
    ///
    /// # Errors
    /// Reading errors; `arithmetic-overflow` where it depends on a value that cannot be represented.
    pub(in crate::exec) fn tile_mask<'e>(
        &'e self,
        node: &Node,
        tile: &Bx,
        leaves: &mut Leaves<'e>,
    ) -> Result<(Mask, ExecStats)> {
        let (mask, failure, did) = self.tile_until(node, tile, leaves)?;
        failure.map_or(Ok((mask, did)), |f| Err(f.error))
    }

    /// As [`Execution::tile_mask`], for who may need the first positions alone: what failed is told apart.
    pub(in crate::exec) fn tile_until<'e>(
        &'e self,
        node: &Node,
        tile: &Bx,
        leaves: &mut Leaves<'e>,
    ) -> Result<(Mask, Option<Failure>, ExecStats)> {
        let mut mask = Mask::ones(tile.len() as usize);
        let mut evaluator = Evaluator::new(self, leaves);
        let failed = evaluator.narrow(node, tile, &mut mask)?;
        let did = evaluator.did();
        // A tile's positions ascend in C order, and so do those of the row space that they stand for.
        let first = failed.as_ref().and_then(|f| f.ones_iter().next());
        let (Some(failed), Some(first)) = (failed, first) else { return Ok((mask, None, did)) };
        mask.and_not(&failed);
        let error = evaluator.error_at(node, tile, first)?;
        let at = position(&self.bound.rows.shape, tile, first);
        Ok((mask, Some(Failure { at, error }), did))
    }

    /// Threads that so many of the tiles are worth: starting one takes about as long as a small tile does.
    pub(in crate::exec) fn threads_for(&self, n: usize, tiles: &Tiles) -> usize {
        let small = tiles.shape().iter().fold(1_u64, |n, &s| n.saturating_mul(s)) / tile::SMALL;
        let times = usize::try_from(small).unwrap_or(usize::MAX).max(1);
        self.options.threads.min(n.saturating_mul(times) / 4).min(n).max(1)
    }
}

/// The first position of the row space at which a tile's condition failed.
pub(in crate::exec) struct Failure {
    pub(in crate::exec) at: u64,
    pub(in crate::exec) error: Error,
}

/// The position of the row space of place `i` of a box.
pub(in crate::exec) fn position(shape: &[u64], bx: &Bx, i: usize) -> u64 {
    let (mut rest, mut at, mut stride) = (i as u64, 0, 1);
    for d in (0..shape.len()).rev() {
        at += (bx.start[d] + rest % bx.shape[d]) * stride;
        rest /= bx.shape[d];
        stride *= shape[d];
    }
    at
}

pub(in crate::exec) fn leaf_conditions<'n>(node: &'n Node, visit: &mut impl FnMut(&'n Condition)) {
    match node {
        Node::All(parts) | Node::Any(parts) => parts.iter().for_each(|p| leaf_conditions(p, visit)),
        Node::Leaf(c) => visit(c),
        Node::Known(_) | Node::Chosen(_) | Node::Decided(_) => {}
    }
}

/// What counting came to.
pub struct Counted {
    /// The number of positions that satisfy the condition.
    pub count: u64,
    /// Which they are, where tiles were tested and it was kept.
    pub found: Option<Found>,
    /// What was done.
    pub did: ExecStats,
}

impl Counted {
    /// A number that is known without testing tiles.
    fn known(count: u64, did: ExecStats) -> Self {
        Self { count, found: None, did }
    }
}

/// The number of positions that satisfy the condition; which they are is kept, too, where that takes at most `keep` bytes.
///
/// # Errors
/// Reading errors and `cancelled`.
pub fn count(execution: &Execution, keep: u64) -> Result<Counted> {
    if let Some(n) = execution.count_by_replica()? {
        return Ok(Counted::known(n, ExecStats { by_replica: n, ..ExecStats::default() }));
    }
    let prepared = execution.prepare()?;
    let mut stats = execution.replica_stats();
    if let Some(n) = product(&prepared) {
        return Ok(Counted::known(n, stats));
    }
    let tiles = execution.tiles(&prepared, &[]);
    let (keeping, mut found) = (Keeping::new(keep), Found::new(tiles.clone()));
    let catch = if keep > 0 { Catch::new(execution, &prepared, &tiles) } else { None };
    let mut total: u64 = 0;
    for window in execution.windows(&prepared, &tiles) {
        check(&execution.options.cancel)?;
        total += stats.decided(&tiles, &window);
        let mut hits = Vec::new();
        if let Window::Open(_, candidates) = &window {
            let kept = (&keeping, catch.as_ref());
            let (n, here) = count_open(execution, &prepared, (&tiles, candidates), kept, &mut stats)?;
            total += n;
            hits = here;
        }
        found.add(&window, hits, &keeping);
    }
    Ok(Counted { count: total, found: keeping.goes_on().then(|| found.with(catch)), did: stats })
}

/// The number of selected positions of those tiles of a window that are to be tested, and the positions as far as they are
/// kept.
fn count_open(
    execution: &Execution,
    prepared: &Prepared,
    (tiles, candidates): (&Tiles, &[Candidate]),
    (keeping, catch): (&Keeping, Option<&Catch>),
    stats: &mut ExecStats,
) -> Result<(u64, Vec<(usize, Hits)>)> {
    let open: Vec<usize> = candidates.iter().filter(|c| !c.all).map(|c| c.tile).collect();
    let ahead = Ahead::new(execution, prepared, &[], true);
    let work = Work { jobs: open.len(), tiles, tile: |job: usize| Some(open[job]) };
    let states = fold(
        open.len(),
        execution.threads_for(open.len(), tiles),
        &execution.options.cancel,
        || (Leaves::new(execution), 0, Vec::new(), ExecStats::default()),
        |(leaves, total, kept, stats), i| {
            if let Some(ahead) = &ahead {
                ahead.before(i, &work);
            }
            let tile = tiles.tile(open[i]);
            let (mask, did) = execution.tile_mask(&prepared.node, &tile, leaves)?;
            if let Some(ahead) = &ahead {
                ahead.after(&tile, leaves);
            }
            if let Some(catch) = catch {
                catch.take(open[i], &tile, &mask, leaves);
            }
            let hits = mask.count();
            *total += hits;
            keeping.keep(kept, open[i], mask, hits);
            stats.merge(&did);
            Ok(())
        },
    )?;
    let (mut total, mut all) = (0, Vec::new());
    for (_, n, kept, did) in states {
        total += n;
        all.extend(kept);
        stats.merge(&did);
    }
    Ok((total, all))
}

/// The count where masks over separate axes say it all: the product of theirs and of the free axes' lengths.
pub(crate) fn product(prepared: &Prepared) -> Option<u64> {
    let known: Vec<&KnownMask> = match &prepared.node {
        Node::Decided(false) => return Some(0),
        Node::Chosen(chosen) if chosen.rows_in(&prepared.area) => return Some(chosen.count()),
        Node::Decided(true) => Vec::new(),
        Node::Known(k) => vec![k],
        Node::All(parts) => parts
            .iter()
            .map(|p| if let Node::Known(k) = p { Some(k) } else { None })
            .collect::<Option<_>>()?,
        _ => return None,
    };
    let mut free = vec![true; prepared.area.rank()];
    let mut n = 1;
    if known.iter().any(|k| k.failed.is_some()) {
        return None;
    }
    for k in known {
        // Later masks shrank the area: count what lies in it.
        for &axis in &k.axes {
            if !std::mem::replace(&mut free[axis], false) {
                return None;
            }
        }
        n *= k.of_tile(&prepared.area).count();
    }
    Some((0..free.len()).filter(|&d| free[d]).map(|d| prepared.area.shape[d]).product::<u64>() * n)
}

impl ExecStats {
    /// Counts the tiles of a window that are decided without reading; returns the positions that they select.
    pub(in crate::exec) fn decided(&mut self, tiles: &Tiles, window: &Window) -> u64 {
        let (skipped, taken, positions) = match window {
            Window::None(n) => (*n, 0, 0),
            Window::All(_, n, bx) => (*n, *n, bx.len()),
            Window::Open(n, candidates) => {
                let taken = candidates.iter().filter(|c| c.all);
                let (taken, positions) =
                    taken.fold((0, 0), |(n, sum), c| (n + 1, sum + tiles.tile(c.tile).len()));
                (n - candidates.len() as u64 + taken, taken, positions)
            }
        };
        self.tiles_skipped += skipped;
        self.tiles_taken += taken;
        positions
    }
}

/// Where a selection ended before its time: the number of positions before the row that fails, and its error.
pub type Halt = Option<(u64, Error)>;

/// The positions that satisfy the condition; at least the first `enough` of them, where not all are wanted.
///
/// # Errors
/// Reading errors, `cancelled`, `arithmetic-overflow` where the condition depends on a value that cannot be represented
/// (of a row that comes before the last one that is wanted), and `memory-limit` where the selection itself does not fit.
pub fn select(execution: &Execution, enough: Option<u64>) -> Result<(Selection, ExecStats)> {
    selected(execution, |bands| bands.until(enough)).map(|(all, _, did)| (all, did))
}

/// Positions that satisfy the condition; where it fails somewhere, at least those before, with their number and the error.
/// For who may need no more than those.
///
/// # Errors
/// As [`select`].
pub fn select_until_failure(execution: &Execution) -> Result<(Selection, Halt, ExecStats)> {
    selected(execution, Bands::halting)
}

fn selected<'e>(
    execution: &'e Execution,
    how: impl FnOnce(Bands<'e>) -> Bands<'e>,
) -> Result<(Selection, Halt, ExecStats)> {
    let rows = &execution.bound.rows;
    let mut builder = SelectionBuilder::new(rows.names.clone(), rows.shape.clone())?;
    let prepared = execution.prepare()?;
    let mut stats = execution.replica_stats();
    if let Node::Chosen(chosen) = &prepared.node
        && chosen.rows_in(&prepared.area)
    {
        builder.push_positions(chosen.positions(0..chosen.count() as usize))?;
        return Ok((builder.finish(), None, stats));
    }
    let tiles = execution.tiles(&prepared, &[]);
    if matches!(prepared.node, Node::Decided(true)) && prepared.area == Bx::whole(&rows.shape) {
        // However many rows there are: none is looked at.
        let n = tiles.len() as u64;
        (stats.tiles_taken, stats.tiles_skipped) = (n, n);
        return Ok((Selection::all(rows.names.clone(), rows.shape.clone())?, None, stats));
    }
    let mut bands = how(Bands::new(execution, builder, tiles.band(), None));
    let catch = if bands.enough.is_none() { Catch::new(execution, &prepared, &tiles) } else { None };
    for window in execution.windows(&prepared, &tiles) {
        check(&execution.options.cancel)?;
        stats.decided(&tiles, &window);
        let flow = match window {
            Window::None(n) => bands.pass(n)?,
            Window::All(_, n, bx) => bands.take(n, &bx)?,
            Window::Open(n, candidates) => {
                let end = bands.next + n as usize;
                let state = (&mut bands, &mut stats);
                select_open(execution, &prepared, (&tiles, catch.as_ref()), (&candidates, end), state)?
            }
        };
        if flow.is_break() {
            break;
        }
    }
    let halted = bands.halted.take();
    let selection = bands.finish()?;
    if let Some(catch) = &catch {
        catch.keep(execution, &selection);
    }
    Ok((selection, halted, stats))
}

/// Adds the positions of a window's candidates, behind which the tile `end` comes.
fn select_open(
    execution: &Execution,
    prepared: &Prepared,
    (tiles, catch): (&Tiles, Option<&Catch>),
    (candidates, end): (&[Candidate], usize),
    (bands, stats): (&mut Bands<'_>, &mut ExecStats),
) -> Result<Flow> {
    let ahead = Ahead::new(execution, prepared, &[], bands.enough.is_none());
    let packs = bands.takes_blocks();
    let shape = &execution.bound.rows.shape;
    let open = |job: usize| (!candidates[job].all).then_some(candidates[job].tile);
    let work = Work { jobs: candidates.len(), tiles, tile: open };
    let mut flow = Flow::Continue(());
    in_order_batched(
        (candidates.len(), batch_of(tiles, candidates.len()), execution.options.at_work() / 2),
        execution.threads_for(candidates.len(), tiles),
        &execution.options.cancel,
        |(_, _, picked, _, _): &(usize, Bx, Picked, Option<Failure>, ExecStats)| picked.bytes(),
        || Leaves::new(execution),
        |leaves, i| {
            let Candidate { tile, all } = candidates[i];
            let bx = tiles.tile(tile);
            if all {
                let mask = Mask::ones(bx.len() as usize);
                return Ok((i, bx, Picked::Mask(mask), None, ExecStats::default()));
            }
            if let Some(ahead) = &ahead {
                ahead.before(i, &work);
            }
            let (mask, failure, did) = execution.tile_until(&prepared.node, &bx, leaves)?;
            if let Some(catch) = catch {
                catch.take(tile, &bx, &mask, leaves);
            }
            if let Some(ahead) = &ahead {
                ahead.after(&bx, leaves);
            }
            let packs = packs && failure.is_none();
            let picked = if packs { Picked::of(mask, shape, &bx) } else { Picked::Mask(mask) };
            Ok((i, bx, picked, failure, did))
        },
        |(i, bx, picked, failure, did)| {
            stats.merge(&did);
            match picked {
                Picked::Mask(mask) => bands.add(candidates[i].tile, bx, mask, failure)?,
                Picked::Block(block) => bands.add_block(candidates[i].tile, bx.len(), block)?,
            }
            flow = bands.go_to(candidates.get(i + 1).map_or(end, |next| next.tile))?;
            Ok(flow)
        },
    )?;
    // Where none of them was a candidate.
    if flow.is_continue() { bands.go_to(end) } else { Ok(flow) }
}

/// What a selection under construction holds at most.
#[derive(Default)]
pub(in crate::exec) struct Held {
    bytes: u64,
}

impl Held {
    /// Counts `hits` of `n` positions more; what was built is looked at only where it may be too much.
    pub(in crate::exec) fn add(
        &mut self,
        hits: u64,
        n: u64,
        builder: &SelectionBuilder,
        options: &ExecOptions,
    ) -> Result<()> {
        if hits == 0 || hits == n {
            return Ok(());
        }
        // Bits, or two bytes for each of few.
        self.bytes += (n / 8).min(2 * hits) + 64;
        if self.bytes > options.room().bytes {
            let was = self.bytes;
            self.bytes = builder.memory_bytes();
            options.room().check(self.bytes, "the positions that are selected")?;
            // Not at each tile anew.
            self.bytes = self.bytes.min(was - was / 8);
        }
        Ok(())
    }
}

/// Positions whose masks are handed on together.
const BATCH_POSITIONS: u64 = 1 << 20;

/// The number of tiles that are handed on together.
pub(in crate::exec) fn batch_of(tiles: &Tiles, n: usize) -> usize {
    let tile: u64 = tiles.shape().iter().product();
    ((BATCH_POSITIONS / tile.max(1)) as usize).clamp(1, (n / 16).max(1))
}
