//! Groups by position in panels: a thread takes all tiles of some groups, finishes these, and goes on with others.
//!
//! Where a dimension's keys are all different (latitudes, longitudes, times), what is cut from it has groups for itself. So
//! states of few groups are held at a time, which stay in a core's own cache while the tiles of all other dimensions go by;
//! nothing is merged, and of quantiles the values of one panel are kept.

use std::sync::{Mutex, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

use super::dense::{Dense, Numbering, expected_bytes};
use super::frame::Frame;
use super::grid::Grid;
use super::hashed::Kind;
use super::shared::Shared;
use super::table::GroupTable;
use super::tiles::{Wanted, each_row, each_total};
use super::walk::add_tile;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::pool::{check, fold};
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::prepare::{Node, Prepared};
use crate::exec::tile::{Tiles, panel_shape};
use crate::exec::{ExecStats, Execution};
use crate::optimizer::Known;
use sieva_types::Bx;

/// Bytes of states and of values kept of a panel, about: of these, sums of usual values touch a quarter again and again.
const PANEL_BYTES: u64 = 1 << 20;
/// Positions along the dimensions that are cut which a tile has at least, so that reads are not too small.
const LEAST: u64 = 1 << 11;
/// Fewer groups than this are as well held by each thread.
const FEW_GROUPS: usize = 1 << 12;
/// Panels for each thread, at least: threads are to end at about the same time.
const PER_THREAD: usize = 4;
/// Tiles that are told to panels, at most.
const MOST_TILES: usize = 1 << 18;

/// Panels and what is to be done for them.
pub(in crate::exec) struct Panels {
    pub(in crate::exec) tiles: Tiles,
    /// The dimensions that are cut.
    axes: Vec<usize>,
    /// The parts of the plan in the order of their keys.
    by_key: Vec<usize>,
    each: Vec<Panel>,
    /// The most bytes of one while it is worked on.
    bytes: u64,
    /// Bytes of values that were added as a whole.
    grown: u64,
}

/// The tiles of some groups.
#[derive(Default)]
struct Panel {
    tiles: Vec<Candidate>,
    /// What was added as a whole.
    table: Option<(Frame, Dense)>,
}

impl Panels {
    /// The panels of a plan; `None` where they do not pay, or one has no room.
    ///
    /// # Errors
    /// As of [`expected_bytes`].
    pub(in crate::exec) fn new(
        execution: &Execution,
        plan: &Numbering,
        arrays: &[usize],
        tiles: &Tiles,
        kinds: &[Kind],
    ) -> Result<Option<Self>> {
        let (area, threads) = (&plan.area, execution.options.threads.max(1));
        let is_small = plan.frame.groups < FEW_GROUPS && plan.growth == 0;
        if is_small || area.is_empty() || execution.source.store().is_remote() {
            return Ok(None);
        }
        let Some(by_key) = plan.by_key() else { return Ok(None) };
        let is_cut = |axis: usize| plan.parts.iter().any(|p| p.is_cut_along(area, axis));
        let axes: Vec<usize> = (0..area.rank()).filter(|&axis| is_cut(axis)).collect();
        if axes.is_empty() {
            return Ok(None);
        }
        let cells: u64 = axes.iter().map(|&a| area.shape[a]).product();
        let of_cell = plan.table_bytes().saturating_add(plan.growth) / cells.max(1);
        let is_plain = arrays.iter().all(|&a| !execution.readers[a].layout().is_chunked());
        let tiles = if is_plain {
            let share = (cells / (threads * PER_THREAD) as u64).min(PANEL_BYTES / of_cell.max(1));
            let volume = tiles.shape().iter().fold(1, |n: u64, &m| n.saturating_mul(m));
            let shape = panel_shape(&area.shape, &axes, share.max(LEAST), volume);
            Tiles::new(area.clone(), shape)
        } else {
            tiles.clone()
        };
        let count = tiles.count_along(&axes);
        if tiles.len() > MOST_TILES || (count < PER_THREAD * threads && (plan.growth == 0 || count < 2)) {
            return Ok(None);
        }
        let of_panel = axes.iter().map(|&a| tiles.shape()[a].min(area.shape[a])).product::<u64>();
        let rows = (area.len() / cells.max(1)).saturating_mul(of_panel);
        let states = (plan.frame.groups as u64 / cells.max(1) + 1).saturating_mul(of_panel);
        let growth = expected_bytes(kinds, rows)?.1;
        let bytes = states.saturating_mul(plan.state_bytes + 9).saturating_add(growth);
        let mut each = Vec::new();
        each.resize_with(count, Panel::default);
        let panels = Self { tiles, axes, by_key, each, bytes, grown: 0 };
        Ok((panels.threads(execution, plan) > 0).then_some(panels))
    }

    /// How many panels there is room for at once.
    fn threads(&self, execution: &Execution, plan: &Numbering) -> usize {
        let held = plan.finishing_bytes().saturating_add(plan.own_bytes()).saturating_add(self.grown);
        let room = execution.options.room().bytes.saturating_sub(held);
        execution.options.threads.min((room / self.bytes.max(1)) as usize)
    }

    /// Takes tiles to their panels.
    pub(super) fn add(&mut self, candidates: &[Candidate]) {
        for &candidate in candidates {
            let panel = self.tiles.number_along(&self.axes, &self.tiles.tile(candidate.tile).start);
            self.each[panel].tiles.push(candidate);
        }
    }

    /// Takes in all rows of a box that belong to one group, as [`super::Sink::repeat`].
    ///
    /// # Errors
    /// `memory-limit`.
    pub(super) fn repeat(
        &mut self,
        execution: &Execution,
        plan: &Numbering,
        kinds: &[Kind],
        bx: &Bx,
        values: &[Known],
    ) -> Result<()> {
        let panel = &mut self.each[self.tiles.number_along(&self.axes, &bx.start)];
        let (frame, table) = match &mut panel.table {
            Some(made) => made,
            None => {
                let frame = frame_of(plan, &self.tiles.tile_at(&bx.start))?;
                let table = plan.table(&frame, kinds)?;
                panel.table.insert((frame, table))
            }
        };
        let group = plan.group_at(frame, &bx.start);
        if let Some(seen) = &mut table.seen {
            seen[group] = true;
        }
        let (before, grown) = (table.grown(), self.grown);
        each_row(kinds, values, |i, one, n| {
            let growth = if one.has_first() { table.states[i].repeating(n) } else { 0 };
            if growth > 0 {
                let held = grown + table.grown().saturating_sub(before);
                plan.check(execution, 1, held.saturating_add(growth))?;
            }
            table.states[i].repeat(group, one, n)
        })?;
        each_total(values, |i, total, n| table.states[i].add_total(group, total, n))?;
        self.grown += table.grown().saturating_sub(before);
        Ok(())
    }

    /// Works on all panels.
    ///
    /// # Errors
    /// Reading errors, `arithmetic-overflow`, `cancelled`, `memory-limit`.
    pub(in crate::exec) fn finish<'e>(
        self,
        execution: &'e Execution,
        prepared: &Prepared,
        plan: &Numbering,
        (wanted, shared): (&Wanted<'_>, &Shared<'_>),
        stats: &mut ExecStats,
    ) -> Result<GroupTable> {
        let threads = self.threads(execution, plan);
        if threads == 0 {
            plan.check(execution, 1, self.grown.saturating_add(self.bytes))?;
        }
        let grid = Grid::new(plan, &self.by_key, &shared.kinds(execution))?;
        let (tiles, by_key) = (&self.tiles, &self.by_key);
        let has_rows = |p: &Panel| !p.tiles.is_empty() || p.table.is_some();
        let work: Vec<Mutex<Panel>> = self.each.into_iter().filter(has_rows).map(Mutex::new).collect();
        let state = || (Leaves::new(execution), ExecStats::default());
        let one = |(leaves, did): &mut (Leaves<'e>, ExecStats), i: usize| {
            let panel = std::mem::take(&mut *work[i].lock().unwrap_or_else(PoisonError::into_inner));
            let (frame, mut table) = start(plan, prepared, tiles, panel.table, &panel.tiles, wanted.kinds)?;
            let all = Node::Decided(true);
            for candidate in panel.tiles {
                check(&execution.options.cancel)?;
                let node = if candidate.all { &all } else { &prepared.node };
                let bx = tiles.tile(candidate.tile);
                did.merge(&add_tile(execution, node, &bx, leaves, wanted, (plan, &frame, None), &mut table)?);
            }
            let (order, places) = (plan.order_by_parts(&frame, by_key), grid.places(&frame));
            if let Some(seen) = table.seen {
                grid.see(&places, &order.iter().map(|&g| seen[g]).collect::<Vec<_>>());
            }
            for (i, mut state) in table.states.into_iter().enumerate() {
                for (aggregate, found) in shared.finish(i, &mut *state, &order, 1)? {
                    grid.put(aggregate, &places, found)?;
                }
            }
            Ok(())
        };
        for (_, did) in fold(work.len(), threads.max(1), &execution.options.cancel, state, one)? {
            stats.merge(&did);
        }
        grid.table(wanted.keys.len())
    }
}

/// The states of a panel before its tiles are added, with room for what they are known to add.
fn start(
    plan: &Numbering,
    prepared: &Prepared,
    tiles: &Tiles,
    made: Option<(Frame, Dense)>,
    candidates: &[Candidate],
    kinds: &[Kind],
) -> Result<(Frame, Dense)> {
    let (frame, mut table) = match (made, candidates.first()) {
        (Some(made), _) => made,
        (None, first) => {
            let bx = first.map_or_else(|| plan.area.clone(), |c| tiles.tile(c.tile));
            let frame = frame_of(plan, &bx)?;
            let table = plan.table(&frame, kinds)?;
            (frame, table)
        }
    };
    if plan.growth > 0 && matches!(prepared.node, Node::Decided(true)) {
        let rows: u64 = candidates.iter().map(|c| tiles.tile(c.tile).len()).sum();
        table.states.iter_mut().for_each(|s| s.expect_values(rows));
    }
    Ok((frame, table))
}

fn frame_of(plan: &Numbering, bx: &Bx) -> Result<Frame> {
    plan.frame_of(bx).ok_or_else(|| Error::new(ErrorKind::Internal, "a panel of more groups than there are"))
}
