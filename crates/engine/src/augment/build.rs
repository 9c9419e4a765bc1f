//! Building zone maps, histograms and bitmaps: every byte is read once for all that is asked for.
//!
//! Regions are shared out among workers, each with its own segment (file per process: SDS section III.A.1,
//! SDQuery section 4.3), so that none waits for another. A worker publishes its segment from time to time:
//! a build that is stopped goes on from there. Regions whose content did not change keep what they have.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_index::store::{ArrayHeader, ArrayRecords, Listing, Record, SegmentWriter, Store};
use sieva_index::{Elements, RegionGrid, bitmap, content_hash, stats::RegionStats};
use sieva_types::{Buffer, Error, ErrorKind, Result};

use super::sort;
use crate::open::Source;

/// A worker publishes its segment after so many bytes of data.
const CHECKPOINT: u64 = 1 << 30;

/// A kind of augmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Zone map and histogram of each region.
    ZoneMap,
    /// Bitmap index of each region, with the zone maps.
    Bitmap,
    /// A replica sorted by the array.
    Sorted,
}

impl IndexKind {
    /// All of them with their names.
    pub const NAMED: [(&str, IndexKind); 3] =
        [("zonemap", Self::ZoneMap), ("bitmap", Self::Bitmap), ("sorted", Self::Sorted)];

    /// The kind of this name.
    ///
    /// # Errors
    /// `invalid-value`, listing the names.
    pub fn parse(name: &str) -> Result<Self> {
        Self::NAMED.iter().find(|(n, _)| *n == name).map(|(_, kind)| *kind).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidValue,
                format!("index kind '{name}' is not one of zonemap, bitmap, sorted"),
            )
        })
    }
}

/// How far a build is, in bytes of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes dealt with.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// How augmentations are built.
#[derive(Clone)]
pub struct BuildOptions {
    /// What to build.
    pub kinds: Vec<IndexKind>,
    /// Workers.
    pub jobs: usize,
    /// Bytes that a sort may take.
    pub memory: u64,
    /// Significant decimal digits of the bounds of bitmaps' bins.
    pub precision: u32,
    /// Arrays that a sorted replica carries besides its key; `None`: all numeric ones of the same dimensions.
    pub columns: Option<Vec<String>>,
    /// Called from time to time, from any worker.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Set to stop.
    pub cancel: Arc<AtomicBool>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            kinds: vec![IndexKind::ZoneMap, IndexKind::Bitmap],
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            memory: 1 << 30,
            precision: 2,
            columns: None,
            progress: None,
            cancel: Arc::default(),
        }
    }
}

/// What a build did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Regions built.
    pub built: u64,
    /// Regions that had all that was asked for already.
    pub kept: u64,
    /// Of those built, regions whose content was the same as before, so that nothing was computed again.
    pub renewed: u64,
    /// Bytes of data read, as decoded.
    pub bytes: u64,
    /// Replicas written.
    pub replicas: u64,
    /// Where no array was named: arrays with data that cannot be read, and why.
    pub unreadable: Vec<(String, String)>,
}

/// One array to be indexed.
struct Job {
    header: ArrayHeader,
    grid: RegionGrid,
    reader: BlockReader,
    /// What an earlier build left, of this state of the source or of another.
    old: Option<ArrayRecords>,
    /// Whether that is of this state.
    current: bool,
    regions: Vec<usize>,
    /// Set once some of its data could not be read.
    failed: AtomicBool,
}

/// What workers share.
struct Work<'a> {
    source: &'a Source,
    options: &'a BuildOptions,
    jobs: &'a [Job],
    /// Array and region of each piece of work.
    pieces: Vec<(usize, usize)>,
    next: AtomicUsize,
    done: AtomicU64,
    total: u64,
    /// Whether an array that cannot be read ends it all.
    strict: bool,
    report: Mutex<BuildReport>,
}

impl Source {
    /// Builds augmentations of arrays (none named: of all numeric arrays), as far as they are not there yet.
    ///
    /// # Errors
    /// `unknown-array`; `type-mismatch` and `unsupported` for named arrays that cannot be indexed;
    /// `permission-denied` where the store cannot be written; reading errors; `cancelled`.
    pub fn build_index(&self, arrays: &[String], options: &BuildOptions) -> Result<BuildReport> {
        let strict = !arrays.is_empty();
        let arrays = self.indexable(arrays)?;
        // What the file is now, not what it was when it was opened.
        self.reader().store().check_unchanged()?;
        self.augmented().forget();
        let mut report = BuildReport::default();
        let built = self.build(&arrays, options, strict, &mut report);
        self.augmented().forget();
        built.map(|()| report)
    }

    fn build(
        &self,
        arrays: &[usize],
        options: &BuildOptions,
        strict: bool,
        report: &mut BuildReport,
    ) -> Result<()> {
        let bitmaps = options.kinds.contains(&IndexKind::Bitmap);
        if bitmaps || options.kinds.contains(&IndexKind::ZoneMap) {
            let jobs = arrays.iter().map(|&a| self.job(a, bitmaps)).collect::<Result<Vec<_>>>()?;
            *report = self.run(&jobs, options, strict)?;
        }
        if options.kinds.contains(&IndexKind::Sorted) {
            for &key in arrays {
                report.replicas += u64::from(sort::build(self, key, options)?);
            }
        }
        Ok(())
    }

    /// The arrays that are meant: those named, or all that can be indexed.
    fn indexable(&self, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            let able = (0..self.schema().arrays.len()).filter(|&a| self.array_header(a).is_ok());
            return Ok(able.collect());
        }
        let arrays = names.iter().map(|name| self.resolve(name)).collect::<Result<Vec<_>>>()?;
        arrays.iter().try_for_each(|&a| self.array_header(a).map(|_| ()))?;
        Ok(arrays)
    }

    fn job(&self, array: usize, bitmaps: bool) -> Result<Job> {
        let loaded = self.loaded()?;
        let header = self.array_header(array)?;
        let grid = RegionGrid::new(&header.shape, &header.region)?;
        let current = loaded.store.is_some();
        let stale = loaded.stale.as_ref().and_then(|dir| Store::open(dir).ok().flatten());
        let old = loaded.store.as_ref().or(stale.as_ref()).and_then(|s| s.load(&header.path));
        let old = old.filter(|o| {
            let h = o.header();
            // Regions that the array had before it grew are those that it has now.
            (h.dtype, &h.missing, &h.region) == (header.dtype, &header.missing, &header.region)
                && (!current || h.shape == header.shape)
        });
        let complete = |region: &usize| {
            let whole = |o: &ArrayRecords| {
                o.stats(*region).is_some()
                    && o.content(*region).is_some()
                    && (!bitmaps || o.has_bitmap(*region))
            };
            current && old.as_ref().is_some_and(whole)
        };
        let regions = (0..grid.len()).filter(|r| !complete(r)).collect();
        let cache = Arc::new(ChunkCache::new(0));
        let reader = BlockReader::new(Arc::clone(self.reader()), array, cache, u64::MAX)?;
        Ok(Job { header, grid, reader, old, current, regions, failed: AtomicBool::new(false) })
    }

    fn run(&self, jobs: &[Job], options: &BuildOptions, strict: bool) -> Result<BuildReport> {
        let pieces: Vec<(usize, usize)> =
            jobs.iter().enumerate().flat_map(|(j, job)| job.regions.iter().map(move |&r| (j, r))).collect();
        let all: usize = jobs.iter().map(|j| j.grid.len()).sum();
        let total = pieces.iter().map(|&(j, r)| jobs[j].bytes(r)).sum();
        let report = BuildReport { kept: (all - pieces.len()) as u64, ..BuildReport::default() };
        let work = Work {
            source: self,
            options,
            jobs,
            pieces,
            next: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            total,
            strict,
            report: Mutex::new(report),
        };
        if work.pieces.is_empty() {
            return Ok(work.report.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (1..options.jobs.clamp(1, work.pieces.len())).map(|_| scope.spawn(|| work.run())).collect();
            let mut done = vec![work.run()];
            let panicked = || Error::new(ErrorKind::Internal, "a worker thread ended unexpectedly");
            done.extend(threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(panicked()))));
            done.into_iter().collect::<Result<()>>()
        })?;
        Ok(work.report.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Job {
    fn bytes(&self, region: usize) -> u64 {
        self.grid.bx(region).len() * self.header.dtype.size() as u64
    }

    /// The number that a region had in the old grid, where it was the same block then.
    fn old_number(&self, region: usize) -> Option<usize> {
        let old = self.old.as_ref()?;
        let grid = RegionGrid::new(&old.header().shape, &old.header().region).ok()?;
        let number = grid.number(&self.grid.coords(region))?;
        (grid.bx(number) == self.grid.bx(region)).then_some(number)
    }
}

/// What one worker reuses from region to region.
#[derive(Default)]
struct Tools {
    buffer: Buffer,
    reading: Workspace,
    bitmap: bitmap::Workspace,
    record: Bytes,
}

/// A region's records.
#[derive(Default)]
struct Bytes {
    stats: Vec<u8>,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Work<'_> {
    fn run(&self) -> Result<()> {
        let done = self.segments();
        if done.is_err() {
            // The others need not go on.
            self.next.store(self.pieces.len(), Relaxed);
        }
        done
    }

    fn segments(&self) -> Result<()> {
        let loaded = self.source.loaded()?;
        let mut tools = Tools::default();
        let mut did = BuildReport::default();
        let mut open: Option<(SegmentWriter, u64)> = None;
        while let Some(&(job, region)) = self.pieces.get(self.next.fetch_add(1, Relaxed)) {
            if self.options.cancel.load(Relaxed) {
                if let Some((writer, _)) = open {
                    self.publish(writer)?;
                }
                let message = "the build was interrupted; what was done is kept";
                return Err(Error::new(ErrorKind::Cancelled, message));
            }
            let (mut writer, written) = match open.take() {
                Some(open) => open,
                None => (SegmentWriter::create(&loaded.write)?, 0),
            };
            let job = &self.jobs[job];
            let bytes = job.bytes(region);
            if !job.failed.load(Relaxed)
                && let Err(e) = self.region(job, region, &mut tools, &mut writer, &mut did)
            {
                if self.strict || !matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::FilterUnavailable) {
                    return Err(e);
                }
                if !job.failed.swap(true, Relaxed) {
                    did.unreadable.push((job.header.path.clone(), e.message().to_string()));
                }
            }
            if written + bytes < CHECKPOINT {
                open = Some((writer, written + bytes));
            } else {
                self.publish(writer)?;
            }
            if let Some(progress) = &self.options.progress {
                progress(Progress { done: self.done.fetch_add(bytes, Relaxed) + bytes, total: self.total });
            }
        }
        if let Some((writer, _)) = open {
            self.publish(writer)?;
        }
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.built += did.built;
        report.renewed += did.renewed;
        report.bytes += did.bytes;
        report.unreadable.append(&mut did.unreadable);
        Ok(())
    }

    /// Indexes one region.
    fn region(
        &self,
        job: &Job,
        region: usize,
        tools: &mut Tools,
        writer: &mut SegmentWriter,
        did: &mut BuildReport,
    ) -> Result<()> {
        job.reader.read(&job.grid.bx(region), &mut tools.buffer, &mut tools.reading)?;
        let Some(elements) = Elements::new(job.header.dtype, &tools.buffer) else {
            return Err(Error::new(ErrorKind::Internal, "texts were to be indexed"));
        };
        let bytes = elements.bytes().len() as u64;
        let content = content_hash(elements.bytes());
        did.built += 1;
        did.bytes += bytes;
        let out = &mut tools.record;
        [&mut out.stats, &mut out.head, &mut out.body].into_iter().for_each(Vec::clear);
        let bitmaps = self.options.kinds.contains(&IndexKind::Bitmap);
        let unchanged =
            job.old.as_ref().zip(job.old_number(region)).filter(|(o, n)| o.content(*n) == Some(content));
        let copied = unchanged.is_some_and(|(old, number)| copy(old, number, bitmaps, out));
        if copied {
            did.renewed += u64::from(!job.current);
        } else {
            RegionStats::full(elements, &job.header.missing).encode(&mut out.stats);
            if bitmaps {
                let missing = &job.header.missing;
                let (head, body) = (&mut out.head, &mut out.body);
                bitmap::build(elements, missing, self.options.precision, &mut tools.bitmap, head, body);
            }
        }
        let bitmap = (!out.head.is_empty()).then_some((&out.head[..], &out.body[..]));
        let record = Record { region: region as u64, content: Some(content), stats: &out.stats, bitmap };
        writer.put(&job.header, &record)
    }

    /// Lists a worker's segment. What another state of the source left is dropped by the first one.
    fn publish(&self, writer: SegmentWriter) -> Result<()> {
        self.source.reader().store().check_unchanged()?;
        let loaded = self.source.loaded()?;
        let name = writer.finish(true)?;
        Store::publish(
            &loaded.write,
            loaded.fingerprint()?,
            &|listing: &Listing| {
                let mut listing = listing.clone();
                listing.segments.push(name.clone());
                listing
            },
            true,
        )
    }
}

/// Takes over the records of a region that did not change; `false` where they are not all there.
fn copy(old: &ArrayRecords, number: usize, bitmaps: bool, out: &mut Bytes) -> bool {
    let Some(stats) = old.stats(number) else { return false };
    if !RegionStats::decode(stats).is_ok_and(|s| s.histogram.is_some() || s.present() == 0) {
        return false;
    }
    if bitmaps {
        let Ok(Some(head)) = old.bitmap_head(number) else { return false };
        if old.read_body(number, 0..head.body_len, &mut out.body).is_err() {
            return false;
        }
        out.head.extend_from_slice(&head);
    }
    out.stats.extend_from_slice(stats);
    true
}
