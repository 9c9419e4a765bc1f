//! The tiles of a round: those that each query has open, put together in the order in which they lie.

use super::part::Part;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::tile::Tiles;

/// A tile, and the queries that look at it with their numbers of it.
pub(super) struct Job {
    pub(super) wanted: Vec<(usize, Candidate)>,
}

impl Job {
    /// The tile of a query, where that reads it.
    pub(super) fn read_by(&self, part: usize) -> Option<usize> {
        self.wanted.iter().find(|(p, c)| *p == part && !c.all).map(|(_, c)| c.tile)
    }
}

/// The tiles that no window to come has one before. At least one query's window ends with them, so that it goes on to the
/// next; empty once all are through.
pub(super) fn next_round(parts: &mut [Part<'_>], all: &Tiles) -> Vec<Job> {
    parts.iter_mut().for_each(Part::pull);
    let axes: Vec<usize> = (0..all.shape().len()).collect();
    let place = |part: &Part<'_>, tile: usize| all.number_along(&axes, &part.member.tiles.tile(tile).start);
    // Where the next window of a query begins: what lies behind it may be wanted by that query, too.
    let ends = parts.iter().filter(|p| !p.is_last).map(|p| place(p, p.end));
    let until = ends.min().unwrap_or(usize::MAX);
    let mut tiles: Vec<(usize, usize, Candidate)> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let open = part.candidates[part.next..].iter().map(|&c| (place(part, c.tile), number, c));
        tiles.extend(open.take_while(|(at, ..)| *at < until));
    }
    tiles.sort_unstable_by_key(|(at, number, _)| (*at, *number));
    let mut jobs: Vec<(usize, Job)> = Vec::new();
    for (at, number, candidate) in tiles {
        match jobs.last_mut() {
            Some((last, job)) if *last == at => job.wanted.push((number, candidate)),
            _ => jobs.push((at, Job { wanted: vec![(number, candidate)] })),
        }
    }
    jobs.into_iter().map(|(_, job)| job).collect()
}
