//! Many objects at once: windows of them in parallel, results in their order, few sources open at a time.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sieva_catalog::Catalog;
use sieva_types::{Error, ErrorKind, Result};

use super::manifests::{self, Hint};
use super::objects::{Object, SourceObjects};
use super::opener;
use crate::open::{OpenOptions, Source};

/// Objects that one thread takes at once.
const OBJECTS: usize = 16;
/// Objects and sources of a window at most: its results wait in memory, and its sources are open, until all are done.
const WINDOW: usize = 512;
const SOURCES: usize = 128;

/// Consecutive objects of one source.
#[derive(Clone, Copy)]
struct Job {
    source: usize,
    from: usize,
    to: usize,
    /// The number of its first object among all.
    number: usize,
}

/// An object at which a query is.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub source: &'a Source,
    pub found: &'a SourceObjects,
    pub object: &'a Object,
    /// Its number among all.
    pub number: usize,
}

/// What opening and reading came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub sources_opened: u64,
    pub bytes_read: u64,
    pub requests: u64,
}

/// The way through all objects.
pub(super) struct Walk {
    jobs: Vec<Job>,
    /// The next job.
    at: usize,
    /// Sources that are open, by number.
    open: HashMap<usize, Slot>,
    pub traffic: Traffic,
}

struct Slot {
    source: Mutex<State>,
}

/// What all windows need.
pub(super) struct Setting<'a> {
    /// None: what is known of sources came along with them.
    pub catalog: Option<&'a Catalog>,
    pub options: &'a OpenOptions,
    pub sources: &'a [SourceObjects],
    pub threads: usize,
    pub cancel: &'a AtomicBool,
    /// What all queries of the collection read.
    pub did: &'a Did,
}

/// What all queries of a collection opened and read.
#[derive(Debug, Default)]
pub(super) struct Did {
    sources_opened: AtomicU64,
    bytes_read: AtomicU64,
    requests: AtomicU64,
}

impl Did {
    fn add(&self, more: Traffic) {
        self.sources_opened.fetch_add(more.sources_opened, Ordering::Relaxed);
        self.bytes_read.fetch_add(more.bytes_read, Ordering::Relaxed);
        self.requests.fetch_add(more.requests, Ordering::Relaxed);
    }

    /// Adds what a source that was opened for a while came to.
    pub(super) fn note(&self, source: &Source) {
        self.add(Traffic::of(source));
    }

    pub(super) fn so_far(&self) -> Traffic {
        Traffic {
            sources_opened: self.sources_opened.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
        }
    }
}

impl Traffic {
    fn of(source: &Source) -> Self {
        let io = source.reader().store().counters().snapshot();
        Self { sources_opened: 1, bytes_read: io.bytes_read, requests: io.requests }
    }
}

/// A source before and after it was opened.
struct State {
    hint: Hint,
    source: Option<Source>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Walk {
    /// A way that has not begun.
    pub(super) fn new(sources: &[SourceObjects]) -> Self {
        Self::of(sources, 0..usize::MAX)
    }

    /// A way through these of all objects, by their numbers.
    pub(super) fn of(sources: &[SourceObjects], objects: Range<usize>) -> Self {
        let (mut jobs, mut before) = (Vec::new(), 0);
        for (source, found) in sources.iter().enumerate() {
            let own = |number: usize| number.saturating_sub(before).min(found.objects.len());
            let (start, end) = (own(objects.start), own(objects.end));
            jobs.extend((start..end).step_by(OBJECTS).map(|from| Job {
                source,
                from,
                to: end.min(from + OBJECTS),
                number: before + from,
            }));
            before += found.objects.len();
        }
        Self { jobs, at: 0, open: HashMap::new(), traffic: Traffic::default() }
    }

    /// What `work` makes of the next objects, in order; `None` at the end.
    ///
    /// # Errors
    /// Those of opening, told with the location; those of `work`; `cancelled`.
    pub(super) fn window<R: Send>(
        &mut self,
        setting: &Setting<'_>,
        work: &(dyn Fn(At<'_>) -> Result<R> + Sync),
    ) -> Result<Option<Vec<R>>> {
        let jobs = &self.jobs[self.at..self.window_end()];
        let (Some(first), Some(last)) = (jobs.first().copied(), jobs.last().copied()) else {
            self.close_before(usize::MAX, setting.did);
            return Ok(None);
        };
        prepare(&mut self.open, setting, first.source, last.source)?;
        let next = AtomicUsize::new(0);
        let results: Vec<Mutex<Option<Result<Vec<R>>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
        let (open, failed) = (&self.open, AtomicBool::new(false));
        let run = || {
            while let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < jobs.len()) {
                if failed.load(Ordering::Relaxed) {
                    return;
                }
                let done = job(setting, open, jobs[i], work);
                failed.fetch_or(done.is_err(), Ordering::Relaxed);
                *lock(&results[i]) = Some(done);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..setting.threads.min(jobs.len()) {
                scope.spawn(run);
            }
            run();
        });
        let mut out = Vec::new();
        for result in results {
            // After a failure later jobs were left; the failure itself comes before the end of the loop.
            if let Some(done) = result.into_inner().unwrap_or_else(PoisonError::into_inner) {
                out.extend(done?);
            }
        }
        self.at += jobs.len();
        self.close_before(last.source, setting.did);
        Ok(Some(out))
    }

    /// The end of the next window.
    fn window_end(&self) -> usize {
        let (mut objects, first) = (0, self.jobs.get(self.at).map_or(0, |job| job.source));
        let fits = |job: &&Job| {
            objects += job.to - job.from;
            objects <= WINDOW && job.source - first < SOURCES
        };
        self.at + self.jobs[self.at..].iter().take_while(fits).count()
    }

    /// Closes the sources before this number.
    fn close_before(&mut self, number: usize, did: &Did) {
        let traffic = &mut self.traffic;
        self.open.retain(|&n, slot| {
            if n >= number {
                return true;
            }
            if let Some(source) = &lock(&slot.source).source {
                let own = Traffic::of(source);
                traffic.sources_opened += own.sources_opened;
                traffic.bytes_read += own.bytes_read;
                traffic.requests += own.requests;
                did.add(own);
            }
            false
        });
    }
}

/// Makes room for the sources of a window, with their manifests.
fn prepare(open: &mut HashMap<usize, Slot>, setting: &Setting<'_>, first: usize, last: usize) -> Result<()> {
    let new: Vec<usize> = (first..=last).filter(|n| !open.contains_key(n)).collect();
    let sources: Vec<&SourceObjects> = new.iter().map(|&n| &setting.sources[n]).collect();
    let hints = manifests::hints(setting.catalog, &sources)?;
    for (number, hint) in new.into_iter().zip(hints) {
        open.insert(number, Slot { source: Mutex::new(State { hint, source: None }) });
    }
    Ok(())
}

fn job<R>(
    setting: &Setting<'_>,
    open: &HashMap<usize, Slot>,
    job: Job,
    work: &(dyn Fn(At<'_>) -> Result<R> + Sync),
) -> Result<Vec<R>> {
    let found = &setting.sources[job.source];
    let Some(slot) = open.get(&job.source) else {
        return Err(Error::new(ErrorKind::Internal, "a source without its place"));
    };
    let source = {
        let mut state = lock(&slot.source);
        match &state.source {
            Some(source) => source.clone(),
            None => {
                let hint = std::mem::replace(&mut state.hint, Hint::None);
                state.source.insert(opener::open(found, hint, setting.options)?).clone()
            }
        }
    };
    let mut out = Vec::with_capacity(job.to - job.from);
    for (object, number) in found.objects[job.from..job.to].iter().zip(job.number..) {
        if setting.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        let place = || format!("object '{}' of '{}'", object.group, found.location);
        out.push(work(At { source: &source, found, object, number }).map_err(|e| e.at(place()))?);
    }
    Ok(out)
}
