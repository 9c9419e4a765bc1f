//! The workers of a build: each takes regions, and writes a segment of its own.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sieva_format::read::Workspace;
use sieva_index::stats::{RegionStats, Sums};
use sieva_index::store::{ArrayRecords, Home, Listing, Record, SegmentWriter, Store};
use sieva_index::{Elements, bitmap, content_hash};
use sieva_types::{Buffer, Error, ErrorKind, Result};

use super::build::{BuildOptions, BuildReport, Job, Progress};
use crate::open::Source;

/// A worker publishes its segment after so many bytes of data.
const CHECKPOINT: u64 = 1 << 30;
/// How many times its bytes a region takes while its bitmap is built.
const BITMAP_TIMES: u64 = 6;

/// The memory of a build that a thread takes which builds regions of so many bytes: half of it is for decoding chunks.
pub(super) fn memory_for(region: u64, bitmaps: bool) -> u64 {
    region.saturating_mul(2 * if bitmaps { BITMAP_TIMES } else { 1 })
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

/// Does what is to be done of all jobs.
///
/// # Errors
/// Those of reading and writing; `cancelled`.
pub fn run(source: &Source, jobs: &[Job], options: &BuildOptions, strict: bool) -> Result<BuildReport> {
    let pieces: Vec<(usize, usize)> =
        jobs.iter().enumerate().flat_map(|(j, job)| job.regions.iter().map(move |&r| (j, r))).collect();
    let all: usize = jobs.iter().map(|j| j.grid.len()).sum();
    let total = pieces.iter().fold(0_u64, |n, &(j, r)| n.saturating_add(jobs[j].bytes(r)));
    let report = BuildReport { kept: (all - pieces.len()) as u64, ..BuildReport::default() };
    let work = Work {
        source,
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
        let threads: Vec<_> = (1..work.threads()).map(|_| scope.spawn(|| work.run())).collect();
        let mut done = vec![work.run()];
        let panicked = || Error::new(ErrorKind::Internal, "a worker thread ended unexpectedly");
        done.extend(threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(panicked()))));
        done.into_iter().collect::<Result<()>>()
    })?;
    Ok(work.report.into_inner().unwrap_or_else(PoisonError::into_inner))
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
    /// As many as there are pieces, and as there is room for regions: each is read, hashed and told in a bitmap.
    fn threads(&self) -> usize {
        let held = |&(j, r): &(usize, usize)| memory_for(self.jobs[j].bytes(r), self.jobs[j].bitmaps);
        let largest = self.pieces.iter().map(held).max().unwrap_or(0);
        let room = usize::try_from(self.options.memory / largest.max(1)).unwrap_or(usize::MAX);
        self.options.jobs.min(room).clamp(1, self.pieces.len())
    }

    fn run(&self) -> Result<()> {
        let done = self.segments();
        if done.is_err() {
            // The others need not go on.
            self.next.store(self.pieces.len(), Relaxed);
        }
        done
    }

    /// Where segments go.
    fn home(&self) -> Result<Home> {
        Ok(self.source.loaded()?.write.clone().with_patience(self.options.lock_timeout))
    }

    fn segments(&self) -> Result<()> {
        let reading = Workspace::cancelled_by(&self.options.cancel);
        let mut tools = Tools { reading, ..Tools::default() };
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
                None => (SegmentWriter::create(&self.home()?)?, 0),
            };
            let job = &self.jobs[job];
            let bytes = job.bytes(region);
            if !job.failed.load(Relaxed)
                && let Err(e) = self.region(job, region, &mut tools, &mut writer, &mut did)
            {
                if self.strict || !is_of_one_array(e.kind()) {
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
        let bitmaps = job.bitmaps;
        let unchanged =
            job.old.as_ref().zip(job.old_number(region)).filter(|(o, n)| o.content(*n) == Some(content));
        let copied = unchanged.is_some_and(|(old, number)| copy((old, number), job.packing, bitmaps, out));
        if copied {
            did.renewed += u64::from(!job.current);
        } else {
            let stats = RegionStats::full(elements, &job.header.missing);
            stats.with_sums(elements, &job.header.missing, job.packing).encode(&mut out.stats);
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
            &self.home()?,
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
fn copy(
    (old, number): (&ArrayRecords, usize),
    packing: Option<(f64, f64)>,
    bitmaps: bool,
    out: &mut Bytes,
) -> bool {
    let Some(stats) = old.stats(number) else { return false };
    let is_whole = |s: RegionStats| {
        // The same stored values may be decoded otherwise now.
        let decoded_by = |sums: &Sums| sums.decoded.as_ref().map(|d| d.packing);
        let has_sums = s.sums.as_deref().is_some_and(|sums| decoded_by(sums) == packing);
        has_sums && (s.histogram.is_some() || s.present() == 0)
    };
    if !RegionStats::decode(stats).is_ok_and(is_whole) {
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

/// Whether others of the file can be read all the same.
fn is_of_one_array(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::CorruptFile | ErrorKind::FilterUnavailable | ErrorKind::MemoryLimit)
}
