//! The stages that build a sorted replica: samples, partition, sort. Their order is that of SDS, section III.A.2.

use std::sync::Arc;

use sieva_index::sorted::{Pivot, Runs, SharedBuild};
use sieva_index::store::{SharedDraft, SortedDraft};
use sieva_types::{Error, ErrorKind, Result};

use super::IndexTask;
use super::wire::{Done, ReplicaPart, SortStep, Step};
use crate::augment::build::BuildOptions;
use crate::augment::{sort, state_of};
use crate::open::Source;

/// A replica under way.
pub(super) struct ReplicaJob {
    source: Source,
    state: [u64; 3],
    /// Arrays, the key first.
    arrays: Vec<usize>,
    names: Vec<String>,
    next: Next,
    draft: Option<SortedDraft>,
}

/// What is to be done next.
enum Next {
    Sample,
    Partition { pivots: Arc<Vec<Pivot>> },
    Sort { runs: Arc<Vec<Runs>> },
}

impl ReplicaJob {
    /// A replica sorted by `key`; `None` where there is one with the same columns.
    ///
    /// # Errors
    /// `dimension-mismatch` for columns of other dimensions.
    pub fn new(source: &Source, key: usize, options: &BuildOptions) -> Result<Option<Self>> {
        let arrays = sort::columns(source, key, options)?;
        let names = sort::names(source, &arrays);
        if sort::is_there(source, &names)? {
            return Ok(None);
        }
        let (source, state) = (source.clone(), state_of(source)?);
        Ok(Some(Self { source, state, arrays, names, next: Next::Sample, draft: None }))
    }

    /// What is sorted: arrays of a source, the key first, and the state of that.
    pub fn what(&self) -> (&Source, &[usize], [u64; 3]) {
        (&self.source, &self.arrays, self.state)
    }

    /// The tasks of the next stage.
    ///
    /// # Errors
    /// `memory-limit` where a region does not fit what a process may take; those of the store.
    pub fn tasks(&mut self, n: usize, options: &BuildOptions) -> Result<Vec<IndexTask>> {
        let Self { source, arrays, names, next, draft, .. } = self;
        let steps = sort::with_build(source, arrays, options, |build| {
            let cut = |len: usize| {
                let parts = n.min(len.max(1));
                (0..parts).map(move |i| len * i / parts..len * (i + 1) / parts)
            };
            Ok(match next {
                Next::Sample => {
                    let buckets = build.buckets(n);
                    let step = |some| SortStep::Sample { buckets, some };
                    cut(build.sampled()).map(step).collect::<Vec<_>>()
                }
                Next::Partition { pivots } => {
                    let draft = match draft {
                        Some(draft) => draft,
                        None => {
                            let made = draft.insert(SortedDraft::create(&sort::home(source, options)?)?);
                            build.create(&made.path())?;
                            made
                        }
                    };
                    let (draft, pivots) = (draft.name(), &*pivots);
                    let step = |segments| {
                        let (draft, pivots) = (draft.clone(), Arc::clone(pivots));
                        SortStep::Partition { draft, pivots, segments }
                    };
                    cut(build.segments()).map(step).collect()
                }
                Next::Sort { runs } => {
                    let draft = draft.as_ref().map(SortedDraft::name).unwrap_or_default();
                    let step = |span| SortStep::Sort { draft: draft.clone(), runs: Arc::clone(runs), span };
                    let spans = build.spans(n);
                    // A replica without rows is finished by a task, too.
                    let none = spans.is_empty().then_some(0..0);
                    spans.into_iter().chain(none).map(step).collect()
                }
            })
        })?;
        let task = |step| {
            let part = ReplicaPart { columns: names.clone(), step };
            let source = source.path().to_string_lossy().into_owned();
            IndexTask { source, state: self.state, step: Step::Replica(part) }
        };
        Ok(steps.into_iter().map(task).collect())
    }

    /// Takes what the tasks of a stage gave; whether that was the last one, and the replica is published.
    ///
    /// # Errors
    /// `invalid-value` for what other tasks gave; those of the store.
    pub fn take(&mut self, done: Vec<Done>, options: &BuildOptions) -> Result<bool> {
        self.next = match &self.next {
            Next::Sample => {
                let (mut all, mut buckets) = (Vec::new(), 1);
                for done in done {
                    let (of, samples) = done.sampled()?;
                    all.extend(samples);
                    buckets = of;
                }
                Next::Partition { pivots: Arc::new(SharedBuild::pivots(all, buckets)) }
            }
            Next::Partition { .. } => {
                Next::Sort { runs: Arc::new(done.into_iter().map(Done::partitioned).collect::<Result<_>>()?) }
            }
            Next::Sort { runs } => {
                let numbers = runs.iter().map(Runs::numbers).sum();
                let fences = done.into_iter().map(Done::sorted).collect::<Result<Vec<_>>>()?.concat();
                let gone = || Error::new(ErrorKind::Internal, "a replica without a directory");
                let draft = self.draft.take().ok_or_else(gone)?;
                sort::with_build(&self.source, &self.arrays, options, |build| {
                    build.finish(&draft.path(), numbers, fences, &sort::attributes(&self.source))
                })?;
                sort::publish(&self.source, draft, &self.names, options)?;
                return Ok(true);
            }
        };
        Ok(false)
    }
}

impl Source {
    /// Does a part of a replica.
    pub(super) fn build_replica(&self, part: &ReplicaPart, options: &BuildOptions) -> Result<Done> {
        self.check_is_used()?;
        let arrays = part.columns.iter().map(|name| self.resolve(name)).collect::<Result<Vec<_>>>()?;
        let draft = |name: &str| SharedDraft::open(&sort::home(self, options)?, name);
        sort::with_build(self, &arrays, options, |build| match &part.step {
            SortStep::Sample { buckets, some } => {
                Ok(Done::Sampled(*buckets, build.sample(*buckets, some.clone())?))
            }
            SortStep::Partition { draft: name, pivots, segments } => {
                let runs = build.partition(&draft(name)?.path(), pivots, segments.clone())?;
                Ok(Done::Partitioned(pivots.len() + 1, runs))
            }
            SortStep::Sort { draft: name, runs, span } => {
                Ok(Done::Sorted(build.sort(&draft(name)?.path(), runs, span)?))
            }
        })
    }
}
