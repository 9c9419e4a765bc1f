//! Tasks of a query of a collection: parts of its objects, for whoever runs them elsewhere.
//!
//! A [`CollectionTask`] is a plan, some consecutive objects with the values of their keys, and what tells the states of their
//! sources. [`Collection::run_task`] makes a [`CollectionPartial`] of it, in any process that can open the catalog and these
//! sources. Partial results are merged in any order, and [`CollectionQuery::finish`] gives the answer of the whole query, to
//! the bit. Both are bytes where they travel.

mod listing;
mod partial;
mod run;
mod share;
pub(super) mod wire;

use std::ops::Range;

use sieva_plan::Plan;
use sieva_types::{Error, ErrorKind, Result};

use super::keys::Class;
use super::objects::{Pinned, SourceObjects};
use super::query::CollectionQuery;
use super::{Collection, manifests};
use crate::tasks::TaskKind;
pub(super) use listing::Listing;
pub use partial::CollectionPartial;
pub use run::CollectionWork;

/// What a question is asked of, and which: parts of one answer have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    kind: TaskKind,
    /// [`Plan::id`].
    plan: String,
    /// A hash of all objects, with their sources and the values of their keys.
    objects: u64,
    /// A hash of the states of all sources.
    states: u64,
    /// A hash of how they are opened, as far as that changes what their values mean.
    meaning: u64,
    /// How many objects there are.
    count: u64,
}

/// A part of the work of a query of a collection: what is asked, of which objects, of which states of their sources.
///
/// ```no_run
/// # fn main() -> sieva::Result<()> {
/// let options = sieva::OpenOptions::default();
/// let stars = sieva::Collection::open("boss.sqlite", "h5boss", &options)?;
/// let options = sieva::QueryOptions::default();
/// let query = stars.sql("SELECT class, max(flux) WHERE plate > 4000 GROUP BY class", &options)?;
/// let mut whole: Option<sieva::CollectionPartial> = None;
/// for task in query.tasks(8)? {
///     // Anywhere: another process opens the collection, and gets and gives back bytes.
///     let task = sieva::CollectionTask::from_bytes(&task.to_bytes()?)?;
///     let part = sieva::CollectionPartial::from_bytes(&stars.run_task(&task, &options)?.to_bytes()?)?;
///     match &mut whole {
///         Some(whole) => whole.merge(part)?,
///         None => whole = Some(part),
///     }
/// }
/// if let Some(whole) = whole {
///     println!("{} classes", query.finish(whole)?.count()?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionTask {
    question: Question,
    plan: Plan,
    /// The number of its first object among all.
    first: u64,
    /// Types of the keys whose values the objects have.
    classes: Vec<Class>,
    /// An object that has all arrays, in case that none of these has.
    example: SourceObjects,
    /// Each in a state that is known.
    sources: Vec<SourceObjects>,
}

impl CollectionTask {
    /// What it gives.
    pub fn kind(&self) -> TaskKind {
        self.question.kind
    }

    /// What is asked, of all objects.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Locations of the sources that it opens.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|s| s.location.as_str())
    }

    /// The numbers of its objects among all of the query.
    pub fn objects(&self) -> Range<u64> {
        let own: usize = self.sources.iter().map(|s| s.objects.len()).sum();
        self.first..self.first + own as u64
    }

    /// How many objects the query has.
    pub fn object_count(&self) -> u64 {
        self.question.count
    }
}

impl CollectionQuery {
    /// The work in `n` parts or fewer: of groups their aggregates, else the positions.
    ///
    /// Objects are shared out in their order and by the bytes of their arrays, in whole sources where these are not larger than
    /// a part. All sources are opened for it, and some of their bytes read to tell their states, but no values.
    ///
    /// # Errors
    /// `unsupported` for a histogram without its range; `invalid-value` where `n` is 0; those of opening, told with the
    /// location.
    pub fn tasks(&self, n: usize) -> Result<Vec<CollectionTask>> {
        self.tasks_of(self.usual_kind(), n)
    }

    /// The same for something else that may be asked of it.
    ///
    /// # Errors
    /// As [`CollectionQuery::tasks`]; `unsupported` for what is not to be had in parts.
    pub fn tasks_of(&self, kind: TaskKind, n: usize) -> Result<Vec<CollectionTask>> {
        if n == 0 {
            return Err(Error::new(ErrorKind::InvalidValue, "work in 0 parts").hint("ask for 1 or more"));
        }
        if let Some(other) = self.planned_otherwise()? {
            return other.tasks_of(kind, n);
        }
        let mut cuts = share::cuts(&self.listing()?.weights, n);
        if cuts.is_empty() {
            // No object is left: a task of none says so, and finishes as any other.
            cuts.push(0..0);
        }
        cuts.into_iter().map(|part| self.own_task(kind, part)).collect()
    }

    /// The part of the work that are these of [`CollectionQuery::objects`], by their numbers. All tasks together must have
    /// each object once.
    ///
    /// # Errors
    /// As [`CollectionQuery::tasks_of`]; `invalid-value` for numbers that no object has.
    pub fn task(&self, kind: TaskKind, objects: Range<u64>) -> Result<CollectionTask> {
        match self.planned_otherwise()? {
            Some(other) => other.own_task(kind, objects),
            None => self.own_task(kind, objects),
        }
    }

    fn own_task(&self, kind: TaskKind, objects: Range<u64>) -> Result<CollectionTask> {
        let (plan, question) = self.question(kind)?;
        check_range(&objects, question.count)?;
        let (sources, classes, example) =
            (self.pinned(&objects)?, self.classes().to_vec(), self.pinned_example()?);
        Ok(CollectionTask { question, plan, first: objects.start, classes, example, sources })
    }

    /// The task with what opening its sources needs: whoever runs it asks no catalog, and reads no metadata of files that the
    /// catalog has manifests of. It believes them as it believes the process that made the task.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn carrying(&self, task: &CollectionTask) -> Result<CollectionTask> {
        let mut task = task.clone();
        self.collection().carry(&mut task.sources)?;
        if task.sources.iter().all(|s| s.location != task.example.location) {
            self.collection().carry(std::slice::from_mut(&mut task.example))?;
        }
        Ok(task)
    }

    /// An object that has all arrays, in the state in which its source was found.
    fn pinned_example(&self) -> Result<SourceObjects> {
        let mut example = self.example().clone();
        let own = self.found().iter().position(|s| s.location == example.location);
        if let Some(state) = own.and_then(|n| Some(self.listing().ok()?.each[n])) {
            example.pinned = Some(Pinned::whole(state));
        }
        Ok(example)
    }

    /// What answers all that may be asked of it.
    pub fn usual_kind(&self) -> TaskKind {
        if self.is_grouped() { TaskKind::Groups } else { TaskKind::Selection }
    }

    /// Its plan, and what its tasks and what they find have in common.
    fn question(&self, kind: TaskKind) -> Result<(Plan, Question)> {
        kind.check(self.template())?;
        let (plan, listing) = (self.logical_plan()?, self.listing()?);
        let Listing { objects, states, ref weights, .. } = *listing;
        let (id, meaning) = (plan.id()?, listing::meaning_of(self.template().source()));
        let count = weights.iter().map(|w| w.len() as u64).sum();
        Ok((plan, Question { kind, plan: id, objects, states, meaning, count }))
    }

    /// Some of its objects, with the states of their sources.
    fn pinned(&self, objects: &Range<u64>) -> Result<Vec<SourceObjects>> {
        let (listing, mut before, mut all) = (self.listing()?, 0_u64, Vec::new());
        for (found, &state) in self.found().iter().zip(&listing.each) {
            let len = found.objects.len() as u64;
            let own = |number: u64| number.saturating_sub(before).min(len) as usize;
            let part = own(objects.start)..own(objects.end);
            if !part.is_empty() {
                let (location, objects) = (found.location.clone(), found.objects[part].to_vec());
                all.push(SourceObjects { location, objects, pinned: Some(Pinned::whole(state)) });
            }
            before += len;
        }
        Ok(all)
    }
}

impl Collection {
    /// Adds to sources that are pinned what opening them needs. Without its catalog it has what came along.
    pub(super) fn carry(&self, sources: &mut [SourceObjects]) -> Result<()> {
        let Some(catalog) = &self.catalog else { return Ok(()) };
        let carried = manifests::carried(catalog, sources)?;
        for (source, manifest) in sources.iter_mut().zip(carried) {
            if let Some(pinned) = &mut source.pinned {
                pinned.manifest = manifest;
            }
        }
        Ok(())
    }
}

/// That a range of objects is one of those that there are.
fn check_range(objects: &Range<u64>, count: u64) -> Result<()> {
    if objects.start <= objects.end && objects.end <= count {
        return Ok(());
    }
    let message = format!("the objects {} to below {} of {count}", objects.start, objects.end);
    Err(Error::new(ErrorKind::InvalidValue, message).hint("objects are numbered from 0 on"))
}
