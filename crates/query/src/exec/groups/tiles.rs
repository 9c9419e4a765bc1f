//! The rows of tiles, taken into their groups.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sieva_index::stats::Total;
use sieva_types::{Bx, Error, ErrorKind, Result};

use super::columns::{numbered, taken};
use super::combined::Combined;
use super::dense::{Dense, Numbering};
use super::feed::{Hits, at_hits, needed, own_indices};
use super::hashed::{Groups, Kind};
use super::panels::Panels;
use super::table::Made;
use super::walk::add_tile;
use crate::aggregate::{Aggregate, NO_GROUP, Piece, Target, with_piece};
use crate::bind::Value;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::pool::fold;
use crate::exec::prefetch::{Ahead, Work};
use crate::exec::tile::Tiles;
use crate::exec::tile::arrays::{BoxProvider, Leaves};
use crate::exec::tile::evaluate::evaluate;
use crate::exec::tile::prepare::{Node, Prepared};
use crate::exec::{ExecStats, Execution};
use crate::optimizer::Known;
use crate::values::{ValueType, Vector};

/// What is grouped by, what is aggregated, and the arrays that are read for them.
pub(in crate::exec) struct Wanted<'w> {
    pub(in crate::exec) keys: &'w [Value],
    pub(in crate::exec) aggregates: &'w [(Aggregate, Option<Value>)],
    pub(in crate::exec) arrays: &'w [usize],
    /// The aggregates with the types of what they take in.
    pub(in crate::exec) kinds: &'w [Kind],
}

/// What takes rows in.
pub(in crate::exec) enum Sink {
    /// By the hash of their keys.
    Hashed(Groups),
    /// By their positions.
    Dense(Numbering, Tables),
    /// By their positions, a part of the groups after the other.
    Panels(Numbering, Panels),
}

/// Tables of states, one for each thread that has made one.
#[derive(Default)]
pub(in crate::exec) struct Tables {
    made: Mutex<Vec<Dense>>,
    count: AtomicU64,
    /// Bytes that came to those of all tables.
    pub(super) grown: AtomicU64,
}

impl Tables {
    /// A table that no thread has.
    pub(super) fn take(&self, plan: &Numbering, kinds: &[Kind]) -> Result<Dense> {
        let known = self.made.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(table) = known {
            return Ok(table);
        }
        self.count.fetch_add(1, Relaxed);
        plan.table(&plan.frame, kinds)
    }

    /// How many were made.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(super) fn give(&self, table: Dense) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(table);
    }
}

impl Sink {
    /// Of no rows.
    ///
    /// # Errors
    /// `memory-limit`, `cancelled`.
    pub(in crate::exec) fn new(
        execution: &Execution,
        prepared: &Prepared,
        keys: &[Value],
        kinds: &[Kind],
    ) -> Result<Self> {
        if let Some(plan) = Numbering::new(execution, prepared, keys, kinds)? {
            return Ok(Self::Dense(plan, Tables::default()));
        }
        Ok(Self::Hashed(Groups::new(keys.len(), kinds, execution.options.room())?))
    }

    /// The same in panels, before there are rows.
    pub(in crate::exec) fn into_panels(self, panels: Panels) -> Self {
        match self {
            Self::Dense(plan, _) => Self::Panels(plan, panels),
            other => other,
        }
    }

    /// Takes in all rows of a box that belong to one group: for each aggregate what comes to the same.
    ///
    /// # Errors
    /// `memory-limit`.
    pub(in crate::exec) fn repeat(
        &mut self,
        execution: &Execution,
        kinds: &[Kind],
        bx: &Bx,
        key: &[Vector],
        values: &[Known],
    ) -> Result<()> {
        match self {
            Self::Hashed(groups) => {
                let group = groups.group(key.iter().map(|k| k.scalar(0)).collect())?;
                each_row(kinds, values, |i, one, n| groups.repeat(i, group, one, n))?;
                each_total(values, |i, total, n| groups.add_total(i, group, total, n))
            }
            Self::Dense(plan, tables) => {
                let (mut table, group) = (tables.take(plan, kinds)?, plan.group_at(&plan.frame, &bx.start));
                if let Some(seen) = &mut table.seen {
                    seen[group] = true;
                }
                let before = table.grown();
                each_row(kinds, values, |i, one, n| {
                    let growth = if one.has_first() { table.states[i].repeating(n) } else { 0 };
                    if growth > 0 {
                        let held = tables.grown.load(Relaxed).saturating_add(growth);
                        plan.check(execution, tables.count(), held)?;
                    }
                    table.states[i].repeat(group, one, n)
                })?;
                each_total(values, |i, total, n| table.states[i].add_total(group, total, n))?;
                tables.grown.fetch_add(table.grown().saturating_sub(before), Relaxed);
                tables.give(table);
                Ok(())
            }
            Self::Panels(plan, panels) => panels.repeat(execution, plan, kinds, bx, values),
        }
    }

    /// The groups, of which all rows are in.
    ///
    /// # Errors
    /// `memory-limit`.
    pub(in crate::exec) fn made(self, execution: &Execution, kinds: &[Kind]) -> Result<Made> {
        let (plan, tables) = match self {
            Self::Hashed(groups) => return Ok(Made::Hashed(groups)),
            Self::Dense(plan, tables) => (plan, tables),
            Self::Panels(..) => {
                return Err(Error::new(ErrorKind::Internal, "panels that were not worked on"));
            }
        };
        let made = tables.made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut all = made.into_iter();
        let Some(mut first) = all.next() else {
            let table = plan.table(&plan.frame, kinds)?;
            return Ok(Made::Dense(plan, table));
        };
        let same: Vec<u32> = if all.len() > 0 { (0..plan.frame.groups as u32).collect() } else { Vec::new() };
        for other in all {
            execution.options.check_cancel()?;
            for (to, from) in first.states.iter_mut().zip(other.states) {
                let need = to.merging(&*from);
                if need > 0 {
                    plan.check(execution, 1, to.memory_bytes() + from.memory_bytes() + need)?;
                }
                to.merge(&*from, &same)?;
            }
            if let (Some(to), Some(from)) = (&mut first.seen, other.seen) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
            }
        }
        Ok(Made::Dense(plan, first))
    }
}

/// Calls `add` with the number of each aggregate, with each of its values and how often that is there.
pub(super) fn each_row(
    kinds: &[Kind],
    values: &[Known],
    mut add: impl FnMut(usize, &Piece<'_>, u64) -> Result<()>,
) -> Result<()> {
    for (i, known) in values.iter().enumerate() {
        let Known::Rows(rows) = known else { continue };
        let input = kinds[i].1.unwrap_or(ValueType::F64);
        for (value, n) in rows.iter().filter(|(_, n)| *n > 0) {
            match value {
                None => add(i, &Piece::Rows(1), *n)?,
                Some(v) => with_piece(v, input, 1, |one| add(i, one, *n))?,
            }
        }
    }
    Ok(())
}

/// Calls `add` with the number of each aggregate of which a sum is known, with that and the number of values.
pub(super) fn each_total(
    values: &[Known],
    mut add: impl FnMut(usize, &Total, u64) -> Result<()>,
) -> Result<()> {
    values.iter().enumerate().try_for_each(|(i, known)| match known {
        Known::Total(total, n) => add(i, total, *n),
        Known::Rows(_) => Ok(()),
    })
}

impl Numbering {
    /// Checks that so many tables, and so many bytes besides, are allowed.
    pub(super) fn check(&self, execution: &Execution, tables: u64, more: u64) -> Result<()> {
        let of_tables = self.table_bytes().saturating_mul(tables);
        let need = of_tables.saturating_add(self.finishing_bytes()).saturating_add(more);
        let what = format_args!(
            "{} groups of {} aggregates, before all rows are in,",
            self.frame.groups, self.aggregates
        );
        execution.options.room().check(need, what)
    }
}

/// Adds the groups of the candidates of one window.
pub(in crate::exec) fn add_window<'e>(
    execution: &'e Execution,
    prepared: &Prepared,
    tiles: &Tiles,
    candidates: &[Candidate],
    wanted: &Wanted<'_>,
    sink: &mut Sink,
    stats: &mut ExecStats,
) -> Result<()> {
    if let Sink::Panels(_, panels) = sink {
        panels.add(candidates);
        return Ok(());
    }
    let ahead = Ahead::new(execution, prepared, wanted.arrays, true);
    let tile_of = |job: usize| Some(candidates[job].tile);
    let work = Work { jobs: candidates.len(), tiles, tile: tile_of };
    let all = Node::Decided(true);
    let before = |i: usize| {
        if let Some(ahead) = &ahead {
            ahead.before(i, &work);
        }
        (if candidates[i].all { &all } else { &prepared.node }, tiles.tile(candidates[i].tile))
    };
    let after = |bx: &Bx, leaves: &Leaves<'_>| {
        if let Some(ahead) = &ahead {
            ahead.after(bx, leaves);
        }
    };
    let threads = execution.threads_for(candidates.len(), tiles);
    let cancel = &execution.options.cancel;
    match sink {
        Sink::Panels(..) => Ok(()),
        Sink::Dense(plan, tables) => {
            let (plan, tables) = (&*plan, &*tables);
            let state = || (Leaves::new(execution), None, ExecStats::default());
            let add = |(leaves, table, did): &mut (Leaves<'e>, Option<Dense>, ExecStats), i: usize| {
                let (node, bx) = before(i);
                let mut own = match table.take() {
                    Some(own) => own,
                    None => tables.take(plan, wanted.kinds)?,
                };
                did.merge(&add_tile(
                    execution,
                    node,
                    &bx,
                    leaves,
                    wanted,
                    (plan, &plan.frame, Some(tables)),
                    &mut own,
                )?);
                *table = Some(own);
                after(&bx, leaves);
                Ok(())
            };
            let threads = plan.threads(execution.options.room().bytes, threads);
            for (_, table, did) in fold(candidates.len(), threads, cancel, state, add)? {
                stats.merge(&did);
                table.into_iter().for_each(|t| tables.give(t));
            }
            Ok(())
        }
        Sink::Hashed(groups) => {
            let all = Mutex::new(groups);
            let locked = || all.lock().unwrap_or_else(PoisonError::into_inner);
            // A table of each thread, which is merged where it is large: there is not room for all groups in each.
            let most = execution.options.at_work() / 2 / threads as u64;
            let state = || (Leaves::new(execution), None, ExecStats::default());
            let add = |(leaves, table, did): &mut (Leaves<'e>, Option<Groups>, ExecStats), i: usize| {
                let (node, bx) = before(i);
                if threads == 1 {
                    did.merge(&hashed_tile(execution, node, &bx, leaves, wanted, &mut locked())?);
                    after(&bx, leaves);
                    return Ok(());
                }
                let mut own = match table.take() {
                    Some(own) => own,
                    None => wanted.no_groups(execution)?,
                };
                did.merge(&hashed_tile(execution, node, &bx, leaves, wanted, &mut own)?);
                after(&bx, leaves);
                if own.memory_bytes() > most {
                    return locked().merge(own);
                }
                *table = Some(own);
                Ok(())
            };
            for (_, table, did) in fold(candidates.len(), threads, cancel, state, add)? {
                stats.merge(&did);
                table.map_or(Ok(()), |own| locked().merge(own))?;
            }
            Ok(())
        }
    }
}

impl Wanted<'_> {
    /// A table without groups.
    pub(super) fn no_groups(&self, execution: &Execution) -> Result<Groups> {
        Groups::new(self.keys.len(), self.kinds, execution.options.room())
    }
}

/// Takes the rows of one tile into groups, by hashing.
pub(super) fn hashed_tile<'e>(
    execution: &'e Execution,
    node: &Node,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    wanted: &Wanted<'_>,
    groups: &mut Groups,
) -> Result<ExecStats> {
    let (mask, mut did) = execution.tile_mask(node, bx, leaves)?;
    if mask.none() {
        return Ok(did);
    }
    if did.tiles_skipped == 1 && wanted.aggregates.iter().any(|(_, v)| v.is_some()) {
        (did.tiles_scanned, did.tiles_skipped) = (1, 0);
    }
    let hits = Hits::new(&mask);
    let group_of = group_numbers(execution, bx, leaves, wanted.keys, &hits, groups)?;
    groups.check_rows(hits.len() as u64)?;
    let target = Target::Each(&group_of);
    for (i, (_, value)) in wanted.aggregates.iter().enumerate() {
        let Some(value) = value else {
            groups.states_mut()[i].update(target, &Piece::Rows(hits.len()))?;
            continue;
        };
        let vector = at_hits(execution, bx, leaves, value, &hits)?;
        let input = wanted.kinds[i].1.unwrap_or(ValueType::F64);
        with_piece(&vector, input, hits.len(), |all| groups.states_mut()[i].update(target, all))?;
    }
    Ok(did)
}

/// For each hit, the number of its group in `groups`.
fn group_numbers<'e>(
    execution: &'e Execution,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    keys: &[Value],
    hits: &Hits,
    groups: &mut Groups,
) -> Result<Vec<u32>> {
    // Each key's values are numbered on the key's own axes; a hit's numbers are then combined into one.
    let mut combined = Combined::new(hits.len());
    let mut numbered_keys = Vec::with_capacity(keys.len());
    for key in keys {
        let axes = execution.bound.axes_of(key);
        let vector = evaluate(key, &mut BoxProvider { leaves, bx, axes: &axes })?;
        let order = own_indices(bx, &axes, hits);
        let vector = needed(vector, &order, leaves, key, bx)?;
        // Of the rows that are selected alone, so that a key is shown as the first of them has it.
        let vector = match order {
            None => vector,
            Some(order) if vector.is_constant() => vector.into_rows(order.len())?,
            Some(order) => taken(&vector, &order)?,
        };
        let (numbers, first) = numbered(&vector, hits.len());
        combined.by(&numbers, first.len());
        numbered_keys.push(vector);
    }
    groups_of(&numbered_keys, combined, groups)
}

/// The group of each row, whose keys have one number: those that are new are made.
pub(super) fn groups_of(keys: &[Vector], mut combined: Combined, groups: &mut Groups) -> Result<Vec<u32>> {
    // Numbers that are spread are numbered anew.
    combined.narrow();
    let mut known = vec![NO_GROUP; combined.below()];
    let mut next = combined.codes;
    for (hit, slot) in next.iter_mut().enumerate() {
        let group = &mut known[*slot as usize];
        if *group == NO_GROUP {
            *group = groups.group(keys.iter().map(|v| v.scalar(hit)).collect())? as u32;
        }
        *slot = *group;
    }
    Ok(next)
}
