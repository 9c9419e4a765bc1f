//! Building a replica by many processes, on a file system that they share: the sample sort of SDS, section III.A.2.
//!
//! Each process samples some segments; the pivots that follow from all samples are given to all; each partitions the
//! segments that are its own into spill files; each sorts a span of the replica's rows, out of all spill files, and writes it to
//! its place. The exchange of messages of the paper is files here, so that it needs no more memory than a process is given.

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value};
use sieva_types::{Error, ErrorKind, Result};

use super::build::{Build, Ready, Sort};
use super::code::for_each_code;
use super::layout::Layout;
use super::partition::{Keep, Partition};
use super::pivots::{self, Pivot};
use super::run::Run;
use super::runs::{Runs, SPILLS};
use super::source::{Segments, Source};
use super::writer::written;
use super::{Column, SortOptions, Table, files};

/// Buckets for each span: those at its ends are sorted by two processes.
const BUCKETS_PER_SPAN: usize = 8;

/// A build of which each process does a part. All of them describe the same table.
pub struct SharedBuild<'a> {
    build: Build<'a>,
    ready: Ready<'a>,
}

impl<'a> SharedBuild<'a> {
    /// What [`super::build()`] takes; memory and threads are those of this process.
    ///
    /// # Errors
    /// `invalid-value` for columns or regions that make no table; `memory-limit` where a region does not fit.
    pub fn new(
        shape: &'a [u64],
        columns: &'a [Column],
        table: &'a dyn Table,
        options: &'a SortOptions<'a>,
    ) -> Result<Self> {
        Self::with_sizes(Layout::STANDARD, None, shape, columns, table, options)
    }

    /// The same with other sizes, for tests.
    pub(super) fn with_sizes(
        layout: Layout,
        bucket_rows: Option<usize>,
        shape: &'a [u64],
        columns: &'a [Column],
        table: &'a dyn Table,
        options: &'a SortOptions<'a>,
    ) -> Result<Self> {
        let build = Build { layout, bucket_rows, shape, columns, table, options };
        let ready = build.ready()?;
        Ok(Self { build, ready })
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.ready.schema.rows
    }

    /// Number of segments, which are the regions of the table.
    pub fn segments(&self) -> usize {
        self.ready.source.segments()
    }

    /// How many of them are read for samples.
    pub fn sampled(&self) -> usize {
        pivots::sampled(&self.ready.source)
    }

    /// The number of buckets that suits `spans` spans of rows.
    pub fn buckets(&self, spans: usize) -> usize {
        let sizes = &self.ready.sizes;
        let usual = usize::try_from(self.rows().div_ceil(sizes.bucket_rows as u64)).unwrap_or(usize::MAX);
        let most = usize::try_from(self.rows()).unwrap_or(usize::MAX).min(sizes.most_buckets);
        usual.max(spans.saturating_mul(BUCKETS_PER_SPAN)).min(most).max(1)
    }

    /// Samples of some of the segments that are read for them.
    ///
    /// # Errors
    /// Those of the table; `cancelled`.
    pub fn sample(&self, buckets: usize, some: Range<usize>) -> Result<Vec<Pivot>> {
        let some = some.start.min(self.sampled())..some.end.min(self.sampled());
        pivots::sample(&self.run(), &self.ready.source, &self.ready.schema, buckets, some)
    }

    /// The pivots among the samples of all.
    pub fn pivots(samples: Vec<Pivot>, buckets: usize) -> Vec<Pivot> {
        pivots::select(samples, buckets)
    }

    /// Makes the empty arrays of the replica in `dir`, once, before rows are written to them.
    ///
    /// # Errors
    /// `io-error` and its kin.
    pub fn create(&self, dir: &Path) -> Result<()> {
        files::create_dir(dir)?;
        self.build.create(&self.ready, dir).map(drop)
    }

    /// Partitions segments at the pivots into spill files in `dir`.
    ///
    /// # Errors
    /// Those of the table; `io-error` and its kin; `cancelled`.
    pub fn partition(&self, dir: &Path, pivots: &[Pivot], segments: Range<usize>) -> Result<Runs> {
        let range = segments.start.min(self.segments())..segments.end.min(self.segments());
        let some = Segments { all: &self.ready.source, range };
        let Ready { schema, sizes, .. } = &self.ready;
        let keep = Keep::Named(dir);
        Ok(Partition::new(&self.run(), &some, schema, pivots, sizes.batch_rows, &keep)?.to_runs())
    }

    /// Spans of rows of about the same size, which begin and end where files do, or where chunks do if there are too few files.
    pub fn spans(&self, n: usize) -> Vec<Range<u64>> {
        let (layout, rows) = (self.build.layout, self.rows());
        let shards = layout.shards(rows);
        let is_many = shards >= (n as u64).saturating_mul(BUCKETS_PER_SPAN as u64);
        let unit = if is_many { layout.shard_rows() } else { layout.chunk as u64 };
        let units = rows.div_ceil(unit);
        let at = |i: u64| ((u128::from(units) * u128::from(i) / n as u128) as u64 * unit).min(rows);
        (0..n as u64).map(|i| at(i)..at(i + 1)).filter(|span| !span.is_empty()).collect()
    }

    /// Sorts a span of rows out of what all have partitioned, and writes it to its place in `dir`. The first keys of its chunks,
    /// in native byte order.
    ///
    /// # Errors
    /// `invalid-value` for runs or a span of another table; `io-error` and its kin; `cancelled`.
    pub fn sort(&self, dir: &Path, runs: &[Runs], span: &Range<u64>) -> Result<Vec<u8>> {
        let invalid = |what: String| Error::new(ErrorKind::InvalidValue, what);
        let (rows, chunk) = (self.rows(), self.build.layout.chunk as u64);
        let found: u64 = runs.iter().map(Runs::rows).sum();
        if found != rows {
            return Err(invalid(format!("{found} rows were partitioned, of {rows}")));
        }
        let mut places = HashSet::new();
        let mut batches = runs.iter().flat_map(|r| &r.batches);
        if let Some(twice) = batches.find(|b| !places.insert((&b.file, b.offset))) {
            let what = format!("rows were given twice, those in '{}' at {}", twice.file, twice.offset);
            return Err(invalid(what).hint("give the result of each task once"));
        }
        let is_edge = |row: u64| row == rows || row.is_multiple_of(chunk);
        if span.start > span.end || span.end > rows || !is_edge(span.start) || !is_edge(span.end) {
            return Err(invalid(format!("the rows {span:?} are no span of {rows} rows")));
        }
        let Ready { schema, source, sizes, .. } = &self.ready;
        let arrays = self.build.open(&self.ready, dir, span);
        let run = self.run();
        let sort = Sort { run: &run, schema, sizes, dir, ordered: source.ordered, wanted: span.clone() };
        let fences = written(self.build.layout, arrays, self.build.options.cancel, |writer| {
            sort.sort(Partition::of_runs(dir, runs)?, writer)?;
            Ok(writer.fences())
        })?;
        run.check()?;
        Ok(fences)
    }

    /// Removes the spill files and writes what is written last. `fences` are those of all spans, in their order.
    ///
    /// # Errors
    /// `invalid-value` where some are missing; `io-error` and its kin.
    pub fn finish(
        &self,
        dir: &Path,
        numbers: u64,
        fences: Vec<u8>,
        attributes: &Map<String, Value>,
    ) -> Result<()> {
        let chunks = self.build.layout.chunks(self.rows());
        let want = chunks * self.ready.schema.sizes[0] as u64;
        if fences.len() as u64 != want {
            let message = format!("first keys of {} bytes, {want} are those of all chunks", fences.len());
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let (mut last, mut ascend) = (0, true);
        for_each_code(self.ready.schema.key, &fences, |_, code| {
            ascend &= last <= code;
            last = code;
        });
        if !ascend {
            let message =
                "first keys of chunks that do not ascend: results are in another order than their tasks";
            return Err(Error::new(ErrorKind::InvalidValue, message)
                .hint("give the result of each task once, in the order of the tasks"));
        }
        remove_spills(dir).map_err(|e| files::unwritten(dir, &e))?;
        self.build.finish(&self.ready, dir, numbers, fences, attributes)
    }

    fn run(&self) -> Run<'_> {
        let Ready { schema, sizes, .. } = &self.ready;
        Run::new(self.build.options, sizes.threads, schema.sizes.len(), schema.rows)
    }
}

pub(super) fn remove_spills(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(SPILLS) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
