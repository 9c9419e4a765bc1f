//! Counting and selecting: the positions of the row space that satisfy the condition.

use sieva_types::{Bx, Error, ErrorKind, Result, Selection, SelectionBuilder};

use super::ahead::{Ahead, Work};
use super::condition::Evaluator;
use super::leaves::Leaves;
use super::pool::{Flow, fold, in_order_batched};
use super::prepare::{KnownMask, Node, Prepared};
use super::prune::Candidate;
use super::tiles::Tiles;
use super::{ExecStats, Execution};
use crate::bind::Condition;
use crate::mask::Mask;

impl Execution {
    /// The bound arrays that a condition reads.
    pub(super) fn arrays_of(&self, condition: &Condition, out: &mut Vec<usize>) {
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
    pub(super) fn tiles(&self, prepared: &Prepared, also: &[usize]) -> Tiles {
        let mut arrays = also.to_vec();
        leaf_conditions(&prepared.node, &mut |c| self.arrays_of(c, &mut arrays));
        let axes: Vec<usize> = (0..self.bound.rows.shape.len()).collect();
        Tiles::new(prepared.area.clone(), self.tile_shape(&arrays, &axes))
    }

    /// The positions of one tile that satisfy the condition, and the way that they were found.
    pub(super) fn tile_mask<'e>(
        &'e self,
        node: &Node,
        tile: &Bx,
        leaves: &mut Leaves<'e>,
    ) -> Result<(Mask, ExecStats)> {
        let mut mask = Mask::ones(tile.len() as usize);
        let mut evaluator = Evaluator::new(self, leaves);
        evaluator.narrow(node, tile, &mut mask)?;
        let did = evaluator.did();
        Ok((mask, did))
    }

    /// Threads that so many tiles are worth: starting one takes about as long as a tile does.
    pub(super) fn threads_for(&self, tiles: usize) -> usize {
        self.options.threads.min(tiles / 4).max(1)
    }
}

pub(super) fn leaf_conditions(node: &Node, visit: &mut impl FnMut(&Condition)) {
    match node {
        Node::All(parts) | Node::Any(parts) => parts.iter().for_each(|p| leaf_conditions(p, visit)),
        Node::Leaf(c) => visit(c),
        Node::Known(_) | Node::Chosen(_) | Node::Decided(_) => {}
    }
}

/// The number of positions that satisfy the condition.
///
/// # Errors
/// Reading errors and `cancelled`.
pub fn count(execution: &Execution) -> Result<(u64, ExecStats)> {
    if let Some(n) = execution.count_by_replica()? {
        return Ok((n, ExecStats { by_replica: n, ..ExecStats::default() }));
    }
    let prepared = execution.prepare()?;
    let mut stats = execution.replica_stats();
    if let Some(n) = product(&prepared) {
        return Ok((n, stats));
    }
    let tiles = execution.tiles(&prepared, &[]);
    let candidates = execution.candidates(&prepared, &tiles);
    let mut total = stats.decided(&tiles, &candidates);
    let open: Vec<usize> = candidates.iter().filter(|c| !c.all).map(|c| c.tile).collect();
    let ahead = Ahead::new(execution, &prepared, &[], true);
    let work = Work { jobs: open.len(), tiles: &tiles, tile: |job: usize| Some(open[job]) };
    let states = fold(
        open.len(),
        execution.threads_for(open.len()),
        &execution.options.cancel,
        || (Leaves::new(execution), 0, ExecStats::default()),
        |(leaves, total, stats), i| {
            if let Some(ahead) = &ahead {
                ahead.before(i, &work);
            }
            let tile = tiles.tile(open[i]);
            let (mask, did) = execution.tile_mask(&prepared.node, &tile, leaves)?;
            if let Some(ahead) = &ahead {
                ahead.after(&tile, leaves);
            }
            *total += mask.count();
            stats.merge(&did);
            Ok(())
        },
    )?;
    for (_, n, did) in states {
        total += n;
        stats.merge(&did);
    }
    Ok((total, stats))
}

/// The count where masks over separate axes say it all: the product of theirs and of the free axes' lengths.
pub(super) fn product(prepared: &Prepared) -> Option<u64> {
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
    /// Counts the tiles that are decided without reading; returns the positions that they select.
    fn decided(&mut self, tiles: &Tiles, candidates: &[Candidate]) -> u64 {
        let taken: Vec<&Candidate> = candidates.iter().filter(|c| c.all).collect();
        self.tiles_taken += taken.len() as u64;
        self.tiles_skipped += (tiles.len() - candidates.len() + taken.len()) as u64;
        taken.iter().map(|c| tiles.tile(c.tile).len()).sum()
    }
}

/// The positions that satisfy the condition; at least the first `enough` of them, where not all are wanted.
///
/// # Errors
/// Reading errors, `cancelled`, and `memory-limit` where the selection itself does not fit.
pub fn select(execution: &Execution, enough: Option<u64>) -> Result<(Selection, ExecStats)> {
    let rows = &execution.bound.rows;
    let mut builder = SelectionBuilder::new(rows.names.clone(), rows.shape.clone())?;
    let prepared = execution.prepare()?;
    let mut stats = execution.replica_stats();
    if let Node::Chosen(chosen) = &prepared.node
        && chosen.rows_in(&prepared.area)
    {
        builder.push_positions(chosen.positions().iter().copied())?;
        return Ok((builder.finish(), stats));
    }
    let tiles = execution.tiles(&prepared, &[]);
    let candidates = execution.candidates(&prepared, &tiles);
    stats.decided(&tiles, &candidates);
    let band = tiles.band();
    let mut pending: Vec<(Bx, Mask)> = Vec::new();
    let mut found = 0;
    let ahead = Ahead::new(execution, &prepared, &[], enough.is_none());
    let open = |job: usize| (!candidates[job].all).then_some(candidates[job].tile);
    let work = Work { jobs: candidates.len(), tiles: &tiles, tile: open };
    in_order_batched(
        (candidates.len(), batch_of(&tiles, candidates.len())),
        execution.threads_for(candidates.len()),
        &execution.options.cancel,
        || Leaves::new(execution),
        |leaves, i| {
            let Candidate { tile, all } = candidates[i];
            let bx = tiles.tile(tile);
            if all {
                let mask = Mask::ones(bx.len() as usize);
                return Ok((i, bx, mask, ExecStats::default()));
            }
            if let Some(ahead) = &ahead {
                ahead.before(i, &work);
            }
            let (mask, did) = execution.tile_mask(&prepared.node, &bx, leaves)?;
            if let Some(ahead) = &ahead {
                ahead.after(&bx, leaves);
            }
            Ok((i, bx, mask, did))
        },
        |(i, tile, mask, did)| {
            stats.merge(&did);
            found += mask.count();
            pending.push((tile, mask));
            // A band is done when the next tile to come is of another one.
            if candidates.get(i + 1).is_some_and(|next| next.tile / band == candidates[i].tile / band) {
                return Ok(Flow::Continue(()));
            }
            push_band(&mut builder, &rows.shape, &mut pending, execution.options.memory)?;
            Ok(if enough.is_some_and(|n| found >= n) { Flow::Break(()) } else { Flow::Continue(()) })
        },
    )?;
    Ok((builder.finish(), stats))
}

/// Positions whose masks are handed on together.
const BATCH_POSITIONS: u64 = 1 << 20;

/// The number of tiles that are handed on together.
pub(super) fn batch_of(tiles: &Tiles, n: usize) -> usize {
    let tile: u64 = tiles.shape().iter().product();
    ((BATCH_POSITIONS / tile.max(1)) as usize).clamp(1, (n / 16).max(1))
}

/// Puts the tiles of one band together and adds their positions in C order.
fn push_band(
    builder: &mut SelectionBuilder,
    shape: &[u64],
    band: &mut Vec<(Bx, Mask)>,
    memory: u64,
) -> Result<()> {
    if band.len() == 1 {
        let (bx, mask) = &band[0];
        if !mask.none() {
            push_rows(builder, shape, bx, mask)?;
        }
        band.clear();
        return Ok(());
    }
    let first = band
        .iter()
        .map(|(b, _)| b.start.clone())
        .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| *x.min(y)).collect());
    let last: Option<Vec<u64>> = band
        .iter()
        .map(|(b, _)| (0..b.rank()).map(|d| b.end(d)).collect::<Vec<_>>())
        .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| *x.max(y)).collect());
    let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
    let bx = Bx::new(first.clone(), last.iter().zip(&first).map(|(l, f)| l - f).collect());
    if bx.len() / 8 > memory / 4 {
        return Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "the positions of {} rows must be put in order at once, which takes {} bytes",
                bx.len(),
                bx.len() / 8
            ),
        )
        .hint("raise the limit with --memory (memory= in Python)"));
    }
    if band.iter().any(|(_, m)| !m.none()) {
        let mut whole = Mask::zeros(bx.len() as usize);
        for (part, mask) in band.iter().filter(|(_, m)| !m.none()) {
            super::prepare::paste(&mut whole, &bx, part, mask);
        }
        push_rows(builder, shape, &bx, &whole)?;
    }
    band.clear();
    Ok(())
}

/// Adds the positions of a box in C order: one piece for each run of the box that is contiguous in the row space.
fn push_rows(builder: &mut SelectionBuilder, shape: &[u64], bx: &Bx, mask: &Mask) -> Result<()> {
    let mut inner = 1;
    let mut d = bx.rank();
    while d > 0 && bx.shape[d - 1] == shape[d - 1] {
        d -= 1;
        inner *= shape[d];
    }
    let piece = if d > 0 { bx.shape[d - 1] * inner } else { inner };
    for p in 0..mask.len() as u64 / piece.max(1) {
        let (mut rest, mut at, mut stride) = (p, 0, inner);
        for axis in (0..d).rev() {
            let i = if axis + 1 == d { 0 } else { rest % bx.shape[axis] };
            if axis + 1 != d {
                rest /= bx.shape[axis];
            }
            at += (bx.start[axis] + i) * stride;
            stride *= shape[axis];
        }
        if piece == mask.len() as u64 {
            builder.push_bits(at, mask.words(), piece)?;
        } else {
            let mut part = Mask::zeros(piece as usize);
            part.or_range(0, mask, (p * piece) as usize, piece as usize);
            if !part.none() {
                builder.push_bits(at, part.words(), piece)?;
            }
        }
    }
    Ok(())
}
