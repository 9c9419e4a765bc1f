//! Doing what was advised: first what goes, then what is built, the best first.
//!
//! Each step stands for itself and is told to the catalog, so that a run which is stopped goes on where it was: the
//! next advice is about what is left. The budget is held to what was really written: what turns out larger than was
//! estimated and does not fit is removed again.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use sieva_catalog::Catalog;
use sieva_types::{Error, ErrorKind, Result};

use super::choose::{Item, Verdict};
use super::{Advice, AdviseOptions, candidates, evict};
use crate::augment::told::{self, Rate};
use crate::augment::{BuildOptions, IndexKind, IndexStatus};
use crate::open::Source;

/// What was done about an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Location of the source.
    pub location: String,
    /// Path of the array.
    pub path: String,
    /// The kind.
    pub kind: IndexKind,
    /// `built`, `removed`, `does not fit` or `failed`.
    pub what: &'static str,
    /// Bytes that it takes, or took.
    pub bytes: u64,
    /// Seconds of building it.
    pub seconds: f64,
    /// What went wrong.
    pub error: Option<String>,
}

/// Builds and removes what is advised; `build` says how. What fails is told, and the rest goes on.
///
/// # Errors
/// `permission-denied` where the catalog cannot be written; `cancelled`, with what was done so far kept.
pub fn apply(
    catalog: &Catalog,
    advice: &Advice,
    options: &AdviseOptions,
    build: &BuildOptions,
    told: &dyn Fn(&Item),
) -> Result<Vec<Done>> {
    if catalog.is_read_only() {
        return Err(Error::new(
            ErrorKind::PermissionDenied,
            "the catalog may not be written: nothing was built",
        )
        .hint("what is built is recorded there: give --catalog one that may be written"));
    }
    let mut work = Work {
        catalog,
        options,
        build,
        told,
        sizes: HashMap::new(),
        budget: advice.budget,
        done: Vec::new(),
    };
    for item in &advice.items {
        *work.sizes.entry(item.location.clone()).or_default() += item.bytes_now;
    }
    work.evict_all(&advice.items)?;
    for item in advice.items.iter().filter(|i| i.verdict == Verdict::Build) {
        work.build(item)?;
    }
    Ok(work.done)
}

struct Work<'a> {
    catalog: &'a Catalog,
    options: &'a AdviseOptions,
    build: &'a BuildOptions,
    told: &'a dyn Fn(&Item),
    /// Bytes of all that is there, by location.
    sizes: HashMap<String, u64>,
    budget: Option<u64>,
    done: Vec<Done>,
}

fn size_of(status: &IndexStatus) -> u64 {
    let arrays = status.arrays.iter().map(|a| a.stats_bytes + a.bitmap_bytes);
    arrays.chain(status.replicas.iter().map(|r| r.bytes)).fold(0, u64::saturating_add)
}

/// Bytes of one kind of an array.
fn bytes_of(status: &IndexStatus, path: &str, kind: IndexKind) -> u64 {
    let array = status.arrays.iter().find(|a| a.path == path);
    match kind {
        IndexKind::ZoneMap => array.map_or(0, |a| a.stats_bytes),
        IndexKind::Bitmap => array.map_or(0, |a| a.bitmap_bytes),
        IndexKind::Sorted => status.replicas.iter().filter(|r| r.key == path).map(|r| r.bytes).sum(),
    }
}

impl Work<'_> {
    fn check(&self) -> Result<()> {
        if self.options.cancel.load(Relaxed) {
            let message =
                "it was interrupted; what was done is kept, and the same command goes on from there";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        Ok(())
    }

    fn tell(&mut self, item: &Item, what: &'static str, bytes: u64, seconds: f64, error: Option<&Error>) {
        self.done.push(Done {
            location: item.location.clone(),
            path: item.path.clone(),
            kind: item.kind,
            what,
            bytes,
            seconds,
            error: error.map(|e| e.message().to_string()),
        });
    }

    fn evict_all(&mut self, items: &[Item]) -> Result<()> {
        let mut by_source: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
        for item in items.iter().filter(|i| i.verdict == Verdict::Evict) {
            by_source.entry(&item.location).or_default().push(item);
        }
        for (location, drops) in by_source {
            self.check()?;
            drops.iter().for_each(|i| (self.told)(i));
            // What a build renews is replaced by it.
            let renewed = items.iter().any(|i| i.location == location && i.verdict == Verdict::Build);
            match self.evict(location, &drops, renewed) {
                Ok(()) => drops.iter().for_each(|i| self.tell(i, "removed", i.bytes_now, 0.0, None)),
                Err(e) => drops.iter().for_each(|i| self.tell(i, "failed", i.bytes_now, 0.0, Some(&e))),
            }
        }
        Ok(())
    }

    fn evict(&mut self, location: &str, drops: &[&Item], renewed: bool) -> Result<()> {
        let source = candidates::open(location, self.options)?;
        if drops.iter().any(|i| i.stale) {
            if !renewed {
                source.drop_index()?;
            }
        } else {
            let which: Vec<_> = drops.iter().map(|i| (i.path.clone(), i.kind)).collect();
            evict::remove(&source, &which, self.options)?;
        }
        told::tell(&source, self.catalog, location, Rate::default())?;
        self.measure(&source, location)?;
        Ok(())
    }

    /// What a source has now.
    fn measure(&mut self, source: &Source, location: &str) -> Result<IndexStatus> {
        let status = source.held_status()?;
        self.sizes.insert(location.to_string(), if status.stale { 0 } else { size_of(&status) });
        Ok(status)
    }

    fn build(&mut self, item: &Item) -> Result<()> {
        self.check()?;
        (self.told)(item);
        match self.try_build(item) {
            Err(e) if e.kind() == ErrorKind::Cancelled => Err(e),
            Err(e) => {
                self.tell(item, "failed", 0, 0.0, Some(&e));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn try_build(&mut self, item: &Item) -> Result<()> {
        let source = candidates::open(&item.location, self.options)?;
        let mut options = BuildOptions { kinds: vec![item.kind], ..self.build.clone() };
        options.cancel = self.options.cancel.clone();
        options.columns = (item.kind == IndexKind::Sorted).then(|| item.columns.clone());
        let started = Instant::now();
        source.build_index(std::slice::from_ref(&item.path), &options)?;
        let seconds = started.elapsed().as_secs_f64();
        let status = self.measure(&source, &item.location)?;
        let bytes = bytes_of(&status, &item.path, item.kind);
        let all = self.sizes.values().copied().fold(0, u64::saturating_add);
        let is_pinned = item.why == "pinned";
        if self.budget.is_some_and(|b| all > b) && !is_pinned {
            evict::remove(&source, &[(item.path.clone(), item.kind)], self.options)?;
            self.measure(&source, &item.location)?;
            self.tell(item, "does not fit", bytes, seconds, None);
            return Ok(());
        }
        let rate = Rate::of(&source, &[source.resolve(&item.path)?], seconds);
        told::tell(&source, self.catalog, &item.location, rate)?;
        self.tell(item, "built", bytes, seconds, None);
        Ok(())
    }
}
