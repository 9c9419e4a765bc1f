//! Partition: batches of rows, each with its columns cut into the runs of the buckets.
//!
//! A thread reads as many segments as its share of the memory holds, one column at a time, and writes that
//! column's rows in the order of buckets to a spill file of its own (the file per process of SDS, section
//! III.A.1) or, where all rows fit, keeps them in memory.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_types::{Buffer, Result};

use super::code::{for_each_code, nan_code};
use super::files;
use super::pivots::{Boundaries, Pivot};
use super::run::Run;
use super::runs::{Runs, RunsOf, SPILLS};
use super::source::{Schema, Source};
use crate::store::random;

/// Rows in buckets: a bucket is the run of that number in each batch, in the order of batches.
pub(super) struct Partition {
    batches: Vec<Batch>,
    /// Rows of each bucket.
    pub sizes: Vec<u64>,
    /// Rows whose key is not NaN.
    pub numbers: u64,
}

/// Rows of successive segments.
struct Batch {
    /// The first row of each bucket's run, and the number of rows at last.
    starts: Vec<u32>,
    stored: Stored,
}

enum Stored {
    /// A buffer for each column.
    Memory(Vec<Buffer>),
    /// Columns one after the other from this offset of a file.
    File(Arc<Spill>, u64),
}

/// A spill file, and its name where it has one.
struct Spill {
    file: File,
    name: Option<String>,
}

/// Where a partition is kept.
pub(super) enum Keep<'a> {
    Memory,
    /// In spill files in this directory, which nobody else finds.
    Files(&'a Path),
    /// In spill files in this directory that other processes open.
    Named(&'a Path),
}

impl Partition {
    /// Partitions `source` at `pivots` in batches of about `batch_rows` rows.
    pub fn new(
        run: &Run<'_>,
        source: &dyn Source,
        schema: &Schema,
        pivots: &[Pivot],
        batch_rows: usize,
        keep: &Keep<'_>,
    ) -> Result<Self> {
        let ranges = batches(source, batch_rows);
        let boundaries = Boundaries::new(pivots);
        let done: Vec<Mutex<Option<Batch>>> = ranges.iter().map(|_| Mutex::new(None)).collect();
        let workers: Vec<Mutex<Worker>> = (0..run.threads).map(|_| Mutex::default()).collect();
        let nans = AtomicU64::new(0);
        run.parallel(ranges.len(), |thread, i| {
            let mut worker = workers[thread].lock().unwrap_or_else(PoisonError::into_inner);
            let task =
                Task { run, source, schema, boundaries: &boundaries, segments: ranges[i].clone(), keep };
            let batch = task.partition(&mut worker, &nans)?;
            *done[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(batch);
            Ok(())
        })?;
        let batches: Vec<Batch> =
            done.into_iter().filter_map(|b| b.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
        let sizes = sizes(&batches, boundaries.buckets());
        let rows: u64 = sizes.iter().sum();
        Ok(Self { batches, sizes, numbers: rows - nans.into_inner() })
    }

    /// A partition of batches that other processes have made, with the rows whose keys are no numbers left out of `numbers`.
    ///
    /// # Errors
    /// `io-error` where a file cannot be opened.
    pub fn of_runs(dir: &Path, runs: &[Runs]) -> Result<Self> {
        let mut files: HashMap<&str, Arc<Spill>> = HashMap::new();
        let (mut batches, mut numbers) = (Vec::new(), 0);
        for runs in runs {
            numbers += runs.numbers;
            for of in &runs.batches {
                let spill = match files.get(of.file.as_str()) {
                    Some(spill) => Arc::clone(spill),
                    None => {
                        let path = dir.join(&of.file);
                        let file = File::open(&path).map_err(|e| files::unread(&path, &e))?;
                        let spill = Arc::new(Spill { file, name: None });
                        files.insert(&of.file, Arc::clone(&spill));
                        spill
                    }
                };
                batches.push(Batch { starts: of.starts.clone(), stored: Stored::File(spill, of.offset) });
            }
        }
        let buckets = batches.first().map_or(1, |b| b.starts.len().saturating_sub(1));
        Ok(Self { sizes: sizes(&batches, buckets), batches, numbers })
    }

    /// Where its batches lie, for other processes; those in files without names are left out.
    pub fn to_runs(&self) -> Runs {
        let of = |batch: &Batch| match &batch.stored {
            Stored::File(spill, offset) => {
                Some(RunsOf { file: spill.name.clone()?, offset: *offset, starts: batch.starts.clone() })
            }
            Stored::Memory(_) => None,
        };
        Runs { batches: self.batches.iter().filter_map(of).collect(), numbers: self.numbers }
    }

    /// The runs of a bucket that have rows: number of the batch, rows within it.
    pub fn runs(&self, bucket: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        (self.batches.iter().enumerate())
            .map(move |(i, b)| (i, b.starts[bucket] as usize..b.starts[bucket + 1] as usize))
            .filter(|(_, run)| !run.is_empty())
    }

    /// The elements of a column of a batch from row `at` on, as many as fill `out`.
    pub fn read(
        &self,
        schema: &Schema,
        batch: usize,
        column: usize,
        at: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let (batch, size) = (&self.batches[batch], schema.sizes[column]);
        match &batch.stored {
            Stored::Memory(columns) => {
                out.copy_from_slice(&columns[column].bytes()[at * size..at * size + out.len()]);
                Ok(())
            }
            Stored::File(spill, offset) => {
                let rows = batch.starts.last().map_or(0, |&n| n as usize);
                let before: usize = schema.sizes[..column].iter().sum();
                let place = offset + (rows * before + at * size) as u64;
                spill.file.read_exact_at(out, place).map_err(|e| files::damaged(SPILL, e.into()))
            }
        }
    }

    /// The elements of a column of a whole bucket.
    pub fn read_bucket(&self, schema: &Schema, bucket: usize, column: usize, out: &mut Buffer) -> Result<()> {
        let size = schema.sizes[column];
        out.resize(self.sizes[bucket] as usize * size);
        let mut done = 0;
        for (batch, run) in self.runs(bucket) {
            let bytes = run.len() * size;
            self.read(schema, batch, column, run.start, &mut out.bytes_mut()[done..done + bytes])?;
            done += bytes;
        }
        Ok(())
    }
}

/// Rows of each bucket.
fn sizes(batches: &[Batch], buckets: usize) -> Vec<u64> {
    let mut sizes = vec![0; buckets];
    for batch in batches {
        sizes.iter_mut().zip(batch.starts.windows(2)).for_each(|(n, s)| *n += u64::from(s[1] - s[0]));
    }
    sizes
}

/// Successive segments in batches of at most `rows` rows, or of one segment.
fn batches(source: &dyn Source, rows: usize) -> Vec<Range<usize>> {
    let (mut batches, mut first, mut sum) = (Vec::new(), 0, 0);
    for segment in 0..source.segments() {
        if sum > 0 && sum + source.rows(segment) > rows {
            batches.push(first..segment);
            (first, sum) = (segment, 0);
        }
        sum += source.rows(segment);
    }
    if sum > 0 {
        batches.push(first..source.segments());
    }
    batches
}

/// What a thread keeps from batch to batch.
#[derive(Default)]
struct Worker {
    elements: Buffer,
    positions: Buffer,
    /// Where in the partitioned batch each row goes.
    places: Vec<u32>,
    partitioned: Buffer,
    spill: Option<(Arc<Spill>, u64)>,
}

struct Task<'a> {
    run: &'a Run<'a>,
    source: &'a dyn Source,
    schema: &'a Schema,
    boundaries: &'a Boundaries,
    segments: Range<usize>,
    keep: &'a Keep<'a>,
}

impl Task<'_> {
    fn partition(&self, worker: &mut Worker, nans: &AtomicU64) -> Result<Batch> {
        let starts = self.place(worker, nans)?;
        let rows = worker.places.len();
        let stored = match self.keep {
            Keep::Memory => {
                let mut columns = Vec::with_capacity(self.schema.sizes.len());
                for column in 0..self.schema.sizes.len() {
                    let mut kept = Buffer::default();
                    self.scatter(column, worker, &mut kept)?;
                    columns.push(kept);
                }
                Stored::Memory(columns)
            }
            Keep::Files(dir) | Keep::Named(dir) => {
                let (spill, offset) = worker.spill(dir, matches!(self.keep, Keep::Named(_)))?;
                let mut partitioned = std::mem::take(&mut worker.partitioned);
                let mut at = offset;
                for column in 0..self.schema.sizes.len() {
                    self.scatter(column, worker, &mut partitioned)?;
                    files::write_at(&spill.file, Path::new(SPILL), at, partitioned.bytes())?;
                    at += partitioned.bytes().len() as u64;
                }
                worker.partitioned = partitioned;
                worker.spill = Some((spill.clone(), at));
                Stored::File(spill, offset)
            }
        };
        debug_assert_eq!(starts.last().map(|&n| n as usize), Some(rows));
        Ok(Batch { starts, stored })
    }

    /// Finds the place of each row: by bucket, and within it in the order of rows.
    fn place(&self, worker: &mut Worker, nans: &AtomicU64) -> Result<Vec<u32>> {
        let mut counts = vec![0_u32; self.boundaries.buckets()];
        let nan = nan_code(self.schema.key);
        let Worker { elements, positions, places, .. } = worker;
        places.clear();
        for segment in self.segments.clone() {
            self.run.check()?;
            self.source.read(segment, 0, elements)?;
            self.source.read(segment, self.schema.positions(), positions)?;
            let mut not_numbers = 0;
            places.reserve(self.source.rows(segment));
            for_each_code(self.schema.key, elements.bytes(), |i, code| {
                let bucket = self.boundaries.bucket(code, || self.schema.position(positions, i));
                counts[bucket] += 1;
                not_numbers += u64::from(Some(code) == nan);
                places.push(bucket as u32);
            });
            nans.fetch_add(not_numbers, Relaxed);
        }
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut sum = 0;
        for count in &mut counts {
            starts.push(sum);
            sum += std::mem::replace(count, sum);
        }
        starts.push(sum);
        for place in places {
            let next = &mut counts[*place as usize];
            *place = std::mem::replace(next, *next + 1);
        }
        Ok(starts)
    }

    /// Reads a column of the batch and puts its elements into their places in `out`.
    fn scatter(&self, column: usize, worker: &mut Worker, out: &mut Buffer) -> Result<()> {
        let size = self.schema.sizes[column];
        out.resize(worker.places.len() * size);
        let mut done = 0;
        for segment in self.segments.clone() {
            self.run.check()?;
            self.source.read(segment, column, &mut worker.elements)?;
            let places = &worker.places[done..done + self.source.rows(segment)];
            let (from, to) = (worker.elements.bytes(), out.bytes_mut());
            match size {
                1 => scatter::<1>(from, places, to),
                2 => scatter::<2>(from, places, to),
                4 => scatter::<4>(from, places, to),
                _ => scatter::<8>(from, places, to),
            }
            done += places.len();
            self.run.advance(places.len());
        }
        Ok(())
    }
}

fn scatter<const SIZE: usize>(from: &[u8], places: &[u32], to: &mut [u8]) {
    let to = to.as_chunks_mut::<SIZE>().0;
    for (element, &place) in from.as_chunks::<SIZE>().0.iter().zip(places) {
        to[place as usize] = *element;
    }
}

/// How messages name a spill file, which has no name.
const SPILL: &str = "spill file";

impl Worker {
    /// The thread's spill file and where it ends. One that no other process opens has lost its name as soon as it is
    /// there: the system removes it whatever becomes of the process.
    fn spill(&mut self, dir: &Path, is_named: bool) -> Result<(Arc<Spill>, u64)> {
        if let Some((spill, end)) = &self.spill {
            return Ok((spill.clone(), *end));
        }
        let name = format!("{SPILLS}{}", random());
        let path = dir.join(&name);
        let create = || {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            if !is_named {
                fs::remove_file(&path)?;
            }
            Ok(file)
        };
        let file = create().map_err(|e| files::unwritten(&path, &e))?;
        let spill = Arc::new(Spill { file, name: is_named.then_some(name) });
        Ok((self.spill.insert((spill, 0)).0.clone(), 0))
    }
}
