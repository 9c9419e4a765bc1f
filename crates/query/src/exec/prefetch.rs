//! Reading ahead of the workers: what the next tiles take is asked of the network while those at hand are evaluated.
//!
//! Tiles are told in batches, two of which are on their way or waiting at any time: enough for requests to be put
//! together and to go side by side, and bounded by the memory that the query may take. Where every tile is wanted
//! batches are large from the first on; otherwise they grow from a small one, so that a query that is soon satisfied has
//! fetched little in vain. Arrays that only some tiles read are told of once it was seen that most do.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sieva_format::read::Wants;
use sieva_index::stats::Verdict;
use sieva_types::{Bx, KeySet};

use crate::bind::Condition;
use crate::exec::Execution;
use crate::exec::tile::Tiles;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::prepare::{Node, Prepared};

/// Bytes of the first batch, where not all may be wanted.
const FIRST: u64 = 2 << 20;
/// Bytes of the largest batch. Two are what the store keeps of announced bytes by default.
const LARGEST: u64 = 64 << 20;
/// Most tiles of a batch.
const MOST_TILES: usize = 1 << 14;

/// What is told of the work to come.
pub(in crate::exec) struct Ahead<'e> {
    execution: &'e Execution,
    largest: u64,
    takes_all: bool,
    state: Mutex<Told>,
    /// Arrays that every tile reads, then those that some may.
    arrays: Vec<usize>,
    certain: usize,
    /// Of arrays with an index, the condition by which tiles are told apart that read nothing of them.
    tests: Vec<Test>,
    /// Tiles done, and of those, per array, how many read it.
    done: AtomicU64,
    read: Vec<AtomicU64>,
}

/// A condition on stored values: the array, whether it is on what is stored as it is, and the values.
type Test = (usize, bool, KeySet);

/// How far it was told.
struct Told {
    /// Per array, the first job that was not.
    next: Vec<usize>,
    /// The end of the last batch.
    end: usize,
    /// The job with which the next batch is told.
    due: usize,
    batch: u64,
}

/// The work that is told of: jobs, in the order in which they are taken, and the tile of each that has one to be read.
pub(in crate::exec) struct Work<'w, F> {
    pub(in crate::exec) jobs: usize,
    pub(in crate::exec) tiles: &'w Tiles,
    pub(in crate::exec) tile: F,
}

impl<'e> Ahead<'e> {
    /// Of work on tiles that evaluates the condition of `prepared` and then reads `also` where something is
    /// left; `takes_all`: no tile is left out because there is enough. `None` where no network lies between.
    pub(in crate::exec) fn new(
        execution: &'e Execution,
        prepared: &Prepared,
        also: &[usize],
        takes_all: bool,
    ) -> Option<Self> {
        if !execution.source.store().is_remote() {
            return None;
        }
        let (mut arrays, mut possible, mut tests) = (Vec::new(), also.to_vec(), Vec::new());
        let is_read = execution.first_read(&prepared.node, &mut arrays, &mut tests);
        if !is_read {
            arrays.extend_from_slice(also);
        }
        crate::exec::select::leaf_conditions(&prepared.node, &mut |c| execution.arrays_of(c, &mut possible));
        arrays.sort_unstable();
        arrays.dedup();
        possible.sort_unstable();
        possible.dedup();
        possible.retain(|array| !arrays.contains(array));
        let certain = arrays.len();
        let largest = (execution.options.memory / 16).clamp(FIRST, LARGEST);
        // Where all is wanted nothing of the certain arrays is in vain; the others will need room as well.
        let batch = match (takes_all, possible.is_empty()) {
            (true, true) => largest,
            (true, false) => largest / 2,
            (false, _) => FIRST,
        };
        arrays.append(&mut possible);
        Some(Self {
            execution,
            largest,
            takes_all,
            state: Mutex::new(Told { next: vec![0; arrays.len()], end: 0, due: 0, batch }),
            read: arrays.iter().map(|_| AtomicU64::new(0)).collect(),
            arrays,
            certain,
            tests,
            done: AtomicU64::new(0),
        })
    }

    /// Tells of the jobs behind `job`, which is about to be done, as far as it is time to.
    pub(in crate::exec) fn before(&self, job: usize, work: &Work<'_, impl Fn(usize) -> Option<usize>>) {
        // Who comes while it is being told waits: reading now would tear a hole into a request for many.
        let mut told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let likely: Vec<usize> = (0..self.arrays.len()).filter(|&n| self.is_likely(n)).collect();
        // Arrays that turned out to be read catch up.
        let mut wants: Vec<Wants> = self.arrays.iter().map(|_| Wants::default()).collect();
        for &n in likely.iter().filter(|&&n| told.next[n] < told.end) {
            (told.next[n].max(job)..told.end).for_each(|at| self.add(n, at, work, &mut wants));
        }
        while job >= told.due && told.end < work.jobs {
            let first = told.end.max(job);
            let mut end = first;
            let before: u64 = wants.iter().map(Wants::bytes).sum();
            while end < work.jobs && end - first < MOST_TILES {
                likely.iter().for_each(|&n| self.add(n, end, work, &mut wants));
                end += 1;
                let bytes = wants.iter().map(Wants::bytes).sum::<u64>() - before;
                if bytes >= told.batch || wants.iter().any(Wants::is_full) {
                    break;
                }
            }
            (told.end, told.due) = (end, first);
            // Arrays that may have to catch up need as much room as those that are told of now.
            if !self.takes_all || likely.len() == self.arrays.len() {
                told.batch = (told.batch * 2).min(self.largest);
            }
        }
        let end = told.end;
        likely.iter().for_each(|&n| told.next[n] = end);
        let mut ranges = Wants::default();
        for (&array, wants) in self.arrays.iter().zip(&mut wants) {
            self.execution.readers[array].will_need_chunks(wants);
            ranges.absorb(wants);
        }
        // Those of all arrays together: they may lie side by side.
        if let Some(&array) = self.arrays.first() {
            self.execution.readers[array].will_need(&ranges);
        }
    }

    /// Notes what a tile read.
    pub(in crate::exec) fn after(&self, tile: &Bx, leaves: &Leaves<'_>) {
        for (&array, read) in self.arrays.iter().zip(&self.read).skip(self.certain) {
            if leaves.holds(array, &self.execution.own_box(array, tile)) {
                read.fetch_add(1, Relaxed);
            }
        }
        self.done.fetch_add(1, Relaxed);
    }

    /// Whether a tile is likely to read the array at `n`: every tile does, or at least every other one did.
    fn is_likely(&self, n: usize) -> bool {
        let done = self.done.load(Relaxed);
        n < self.certain || done > 0 && self.read[n].load(Relaxed) * 2 >= done
    }

    /// Adds what the array at `n` takes for a job.
    fn add(
        &self,
        n: usize,
        job: usize,
        work: &Work<'_, impl Fn(usize) -> Option<usize>>,
        wants: &mut [Wants],
    ) {
        if let Some(tile) = (work.tile)(job) {
            let (array, tile) = (self.arrays[n], work.tiles.tile(tile));
            let mut tests = self.tests.iter().filter(|(of, ..)| *of == array && n < self.certain);
            if tests
                .any(|(_, raw, set)| self.execution.foresee_stored(array, *raw, set, &tile) != Verdict::Some)
            {
                return;
            }
            self.execution.readers[array].wants(&self.execution.own_box(array, &tile), &mut wants[n]);
        }
    }
}

impl Execution {
    /// Adds the arrays that evaluating `node` reads first, whatever it finds, with the tests of those that an index may
    /// answer for a tile; false where it reads nothing.
    fn first_read(&self, node: &Node, out: &mut Vec<usize>, tests: &mut Vec<Test>) -> bool {
        match node {
            Node::Decided(_) | Node::Known(_) | Node::Chosen(_) => false,
            Node::All(parts) | Node::Any(parts) => parts.iter().any(|p| self.first_read(p, out, tests)),
            Node::Leaf(condition) => self.first_condition(condition, out, tests),
        }
    }

    fn first_condition(&self, condition: &Condition, out: &mut Vec<usize>, tests: &mut Vec<Test>) -> bool {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().any(|part| self.first_condition(part, out, tests))
            }
            Condition::Stored { array, raw, set } if self.indexed[*array].is_some() => {
                if self.scans_what_is_open(*array, *raw) {
                    out.push(*array);
                    tests.push((*array, *raw, set.clone()));
                }
                true
            }
            Condition::Stored { .. } | Condition::Computed(_) => {
                let before = out.len();
                self.arrays_of(condition, out);
                out.len() > before
            }
            _ => false,
        }
    }

    /// Has the network bring the small arrays, which nearly every query reads whole: all in one round.
    pub(in crate::exec) fn fetch_small_ahead(&self) {
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
