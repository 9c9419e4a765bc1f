//! A query that takes part: what is known of it before tiles are read.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use sieva_types::{Bx, Result};

use super::{Asked, Want};
use crate::exec::Execution;
use crate::exec::groups::Sink;
use crate::exec::groups::together::Grouping;
use crate::exec::product;
use crate::exec::select::kept::Keeping;
use crate::exec::select::leaf_conditions;
use crate::exec::tile::Tiles;
use crate::exec::tile::prepare::{Node, Prepared};

/// A query, whose first stage was run.
pub(super) struct Member<'a> {
    /// Its number among those that were asked.
    pub(super) number: usize,
    pub(super) execution: &'a Execution,
    pub(super) prepared: Arc<Prepared>,
    pub(super) kind: Kind<'a>,
    /// The bound arrays that its tiles may read.
    pub(super) arrays: Vec<usize>,
    /// The same in the schema.
    pub(super) indexes: Arc<[usize]>,
    /// Bytes of a row at work, its arrays' elements left out.
    pub(super) row: u64,
    pub(super) tiles: Tiles,
    /// Set once it failed: workers leave it out.
    pub(super) stopped: AtomicBool,
}

/// What is made of its tiles.
pub(super) enum Kind<'a> {
    /// The number of positions, and which they are.
    Count(Keeping),
    /// The first positions: so many.
    First(u64),
    /// Groups, and who takes rows in until a part of the run has it.
    Groups(Grouping<'a>, Mutex<Option<Box<Sink>>>),
}

impl<'a> Member<'a> {
    /// A query that gains by taking part, as far as can be told of it alone.
    ///
    /// # Errors
    /// Those of its first stage: reading errors, `cancelled`.
    pub(super) fn new(number: usize, asked: &'a Asked) -> Result<Option<Self>> {
        let execution = &*asked.execution;
        if execution.physical().replica.is_some() {
            return Ok(None);
        }
        let prepared = execution.prepare()?;
        let (mut arrays, mut row, mut leaves) = (Vec::new(), 0, 0);
        leaf_conditions(&prepared.node, &mut |condition| {
            leaves += 1;
            execution.arrays_of(condition, &mut arrays);
            row = row.max(execution.condition_bytes(condition));
        });
        let kind = match asked.want {
            Want::Groups => {
                let Some((grouping, sink)) = Grouping::new(execution, &prepared) else { return Ok(None) };
                arrays.extend(&grouping.arrays);
                row = row.max(grouping.row_bytes(execution, &sink));
                Kind::Groups(grouping, Mutex::new(Some(Box::new(sink))))
            }
            _ if leaves == 0 || product(&prepared).is_some() => return Ok(None),
            Want::Count { keep } => Kind::Count(Keeping::new(keep)),
            Want::First(enough) => Kind::First(enough),
        };
        arrays.sort_unstable();
        arrays.dedup();
        if arrays.is_empty() || prepared.area.is_empty() || matches!(prepared.node, Node::Decided(false)) {
            return Ok(None);
        }
        let indexes = arrays.iter().map(|&a| execution.bound.arrays[a].index).collect();
        let tiles = Tiles::new(prepared.area.clone(), vec![1; prepared.area.rank()]);
        let stopped = AtomicBool::new(false);
        Ok(Some(Self { number, execution, prepared, kind, arrays, indexes, row, tiles, stopped }))
    }

    /// Whether tiles of both may be gone through together, and an array is wanted by both.
    fn shares_with(&self, other: &Self) -> bool {
        let (own, others) = (&self.execution.bound.rows, &other.execution.bound.rows);
        own.dims == others.dims
            && own.shape == others.shape
            && self.indexes.iter().any(|index| other.indexes.contains(index))
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// The box of the row space outside of which it selects nothing.
    pub(super) fn area(&self) -> &Bx {
        &self.prepared.area
    }
}

/// The queries in sets that are gone through together, of two or more: each shares an array with another of its set. Those
/// that read fewest arrays come first, so that what they read whole is there for those that would read single elements.
pub(super) fn sets(members: Vec<Member<'_>>) -> Vec<Vec<Member<'_>>> {
    let mut sets: Vec<Vec<Member<'_>>> = Vec::new();
    for member in members {
        let (mut of_it, others): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|set: &Vec<Member<'_>>| set.iter().any(|m| m.shares_with(&member)));
        let mut joined: Vec<Member<'_>> = of_it.drain(..).flatten().collect();
        joined.push(member);
        sets = others;
        sets.push(joined);
    }
    sets.retain(|set| set.len() > 1);
    for set in &mut sets {
        set.sort_by_key(|m| (m.arrays.len(), m.number));
    }
    sets.sort_by_key(|set| set.iter().map(|m| m.number).min());
    sets
}
