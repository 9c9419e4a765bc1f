//! The part of one query in a run: the windows of its tiles, and what came of them so far.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use sieva_types::{Bx, Error, ErrorKind, Result, SelectionBuilder};

use super::Answer;
use super::member::{Kind, Member};
use crate::exec::ExecStats;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::groups::together::{Grouping, Way};
use crate::exec::groups::{Groups, Sink};
use crate::exec::pool::check;
use crate::exec::select::bands::Bands;
use crate::exec::select::kept::{Found, Hits, Keeping};
use crate::exec::select::{Counted, Failure};
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::windows::Window;
use crate::mask::Mask;

/// What a worker found of one tile for one query.
pub(super) enum Outcome {
    Count(u64, Vec<(usize, Hits)>),
    Mask(Bx, Mask, Option<Failure>),
    /// Groups to be merged, where they are not in a table already.
    Groups(Option<Groups>),
}

/// The part of a query.
pub(super) struct Part<'a> {
    pub(super) member: &'a Member<'a>,
    windows: Box<dyn Iterator<Item = Window> + 'a>,
    /// Those tiles of the window at hand that are to be looked at, from `next` on.
    pub(super) candidates: Vec<Candidate>,
    pub(super) next: usize,
    /// The tile behind the window at hand.
    pub(super) end: usize,
    /// Whether no window comes after it.
    pub(super) is_last: bool,
    made: Made<'a>,
    did: ExecStats,
    failed: Option<Error>,
}

/// What is made.
enum Made<'a> {
    Count { keeping: &'a Keeping, found: Found, window: Option<Window>, hits: Vec<(usize, Hits)>, total: u64 },
    First(Bands<'a>),
    Groups { grouping: &'a Grouping<'a>, sink: Box<Sink>, leaves: Box<Leaves<'a>> },
}

impl<'a> Part<'a> {
    pub(super) fn new(member: &'a Member<'a>) -> Result<Self> {
        let (execution, prepared, tiles) = (member.execution, &*member.prepared, &member.tiles);
        let mut windows: Box<dyn Iterator<Item = Window> + 'a> = Box::new(execution.windows(prepared, tiles));
        let rows = &execution.bound.rows;
        let made = match &member.kind {
            Kind::Count(keeping) => {
                let found = Found::new(tiles.clone());
                Made::Count { keeping, found, window: None, hits: Vec::new(), total: 0 }
            }
            Kind::First(enough) => {
                let builder = SelectionBuilder::new(rows.names.clone(), rows.shape.clone())?;
                Made::First(Bands::new(execution, builder, tiles.band(), Some(*enough)))
            }
            Kind::Groups(grouping, sink) => {
                let sink = sink.lock().unwrap_or_else(PoisonError::into_inner).take();
                let sink =
                    sink.ok_or_else(|| Error::new(ErrorKind::Internal, "groups that are made twice"))?;
                let one = |bx: &Bx| grouping.is_one_group(execution, bx);
                windows = Box::new(execution.windows_where(prepared, tiles, one));
                Made::Groups { grouping, sink, leaves: Box::new(Leaves::new(execution)) }
            }
        };
        let (candidates, did, failed) = (Vec::new(), ExecStats::default(), None);
        Ok(Self { member, windows, candidates, next: 0, end: 0, is_last: false, made, did, failed })
    }

    /// Whether none of its tiles is to be looked at any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_last && self.next >= self.candidates.len()
    }

    /// Goes on to the next window of which tiles are to be looked at, where it is through with the one at hand.
    pub(super) fn pull(&mut self) {
        while self.next >= self.candidates.len() && !self.is_last {
            let step =
                check(&self.member.execution.options.cancel).and_then(|()| match self.windows.next() {
                    Some(window) => self.open(window),
                    None => {
                        self.is_last = true;
                        Ok(())
                    }
                });
            self.is_last |= self.end >= self.member.tiles.len();
            if let Err(e) = step {
                self.fail(e);
            }
        }
    }

    fn open(&mut self, window: Window) -> Result<()> {
        let tiles = &self.member.tiles;
        let first = self.end;
        self.end += window.len() as usize;
        (self.candidates, self.next) = (Vec::new(), 0);
        match &mut self.made {
            Made::Count { keeping, found, window: at_hand, total, .. } => {
                *total += self.did.decided(tiles, &window);
                if let Window::Open(_, all) = &window {
                    self.candidates = all.iter().filter(|c| !c.all).copied().collect();
                }
                match self.candidates.is_empty() {
                    true => found.add(&window, Vec::new(), keeping),
                    false => *at_hand = Some(window),
                }
            }
            Made::First(bands) => {
                self.did.decided(tiles, &window);
                let flow = match window {
                    Window::None(n) => bands.pass(n)?,
                    Window::All(_, n, bx) => bands.take(n, &bx)?,
                    Window::Open(_, candidates) => {
                        let next = candidates.first().map_or(self.end, |c| c.tile.max(first));
                        self.candidates = candidates;
                        bands.go_to(next)?
                    }
                };
                if flow.is_break() {
                    self.leave();
                }
            }
            Made::Groups { grouping, sink, leaves } => {
                let (execution, wanted) = (self.member.execution, grouping.wanted());
                self.did.tiles_skipped += window.skipped();
                let known = match window {
                    Window::None(_) => 0,
                    Window::All(_, n, bx) => {
                        execution.add_one_group(&wanted, &bx, leaves, sink)?;
                        n
                    }
                    Window::Open(_, mut all) => {
                        let n = execution.add_same(&wanted, tiles, &mut all, leaves, sink)?;
                        self.candidates = all;
                        n
                    }
                };
                self.did.tiles_skipped += known;
                self.did.tiles_taken += known;
            }
        }
        Ok(())
    }

    /// Has it look at no more tiles.
    fn leave(&mut self) {
        (self.candidates, self.next, self.is_last) = (Vec::new(), 0, true);
        self.member.stopped.store(true, Relaxed);
    }

    pub(super) fn fail(&mut self, e: Error) {
        self.failed.get_or_insert(e);
        self.leave();
    }

    /// How workers take the tiles of a round in, and where what they find goes.
    pub(super) fn split(&mut self) -> (Option<Way<'_>>, Taker<'_, 'a>) {
        let mut way = None;
        let into = match &mut self.made {
            Made::Count { keeping, found, window, hits, total } => {
                Sums::Count { keeping, found, window, hits, total }
            }
            Made::First(bands) => Sums::First(bands),
            Made::Groups { sink, .. } => {
                let (of, groups) = sink.way();
                way = Some(of);
                Sums::Groups(groups)
            }
        };
        let Self { member, candidates, next, end, is_last, did, failed, .. } = self;
        (way, Taker { member, candidates, next, end: *end, is_last, did, failed, into })
    }

    /// The answer, when all tiles were looked at.
    ///
    /// # Errors
    /// What failed first in the order of the tiles; `memory-limit`, `arithmetic-overflow` of groups.
    pub(super) fn finish(self) -> Result<Answer> {
        let (execution, did) = (self.member.execution, self.did);
        if let Some(e) = self.failed {
            return Err(e);
        }
        Ok(match self.made {
            Made::Count { keeping, found, total, .. } => {
                let found = keeping.goes_on().then_some(found);
                Answer::Counted(Counted { count: total, found, did })
            }
            Made::First(bands) => Answer::First(bands.finish()?, did),
            Made::Groups { grouping, sink, .. } => Answer::Groups(grouping.finish(execution, *sink)?, did),
        })
    }
}

/// Takes what was found of the tiles of a round, in their order.
pub(super) struct Taker<'r, 'a> {
    member: &'a Member<'a>,
    candidates: &'r mut Vec<Candidate>,
    next: &'r mut usize,
    end: usize,
    is_last: &'r mut bool,
    did: &'r mut ExecStats,
    failed: &'r mut Option<Error>,
    into: Sums<'r, 'a>,
}

/// Where that goes.
enum Sums<'r, 'a> {
    Count {
        keeping: &'r Keeping,
        found: &'r mut Found,
        window: &'r mut Option<Window>,
        hits: &'r mut Vec<(usize, Hits)>,
        total: &'r mut u64,
    },
    First(&'r mut Bands<'a>),
    Groups(Option<&'r mut Groups>),
}

impl Taker<'_, '_> {
    /// Takes what was found of the next of its tiles.
    pub(super) fn take(&mut self, found: Result<(Outcome, ExecStats)>) {
        if *self.is_last && self.candidates.is_empty() {
            return;
        }
        let taken = found.and_then(|(outcome, did)| {
            self.did.merge(&did);
            self.add(outcome)
        });
        *self.next += 1;
        let is_over = taken.as_ref().map_or(true, |goes_on| !goes_on);
        if let Err(e) = taken {
            self.failed.get_or_insert(e);
        }
        if is_over {
            self.candidates.clear();
            (*self.next, *self.is_last) = (0, true);
            self.member.stopped.store(true, Relaxed);
        }
    }

    /// Whether more is wanted.
    fn add(&mut self, outcome: Outcome) -> Result<bool> {
        let tile = self.candidates[*self.next].tile;
        let next = self.candidates.get(*self.next + 1);
        match (&mut self.into, outcome) {
            (Sums::Count { keeping, found, window, hits, total }, Outcome::Count(n, more)) => {
                **total += n;
                match keeping.goes_on() {
                    true => hits.extend(more),
                    false => **hits = Vec::new(),
                }
                if next.is_none()
                    && let Some(window) = window.take()
                {
                    found.add(&window, std::mem::take(*hits), keeping);
                }
            }
            (Sums::First(bands), Outcome::Mask(bx, mask, failure)) => {
                bands.add(tile, bx, mask, failure)?;
                return Ok(bands.go_to(next.map_or(self.end, |c| c.tile))?.is_continue());
            }
            (Sums::Groups(Some(groups)), Outcome::Groups(Some(part))) => groups.merge(part)?,
            (Sums::Groups(None), Outcome::Groups(None)) => {}
            _ => return Err(Error::new(ErrorKind::Internal, "a tile that was looked at in another way")),
        }
        Ok(true)
    }
}
