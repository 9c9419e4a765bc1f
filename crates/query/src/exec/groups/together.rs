//! The groups of one of several queries that are evaluated together: each takes the rows of a tile in its own way.

use sieva_types::{Bx, Result};

use super::aggregate::{arrays_of_groups, refuse_large_states, row_bytes};
use super::dense::{Dense, Numbering};
use super::hashed::{Groups, Kind};
use super::panels::Panels;
use super::reduced::has_reduction;
use super::shared::Shared;
use super::tiles::{Sink, Tables, Wanted, hashed_tile};
use super::walk::add_tile;
use crate::aggregate::Aggregate;
use crate::bind::{Body, Value};
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::prepare::{Node, Prepared};
use crate::exec::{ExecStats, Execution};

/// What a query groups by, and what it aggregates.
pub(in crate::exec) struct Grouping<'e> {
    keys: &'e [Value],
    aggregates: &'e [(Aggregate, Option<Value>)],
    /// The bound arrays that both read.
    pub(in crate::exec) arrays: Vec<usize>,
    kinds: Vec<Kind>,
}

impl<'e> Grouping<'e> {
    /// That of a query; `None` where it has no groups, or where its rows are gone through more than once: of a histogram
    /// without a range, of panels of groups, of reductions that came as code, and where not every thread has room for all groups.
    pub(in crate::exec) fn new(execution: &'e Execution, prepared: &Prepared) -> Option<(Self, Sink)> {
        let Body::Groups { keys, aggregates, .. } = &execution.bound.body else { return None };
        if has_reduction(aggregates) || aggregates.iter().any(|(a, _)| a.needs_range()) {
            return None;
        }
        refuse_large_states(execution, aggregates).ok()?;
        let (arrays, kinds) = (arrays_of_groups(keys, aggregates), execution.kinds_of(aggregates));
        let sink = Sink::new(execution, prepared, keys, &kinds).ok()?;
        let made = Self { keys, aggregates, arrays, kinds };
        made.pays(execution, prepared, &sink).then_some((made, sink))
    }

    fn pays(&self, execution: &Execution, prepared: &Prepared, sink: &Sink) -> bool {
        let Sink::Dense(plan, _) = sink else { return true };
        let (room, threads) = (execution.options.room().bytes, execution.options.threads);
        if plan.threads(room, threads) < threads {
            return false;
        }
        // What is decoded is read for all; else each does better by itself.
        if self.arrays.iter().any(|&a| execution.readers[a].layout().is_chunked()) {
            return true;
        }
        let tiles = execution.tiles_of(prepared, &self.arrays, self.row_bytes(execution, sink));
        matches!(Panels::new(execution, plan, &self.arrays, &tiles, &self.kinds), Ok(None))
    }

    /// Bytes that a row takes while its tile is worked on.
    pub(in crate::exec) fn row_bytes(&self, execution: &Execution, sink: &Sink) -> u64 {
        row_bytes(execution, self.keys, self.aggregates, matches!(sink, Sink::Dense(..)))
    }

    pub(in crate::exec) fn wanted(&self) -> Wanted<'_> {
        Wanted { keys: self.keys, aggregates: self.aggregates, arrays: &self.arrays, kinds: &self.kinds }
    }

    /// Whether one row of a box tells of all of them.
    pub(in crate::exec) fn is_one_group(&self, execution: &Execution, bx: &Bx) -> bool {
        execution.is_one_group(self.keys, self.aggregates, bx)
    }

    /// The table of all groups, of which all rows are in.
    ///
    /// # Errors
    /// `memory-limit`, `arithmetic-overflow`, `cancelled`.
    pub(in crate::exec) fn finish(&self, execution: &Execution, sink: Sink) -> Result<super::GroupTable> {
        let made = sink.made(execution, &self.kinds)?;
        super::finish(execution, made, &Shared::alone(self.aggregates))
    }
}

/// How the threads take in rows of one query, and what is done with what they found of a tile.
pub(in crate::exec) enum Way<'s> {
    /// Into tables of all groups.
    Dense(&'s Numbering, &'s Tables),
    /// Into groups of the tile alone, which are merged in the order of the tiles.
    Hashed,
}

impl Sink {
    /// How rows of tiles are taken in, and the groups that those of each tile are merged into, if they are.
    pub(in crate::exec) fn way(&mut self) -> (Way<'_>, Option<&mut Groups>) {
        match self {
            Self::Dense(plan, tables) => (Way::Dense(plan, tables), None),
            Self::Hashed(groups) => (Way::Hashed, Some(groups)),
            // Of queries together there are none.
            Self::Panels(..) => (Way::Hashed, None),
        }
    }
}

/// A thread's table of one query, given back when the thread is done.
pub(in crate::exec) struct Table<'s> {
    of: &'s Tables,
    own: Option<Dense>,
}

impl<'s> Table<'s> {
    pub(in crate::exec) fn new(of: &'s Tables) -> Self {
        Self { of, own: None }
    }
}

impl Drop for Table<'_> {
    fn drop(&mut self) {
        self.own.take().into_iter().for_each(|table| self.of.give(table));
    }
}

/// Takes the rows of a tile in; gives the groups of the tile where they are to be merged.
///
/// # Errors
/// Reading errors, `memory-limit`, `arithmetic-overflow`, `cancelled`.
pub(in crate::exec) fn take_tile<'e>(
    execution: &'e Execution,
    (grouping, way): (&Grouping<'_>, &Way<'_>),
    (node, bx): (&Node, &Bx),
    leaves: &mut Leaves<'e>,
    table: Option<&mut Table<'_>>,
) -> Result<(Option<Groups>, ExecStats)> {
    let wanted = grouping.wanted();
    let (Way::Dense(plan, tables), Some(table)) = (way, table) else {
        // What a tile has is bounded by its rows.
        let mut groups = wanted.no_groups(execution)?;
        let did = hashed_tile(execution, node, bx, leaves, &wanted, &mut groups)?;
        return Ok((Some(groups), did));
    };
    let mut own = match table.own.take() {
        Some(own) => own,
        None => tables.take(plan, wanted.kinds)?,
    };
    let did = add_tile(execution, node, bx, leaves, &wanted, (plan, &plan.frame, Some(tables)), &mut own);
    table.own = Some(own);
    Ok((None, did?))
}
