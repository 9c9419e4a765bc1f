//! The stage that builds zone maps and bitmaps: regions of arrays, shared out by their bytes.

use sieva_types::Result;

use super::wire::{ArrayPart, Done, RegionsDone, RegionsPart, Step};
use super::{IndexJob, IndexTask};
use crate::augment::build::{BuildOptions, BuildReport, IndexKind};
use crate::augment::regions::Cut;
use crate::augment::{state_of, worker};
use crate::open::Source;

/// What is to be built of one source.
pub(super) struct Regions {
    source: String,
    pub(super) state: [u64; 3],
    /// Whether an array that cannot be read ends it all.
    strict: bool,
    pub(super) arrays: Vec<OfArray>,
}

/// The regions of an array that are to be built.
pub(super) struct OfArray {
    path: String,
    /// Bytes of an element.
    pub(super) item: u64,
    /// The shape that all were given, and whether they get bitmaps.
    region: Vec<u64>,
    pub(super) bitmaps: bool,
    /// The number of each and its bytes, ascending.
    pub(super) regions: Vec<(u64, u64)>,
}

impl IndexJob {
    /// Notes what is to be built of a source.
    pub(super) fn add_regions(
        &mut self,
        source: &Source,
        names: &[String],
        all: &mut Vec<Regions>,
    ) -> Result<()> {
        let arrays = source.indexable(names)?;
        // What the file is now, not what it was when it was opened.
        source.reader().store().check_unchanged()?;
        source.augmented().forget();
        source.check_is_used()?;
        let bitmaps = self.options.kinds.contains(&IndexKind::Bitmap);
        let cut = Cut::of(&self.options)?;
        let mut of = Vec::with_capacity(arrays.len());
        for array in arrays {
            let job = source.job(array, bitmaps, &cut, self.options.memory)?;
            let regions = job.regions.iter().map(|&r| (r as u64, job.bytes(r))).collect();
            self.report.kept += (job.grid.len() - job.regions.len()) as u64;
            let item = job.header.dtype.size() as u64;
            let (path, region) = (job.header.path.clone(), job.header.region);
            of.push(OfArray { path, item, region, bitmaps: job.bitmaps, regions });
        }
        self.homes.push(source.loaded()?.write.clone().with_patience(self.options.lock_timeout));
        let path = source.path().to_string_lossy().into_owned();
        all.push(Regions { source: path, state: state_of(source)?, strict: !names.is_empty(), arrays: of });
        Ok(())
    }
}

/// Tasks of about the same bytes, `n` or as many as there are sources: successive regions of the arrays of one source, so
/// that what lies together is read by one process.
pub(super) fn cut(sources: &[Regions], n: usize, options: &BuildOptions) -> Vec<IndexTask> {
    let total: u64 = sources.iter().flat_map(|s| &s.arrays).flat_map(|a| &a.regions).map(|r| r.1).sum();
    let share = total.div_ceil(n as u64).max(1);
    let mut tasks = Vec::new();
    for source in sources {
        let mut parts = Parts { source, options, tasks: &mut tasks, arrays: Vec::new(), bytes: 0 };
        for array in &source.arrays {
            for &(region, bytes) in &array.regions {
                // The one nearer to the share: with this region, or without.
                if parts.bytes > 0 && parts.bytes + bytes / 2 > share {
                    parts.end();
                }
                parts.add(array, region, bytes);
            }
        }
        parts.end();
    }
    tasks
}

/// Tasks of a source as they are put together.
struct Parts<'a> {
    source: &'a Regions,
    options: &'a BuildOptions,
    tasks: &'a mut Vec<IndexTask>,
    arrays: Vec<ArrayPart>,
    bytes: u64,
}

impl Parts<'_> {
    fn add(&mut self, array: &OfArray, region: u64, bytes: u64) {
        if self.arrays.last().is_none_or(|part| part.path != array.path) {
            let (path, shape) = (array.path.clone(), array.region.clone());
            self.arrays.push(ArrayPart { path, region: shape, bitmaps: array.bitmaps, ranges: Vec::new() });
        }
        let Some(part) = self.arrays.last_mut() else { return };
        match part.ranges.last_mut() {
            Some(last) if last.end == region => last.end += 1,
            _ => part.ranges.push(region..region + 1),
        }
        self.bytes += bytes;
    }

    fn end(&mut self) {
        self.bytes = 0;
        let arrays = std::mem::take(&mut self.arrays);
        if arrays.is_empty() {
            return;
        }
        let part = RegionsPart { precision: self.options.precision, strict: self.source.strict, arrays };
        let Regions { source, state, .. } = self.source;
        self.tasks.push(IndexTask { source: source.clone(), state: *state, step: Step::Regions(part) });
    }
}

impl Source {
    /// Builds the regions of a task, but for those that are there already, as where it is run again.
    pub(super) fn build_regions(&self, part: &RegionsPart, options: &BuildOptions) -> Result<Done> {
        self.augmented().forget();
        self.check_is_used()?;
        let options = BuildOptions { precision: part.precision, ..options.clone() };
        let mut jobs = Vec::with_capacity(part.arrays.len());
        for of in &part.arrays {
            let cut = Cut::Shape(of.region.clone());
            let mut job = self.job(self.resolve(&of.path)?, of.bitmaps, &cut, options.memory)?;
            let is_meant = |region: &usize| of.ranges.iter().any(|range| range.contains(&(*region as u64)));
            job.regions.retain(is_meant);
            jobs.push(job);
        }
        let report = worker::run(self, &jobs, &options, part.strict);
        self.augmented().forget();
        let BuildReport { built, renewed, bytes, unreadable, .. } = report?;
        Ok(Done::Regions(RegionsDone { built, renewed, bytes, unreadable }))
    }
}

impl BuildReport {
    /// Adds what a task did.
    pub(super) fn add_done(&mut self, done: RegionsDone) {
        self.built += done.built;
        self.renewed += done.renewed;
        self.bytes += done.bytes;
        for (path, why) in done.unreadable {
            // Several tasks may have met the same array.
            if !self.unreadable.iter().any(|(known, _)| *known == path) {
                self.unreadable.push((path, why));
            }
        }
    }
}
