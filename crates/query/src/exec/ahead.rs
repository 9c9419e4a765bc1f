//! Reading ahead of the workers: what the next tiles take is asked of the network while those at hand are evaluated.
//!
//! Tiles are told in batches, two of which are on their way or waiting at any time: enough for requests to be put
//! together and to go side by side, and bounded by the memory that the query may take. Batches grow from a small one,
//! so that a query that is soon satisfied has fetched little in vain.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, TryLockError};

use sieva_format::read::Wants;
use sieva_types::Bx;

use super::Execution;
use super::leaves::Leaves;
use super::prepare::{Node, Prepared};
use super::tiles::Tiles;
use crate::bind::Condition;

/// Bytes of the first batch.
const FIRST: u64 = 2 << 20;
/// Bytes of the largest batch. Two are half of what the store keeps of announced bytes by default.
const LARGEST: u64 = 32 << 20;
/// Most tiles of a batch.
const MOST_TILES: usize = 1 << 14;

/// What is told of the work to come.
pub(super) struct Ahead<'e> {
    execution: &'e Execution,
    largest: u64,
    state: Mutex<Told>,
    /// Arrays that every tile reads, and those that some may.
    certain: Vec<usize>,
    possible: Vec<usize>,
    /// Tiles done, and of those, per possible array, how many read it.
    done: AtomicU64,
    read: Vec<AtomicU64>,
}

/// How far it was told.
struct Told {
    /// The first job that was not.
    next: usize,
    /// The job with which the next batch is told.
    due: usize,
    batch: u64,
}

impl<'e> Ahead<'e> {
    /// Of work on tiles that evaluates the condition of `prepared` and then reads `also` where something is
    /// left. `None` where no network lies between.
    pub(super) fn new(execution: &'e Execution, prepared: &Prepared, also: &[usize]) -> Option<Self> {
        if !execution.source.store().is_remote() {
            return None;
        }
        let (mut certain, mut possible) = (Vec::new(), also.to_vec());
        let is_read = execution.first_read(&prepared.node, &mut certain);
        if !is_read {
            certain.extend_from_slice(also);
        }
        super::select::leaf_conditions(&prepared.node, &mut |c| execution.arrays_of(c, &mut possible));
        certain.sort_unstable();
        certain.dedup();
        possible.sort_unstable();
        possible.dedup();
        possible.retain(|array| !certain.contains(array));
        Some(Self {
            execution,
            largest: (execution.options.memory / 16).clamp(FIRST, LARGEST),
            state: Mutex::new(Told { next: 0, due: 0, batch: FIRST }),
            read: possible.iter().map(|_| AtomicU64::new(0)).collect(),
            certain,
            possible,
            done: AtomicU64::new(0),
        })
    }

    /// Tells of the jobs behind `job`, which is about to be done, as far as it is time to. `tile` is the tile of a
    /// job, where there is one to be read.
    pub(super) fn before(
        &self,
        job: usize,
        jobs: usize,
        tiles: &Tiles,
        tile: impl Fn(usize) -> Option<usize>,
    ) {
        // One at a time; the others have work to do.
        let mut told = match self.state.try_lock() {
            Ok(told) => told,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        while job >= told.due && told.next < jobs {
            let first = told.next.max(job);
            let arrays = self.arrays();
            let mut wants: Vec<Wants> = arrays.iter().map(|_| Wants::default()).collect();
            let mut at = first;
            while at < jobs && at - first < MOST_TILES {
                if let Some(tile) = tile(at) {
                    self.add(&arrays, &tiles.tile(tile), &mut wants);
                }
                at += 1;
                if wants.iter().map(Wants::bytes).sum::<u64>() >= told.batch {
                    break;
                }
            }
            for (&array, wants) in arrays.iter().zip(&wants) {
                self.execution.readers[array].will_need(wants);
            }
            *told = Told { next: at, due: first, batch: (told.batch * 2).min(self.largest) };
            if at == first {
                return;
            }
        }
    }

    /// Notes what a tile read.
    pub(super) fn after(&self, tile: &Bx, leaves: &Leaves<'_>) {
        for (&array, read) in self.possible.iter().zip(&self.read) {
            if leaves.holds(array, &self.execution.own_box(array, tile)) {
                read.fetch_add(1, Relaxed);
            }
        }
        self.done.fetch_add(1, Relaxed);
    }

    /// The arrays that a tile is likely to read: at least every other one did.
    fn arrays(&self) -> Vec<usize> {
        let done = self.done.load(Relaxed);
        let often = |read: &AtomicU64| done > 0 && read.load(Relaxed) * 2 >= done;
        let likely = self.possible.iter().zip(&self.read).filter(|(_, read)| often(read)).map(|(&a, _)| a);
        self.certain.iter().copied().chain(likely).collect()
    }

    fn add(&self, arrays: &[usize], tile: &Bx, wants: &mut [Wants]) {
        for (&array, wants) in arrays.iter().zip(wants) {
            self.execution.readers[array].wants(&self.execution.own_box(array, tile), wants);
        }
    }
}

impl Execution {
    /// Adds the arrays that evaluating `node` reads first, whatever it finds; false where it reads nothing.
    fn first_read(&self, node: &Node, out: &mut Vec<usize>) -> bool {
        match node {
            Node::Decided(_) | Node::Known(_) | Node::Chosen(_) => false,
            Node::All(parts) | Node::Any(parts) => parts.iter().any(|p| self.first_read(p, out)),
            Node::Leaf(condition) => self.first_condition(condition, out),
        }
    }

    fn first_condition(&self, condition: &Condition, out: &mut Vec<usize>) -> bool {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().any(|part| self.first_condition(part, out))
            }
            // An index may answer it.
            Condition::Stored { array, .. } if self.indexed[*array].is_some() => true,
            Condition::Stored { .. } | Condition::Computed(_) => {
                let before = out.len();
                self.arrays_of(condition, out);
                out.len() > before
            }
            _ => false,
        }
    }

    /// Has the network bring the small arrays, which nearly every query reads whole: all in one round.
    pub(super) fn fetch_small_ahead(&self) {
        if !self.source.store().is_remote() {
            return;
        }
        for (bound, reader) in self.bound.arrays.iter().zip(&self.readers) {
            let shape = &self.source.schema().arrays[bound.index].shape;
            if shape.iter().product::<u64>() <= SMALL_ARRAY {
                let mut wants = Wants::default();
                reader.wants(&Bx::whole(&reader.layout().extent), &mut wants);
                reader.will_need(&wants);
            }
        }
    }
}

/// Elements of an array that is fetched whole before it is asked for.
const SMALL_ARRAY: u64 = 1 << 17;
