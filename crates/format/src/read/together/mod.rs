//! Many reads as one: boxes and selections of arrays of one source, each stored byte read once, whoever wants it.
//!
//! The requests of a batch are decomposed along the layout of the file: into stored chunks, blocks of plain bytes, and
//! files. What several of them touch is read and decoded once, neighbours are read by one request, and what was read is
//! scattered to all who asked. That is the aggregation of HiLa (section IV.B, Algorithm 1: decompose, then aggregate),
//! of which the layout's units are the physical side, and chunks a second one beside stripes.
//!
//! | file | does |
//! |---|---|
//! | `pieces.rs` | which bytes of a range a block of elements has, in closed form |
//! | `numbers.rs`, `plan.rs` | which units a task touches; units and waves of a batch |
//! | `jobs.rs` | units that are read by one request, on threads, and what a network is told before |
//! | `chunk.rs`, `ranges.rs`, `cells.rs` | a chunk, a block of plain bytes, a cell of a library, for all its tasks |
//! | `servers.rs` | in which order, and how many at once of each server of a parallel file system |
//! | `files.rs` | arrays of many files |
//! | `selected.rs` | which elements of a row a selection has, and where they go |
//! | `task.rs`, `sink.rs` | a block and where it goes; the memory of a request and what became of it |

#[cfg(test)]
mod cancel_tests;
mod cells;
mod chunk;
mod files;
mod jobs;
mod numbers;
mod pieces;
mod plan;
mod ranges;
mod selected;
#[cfg(test)]
mod server_tests;
mod servers;
mod sink;
mod task;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use sieva_store::{RangedRead, Striping};
use sieva_types::{Bx, DType, Error, ErrorKind, Result, Selection};

use super::{BlockReader, strided};
use crate::buffer::{Buffer, swap_bytes};
use crate::layout::{Layout, Placement, c_strides};
use selected::Selected;
use sink::{Sink, given_up};
use task::{PIECE, Task};

/// Bytes that are asked of the storage at once, at most: a request of so many costs the local system and networks alike far
/// less by being one than its bytes do, and a few of them keep all cores at work.
const REQUEST: u64 = 4 << 20;
/// What a plan holds for each unit and task that touches it, while units are made of them.
const TOUCH_BYTES: u64 = 64;
/// Units and tasks of a wave, whatever the memory.
const LEAST_TOUCHES: u64 = 1 << 16;

/// What is wanted of an array.
#[derive(Clone, Debug)]
pub enum Wanted<'a> {
    /// A box of the layout's rank. It may reach beyond the stored extent.
    Box(Cow<'a, Bx>),
    /// The selected positions of an array, in C order of its shape.
    Positions(Arc<Selection>),
}

/// One request of a batch.
pub struct Ask<'a> {
    /// The array. Requests of one array give the same reader, or pay for finding out.
    pub reader: &'a BlockReader,
    /// What of it.
    pub wanted: Wanted<'a>,
    /// Set to give up this request; the others go on.
    pub cancel: &'a AtomicBool,
}

/// Who does the work of a batch, and what is known of where its bytes are.
pub trait Crew: Sync {
    /// How many threads there are cores for.
    fn threads(&self) -> usize;

    /// Where the bytes of a store lie, where somebody knows.
    fn striping(&self, store: &Arc<dyn RangedRead>) -> Option<Striping> {
        let _ = store;
        None
    }

    /// Calls `work` once with each number below `jobs`, in about this order, on at most `threads` threads, and returns when
    /// all calls have.
    fn each(&self, jobs: usize, threads: usize, work: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Crew for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn each(&self, jobs: usize, _: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..jobs).for_each(work);
    }
}

/// The calling thread alone, which knows what a crew knows.
struct OneOf<'a>(&'a dyn Crew);

impl Crew for OneOf<'_> {
    fn threads(&self) -> usize {
        1
    }

    fn striping(&self, store: &Arc<dyn RangedRead>) -> Option<Striping> {
        self.0.striping(store)
    }

    fn each(&self, jobs: usize, threads: usize, work: &(dyn Fn(usize) + Sync)) {
        Alone.each(jobs, threads, work);
    }
}

/// Whether positions of an array can be read together with others: [`Wanted::Positions`].
pub fn takes_positions(layout: &Layout) -> bool {
    let is_joined_within = matches!(&layout.placement, Placement::Parts(parts) if parts.axis > 0);
    !is_joined_within && !layout.char_dim && layout.element_size > 0
}

/// Reads a batch. Each stored chunk and each byte of plain data that requests want is read at most once, where nothing fails;
/// elements come as [`BlockReader::read`] gives them, texts as their stored bytes. `memory` is what may be held besides
/// the results and the decoded chunks that caches keep.
///
/// An error is that of the requests that need what fails. It says what it would say of a reading of the request alone.
pub fn read_together(asks: &[Ask<'_>], memory: u64, crew: &dyn Crew) -> Vec<Result<Buffer>> {
    let read = read_native(asks, memory, crew);
    let widened = |(read, ask): (Result<Buffer>, &Ask<'_>)| {
        let read = read?;
        check(ask)?;
        ask.reader.widened(read)
    };
    read.into_iter().zip(asks).map(widened).collect()
}

/// The same, of the layout's element size.
fn read_native(asks: &[Ask<'_>], memory: u64, crew: &dyn Crew) -> Vec<Result<Buffer>> {
    let sinks: Vec<Result<Sink<'_>>> =
        asks.iter().map(|ask| Ok(Sink::new(room_of(ask)?, ask.cancel))).collect();
    let selected = selected_of(asks);
    let with_room = asks.iter().zip(&sinks).filter_map(|(ask, sink)| Some((ask, sink.as_ref().ok()?)));
    let tasks: Vec<Task<'_>> = planned(asks.first().map(|ask| ask.reader), || {
        with_room.filter_map(|(ask, sink)| task_of(ask, &selected, sink)).collect()
    });
    run(&tasks, memory, crew);
    drop(tasks);
    let ends = sinks.into_iter().zip(asks).map(|(sink, ask)| {
        let mut out = sink?.end()?;
        // Texts have no order of bytes: what stores them by numbers is decoded as it is stored.
        let is_text = ask.reader.source.schema().arrays[ask.reader.array].dtype == DType::Str;
        if !is_text && !ask.reader.is_native() {
            for piece in out.bytes_mut().chunks_mut(PIECE) {
                check(ask)?;
                swap_bytes(piece, ask.reader.layout.element_size);
            }
        }
        Ok(out)
    });
    ends.collect()
}

/// An error where a request is not wanted any more.
fn check(ask: &Ask<'_>) -> Result<()> {
    if ask.cancel.load(Relaxed) { Err(given_up()) } else { Ok(()) }
}

/// Memory for a request, filled with what stands where nothing was written, as far as tasks do not.
fn room_of(ask: &Ask<'_>) -> Result<Buffer> {
    check(ask)?;
    let (reader, layout) = (ask.reader, &*ask.reader.layout);
    let n = match &ask.wanted {
        Wanted::Box(bx) => {
            reader.check_stored(bx)?;
            bx.len()
        }
        Wanted::Positions(selection) => selection.len(),
    };
    let bytes = usize::try_from(n).ok().and_then(|n| n.checked_mul(layout.element_size));
    // The system clears it where it is written for the first time.
    let mut out = Buffer::try_zeros(bytes.ok_or_else(|| reader.too_big(n))?)?;
    if matches!(ask.wanted, Wanted::Positions(_)) && layout.fill.iter().any(|b| *b != 0) {
        let fill = &layout.fill;
        for piece in out.bytes_mut().chunks_mut((PIECE / fill.len()).max(1) * fill.len()) {
            check(ask)?;
            strided::repeat(fill, piece);
        }
    }
    Ok(out)
}

/// The selections of requests, each once, by their places in memory.
fn selected_of<'a>(asks: &'a [Ask<'_>]) -> HashMap<*const Selection, Selected<'a>> {
    let each = asks.iter().filter_map(|ask| match &ask.wanted {
        Wanted::Positions(selection) => Some((Arc::as_ptr(selection), Selected::new(selection))),
        Wanted::Box(_) => None,
    });
    each.collect()
}

/// The task of a request; `None` where nothing is stored of it.
fn task_of<'a>(
    ask: &'a Ask<'a>,
    selected: &'a HashMap<*const Selection, Selected<'a>>,
    sink: &'a Sink<'a>,
) -> Option<Task<'a>> {
    let (reader, size) = (ask.reader, ask.reader.layout.element_size as u64);
    match &ask.wanted {
        Wanted::Box(bx) => Task::stored(reader, Cow::Borrowed(bx), 0, c_strides(&bx.shape, size), None, sink),
        Wanted::Positions(selection) => {
            let shape = &reader.source.schema().arrays[reader.array].shape;
            let bx = Cow::Owned(Bx::whole(shape));
            let selected = selected.get(&Arc::as_ptr(selection));
            Task::stored(reader, bx, 0, c_strides(shape, size), selected, sink)
        }
    }
}

/// Reads tasks of any kinds.
fn run(tasks: &[Task<'_>], memory: u64, crew: &dyn Crew) {
    let mut has_files = false;
    for task in tasks {
        match &task.reader.layout.placement {
            _ if !task.sink.is_wanted() => {}
            Placement::Unallocated => task.fill(&task.bx),
            Placement::Inline(bytes) => inline(task, bytes),
            Placement::Parts(_) => has_files = true,
            _ => {}
        }
    }
    if has_files {
        files::run(tasks, memory, crew);
    }
    let touches = (memory / 4 / TOUCH_BYTES).max(LEAST_TOUCHES);
    plan::each_wave(tasks, usize::try_from(touches).unwrap_or(usize::MAX), |wave| {
        jobs::run(wave, tasks, memory / 2, crew);
    });
}

/// Does a part of the planning of a batch, whose time is counted with what the store of one of its arrays brings.
fn planned<T>(of: Option<&BlockReader>, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = work();
    if let Some(reader) = of {
        reader.source.store().counters().add_planning(started.elapsed());
    }
    done
}

/// Gives a task what lies in memory.
fn inline(task: &Task<'_>, bytes: &[u8]) {
    let layout = &*task.reader.layout;
    if let Err(e) = task.reader.check_stored(&task.bx) {
        return task.sink.fail(e);
    }
    let base = layout.base.saturating_add(super::dot(&task.bx.start, &layout.strides));
    task.copy(&task.bx, bytes, base, &layout.strides);
}

/// Has threads call `work` with each number below `jobs`; false where one of them ended before its time.
fn all_done(crew: &dyn Crew, jobs: usize, threads: usize, work: &(dyn Fn(usize) + Sync)) -> bool {
    let done = AtomicUsize::new(0);
    crew.each(jobs, threads, &|job| {
        work(job);
        done.fetch_add(1, Relaxed);
    });
    done.into_inner() == jobs
}

/// The error of those whose work ended before its time.
fn ended() -> Error {
    Error::new(ErrorKind::Internal, "a worker thread ended unexpectedly")
}
