//! Several queries at once: [`Session::run`].
//!
//! What two queries read of one source is read once (FASM over HiLa: Liu, Crysler, Lu, Chen, *Locality-driven High-level I/O
//! Aggregation for Processing Scientific Datasets*, section V.C). Statistics prune each query by itself, the tiles that are
//! left are gone through in the order in which they lie, for all queries at a time (`sieva_query::exec::together`).

mod sets;
mod stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sieva_query::exec::{Asked, Shares, check, together};
use sieva_types::{ErrorKind, Result};

use crate::query::Query;
use crate::session::{Session, Turn};
use sets::same_source;
pub use stats::RunStats;
use stats::Traffic;

/// Of a run's memory, the part for what its queries come to (1/2): a quarter is for chunks, and one for tiles at work.
const RESULTS_SHARE: u64 = 2;
/// Bytes for what a query comes to, at least: of more queries than have so much, some are run after others.
const LEAST_RESULT: u64 = 8 << 20;

/// How several queries are run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Bytes that those which are evaluated together may take; `None`: as a query of the session that does not say.
    pub memory: Option<u64>,
    /// Threads; `None`: as many as the query of them that takes most.
    pub threads: Option<usize>,
    /// A flag that stops all of them. The flag of each stops it alone.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// What came of several queries.
#[derive(Debug)]
pub struct Ran {
    /// Of each query whether its condition, or its groups, are known now.
    pub results: Vec<Result<()>>,
    /// What was done for them.
    pub stats: RunStats,
}

impl Session {
    /// Evaluates several queries: of each its condition, or its groups, are known afterwards, as if it had been asked by
    /// itself, and to the bit. What they have in common is read once.
    ///
    /// Queries of one source that read an array in common are evaluated together; all others, and those that have no room
    /// together with others, one after another. What fails one does not stop the others. Rows and columns are fetched when
    /// they are asked for. What a query comes to takes no more memory beside others than its own limit allows it alone, where it
    /// has one. Of a query whose positions take more than its part of the memory the number is known, and they
    /// are found again; one with ORDER BY or DISTINCT and LIMIT that is evaluated alone is run when its rows are asked for.
    ///
    /// ```no_run
    /// # fn main() -> sieva::Result<()> {
    /// let session = sieva::Session::default();
    /// let source = session.open("pop.nc", &sieva::OpenOptions::default())?;
    /// let options = sieva::QueryOptions::default();
    /// let warm = source.query(Some("TEMP > 25"), None, &options)?;
    /// let means = source.sql("SELECT z_t, avg(TEMP) GROUP BY z_t", &options)?;
    /// let ran = session.run(&[&warm, &means], &sieva::RunOptions::default())?;
    /// println!("{} warm, {} depths, {}", warm.count()?, means.count()?, ran.stats.io.chunks_decoded);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `cancelled` where the session is closed or the run was stopped; `memory-limit` for more memory than the session has.
    /// What fails a query is told of it alone.
    pub fn run(&self, queries: &[&Query], options: &RunOptions) -> Result<Ran> {
        let traffic = Traffic::begin(queries);
        let run = Run::new(self, options);
        let mut results: Vec<Option<Result<()>>> = queries.iter().map(|_| None).collect();
        let mut stats = RunStats { queries: queries.len() as u64, ..RunStats::default() };
        {
            let _entered = run.turn.enter()?;
            for set in same_source(queries) {
                run.set(queries, &set, &mut results, &mut stats);
            }
        }
        // Each with a share of its own.
        for (query, result) in queries.iter().zip(&mut results).filter(|(_, result)| result.is_none()) {
            *result = Some(run.check().and_then(|()| query.ask()));
            stats.alone += 1;
        }
        run.check()?;
        stats.io = traffic.so_far();
        Ok(Ran { results: results.into_iter().map(|r| r.unwrap_or(Ok(()))).collect(), stats })
    }
}

/// A run of several queries.
struct Run<'s> {
    session: &'s Session,
    options: &'s RunOptions,
    memory: u64,
    cancel: Arc<AtomicBool>,
    turn: Turn,
}

impl<'s> Run<'s> {
    fn new(session: &'s Session, options: &'s RunOptions) -> Self {
        let memory = options.memory.unwrap_or_else(|| session.query_memory());
        let cancel = options.cancel.clone().unwrap_or_default();
        let turn = Turn::new(session, memory, &cancel);
        Self { session, options, memory, cancel, turn }
    }

    fn check(&self) -> Result<()> {
        check(&self.cancel)
    }

    /// Queries that each have room for what they come to.
    fn at_once(&self) -> usize {
        usize::try_from(self.memory / RESULTS_SHARE / LEAST_RESULT).unwrap_or(usize::MAX).max(1)
    }

    /// Evaluates those of a source, as many at once as there is room for.
    fn set(
        &self,
        queries: &[&Query],
        set: &[usize],
        results: &mut [Option<Result<()>>],
        stats: &mut RunStats,
    ) {
        let mut open = Vec::new();
        for &number in set {
            match queries[number].is_answered() {
                Ok(true) => results[number] = Some(Ok(())),
                Ok(false) => open.push(number),
                Err(e) => results[number] = Some(Err(e)),
            }
        }
        let Some(&first) = open.first() else { return };
        let cache = queries[first].cache_for(self.session, self.memory, open.iter().map(|&n| queries[n]));
        let each = self.at_once();
        // None is left over for the end: alone it would gain nothing.
        let waves = open.len().div_ceil(each).max(1);
        for wave in open.chunks(open.len().div_ceil(waves)).filter(|wave| wave.len() > 1) {
            if self.cancel.load(Ordering::Relaxed) {
                return;
            }
            let room = self.memory / RESULTS_SHARE / wave.len() as u64;
            let mut asked = Vec::new();
            let mut numbers = Vec::new();
            for &number in wave {
                let want = queries[number].wanted(queries[number].room_of(room));
                let made = queries[number].execution_in(self.options.threads, (self.memory, room), &cache);
                match made {
                    Ok(execution) => {
                        asked.push(Asked { execution: Arc::new(execution), want });
                        numbers.push(number);
                    }
                    Err(e) => results[number] = Some(Err(e)),
                }
            }
            self.wave(queries, (&numbers, &asked), results, stats);
            for &number in &numbers {
                if let Err(e) = queries[number].fetch_with(&cache) {
                    results[number] = Some(Err(e));
                }
            }
        }
    }

    fn wave(
        &self,
        queries: &[&Query],
        (numbers, asked): (&[usize], &[Asked]),
        results: &mut [Option<Result<()>>],
        stats: &mut RunStats,
    ) {
        let (started, shares) = (Instant::now(), Arc::<Shares>::default());
        let (answers, went) = together(asked, &self.cancel, &shares);
        let seconds = started.elapsed().as_secs_f64() / went.queries.max(1) as f64;
        stats.add(went, shares.snapshot());
        for (&number, answer) in numbers.iter().zip(answers) {
            results[number] = match answer {
                Some(Ok(answer)) => Some(queries[number].take_answer(answer, seconds)),
                // By itself it has all of its memory, and looks at no row behind the last that LIMIT wants.
                Some(Err(e)) if matches!(e.kind(), ErrorKind::MemoryLimit | ErrorKind::Overflow) => None,
                Some(Err(e)) => Some(Err(e)),
                None => None,
            };
        }
    }
}
