//! The run of a set of queries: round by round, each tile by one worker for all queries that look at it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_types::{Error, Result};

use super::Answer;
use super::jobs::{Job, next_round};
use super::member::{Kind, Member};
use super::part::{Outcome, Part, Taker};
use super::shelf::{Shares, Shelf, Wish};
use super::tiling;
use crate::exec::ExecStats;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::groups::together::{Table, Way, take_tile};
use crate::exec::pool::{Flow, in_order_batched};
use crate::exec::prefetch::{Ahead, Work};
use crate::exec::select::batch_of;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::prepare::Node;
use crate::mask::Mask;

/// What a job gives: of each query that looked at the tile what it found.
type Found = Vec<(usize, Result<(Outcome, ExecStats)>)>;

/// Runs the queries of a set, and tells each one's answer; returns the number of tiles.
pub(super) fn run(
    mut members: Vec<Member<'_>>,
    cancel: &AtomicBool,
    shares: &Arc<Shares>,
    mut tell: impl FnMut(usize, Result<Answer>),
) -> u64 {
    let Some(all) = tiling::lay(&mut members) else { return 0 };
    let mut parts = Vec::with_capacity(members.len());
    for member in &members {
        match Part::new(member) {
            Ok(part) => parts.push(part),
            Err(e) => tell(member.number, Err(e)),
        }
    }
    let mut tiles = 0;
    loop {
        let jobs = next_round(&mut parts, &all);
        if jobs.is_empty() {
            break;
        }
        tiles += jobs.len() as u64;
        if let Err(e) = round(&mut parts, &jobs, cancel, shares) {
            parts.iter_mut().filter(|p| !p.is_over()).for_each(|p| p.fail(e.clone()));
        }
    }
    for part in parts {
        tell(part.member.number, part.finish());
    }
    tiles
}

fn round(parts: &mut [Part<'_>], jobs: &[Job], cancel: &AtomicBool, shares: &Arc<Shares>) -> Result<()> {
    let (mut looks, mut takers) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
    for part in parts.iter_mut() {
        let member = part.member;
        let (way, taker) = part.split();
        looks.push(Look::new(member, way));
        takers.push(taker);
    }
    let Some(first) = looks.first() else { return Ok(()) };
    let tiles = &first.member.tiles;
    let threads = looks.iter().map(|l| l.member.execution.threads_for(jobs.len(), tiles)).max().unwrap_or(1);
    let rank = first.member.area().rank();
    let most = looks.iter().map(|l| l.member.execution.options.at_work() / 2).min().unwrap_or(0);
    let state = || Worker {
        looks: &looks,
        leaves: looks.iter().map(|_| None).collect(),
        tables: looks.iter().map(Look::table).collect(),
        shelf: Shelf::new(rank, shares),
    };
    in_order_batched(
        (jobs.len(), batch_of(tiles, jobs.len()), most),
        threads,
        cancel,
        |found: &Found| found.iter().map(weight).sum(),
        state,
        |worker, job| Ok(worker.look_at(jobs, job)),
        |found| {
            for (number, outcome) in found {
                let taker: &mut Taker<'_, '_> = &mut takers[number];
                taker.take(outcome);
            }
            Ok(Flow::Continue(()))
        },
    )
}

/// Bytes that wait to be taken.
fn weight((_, found): &(usize, Result<(Outcome, ExecStats)>)) -> u64 {
    match found {
        Ok((Outcome::Mask(_, mask, _), _)) => mask.len() as u64 / 8,
        Ok((Outcome::Groups(Some(groups)), _)) => groups.memory_bytes(),
        _ => 0,
    }
}

/// How the tiles of a round are looked at for one query.
struct Look<'r, 'a> {
    member: &'a Member<'a>,
    way: Option<Way<'r>>,
    ahead: Option<Ahead<'a>>,
}

impl<'r, 'a> Look<'r, 'a> {
    fn new(member: &'a Member<'a>, way: Option<Way<'r>>) -> Self {
        let also: &[usize] = match &member.kind {
            Kind::Groups(grouping, _) => &grouping.arrays,
            _ => &[],
        };
        let takes_all = !matches!(member.kind, Kind::First(_));
        let ahead = Ahead::new(member.execution, &member.prepared, also, takes_all);
        Self { member, way, ahead }
    }

    fn table(&self) -> Option<Table<'r>> {
        match self.way {
            Some(Way::Dense(_, tables)) => Some(Table::new(tables)),
            _ => None,
        }
    }
}

/// A thread's part of a round.
struct Worker<'w, 'r, 'a> {
    looks: &'w [Look<'r, 'a>],
    leaves: Vec<Option<Leaves<'a>>>,
    tables: Vec<Option<Table<'r>>>,
    shelf: Shelf,
}

impl Worker<'_, '_, '_> {
    /// Looks at a tile for all queries that want it.
    fn look_at(&mut self, jobs: &[Job], job: usize) -> Found {
        let wanted = &jobs[job].wanted;
        self.leaves.iter_mut().flatten().for_each(Leaves::leave);
        let wish = |(number, candidate): &(usize, Candidate)| {
            let member = self.looks[*number].member;
            let bx = member.tiles.tile(candidate.tile);
            Wish { bx, arrays: Arc::clone(&member.indexes) }
        };
        self.shelf.begin(wanted.iter().map(wish).collect());
        let mut found = Vec::with_capacity(wanted.len());
        for &(number, candidate) in wanted {
            if !self.looks[number].member.is_stopped() {
                found.push((number, self.look(number, candidate, jobs, job)));
            }
        }
        found
    }

    fn look(
        &mut self,
        number: usize,
        candidate: Candidate,
        jobs: &[Job],
        job: usize,
    ) -> Result<(Outcome, ExecStats)> {
        let Look { member, way, ahead } = &self.looks[number];
        let (execution, tiles) = (member.execution, &member.tiles);
        execution.options.check_cancel()?;
        let leaves = self.leaves[number].get_or_insert_with(|| Leaves::sharing(execution, &self.shelf));
        let (bx, all) = (tiles.tile(candidate.tile), Node::Decided(true));
        let work = Work { jobs: jobs.len(), tiles, tile: |job: usize| jobs[job].read_by(number) };
        if let Some(ahead) = ahead {
            ahead.before(job, &work);
        }
        let node = if candidate.all { &all } else { &member.prepared.node };
        let found = match (&member.kind, way) {
            (Kind::Count(keeping), _) => {
                let (mask, did) = execution.tile_mask(node, &bx, leaves)?;
                let (hits, mut kept) = (mask.count(), Vec::new());
                keeping.keep(&mut kept, candidate.tile, mask, hits);
                (Outcome::Count(hits, kept), did)
            }
            (Kind::First(_), _) if candidate.all => {
                let mask = Mask::ones(bx.len() as usize);
                (Outcome::Mask(bx.clone(), mask, None), ExecStats::default())
            }
            (Kind::First(_), _) => {
                let (mask, failure, did) = execution.tile_until(node, &bx, leaves)?;
                (Outcome::Mask(bx.clone(), mask, failure), did)
            }
            (Kind::Groups(grouping, _), Some(way)) => {
                let table = self.tables[number].as_mut();
                let (groups, did) = take_tile(execution, (grouping, way), (node, &bx), leaves, table)?;
                (Outcome::Groups(groups), did)
            }
            (Kind::Groups(..), None) => {
                return Err(Error::new(sieva_types::ErrorKind::Internal, "groups that nobody takes in"));
            }
        };
        if let Some(ahead) = ahead {
            ahead.after(&bx, leaves);
        }
        Ok(found)
    }
}
