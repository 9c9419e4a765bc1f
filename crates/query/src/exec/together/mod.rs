//! Several queries of one source, evaluated together in the order in which its data lie.
//!
//! What zone maps, masks and fill values say of each query is asked first (FASM: Liu et al., section V.C). Tiles that are
//! left open by any of them are gone through once, and all queries that want a tile are evaluated on it by one worker
//! before it goes on: what several want of its arrays is read and decoded once ([`shelf`]), and stays in the core's own
//! cache. Each query's answer is made as if it were alone, tile by tile in their order, so that it is the same to the bit.

mod jobs;
mod member;
mod part;
mod round;
pub(in crate::exec) mod shelf;
mod tiling;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_types::{Result, Selection};

use crate::exec::select::Counted;
use crate::exec::{ExecStats, Execution, GroupTable};
use member::Member;
use shelf::Shares;

/// A query, and what is wanted of it.
pub struct Asked {
    /// The query. All of those that are asked together are of one source, and have its cache in common.
    pub execution: Arc<Execution>,
    /// What is wanted.
    pub want: Want,
}

/// What is wanted of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The number of positions, and which they are as far as that takes at most so many bytes.
    Count {
        /// Bytes.
        keep: u64,
    },
    /// So many of the first positions, or more.
    First(u64),
    /// The groups.
    Groups,
}

/// What a query came to.
pub enum Answer {
    /// The positions.
    Counted(Counted),
    /// The first of them.
    First(Selection, ExecStats),
    /// The groups.
    Groups(GroupTable, ExecStats),
}

/// What [`together`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Went {
    /// Times that data were gone through.
    pub scans: u64,
    /// Queries that took part.
    pub queries: u64,
    /// Tiles that were evaluated, each for one query or more.
    pub tiles: u64,
}

/// Evaluates queries of one source together, those that read an array that another one reads. `None` for a query that
/// gains nothing by it, and is to be asked by itself: one that reads nothing, whose rows a sorted replica gives, which has
/// no array in common with others, or whose groups are made otherwise.
///
/// What fails one query fails no other: each has its own error. `cancel` stops all of them, the flag of each stops it alone.
pub fn together(
    asked: &[Asked],
    cancel: &AtomicBool,
    shares: &Arc<Shares>,
) -> (Vec<Option<Result<Answer>>>, Went) {
    let mut answers: Vec<Option<Result<Answer>>> = asked.iter().map(|_| None).collect();
    let mut went = Went::default();
    let mut members = Vec::new();
    for (number, one) in asked.iter().enumerate() {
        match Member::new(number, one) {
            Ok(member) => members.extend(member),
            Err(e) => answers[number] = Some(Err(e)),
        }
    }
    for set in member::sets(members) {
        went.scans += 1;
        went.queries += set.len() as u64;
        went.tiles += round::run(set, cancel, shares, |number, answer| answers[number] = Some(answer));
    }
    (answers, went)
}
