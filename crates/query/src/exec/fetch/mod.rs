//! Fetching: the values of an array at selected positions.
//!
//! Positions are grouped by where they lie: by chunk where chunks must be decoded as a whole, else by runs
//! without large gaps, so that as few ranges as pays are read and each chunk is decoded once.

mod boxes;
pub(super) mod column;
pub(super) mod ordered;
pub(super) mod recall;
pub(super) mod rows;
pub(super) mod runs;
pub(super) mod slices;
pub(crate) mod steps;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sieva_format::buffer::Buffer;
use sieva_format::read::{BlockReader, Wants, Workspace};
use sieva_types::{Bx, DType, ErrorKind, PlacedTexts, Result, Texts};

use crate::bind::{Output, Value};
use crate::exec::access_path::sorted::Chosen;
use crate::exec::fetch::boxes::read_boxes;
use crate::exec::fetch::column::{Column, Data};
use crate::exec::fetch::runs::{MAX_SPAN_BYTES, read_runs};
use crate::exec::fetch::slices::{Job, Slices};
use crate::exec::pool::{Flow, in_order};
use crate::exec::tile::arrays::element_size;
use crate::exec::tile::cut_to;
use crate::exec::{Execution, FetchWay};
use crate::raw::StoredDomain;

/// What a text is taken to need at least, where its length is not fixed.
const TEXT_BYTES: usize = 64;
/// Bytes that a network is told of at once.
const AHEAD_BYTES: u64 = 32 << 20;
/// Positions in a piece of work where they are fetched run by run.
const PIECE: usize = 1 << 12;
/// Fewer positions than this are not worth a thread.
const PARALLEL_POSITIONS: usize = 1 << 12;

/// Fetches values at positions of the row space; keeps what is small from call to call.
pub struct Gatherer {
    execution: Arc<Execution>,
    whole: Vec<Option<Arc<Buffer>>>,
    texts: Vec<Option<Arc<Texts>>>,
    threads: usize,
}

impl Gatherer {
    /// A gatherer of the arrays of `execution`.
    pub fn new(execution: Arc<Execution>) -> Self {
        let (n, threads) = (execution.bound.arrays.len(), execution.options.threads);
        execution.ask_for_small();
        Self { execution, whole: vec![None; n], texts: vec![None; n], threads }
    }

    /// Fetches with so many threads, in place of those of the query: for callers that are many threads themselves.
    pub fn use_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// The query whose arrays are fetched.
    pub fn execution(&self) -> &Execution {
        &self.execution
    }

    /// The values of bound array `array` at `positions` (C order of the row space).
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn column(&mut self, array: usize, raw: bool, positions: &[u64]) -> Result<Column> {
        let execution = Arc::clone(&self.execution);
        let bound = &execution.bound.arrays[array];
        let info = &execution.source.schema().arrays[bound.index];
        let own = self.own_positions(array, positions);
        if info.dtype == DType::Str {
            return self.texts(array, &info.shape, &own);
        }
        let domain = if raw { &bound.raw_domain } else { &bound.domain };
        let size = element_size(domain);
        let auto = execution.options.fetch == FetchWay::Auto;
        if auto
            && let Some(chosen) = execution.chosen()
            && let Some(column) = self.of_replica(own.len(), domain, |values| {
                chosen.fetch(bound.index, &own, values, &execution.options)
            })?
        {
            return Ok(column);
        }
        let mut out = Buffer::default();
        out.resize(own.len() * size);
        if auto && execution.is_small(array, &info.shape) {
            let whole = self.small(array, &info.shape)?;
            let source = whole.bytes();
            for (slot, &p) in out.bytes_mut().chunks_exact_mut(size).zip(own.iter()) {
                slot.copy_from_slice(&source[p as usize * size..][..size]);
            }
        } else {
            self.recalled(array, &info.shape, &own, size, &mut out)?;
        }
        Ok(Column::decode(&out, own.len(), domain))
    }

    /// As [`Gatherer::column`], of positions that follow one another: read as boxes, with no list of them.
    ///
    /// # Errors
    /// As [`Gatherer::column`].
    pub fn run(&mut self, array: usize, raw: bool, positions: Range<u64>) -> Result<Column> {
        let execution = Arc::clone(&self.execution);
        let bound = &execution.bound.arrays[array];
        let info = &execution.source.schema().arrays[bound.index];
        let own_rows = bound.axes.len() == execution.bound.rows.shape.len() && bound.axes.is_sorted();
        let auto = execution.options.fetch == FetchWay::Auto && execution.chosen().is_none();
        let small = execution.is_small(array, &info.shape);
        // Of several boxes two may have parts of one chunk.
        let shares = || execution.flat[array].is_none() && !boxes::is_box(positions.clone(), &info.shape);
        if !own_rows || !auto || small || info.dtype == DType::Str || shares() {
            let listed: Vec<u64> = positions.collect();
            return self.column(array, raw, &listed);
        }
        let domain = if raw { &bound.raw_domain } else { &bound.domain };
        let n = (positions.end - positions.start) as usize;
        let mut out = Buffer::default();
        let readers = (&execution.readers[array], execution.flat[array].as_ref());
        let form = (&info.shape[..], element_size(domain));
        read_boxes(&execution, readers, form, positions, self.threads, &mut out)?;
        Ok(Column::decode(&out, n, domain))
    }

    /// Positions of the row space as C-order positions of the array.
    fn own_positions<'p>(&self, array: usize, positions: &'p [u64]) -> Cow<'p, [u64]> {
        let (rows, axes) = (&self.execution.bound.rows, &self.execution.bound.arrays[array].axes);
        if axes.len() == rows.shape.len() && axes.is_sorted() {
            return Cow::Borrowed(positions);
        }
        let mut strides = vec![0; rows.shape.len()];
        let mut stride = 1;
        for &axis in axes.iter().rev() {
            strides[axis] += stride;
            stride *= rows.shape[axis];
        }
        let inner = rows.shape.last().copied().unwrap_or(1);
        let step = strides.last().copied().unwrap_or(0);
        let start_of = |row: u64| {
            let (mut rest, mut at) = (row, 0);
            for d in (0..strides.len().saturating_sub(1)).rev() {
                at += rest % rows.shape[d] * strides[d];
                rest /= rows.shape[d];
            }
            at
        };
        // Positions mostly come row by row of the innermost dimension: a division for each row, not for each position.
        let (mut low, mut at) = (0, 0);
        let own = |&p: &u64| {
            if p.wrapping_sub(low) >= inner {
                let row = p / inner;
                (low, at) = (row * inner, start_of(row));
            }
            at + (p - low) * step
        };
        Cow::Owned(positions.iter().map(own).collect())
    }

    /// What `fetch` gets from the replica that gave the rows, as a column; `None` where it does not carry the array, or is
    /// damaged. Its positions are those of all arrays that it carries.
    fn of_replica(
        &self,
        n: usize,
        domain: &StoredDomain,
        fetch: impl FnOnce((usize, &mut [u8])) -> Result<Option<()>>,
    ) -> Result<Option<Column>> {
        match Column::filled(n, domain, |out| fetch((element_size(domain), out))) {
            Err(e) if e.kind() == ErrorKind::CorruptIndex => {
                self.execution.indexes.note(e.message());
                Ok(None)
            }
            done => done,
        }
    }

    /// The columns of some of the rows that a replica gave; `None` unless it has all of their values.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub(super) fn rows_of(
        &self,
        chosen: &Chosen,
        outputs: &[Output],
        rows: Range<usize>,
    ) -> Result<Option<Vec<Column>>> {
        let (bound, options) = (&self.execution.bound, &self.execution.options);
        let mut wanted = Vec::with_capacity(outputs.len());
        for output in outputs {
            let Value::Array { array, raw } = &output.value else { return Ok(None) };
            let own = &bound.arrays[*array];
            let domain = if *raw { &own.raw_domain } else { &own.domain };
            let lines_up = own.axes.len() == bound.rows.shape.len() && own.axes.is_sorted();
            if !lines_up || domain.dtype() == DType::Str || options.fetch != FetchWay::Auto {
                return Ok(None);
            }
            wanted.push((own.index, domain));
        }
        // All at once, so that threads share the columns.
        let arrays: Vec<_> = wanted.iter().map(|(index, domain)| (*index, element_size(domain))).collect();
        match chosen.load(&arrays, options) {
            Err(e) if e.kind() == ErrorKind::CorruptIndex => {
                self.execution.indexes.note(e.message());
                return Ok(None);
            }
            done => done?,
        }
        let column = |(index, domain): (usize, &StoredDomain)| {
            self.of_replica(rows.len(), domain, |out| chosen.fetch_rows(index, rows.clone(), out, options))
        };
        wanted.into_iter().map(column).collect()
    }

    fn small(&mut self, array: usize, shape: &[u64]) -> Result<Arc<Buffer>> {
        if let Some(known) = &self.whole[array] {
            return Ok(Arc::clone(known));
        }
        let mut buffer = Buffer::default();
        self.execution.readers[array].read(&Bx::whole(shape), &mut buffer, &mut Workspace::default())?;
        let buffer = Arc::new(buffer);
        self.whole[array] = Some(Arc::clone(&buffer));
        Ok(buffer)
    }

    fn texts(&mut self, array: usize, shape: &[u64], own: &[u64]) -> Result<Column> {
        let execution = Arc::clone(&self.execution);
        let reader = &execution.readers[array];
        let mut workspace = Workspace::default();
        let texts = if execution.is_small(array, shape) {
            let known = match &self.texts[array] {
                Some(known) => Arc::clone(known),
                None => Arc::new(reader.read_texts(&Bx::whole(shape), &mut workspace)?),
            };
            self.texts[array] = Some(Arc::clone(&known));
            known.take(own.iter().map(|&p| p as usize))
        } else {
            let mut block = block_shape(reader, shape, reader.layout().element_size.max(TEXT_BYTES));
            cut_to(&mut block, execution.room_for(array));
            let (sorted, order) = ascending(own);
            let slices = Slices::new(&sorted, shape, &block);
            let mut out = PlacedTexts::new(own.len());
            for job in slices.jobs() {
                let texts = reader.read_texts(&job.bx, &mut workspace)?;
                for slice in &slices.all[job.slices] {
                    for (i, place) in slice.at.clone().zip(slices.places(slice, &job.bx)) {
                        out.put(order.as_ref().map_or(i, |o| o[i]), &texts[place]);
                    }
                }
            }
            out.finish("")
        };
        Ok(Column { data: Data::Str(texts), valid: None })
    }

    pub(in crate::exec) fn scattered(
        &self,
        array: usize,
        shape: &[u64],
        own: &[u64],
        size: usize,
        out: &mut Buffer,
    ) -> Result<()> {
        let reader = &self.execution.readers[array];
        let flat = &self.execution.flat[array];
        if let (Some(flat), true) = (flat, own.is_sorted()) {
            return self.runs(flat, own, size, out);
        }
        let (reader, shape) = match flat.as_ref().filter(|f| f.is_dense()) {
            Some(flat) => (flat, flat.layout().extent.clone()),
            None => (reader, shape.to_vec()),
        };
        let block = block_shape(reader, &shape, size);
        let (sorted, order) = ascending(own);
        let slices = Slices::new(&sorted, &shape, &block);
        let jobs = slices.jobs();
        let options = &self.execution.options;
        let threads = if own.len() < PARALLEL_POSITIONS { 1 } else { self.threads };
        let ahead = JobsAhead::default();
        let fetch = |ws: &mut (Workspace, Buffer), j: usize| {
            let job = &jobs[j];
            ahead.before(reader, j, &jobs);
            reader.read(&job.bx, &mut ws.1, &mut ws.0)?;
            let mine = &slices.all[job.slices.clone()];
            let mut picked = Vec::with_capacity(mine.iter().map(|s| s.at.len()).sum::<usize>() * size);
            for slice in mine {
                slices.pick(slice, &job.bx, ws.1.bytes(), size, &mut picked);
            }
            Ok((job.slices.clone(), picked))
        };
        let target = out.bytes_mut();
        in_order(jobs.len(), threads, &options.cancel, Default::default, fetch, |(mine, picked)| {
            let mut rest = &picked[..];
            for slice in &slices.all[mine] {
                let (values, others) = rest.split_at(slice.at.len() * size);
                rest = others;
                match &order {
                    None => target[slice.at.start * size..slice.at.end * size].copy_from_slice(values),
                    Some(order) => {
                        for (&i, value) in order[slice.at.clone()].iter().zip(values.chunks_exact(size)) {
                            target[i * size..(i + 1) * size].copy_from_slice(value);
                        }
                    }
                }
            }
            Ok(Flow::Continue(()))
        })
    }

    /// Sorted positions of an array that lies densely: run by run, across gaps that cost less than a request.
    fn runs(&self, flat: &BlockReader, own: &[u64], size: usize, out: &mut Buffer) -> Result<()> {
        let options = &self.execution.options;
        let threads = if own.len() < PARALLEL_POSITIONS { 1 } else { self.threads };
        let costs = &self.execution.indexes.costs.direct;
        let gap = match options.fetch {
            FetchWay::Auto => costs.gap(),
            FetchWay::Direct => 0,
            FetchWay::Block => MAX_SPAN_BYTES,
        };
        let fetch = |ws: &mut Workspace, job: usize| {
            let piece = &own[job * PIECE..own.len().min((job + 1) * PIECE)];
            let mut picked = vec![0; piece.len() * size];
            let started = Instant::now();
            let (requests, bytes) = read_runs(flat, piece, size, gap, ws, &mut picked)?;
            costs.observe(requests, bytes, started.elapsed().as_secs_f64() * 1e9);
            Ok(picked)
        };
        let target = out.bytes_mut();
        let mut at = 0;
        in_order(own.len().div_ceil(PIECE), threads, &options.cancel, Default::default, fetch, |picked| {
            target[at..at + picked.len()].copy_from_slice(&picked);
            at += picked.len();
            Ok(Flow::Continue(()))
        })
    }
}

/// How far a network was told of the jobs to come: by so many at once that requests go side by side, and by the next as
/// many when the last are begun.
#[derive(Default)]
struct JobsAhead(Mutex<ToldJobs>);

#[derive(Default)]
struct ToldJobs {
    /// The first job that was not told.
    next: usize,
    /// The job with which it goes on.
    due: usize,
}

impl JobsAhead {
    fn before(&self, reader: &BlockReader, job: usize, jobs: &[Job]) {
        if !reader.is_remote() {
            return;
        }
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wants = Wants::default();
        while job >= told.due && told.next < jobs.len() {
            told.due = told.next.max(job);
            told.next = told.due;
            let before = wants.bytes();
            while told.next < jobs.len() && wants.bytes() - before < AHEAD_BYTES && !wants.is_full() {
                reader.wants(&jobs[told.next].bx, &mut wants);
                told.next += 1;
            }
        }
        reader.will_need(&wants);
    }
}

/// The unit that is read at once: a chunk, or as many rows as a span may take.
fn block_shape(reader: &BlockReader, shape: &[u64], size: usize) -> Vec<u64> {
    let layout = reader.layout();
    if layout.is_chunked() {
        return layout.chunk_shape[..shape.len()].iter().map(|&c| c.max(1)).collect();
    }
    let mut block = vec![1; shape.len()];
    let mut n = 1;
    for d in (0..shape.len()).rev() {
        block[d] = shape[d].clamp(1, (MAX_SPAN_BYTES / size as u64 / n).max(1));
        n *= block[d];
    }
    block
}

/// Positions in ascending order, and where each of them stands in the list that was given, if that was another.
fn ascending(own: &[u64]) -> (Cow<'_, [u64]>, Option<Vec<usize>>) {
    if own.is_sorted() {
        return (Cow::Borrowed(own), None);
    }
    let mut order: Vec<usize> = (0..own.len()).collect();
    order.sort_unstable_by_key(|&i| own[i]);
    (Cow::Owned(order.iter().map(|&i| own[i]).collect()), Some(order))
}
