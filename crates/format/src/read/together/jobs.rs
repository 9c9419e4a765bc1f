//! The jobs of a wave: units that lie side by side are read by one request; threads take jobs in the order of the layout.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use sieva_store::Striping;
use sieva_types::{Result, try_resize};

use super::plan::{Kind, Unit, Wave};
use super::ranges::{self, Plain, Room};
use super::servers::{LEAST_STRIPE, Queue, Ticket};
use super::task::Task;
use super::{Crew, REQUEST, all_done, cells, chunk, ended, planned};
use crate::layout::Placement;
use crate::read::chunks::Piece;
use crate::read::{BlockReader, Workspace};

/// Bytes that a network is told of at once; while they are worked on, the next so many come.
const AHEAD: u64 = 16 << 20;
/// Jobs for each thread, at least, where there is enough for them: so that all end at about the same time.
const JOBS_PER_THREAD: u64 = 4;
/// The least that one request is cut to for that.
const LEAST_REQUEST: u64 = 128 << 10;

/// What a worker reuses from job to job.
#[derive(Default)]
pub(super) struct Bench {
    pub(super) workspace: Workspace,
    pub(super) room: Room,
    stored: Vec<u8>,
}

/// Reads the units of a wave.
pub(super) fn run(mut wave: Wave, tasks: &[Task<'_>], memory: u64, crew: &dyn Crew) {
    let reader = tasks.first().map(|task| task.reader);
    let is_remote = reader.is_some_and(BlockReader::is_remote);
    let striping = reader.filter(|_| !is_remote).and_then(|reader| crew.striping(reader.source.store()));
    if let Some(striping) = &striping {
        cut_at_stripes(&mut wave, striping);
    }
    let striped = striping.as_ref().filter(|striping| !striping.is_single());
    let work = Work { wave: &wave, tasks, striped, benches: Mutex::default() };
    let jobs = planned(reader, || work.jobs(crew.threads()));
    if let Some(striping) = &striping {
        return work.by_servers(striping, &jobs, memory, crew);
    }
    let threads = work.threads(memory, crew.threads());
    let mut batches = if is_remote { work.batches(&jobs) } else { std::iter::once(0..jobs.len()).collect() };
    batches.reverse();
    if is_remote && let Some(first) = batches.last() {
        work.announce(&jobs[first.clone()]);
    }
    while let Some(batch) = batches.pop() {
        if is_remote && let Some(next) = batches.last() {
            work.announce(&jobs[next.clone()]);
        }
        let own = &jobs[batch];
        if !all_done(crew, own.len(), threads, &|job| work.serve(own[job].clone(), None)) {
            tasks.iter().for_each(|task| task.sink.fail(ended()));
        }
    }
}

/// Cuts ranges of plain bytes where stripes end, so that each is on one server.
fn cut_at_stripes(wave: &mut Wave, striping: &Striping) {
    if striping.is_single() || striping.stripe_size() < LEAST_STRIPE {
        return;
    }
    let units = std::mem::take(&mut wave.units).into_iter();
    wave.units = units
        .flat_map(|unit| match &unit.kind {
            Kind::Plain(range) => {
                let of = |piece: sieva_store::Piece| Unit { kind: Kind::Plain(piece.range), ..unit.clone() };
                striping.pieces(range.clone()).map(of).collect()
            }
            _ => vec![unit],
        })
        .collect();
}

struct Work<'a, 'b> {
    wave: &'b Wave,
    tasks: &'b [Task<'a>],
    /// Where the bytes lie, if not all on one server.
    striped: Option<&'b Striping>,
    benches: Mutex<Vec<Bench>>,
}

impl<'a> Work<'a, '_> {
    fn tasks_of(&self, unit: &Unit) -> Vec<&Task<'a>> {
        self.wave.tasks[unit.tasks.clone()].iter().map(|&task| &self.tasks[task as usize]).collect()
    }

    /// Whether any of a unit's tasks is of a request that is wanted.
    fn is_wanted(&self, unit: &Unit) -> bool {
        let tasks = &self.wave.tasks[unit.tasks.clone()];
        tasks.iter().any(|&task| self.tasks[task as usize].sink.is_wanted())
    }

    fn first_of(&self, unit: &Unit) -> &Task<'a> {
        &self.tasks[self.wave.tasks[unit.tasks.start] as usize]
    }

    /// The stored bytes of a chunk that has to be read and decoded.
    fn encoded(&self, unit: &Unit) -> Option<Range<u64>> {
        let Kind::Chunk(wanted) = &unit.kind else { return None };
        let (reader, piece) = (self.first_of(unit).reader, wanted.piece?);
        let has_to = reader.is_plain(piece).is_none() && !reader.is_cached(piece);
        wanted.stored().filter(|stored| has_to && stored.end - stored.start <= REQUEST)
    }

    /// Which units are read by one request.
    fn jobs(&self, threads: usize) -> Vec<Range<usize>> {
        let units = &self.wave.units;
        let bytes: u64 = units.iter().fold(0, |n, unit| n.saturating_add(unit.stored_bytes()));
        let share = bytes / (threads as u64 * JOBS_PER_THREAD).max(1);
        let most = share.clamp(LEAST_REQUEST, REQUEST);
        let mut jobs: Vec<Range<usize>> = Vec::new();
        // The bytes of the last job.
        let mut open: Option<Range<u64>> = None;
        for (i, unit) in units.iter().enumerate() {
            let own = self.encoded(unit);
            if let (Some(range), Some(own), Some(job)) = (&mut open, &own, jobs.last_mut())
                && own.start == range.end
                && own.end - range.start <= most
                && self.is_of_one_stripe(range.start..own.end)
                && self.is_of_one_store(units[job.start].tasks.start, unit)
            {
                (range.end, job.end) = (own.end, i + 1);
                continue;
            }
            open = own;
            jobs.push(i..i + 1);
        }
        jobs
    }

    /// Whether one server has all of a range.
    fn is_of_one_stripe(&self, range: Range<u64>) -> bool {
        self.striped.is_none_or(|striping| striping.pieces(range).nth(1).is_none())
    }

    /// Reads all jobs in the order of their servers.
    fn by_servers(&self, striping: &Striping, jobs: &[Range<usize>], memory: u64, crew: &dyn Crew) {
        let of = self.tasks.first().map(|task| task.reader);
        let queue = planned(of, || {
            let bytes: Vec<_> = jobs.iter().map(|job| self.bytes_of(&self.wave.units[job.clone()])).collect();
            Queue::new(striping, &bytes)
        });
        let wanted = if striping.is_single() { crew.threads() } else { queue.threads(crew.threads()) };
        let threads = self.threads(memory, wanted);
        let next = |_: usize| {
            if let Some((job, ticket)) = queue.next() {
                self.serve(jobs[job].clone(), Some(ticket));
            }
        };
        if !all_done(crew, jobs.len(), threads, &next) {
            self.tasks.iter().for_each(|task| task.sink.fail(ended()));
        }
    }

    /// The bytes of the source's object that a job reads.
    fn bytes_of(&self, units: &[Unit]) -> Option<Range<u64>> {
        let is_of_store = |unit: &&Unit| match &unit.kind {
            Kind::Chunk(wanted) => {
                wanted.piece.is_some_and(|piece| !self.first_of(unit).reader.is_cached(piece))
            }
            Kind::Plain(_) => true,
            Kind::Cell(_) => false,
        };
        let ranges = units.iter().filter(is_of_store).filter_map(Unit::stored);
        ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
    }

    fn is_of_one_store(&self, first: usize, unit: &Unit) -> bool {
        let source = &self.tasks[self.wave.tasks[first] as usize].reader.source;
        std::ptr::eq(&**source.store(), &**self.first_of(unit).reader.source.store())
    }

    /// As many threads as have memory for what each holds.
    fn threads(&self, memory: u64, threads: usize) -> usize {
        let chunk = self.wave.units.iter().map(|unit| match &unit.kind {
            Kind::Chunk(wanted) => {
                let stored = wanted.stored().map_or(0, |range| range.end - range.start);
                stored.saturating_add(self.first_of(unit).reader.layout.chunk_bytes)
            }
            _ => 0,
        });
        let each = REQUEST.saturating_add(chunk.max().unwrap_or(0));
        usize::try_from(memory / each).unwrap_or(usize::MAX).clamp(1, threads)
    }

    /// Jobs of which a network is told together.
    fn batches(&self, jobs: &[Range<usize>]) -> Vec<Range<usize>> {
        let (mut batches, mut bytes) = (Vec::<Range<usize>>::new(), u64::MAX);
        for (i, job) in jobs.iter().enumerate() {
            let own = self.wave.units[job.clone()].iter().map(|unit| match &unit.kind {
                Kind::Chunk(wanted) if wanted.stored().is_none() => {
                    self.first_of(unit).reader.layout.chunk_bytes
                }
                _ => unit.stored_bytes(),
            });
            bytes = bytes.saturating_add(own.sum());
            match batches.last_mut() {
                Some(batch) if bytes <= AHEAD => batch.end = i + 1,
                _ => {
                    batches.push(i..i + 1);
                    bytes = 0;
                }
            }
        }
        batches
    }

    /// Tells a network what jobs will read.
    fn announce(&self, jobs: &[Range<usize>]) {
        let mut bench = Bench::default();
        let (mut ranges, mut numbers): (Vec<Range<u64>>, Vec<(usize, u64)>) = (Vec::new(), Vec::new());
        let Some(reader) = self.tasks.first().map(|task| task.reader) else { return };
        let units = jobs.iter().flat_map(|job| &self.wave.units[job.clone()]);
        for unit in units.filter(|unit| self.is_wanted(unit)) {
            let array = self.first_of(unit).reader.array;
            match &unit.kind {
                Kind::Chunk(wanted) => match wanted.piece {
                    Some(piece) if self.first_of(unit).reader.is_cached(piece) => {}
                    Some(Piece::Object(number)) => numbers.push((array, number)),
                    _ => ranges.extend(wanted.stored()),
                },
                Kind::Plain(range) => {
                    let tasks = self.tasks_of(unit);
                    ranges.extend(ranges::wanted(&plain_blocks(&tasks), range, &mut bench.room));
                }
                Kind::Cell(_) => {}
            }
        }
        if !ranges.is_empty() {
            reader.source.store().will_need(&ranges);
        }
        let Some(chunks) = reader.source.object_chunks() else { return };
        for of_array in numbers.chunk_by(|a, b| a.0 == b.0) {
            let numbers: Vec<u64> = of_array.iter().map(|(_, number)| *number).collect();
            chunks.will_need_chunks(of_array[0].0, &numbers);
        }
    }

    /// Reads a job, and gives all their parts. What is to be asked of servers is asked while there is a ticket for it.
    fn serve(&self, job: Range<usize>, ticket: Option<Ticket<'_>>) {
        let lock = || self.benches.lock().unwrap_or_else(PoisonError::into_inner);
        let units = &self.wave.units[job];
        if !units.iter().any(|unit| self.is_wanted(unit)) {
            return;
        }
        let mut bench = lock().pop().unwrap_or_default();
        let mut stored = std::mem::take(&mut bench.stored);
        let is_read_first = units.len() > 1 || self.striped.is_some() && self.encoded(&units[0]).is_some();
        // What cannot be read together is read one by one, so that errors reach those alone who need what fails.
        let begin = is_read_first.then(|| self.read_stored(units, &mut stored).ok()).flatten();
        // Decoding asks no server.
        let ticket = ticket.filter(|_| begin.is_none());
        for unit in units {
            let tasks = self.tasks_of(unit);
            match &unit.kind {
                Kind::Chunk(wanted) => {
                    let own = begin.zip(wanted.stored()).and_then(|(begin, own)| {
                        stored.get((own.start - begin) as usize..(own.end - begin) as usize)
                    });
                    chunk::serve(wanted, &tasks, own, &mut bench);
                }
                Kind::Plain(range) => {
                    let store = self.first_of(unit).reader.source.store();
                    ranges::read(&**store, &plain_blocks(&tasks), range.clone(), &mut bench.room);
                }
                Kind::Cell(number) => cells::serve(*number, &tasks),
            }
        }
        drop(ticket);
        bench.stored = stored;
        lock().push(bench);
    }

    /// Reads the bytes of all units, and says where they begin.
    fn read_stored(&self, units: &[Unit], out: &mut Vec<u8>) -> Result<u64> {
        let ranges = || {
            units.iter().filter_map(|unit| match &unit.kind {
                Kind::Chunk(wanted) => wanted.stored(),
                _ => None,
            })
        };
        let begin = ranges().map(|range| range.start).min().unwrap_or(0);
        let end = ranges().map(|range| range.end).max().unwrap_or(0);
        let len = (end.max(begin) - begin) as usize;
        out.truncate(len);
        try_resize(out, len)?;
        self.first_of(&units[0]).reader.source.store().read_exact_at(begin, out)?;
        Ok(begin)
    }
}

/// The tasks of a unit of plain bytes as blocks of the store.
fn plain_blocks<'a, 'b>(tasks: &'b [&'b Task<'a>]) -> Vec<Plain<'a, 'b>> {
    let block = |task: &&'b Task<'a>| {
        let Placement::Direct { offset } = task.reader.layout.placement else { return None };
        let first = task.reader.place_in_store(offset, &task.bx.start);
        Some(Plain { task, first, to: task.base, shape: &task.bx.shape, chunk: None })
    };
    tasks.iter().filter_map(block).collect()
}
