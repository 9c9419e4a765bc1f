//! Some regions of an array, indexed in memory: what an augmentation would be like before there is one.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_index::bitmap::{self, RegionBitmap};
use sieva_index::stats::RegionStats;
use sieva_index::{Elements, RegionGrid};
use sieva_query::cost::Costs;
use sieva_types::{Buffer, DType, Error, ErrorKind, KeySet, Result};

use super::AdviseOptions;
use crate::open::Source;

/// Regions that are looked at.
const REGIONS: usize = 16;
/// Bytes of data that are looked at.
const BYTES: u64 = 64 << 20;
/// Digits of the bounds of bitmaps' bins, as a build has them if nothing is said.
const PRECISION: u32 = 2;
/// Bytes that a store keeps of a region besides its statistics.
const RECORD: u64 = 24;
/// Seconds of making a build count, whatever its size: files that are synchronised with the disk.
const PUBLISH: f64 = 0.02;

/// Observations from which the cost of bitmaps is known.
const LEARNT: u64 = 16;
/// Sets that teach it, and bytes from which an evaluation does.
const LEARN_SETS: usize = 8;
const LEARN_BYTES: u64 = 4096;

/// One region.
pub(super) struct Part {
    pub rows: u64,
    pub stats: RegionStats,
    /// Its bitmap with the body; `None` where it can have none.
    pub bitmap: Option<(RegionBitmap, Vec<u8>)>,
}

/// An array as some of its regions show it.
pub(super) struct Sample {
    pub parts: Vec<Part>,
    pub missing: KeySet,
    pub dtype: DType,
    /// Elements of the whole array.
    pub elements: u64,
    /// Regions of the whole array.
    pub regions: u64,
    pub chunked: bool,
    pub chunk_bytes: u64,
    /// Bytes of an augmentation of each kind; of the replica without columns besides its key.
    pub bytes: [u64; 3],
    /// Seconds that building each kind takes, likewise.
    pub seconds: [f64; 3],
    /// Seconds of reading the array once, on one thread.
    pub read_seconds: f64,
    /// Costs on this host.
    pub costs: Costs,
}

/// What the sampled regions took together.
#[derive(Default)]
struct Took {
    read: f64,
    stats: f64,
    bitmap: f64,
    sort: f64,
    stats_bytes: u64,
    bitmap_bytes: u64,
}

/// Looks at some regions of an array.
///
/// # Errors
/// `type-mismatch` and `unsupported` for arrays that cannot be indexed; reading errors; `cancelled`.
pub(super) fn take(source: &Source, array: usize, options: &AdviseOptions) -> Result<Sample> {
    let header = source.array_header(array)?;
    let grid = RegionGrid::new(&header.shape, &header.region)?;
    let cache = Arc::new(ChunkCache::new(0));
    let reader = BlockReader::new(Arc::clone(source.reader()), array, cache, source.memory())?;
    let elements = sieva_types::Bx::whole(&header.shape).len();
    let (mut buffer, mut reading) = (Buffer::default(), Workspace::default());
    let (mut building, mut took, mut parts) = (bitmap::Workspace::default(), Took::default(), Vec::new());
    let (mut bytes, mut rows) = (0, 0);
    let step = grid.len().div_ceil(REGIONS).max(1);
    for region in (0..grid.len()).step_by(step).filter(|_| elements > 0) {
        if options.cancel.load(Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the advice was interrupted"));
        }
        if bytes > BYTES {
            break;
        }
        let started = Instant::now();
        reader.read(&grid.bx(region), &mut buffer, &mut reading)?;
        took.read += started.elapsed().as_secs_f64();
        let Some(data) = Elements::new(header.dtype, &buffer) else {
            return Err(Error::new(ErrorKind::Internal, "texts were to be indexed"));
        };
        bytes += data.bytes().len() as u64;
        rows += data.len() as u64;
        parts.push(part(data, &header.missing, &mut building, &mut took)?);
    }
    let layout = reader.layout();
    let mut sample = Sample {
        parts,
        missing: header.missing.clone(),
        dtype: header.dtype,
        elements,
        regions: grid.len() as u64,
        chunked: layout.is_chunked(),
        chunk_bytes: layout.chunk_bytes,
        bytes: [0; 3],
        seconds: [PUBLISH; 3],
        read_seconds: 0.0,
        costs: Costs::default(),
    };
    source.costs_into(&sample.costs);
    sample.extrapolate(&took, rows, options.jobs);
    Ok(sample)
}

fn part(data: Elements<'_>, missing: &KeySet, ws: &mut bitmap::Workspace, took: &mut Took) -> Result<Part> {
    let (mut encoded, mut head, mut body) = (Vec::new(), Vec::new(), Vec::new());
    let started = Instant::now();
    let stats = RegionStats::full(data, missing);
    stats.encode(&mut encoded);
    took.stats += started.elapsed().as_secs_f64();
    let started = Instant::now();
    bitmap::build(data, missing, PRECISION, ws, &mut head, &mut body);
    took.bitmap += started.elapsed().as_secs_f64();
    let started = Instant::now();
    let mut keys: Vec<(i128, u32)> =
        (0..data.len()).map(|i| (data.key(i).unwrap_or(i128::MAX), i as u32)).collect();
    keys.sort_unstable();
    took.sort += started.elapsed().as_secs_f64();
    took.stats_bytes += encoded.len() as u64 + RECORD;
    took.bitmap_bytes += (head.len() + body.len()) as u64 + RECORD;
    let has_bitmap = !head.is_empty();
    let bitmap =
        has_bitmap.then(|| RegionBitmap::parse(&head, body.len() as u64, data.dtype())).transpose()?;
    Ok(Part { rows: data.len() as u64, stats, bitmap: bitmap.map(|b| (b, body)) })
}

impl Sample {
    /// From the regions that were looked at to the whole array.
    fn extrapolate(&mut self, took: &Took, rows: u64, jobs: usize) {
        if rows == 0 {
            return;
        }
        let times = self.elements as f64 / rows as f64;
        let jobs = jobs.clamp(1, usize::try_from(self.regions).unwrap_or(1).max(1)) as f64;
        self.read_seconds = took.read * times;
        let position: u64 = if self.elements <= u64::from(u32::MAX) { 4 } else { 8 };
        self.bytes = [
            (took.stats_bytes as f64 * times).ceil() as u64,
            (took.bitmap_bytes as f64 * times).ceil() as u64,
            self.elements.saturating_mul(self.dtype.size() as u64 + position),
        ];
        // Merging sorted runs costs as much as sorting them, once for each doubling of what is sorted together.
        let deeper = 1.0 + times.log2().max(0.0) / (rows as f64 / self.parts.len() as f64).log2().max(1.0);
        self.seconds = [
            PUBLISH + (took.read + took.stats) * times / jobs,
            PUBLISH + (took.read + took.stats + took.bitmap) * times / jobs,
            // What is read is written as well, which takes about as long.
            PUBLISH + (took.sort * deeper + 2.0 * took.read) * times / jobs,
        ];
    }

    /// Learns what bitmaps cost here, where no query has told it yet: sampled ones are evaluated for some of the sets
    /// that were asked.
    pub fn learn<'s>(&self, sets: impl Iterator<Item = &'s KeySet>) {
        if self.costs.index.byte.seen() >= LEARNT {
            return;
        }
        let mut ws = bitmap::Workspace::default();
        for set in sets.take(LEARN_SETS) {
            for (bitmap, body) in self.parts.iter().filter_map(|p| p.bitmap.as_ref()) {
                let bytes = bitmap.cost(set);
                let words = (bitmap.rows() as usize).div_ceil(64);
                let (mut sure, mut check) = (vec![0_u64; words], vec![0_u64; words]);
                let mut fetch = |range: std::ops::Range<u64>, out: &mut Vec<u8>| {
                    out.extend_from_slice(&body[range.start as usize..range.end as usize]);
                    Ok(())
                };
                let started = Instant::now();
                let done = bitmap.evaluate(set, &mut fetch, &mut ws, &mut sure, &mut check);
                if done.is_ok() && bytes >= LEARN_BYTES {
                    self.costs.index.byte.observe(started.elapsed().as_secs_f64() * 1e9 / bytes as f64);
                }
            }
        }
    }

    /// Bytes and seconds that a replica takes more for another column of `size` bytes per element.
    pub fn column(&self, size: usize, jobs: usize) -> (u64, f64) {
        (self.elements.saturating_mul(size as u64), 2.0 * self.read_seconds / jobs.max(1) as f64)
    }
}
