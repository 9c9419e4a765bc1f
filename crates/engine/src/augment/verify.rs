//! Augmentations against the data: recomputed, and compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_index::bitmap::RegionBitmap;
use sieva_index::stats::RegionStats;
use sieva_index::store::ArrayRecords;
use sieva_index::{Elements, RegionGrid, content_hash};
use sieva_query::exec::Replica;
use sieva_types::{Buffer, Bx, Error, ErrorKind, KeySet, Result};

use super::build::Progress;
use crate::open::Source;

/// Regions of an array that a sample looks at.
const SAMPLE: usize = 64;
/// Rows of a replica that are compared at once: in a sample, and where all are, for each of which the source is
/// read once.
const SAMPLE_ROWS: u64 = 1 << 16;
const ROWS: u64 = 1 << 22;
/// Differences that are told.
const MOST: usize = 20;

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Regions whose records were compared with the data.
    pub regions: u64,
    /// Rows of replicas that were compared with the data.
    pub rows: u64,
    /// What differs, in words; empty where all is well.
    pub differences: Vec<String>,
}

impl VerifyReport {
    fn tell(&mut self, what: String) {
        if self.differences.len() < MOST {
            self.differences.push(what);
        }
    }

    /// Adds what was found of one of many files.
    pub(crate) fn add(&mut self, other: Self, file: &str) {
        self.regions += other.regions;
        self.rows += other.rows;
        other.differences.into_iter().for_each(|d| self.tell(format!("{file}: {d}")));
    }
}

impl Source {
    /// Compares augmentations with the data: a sample of them, or all.
    ///
    /// # Errors
    /// `no-index` where there is none for this state of the source; reading errors of the source; `cancelled`.
    pub fn verify_index(
        &self,
        all: bool,
        cancel: &AtomicBool,
        progress: &dyn Fn(Progress),
    ) -> Result<VerifyReport> {
        if let Some(many) = self.many() {
            return many.verify(|file| file.verify_index(all, cancel, progress));
        }
        self.augmented().forget();
        let loaded = self.loaded()?;
        let Some(store) = loaded.used() else {
            let why = loaded.indexes.notes().join("; ");
            let why = if why.is_empty() { "there is none".into() } else { why };
            return Err(Error::new(ErrorKind::NoIndex, format!("no index to verify: {why}"))
                .hint("make one with: sieva index SOURCE"));
        };
        let mut report = VerifyReport::default();
        loaded.indexes.notes().into_iter().for_each(|n| report.tell(n));
        let arrays = store.arrays();
        let mut state = Progress { done: 0, total: (arrays.len() + loaded.indexes.replicas.len()) as u64 };
        for array in &arrays {
            if let Some(records) = store.load(&array.header.path) {
                records.damage.iter().for_each(|d| report.tell(format!("'{}': {d}", array.header.path)));
                self.verify_array(&records, all, cancel, &mut report)?;
            }
            state.done += 1;
            progress(state);
        }
        for replica in &loaded.indexes.replicas {
            let path = &self.schema().arrays[replica.key].path;
            match self.verify_replica(replica, all, cancel, &mut report) {
                Err(e) if e.kind() == ErrorKind::CorruptIndex => {
                    report.tell(format!("sorted replica by '{path}': {}", e.message()));
                }
                done => done?,
            }
            state.done += 1;
            progress(state);
        }
        Ok(report)
    }

    fn reader_of(&self, array: usize) -> Result<BlockReader> {
        BlockReader::new(Arc::clone(self.reader()), array, Arc::new(ChunkCache::new(0)), self.memory())
    }

    fn verify_array(
        &self,
        records: &ArrayRecords,
        all: bool,
        cancel: &AtomicBool,
        report: &mut VerifyReport,
    ) -> Result<()> {
        let header = records.header();
        let array = self.resolve(&header.path)?;
        let packing = self.schema().arrays[array].decoding.packing;
        let reader = self.reader_of(array)?;
        let grid = RegionGrid::new(&header.shape, &header.region)?;
        let known: Vec<usize> = (0..grid.len()).filter(|&r| records.stats(r).is_some()).collect();
        let step = if all { 1 } else { known.len().div_ceil(SAMPLE).max(1) };
        let (mut buffer, mut workspace) = (Buffer::default(), Workspace::default());
        for &region in known.iter().step_by(step) {
            if cancel.load(Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "the verification was interrupted"));
            }
            reader.read(&grid.bx(region), &mut buffer, &mut workspace)?;
            let Some(elements) = Elements::new(header.dtype, &buffer) else { continue };
            report.regions += 1;
            if let Err(why) = compare(records, region, elements, packing) {
                report.tell(format!("'{}', region {region}: {why}", header.path));
            }
        }
        Ok(())
    }

    /// Whether a replica is in order, and its rows are those of the source.
    fn verify_replica(
        &self,
        replica: &Replica,
        all: bool,
        cancel: &AtomicBool,
        report: &mut VerifyReport,
    ) -> Result<()> {
        let rows = replica.replica.rows();
        let block_rows = if all { ROWS } else { SAMPLE_ROWS };
        let blocks = rows.div_ceil(block_rows);
        let step = if all { 1 } else { blocks.div_ceil(8).max(1) };
        let mut seen = if all { vec![0_u64; rows.div_ceil(64) as usize] } else { Vec::new() };
        let key = &self.schema().arrays[replica.key].path;
        for block in (0..blocks).step_by(step as usize) {
            if cancel.load(Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "the verification was interrupted"));
            }
            let range = block * block_rows..rows.min((block + 1) * block_rows);
            let mut positions = Vec::new();
            replica.replica.positions(range.clone(), &mut positions)?;
            for &p in positions.iter().filter(|_| all) {
                let (word, bit) = ((p / 64) as usize, 1 << (p % 64));
                if seen[word] & bit != 0 {
                    report.tell(format!("sorted replica by '{key}': position {p} comes twice"));
                }
                seen[word] |= bit;
            }
            self.compare_rows(replica, range, &positions, report)?;
            report.rows += positions.len() as u64;
        }
        Ok(())
    }

    /// Compares some rows of a replica with the source, through its own order of positions.
    fn compare_rows(
        &self,
        replica: &Replica,
        range: std::ops::Range<u64>,
        positions: &[u64],
        report: &mut VerifyReport,
    ) -> Result<()> {
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_unstable_by_key(|&i| positions[i]);
        let sorted: Vec<u64> = order.iter().map(|&i| positions[i]).collect();
        for (&array, &column) in &replica.columns {
            let size = replica.replica.columns()[column].dtype.size();
            let mut held = Buffer::default();
            replica.replica.read(column, range.clone(), &mut held)?;
            let source = self.elements_at(array, &sorted, size)?;
            let differs = order
                .iter()
                .enumerate()
                .find(|(at, i)| held.bytes()[**i * size..][..size] != source[at * size..][..size]);
            if let Some((_, &i)) = differs {
                let (name, p) = (&self.schema().arrays[array].path, positions[i]);
                report.tell(format!("sorted replica: '{name}' at position {p} is not what the source has"));
            }
        }
        Ok(())
    }

    /// The elements of an array at sorted positions, by whole regions where those hold many of them.
    fn elements_at(&self, array: usize, positions: &[u64], size: usize) -> Result<Vec<u8>> {
        let header = self.array_header(array)?;
        let grid = RegionGrid::new(&header.shape, &header.region)?;
        let reader = self.reader_of(array)?;
        let place = |mut p: u64| {
            let mut at = vec![0; header.shape.len()];
            for d in (0..at.len()).rev() {
                at[d] = p % header.shape[d];
                p /= header.shape[d];
            }
            at
        };
        let mut out = vec![0; positions.len() * size];
        let mut by_region: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        for (i, &p) in positions.iter().enumerate() {
            let at = place(p);
            let one = Bx::new(at, vec![1; header.shape.len()]);
            by_region.entry(grid.only(&one).unwrap_or_default()).or_default().push(i);
        }
        let (mut buffer, mut workspace) = (Buffer::default(), Workspace::default());
        for (region, rows) in by_region {
            let bx = grid.bx(region);
            reader.read(&bx, &mut buffer, &mut workspace)?;
            for i in rows {
                let at = place(positions[i]);
                let within = (0..at.len()).fold(0, |o, d| o * bx.shape[d] + at[d] - bx.start[d]) as usize;
                out[i * size..][..size].copy_from_slice(&buffer.bytes()[within * size..][..size]);
            }
        }
        Ok(out)
    }
}

/// Whether a region's records say of its elements what they are.
fn compare(
    records: &ArrayRecords,
    region: usize,
    elements: Elements<'_>,
    packing: Option<(f64, f64)>,
) -> std::result::Result<(), String> {
    let header = records.header();
    let said = |e: Error| e.message().to_string();
    if records.content(region).is_some_and(|c| c != content_hash(elements.bytes())) {
        return Err("the data are not those that were indexed".into());
    }
    let kept = RegionStats::decode(records.stats(region).unwrap_or_default()).map_err(said)?;
    let mut fresh = RegionStats::full(elements, &header.missing);
    if kept.histogram.is_none() {
        fresh.histogram = None;
    }
    // Those of earlier versions hold no sums.
    if kept.sums.is_some() {
        fresh = fresh.with_sums(elements, &header.missing, packing);
    }
    if kept != fresh {
        return Err("its statistics are not those of the data".into());
    }
    let Some(head) = records.bitmap_head(region).map_err(said)? else { return Ok(()) };
    let bitmap = RegionBitmap::parse(&head, head.body_len, header.dtype).map_err(said)?;
    let words = elements.len().div_ceil(64);
    let mut workspace = sieva_index::bitmap::Workspace::default();
    let mut fetch = |range: std::ops::Range<u64>, out: &mut Vec<u8>| records.read_body(region, range, out);
    // Each bin by itself must select rows of its values, and all bins together every row once.
    let mut rows = bitmap.nan();
    for bin in bitmap.bins() {
        let set = KeySet::interval(bin.low, bin.high);
        let (mut sure, mut check) = (vec![0_u64; words], vec![0_u64; words]);
        bitmap.evaluate(&set, &mut fetch, &mut workspace, &mut sure, &mut check).map_err(said)?;
        let mut wrong = check.iter().any(|w| *w != 0);
        for (i, word) in sure.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let key = elements.key(i * 64 + rest.trailing_zeros() as usize);
                wrong |= key.is_none_or(|k| k < bin.low || bin.high < k);
                rows += 1;
                rest &= rest - 1;
            }
        }
        if wrong {
            return Err(format!("its bitmap of the values {} to {} is wrong", bin.low, bin.high));
        }
    }
    if rows == kept.rows { Ok(()) } else { Err(format!("its bitmap has {rows} rows of {}", kept.rows)) }
}
