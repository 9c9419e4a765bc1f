//! Building zone maps, histograms and bitmaps: every byte is read once for all that is asked for.
//!
//! Regions are shared out among workers, each with its own segment (file per process: SDS section III.A.1,
//! SDQuery section 4.3), so that none waits for another. A worker publishes its segment from time to time:
//! a build that is stopped goes on from there. Regions whose content did not change keep what they have.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sieva_format::read::{BlockReader, ChunkCache};
use sieva_index::RegionGrid;
use sieva_index::stats::RegionStats;
use sieva_index::store::{ArrayHeader, ArrayRecords, Store};
use sieva_types::{Error, ErrorKind, Result};

use super::regions::{Cut, tidy};
use super::told::Rate;
use super::{sort, worker};
use crate::open::Source;
use crate::session::Session;

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
    /// Bytes that the regions at hand may take, and a sort.
    pub memory: u64,
    /// Significant decimal digits of the bounds of bitmaps' bins.
    pub precision: u32,
    /// Bytes of a region of zone maps and bitmaps, about; `None`: as the array's index has them, else those that tiles have.
    pub region_size: Option<u64>,
    /// Arrays that a sorted replica carries besides its key; `None`: all numeric ones of the same dimensions.
    pub columns: Option<Vec<String>>,
    /// How long somebody else's lock on the store is waited for.
    pub lock_timeout: Duration,
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
            region_size: None,
            columns: None,
            lock_timeout: Duration::from_secs(60),
            progress: None,
            cancel: Arc::default(),
        }
    }
}

impl BuildOptions {
    /// As by default, within the threads and the memory of a session: a rank has its share of its node's.
    pub fn within(session: &Session) -> Self {
        let default = Self::default();
        Self { jobs: session.threads(), memory: default.memory.min(session.stats().memory), ..default }
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
    /// What went wrong besides, such as a catalog that could not be told.
    pub notes: Vec<String>,
}

impl BuildReport {
    /// Adds what was done of one of many files.
    pub(crate) fn add(&mut self, other: Self, file: &str) {
        self.built += other.built;
        self.kept += other.kept;
        self.renewed += other.renewed;
        self.bytes += other.bytes;
        self.replicas += other.replicas;
        let named = other.unreadable.into_iter().map(|(array, why)| (format!("{file}: {array}"), why));
        self.unreadable.extend(named);
        self.notes
            .extend(other.notes.into_iter().filter(|note| !self.notes.contains(note)).collect::<Vec<_>>());
    }
}

/// One array to be indexed.
pub(super) struct Job {
    pub header: ArrayHeader,
    pub grid: RegionGrid,
    /// Scale and offset of packed data.
    pub packing: Option<(f64, f64)>,
    pub reader: BlockReader,
    /// What an earlier build left, of this state of the source or of another.
    pub old: Option<ArrayRecords>,
    /// Whether that is of this state.
    pub current: bool,
    /// Whether bitmaps are built, too.
    pub bitmaps: bool,
    /// What is to be done.
    pub regions: Vec<usize>,
    /// Set once some of its data could not be read.
    pub failed: AtomicBool,
}

impl Source {
    /// Builds augmentations of arrays (none named: of all numeric arrays), as far as they are not there yet. A name that
    /// could be any of several arrays, in different groups, means all of them that can be indexed. The catalog is told of what
    /// there is then, where there is one that knows the source or is named.
    ///
    /// # Errors
    /// `unknown-array`; `type-mismatch` and `unsupported` for named arrays that cannot be indexed;
    /// `permission-denied` where the store cannot be written, or lies where this source's gate lets no query look;
    /// reading errors; `cancelled`.
    pub fn build_index(&self, arrays: &[String], options: &BuildOptions) -> Result<BuildReport> {
        if let Some(many) = self.many() {
            self.augmented().forget();
            return many.build(self, arrays, options);
        }
        let (strict, started) = (!arrays.is_empty(), Instant::now());
        let arrays = self.indexable(arrays)?;
        // What the file is now, not what it was when it was opened.
        self.reader().store().check_unchanged()?;
        self.augmented().forget();
        self.check_is_used()?;
        let mut report = BuildReport::default();
        let built = self.build(&arrays, options, strict, &mut report);
        self.augmented().forget();
        built?;
        tidy(&self.loaded()?.write.clone().with_patience(options.lock_timeout));
        let rate = Rate::of(self, &arrays, started.elapsed().as_secs_f64());
        report.notes.extend(self.tell_catalog(rate));
        Ok(report)
    }

    /// Refuses to build what no query of this source would open: its store lies outside of what may be opened.
    pub(super) fn check_is_used(&self) -> Result<()> {
        let store = self.loaded()?.write.path();
        self.check_store(&store).map_err(|e| {
            let what = format!("{}: an index there would not be used", e.message());
            Error::new(e.kind(), what).hint(format!(
                "allow '{}', too (allow= in Python, --allow), or keep stores in a directory of their own: store= or SIEVA_STORE",
                store.display()
            ))
        })
    }

    pub(super) fn build(
        &self,
        arrays: &[usize],
        options: &BuildOptions,
        strict: bool,
        report: &mut BuildReport,
    ) -> Result<()> {
        let bitmaps = options.kinds.contains(&IndexKind::Bitmap);
        if bitmaps || options.kinds.contains(&IndexKind::ZoneMap) {
            let cut = Cut::of(options)?;
            let jobs = arrays.iter().map(|&a| self.job(a, bitmaps, &cut, options.memory));
            let jobs = jobs.collect::<Result<Vec<_>>>()?;
            *report = worker::run(self, &jobs, options, strict)?;
        }
        if options.kinds.contains(&IndexKind::Sorted) {
            for &key in arrays {
                report.replicas += u64::from(sort::build(self, key, options)?);
            }
        }
        Ok(())
    }

    /// The arrays that are meant: those named, or all that can be indexed.
    pub(super) fn indexable(&self, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            let able = (0..self.schema().arrays.len()).filter(|&a| self.array_header(a).is_ok());
            return Ok(able.collect());
        }
        let mut arrays = Vec::new();
        for name in names {
            let meant = self.meant(name)?;
            meant.iter().try_for_each(|&a| self.array_header(a).map(drop))?;
            arrays.extend(meant.into_iter().filter(|a| !arrays.contains(a)).collect::<Vec<_>>());
        }
        Ok(arrays)
    }

    /// The arrays that a name means where it may mean several: the one that it means in a query, else those of all groups
    /// that it could be, as far as they can be indexed.
    ///
    /// # Errors
    /// `unknown-array`; `ambiguous-name` where none of them can be indexed.
    pub fn meant(&self, name: &str) -> Result<Vec<usize>> {
        let ambiguous = match self.resolve(name) {
            Ok(one) => return Ok(vec![one]),
            Err(e) if e.kind() == ErrorKind::AmbiguousName => e,
            Err(e) => return Err(e),
        };
        let end = format!("/{}", name.trim_start_matches('/').replace("::", "."));
        let arrays = self.schema().arrays.iter().enumerate();
        let named = arrays.filter(|(_, a)| a.path.ends_with(&end)).map(|(i, _)| i);
        let able: Vec<usize> = named.filter(|&a| self.array_header(a).is_ok()).collect();
        if able.is_empty() { Err(ambiguous) } else { Ok(able) }
    }

    /// What is to be done of an array.
    ///
    /// # Errors
    /// As [`Source::array_header`]; `invalid-value` for regions that do not cut it.
    pub(super) fn job(&self, array: usize, bitmaps: bool, cut: &Cut, memory: u64) -> Result<Job> {
        let loaded = self.loaded()?;
        let plain = self.array_header(array)?;
        let current = loaded.store.is_some();
        let stale = loaded.stale.as_ref().and_then(|home| Store::open(home).ok().flatten());
        let old = loaded.store.as_ref().or(stale.as_ref()).and_then(|s| s.load(&plain.path));
        let header = self.header_cut(array, plain, cut, old.as_ref().map(ArrayRecords::header))?;
        let grid = RegionGrid::new(&header.shape, &header.region)?;
        // Bitmaps of other regions do not count any more: what the array has is built anew.
        let has_bitmaps = |o: &ArrayRecords| o.header().differs_in_regions(&header) && o.has_bitmaps();
        let bitmaps = bitmaps || (current && old.as_ref().is_some_and(has_bitmaps));
        let old = old.filter(|o| {
            let h = o.header();
            // Regions that the array had before it grew are those that it has now.
            (h.dtype, &h.missing, &h.region) == (header.dtype, &header.missing, &header.region)
                && (!current || h.shape == header.shape)
        });
        let complete = |region: &usize| {
            let whole = |o: &ArrayRecords| {
                o.stats(*region).is_some_and(has_sums)
                    && o.content(*region).is_some()
                    && (!bitmaps || o.has_bitmap(*region))
            };
            current && old.as_ref().is_some_and(whole)
        };
        let regions = (0..grid.len()).filter(|r| !complete(r)).collect();
        let cache = Arc::new(ChunkCache::new(0));
        let reader = BlockReader::new(Arc::clone(self.reader()), array, cache, memory / 2)?;
        let packing = self.schema().arrays[array].decoding.packing;
        let failed = AtomicBool::new(false);
        Ok(Job { header, grid, packing, reader, old, current, bitmaps, regions, failed })
    }
}

/// Whether a region's statistics hold its sums, which those of earlier versions do not.
fn has_sums(stats: &[u8]) -> bool {
    RegionStats::decode_zone(stats).is_ok_and(|(zone, _)| zone.sums.is_some())
}

impl Job {
    /// Bytes of a region's elements.
    pub fn bytes(&self, region: usize) -> u64 {
        self.grid.bx(region).len().saturating_mul(self.header.dtype.size() as u64)
    }

    /// The number that a region had in the old grid, where it was the same block then.
    pub fn old_number(&self, region: usize) -> Option<usize> {
        let old = self.old.as_ref()?;
        let grid = RegionGrid::new(&old.header().shape, &old.header().region).ok()?;
        let number = grid.number(&self.grid.coords(region))?;
        (grid.bx(number) == self.grid.bx(region)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionOptions;

    #[test]
    fn builds_stay_within_threads_and_memory_of_a_session() {
        let session =
            Session::new(&SessionOptions { threads: Some(3), memory: Some(512 << 20), ..Default::default() });
        let options = BuildOptions::within(&session.unwrap());
        assert_eq!((options.jobs, options.memory), (3, 512 << 20));
        let roomy = Session::new(&SessionOptions { memory: Some(64 << 30), ..Default::default() });
        assert_eq!(BuildOptions::within(&roomy.unwrap()).memory, BuildOptions::default().memory);
    }
}
