//! A session: what queries share. Memory and threads, who may run now, decoded chunks, and what was found before.
//!
//! A query whose caller runs has a share of the session's memory; who cannot get one waits. What is kept in caches is
//! counted by itself, and known by the state of its file: one that changed has another number, and is read anew.

mod admission;
mod found;
mod sources;
mod turn;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use sieva_format::read::{CacheStats, ChunkCache, SharedCache};
use sieva_plan::{Plan, SourceRef};
use sieva_query::exec::ExecOptions;
use sieva_query::parse;
use sieva_types::{Error, ErrorKind, Result, Selection};

use crate::memory;
use crate::open::{OpenOptions, Source};
use crate::query::{Query, QueryOptions};
use crate::read_many::Windows;
use admission::{Admission, AdmissionLimits, Permit};
use found::Selections;
use sources::Sources;
pub(crate) use turn::{Entered, Turn};

/// What a query may take where nobody says: at most this, and at least a quarter of it if the session has that.
const QUERY_MEMORY: u64 = 1 << 30;
/// Of the memory for caches, the part for selections (1/4).
const SELECTIONS_SHARE: u64 = 4;
/// Queries that run at once for each thread, where nobody says.
const QUERIES_PER_THREAD: usize = 4;

/// What a session has. `None` is the default.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Bytes that its queries and caches may take together; `None`: half of the system's memory, at least 1 GiB.
    pub memory: Option<u64>,
    /// Of these, bytes for caches; `None`: a quarter, at most 1 GiB.
    pub cache: Option<u64>,
    /// Threads of a query that does not say how many; `None`: one for each core.
    pub threads: Option<usize>,
    /// Queries that may run at once; `None`: four for each thread.
    pub queries: Option<usize>,
}

/// What a session did so far, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Bytes that it may take.
    pub memory: u64,
    /// Bytes of shares that running queries have.
    pub reserved: u64,
    /// The most that was reserved at once.
    pub peak_reserved: u64,
    /// Queries that run.
    pub running: u64,
    /// Callers that wait for a share.
    pub waiting: u64,
    /// Queries that were made.
    pub queries: u64,
    /// Times that a query was given a share.
    pub admitted: u64,
    /// Times that one was refused, as it would never fit.
    pub refused: u64,
    /// Evaluations of conditions.
    pub evaluations: u64,
    /// Conditions that were not evaluated, as the session knew what they select.
    pub selections_reused: u64,
    /// Selections held, and their bytes.
    pub selections: (u64, u64),
    /// Decoded chunks, values at positions, and small arrays.
    pub cache: CacheStats,
}

/// Queries that share memory, threads and what was found before. Cheap to clone; clones are one session.
///
/// ```no_run
/// # fn main() -> sieva::Result<()> {
/// let session = sieva::Session::new(&sieva::SessionOptions { memory: Some(4 << 30), ..Default::default() })?;
/// let source = session.open("pop.nc", &sieva::OpenOptions::default())?;
/// for _ in 0..2 {
///     // Read the first time, known the second.
///     println!("{}", source.query(Some("TEMP > 25"), None, &sieva::QueryOptions::default())?.count()?);
/// }
/// println!("{:?}", session.stats());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    memory: u64,
    /// Bytes for what is kept from query to query; 0: nothing is.
    cache: u64,
    threads: usize,
    /// What a query takes that does not say.
    share: u64,
    /// The most that a query may take; `None`: no limit.
    most: Option<u64>,
    admission: Arc<Admission>,
    chunks: Arc<SharedCache>,
    selections: Selections,
    sources: Sources,
    windows: Windows,
    queries: AtomicU64,
    evaluations: AtomicU64,
    reused: AtomicU64,
}

impl Default for Session {
    /// The session of the process, which keeps nothing from query to query.
    fn default() -> Self {
        static SHARED: OnceLock<Session> = OnceLock::new();
        let make = || Self::of(&SessionOptions { cache: Some(0), ..SessionOptions::default() }, false);
        SHARED.get_or_init(make).clone()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} bytes, {} for caches)", self.0.memory, self.0.cache)
    }
}

impl Session {
    /// A session of its own.
    ///
    /// # Errors
    /// `invalid-value` where its caches would take all of its memory, or no query may run.
    pub fn new(options: &SessionOptions) -> Result<Self> {
        if options.queries == Some(0) || options.threads == Some(0) {
            return Err(Error::new(ErrorKind::InvalidValue, "a session of no queries or no threads"));
        }
        let session = Self::of(options, true);
        if session.0.cache >= session.0.memory {
            let message = format!(
                "{} bytes for caches in a session of {}: nothing is left for queries",
                session.0.cache, session.0.memory
            );
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        Ok(session)
    }

    /// `strict`: a query that asks for more than there is is refused; else it runs when no other does.
    fn of(options: &SessionOptions, strict: bool) -> Self {
        let threads = options.threads.unwrap_or(ExecOptions::default().threads).max(1);
        let memory = options.memory.unwrap_or_else(memory::default_limit);
        let cache = options.cache.unwrap_or((memory / 4).min(QUERY_MEMORY));
        let queries = options.queries.unwrap_or(QUERIES_PER_THREAD * threads);
        let work = memory.saturating_sub(cache);
        // Several side by side where there is room for them.
        let share = (work / queries as u64).clamp(work.min(QUERY_MEMORY / 4), QUERY_MEMORY);
        // The process's own has no limit that a single query could not pass before there were sessions.
        let share = if strict { share } else { QUERY_MEMORY };
        Self(Arc::new(Inner {
            memory,
            cache,
            threads,
            share,
            most: strict.then_some(work),
            admission: Arc::new(Admission::new(AdmissionLimits { memory: work, queries, strict })),
            chunks: Arc::new(SharedCache::new((cache - cache / SELECTIONS_SHARE) as usize)),
            selections: Selections::new(cache / SELECTIONS_SHARE),
            sources: Sources::default(),
            windows: Windows::default(),
            queries: AtomicU64::new(0),
            evaluations: AtomicU64::new(0),
            reused: AtomicU64::new(0),
        }))
    }

    /// Opens a source whose queries belong to this session.
    ///
    /// # Errors
    /// As [`Source::open_many`].
    pub fn open(&self, path: impl AsRef<str>, options: &OpenOptions) -> Result<Source> {
        Source::open_many(&[path.as_ref()], &OpenOptions { session: self.clone(), ..options.clone() })
    }

    /// The query of a SELECT whose FROM names the file.
    ///
    /// # Errors
    /// `syntax-error` where it has no FROM, those of opening, and of [`Source::sql`].
    pub fn sql(&self, text: &str, open: &OpenOptions, options: &QueryOptions) -> Result<Query> {
        let Some(from) = parse::parse_select(text)?.from else {
            return Err(Error::new(ErrorKind::Syntax, "the query has no FROM")
                .hint("write SELECT ... FROM 'file.nc' WHERE ..."));
        };
        self.open(from, open)?.sql(text, options)
    }

    /// The query of a plan that names its source.
    ///
    /// # Errors
    /// `invalid-value` where it names none; those of opening, and of [`Source::query_plan`].
    pub fn query(&self, plan: &Plan, open: &OpenOptions, options: &QueryOptions) -> Result<Query> {
        match &plan.scan.source {
            SourceRef::Path(path) => self.open(path, open)?.query_plan(plan, options),
            _ => Err(Error::new(ErrorKind::InvalidValue, "the plan names no file")
                .hint("open the source in the session, and ask it for the plan")),
        }
    }

    /// What it did, and what it holds.
    pub fn stats(&self) -> SessionStats {
        let inner = &*self.0;
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let stats = SessionStats {
            memory: inner.memory,
            queries: load(&inner.queries),
            evaluations: load(&inner.evaluations),
            selections_reused: load(&inner.reused),
            selections: inner.selections.held(),
            cache: inner.chunks.stats(),
            ..SessionStats::default()
        };
        inner.admission.tell(stats)
    }

    /// Stops the queries that run now: they end with `cancelled`, and stay stopped.
    pub fn cancel(&self) {
        self.0.admission.cancel();
    }

    /// Stops its queries, forgets what it kept, and lets no more of them run. Sources stay open.
    pub fn close(&self) {
        self.0.admission.close();
        self.forget();
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.0.admission.is_closed()
    }

    /// Forgets what it kept.
    pub fn forget(&self) {
        self.0.chunks.clear();
        self.0.selections.clear();
    }

    /// Bytes that a query takes that does not say.
    pub fn query_memory(&self) -> u64 {
        self.0.share
    }

    /// Bytes that reading boxes of a source may take that was opened with this limit.
    pub(crate) fn memory_of_source(&self, given: Option<u64>) -> u64 {
        match self.0.most {
            Some(most) => given.unwrap_or(self.0.share).min(most),
            None => given.unwrap_or_else(memory::default_limit),
        }
    }

    /// Threads of a query that does not say how many.
    pub fn threads(&self) -> usize {
        self.0.threads
    }

    /// A share of the memory, once there is one.
    fn admit(&self, bytes: u64, cancel: &Arc<AtomicBool>) -> Result<Permit> {
        self.0.admission.admit(bytes, cancel)
    }

    pub(crate) fn count_query(&self) {
        self.0.queries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_evaluation(&self) {
        self.0.evaluations.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of a source's state, under which it is kept what was found of these of its arrays; `None` where nothing
    /// is kept, or it cannot be told surely whether they changed.
    pub(crate) fn state_of(&self, source: &Source, arrays: &[usize]) -> Option<u64> {
        if self.0.cache == 0 { None } else { self.number_of(source, arrays) }
    }

    /// The number of a source's state, whether something is kept of it or not; `None` where that cannot be told surely, and in
    /// a forked process: it must not wait for the locks of what its parent keeps.
    pub(crate) fn number_of(&self, source: &Source, arrays: &[usize]) -> Option<u64> {
        if self.0.admission.is_of_parent() {
            return None;
        }
        self.0.sources.state_of(source, arrays)
    }

    /// Where readers of its sources meet.
    pub(crate) fn windows(&self) -> &Windows {
        &self.0.windows
    }

    /// The cache of decoded chunks for a query: the session's, or one of its own.
    pub(crate) fn chunks(&self, state: Option<u64>, memory: u64) -> Arc<ChunkCache> {
        let most = (memory / 4) as usize;
        Arc::new(match state {
            Some(state) => ChunkCache::within(&self.0.chunks, state, most),
            None => ChunkCache::new(most),
        })
    }

    /// What a condition selects, if that is known.
    pub(crate) fn known_selection(&self, key: &(u64, String)) -> Option<Arc<Selection>> {
        let known = self.0.selections.get(key)?;
        self.0.reused.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    /// Keeps what a condition selects.
    pub(crate) fn keep_selection(&self, key: &(u64, String), selection: &Arc<Selection>) {
        self.0.selections.keep(key, selection);
    }
}

/// The path of a local file that is all of a source.
fn local_file(source: &Source) -> Option<&Path> {
    if source.many().is_some() { None } else { source.reader().store().local_path() }
}
