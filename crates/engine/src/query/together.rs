//! A query among several that are evaluated together: what it asks of the run, and what it takes from it.

use std::sync::Arc;

use sieva_format::read::ChunkCache;
use sieva_query::exec::{Answer, Counted, ExecOptions, Execution, Want};
use sieva_types::Result;

use super::positions::Evaluated;
use super::{Query, exec_options};
use crate::advise;
use crate::session::Session;

impl Query {
    /// Whether what a run would find of it is known; its subqueries are answered for it.
    ///
    /// # Errors
    /// Those of its subqueries.
    pub(crate) fn is_answered(&self) -> Result<bool> {
        self.execution()?;
        if self.is_grouped() {
            return Ok(self.groups.get().is_some());
        }
        let mut evaluated = self.evaluated();
        if !evaluated.is_known() {
            evaluated.set_known(self.kept_selection()?);
        }
        Ok(evaluated.is_known() || self.enough().is_some() && evaluated.first.is_some())
    }

    /// What a run is to find of it, where positions may take so many bytes.
    pub(crate) fn wanted(&self, keep: u64) -> Want {
        match self.enough() {
            _ if self.is_grouped() => Want::Groups,
            Some(enough) => Want::First(enough),
            None => Want::Count { keep },
        }
    }

    /// How many of the first positions do, where not all are wanted.
    pub(super) fn enough(&self) -> Option<u64> {
        let bound = self.bound();
        let limit = bound.limit.filter(|_| bound.order_by.is_empty() && !bound.distinct)?;
        // No row is wanted of LIMIT 0, whatever OFFSET skips.
        Some(if limit > 0 { limit.saturating_add(bound.offset) } else { 0 })
    }

    /// The decoded chunks that queries of this one's source share while they are run together: the session's, if it keeps
    /// some of this state of the source, or their own.
    pub(crate) fn cache_for<'q>(
        &self,
        session: &Session,
        memory: u64,
        all: impl Iterator<Item = &'q Query>,
    ) -> Arc<ChunkCache> {
        let mut arrays: Vec<usize> = all.flat_map(|q| q.bound().arrays.iter().map(|a| a.index)).collect();
        arrays.sort_unstable();
        arrays.dedup();
        session.chunks(session.state_of(&self.source, &arrays), memory)
    }

    /// Of so many bytes for what it comes to those that its own limit allows: beside others it takes no more than alone.
    pub(crate) fn room_of(&self, room: u64) -> u64 {
        let own = |memory| ExecOptions { memory, ..ExecOptions::default() }.room().bytes;
        self.options.memory.map_or(room, |memory| room.min(own(memory)))
    }

    /// What is run of it together with others that use the same cache. `(memory, room)`: bytes of all, and those for what
    /// it comes to.
    ///
    /// # Errors
    /// As those of making it.
    pub(crate) fn execution_in(
        &self,
        threads: Option<usize>,
        (memory, room): (u64, u64),
        cache: &Arc<ChunkCache>,
    ) -> Result<Execution> {
        let bound = self.execution()?.bound.clone();
        let room = self.room_of(room);
        let own = exec_options(self.source.session(), &self.options, &self.cancel, cache);
        let options =
            ExecOptions { memory, room: Some(room), threads: threads.unwrap_or(own.threads).max(1), ..own };
        self.source.execution(bound, options)
    }

    /// Has it fetch with the decoded chunks of a run, which the others of it use as well, where it has none of a session.
    ///
    /// # Errors
    /// As those of making it.
    pub(crate) fn fetch_with(&self, cache: &Arc<ChunkCache>) -> Result<()> {
        if cache.is_shared() || self.cache.is_shared() || self.answered.get().is_some() {
            return Ok(());
        }
        let options = exec_options(self.source.session(), &self.options, &self.cancel, cache);
        let execution = Arc::new(self.source.execution(self.known.bound.clone(), options)?);
        if self.answered.set(execution).is_ok() {
            let _ = self.run_cache.set(Arc::clone(cache));
        }
        Ok(())
    }

    /// Takes what a run found of it in `seconds`.
    ///
    /// # Errors
    /// Those of its subqueries.
    pub(crate) fn take_answer(&self, answer: Answer, seconds: f64) -> Result<()> {
        self.lock_stats().select_seconds += seconds;
        match answer {
            Answer::Counted(counted) => {
                let mut evaluated = self.evaluated();
                if !evaluated.is_known() {
                    self.take_counted(&mut evaluated, counted, seconds)?;
                }
            }
            Answer::First(first, did) => {
                self.evaluated().first = Some(Arc::new(first));
                self.note_evaluation(did);
                advise::used(self, "first", None, &did, seconds);
            }
            Answer::Groups(table, did) => {
                self.note_evaluation(did);
                self.set_groups(table);
                advise::used(self, "aggregate", None, &did, seconds);
            }
        }
        Ok(())
    }

    /// Notes what counting its positions came to, in `seconds`; returns their number.
    pub(super) fn take_counted(
        &self,
        evaluated: &mut Evaluated,
        counted: Counted,
        seconds: f64,
    ) -> Result<u64> {
        let execution = self.execution()?;
        self.note_evaluation(counted.did);
        // What counts need not have room for a selection.
        let known = match (self.key.get(), &counted.found) {
            (Some(key), Some(found)) => found.selection(execution).ok().map(|s| (key, Arc::new(s))),
            _ => None,
        };
        match known {
            Some((key, selection)) => {
                self.source.session().keep_selection(key, &selection);
                evaluated.set_known(Some(selection));
                evaluated.set_count(counted.count);
            }
            None => evaluated.set_found(counted.count, counted.found),
        }
        advise::used(self, "count", Some(counted.count), &counted.did, seconds);
        Ok(counted.count)
    }

    /// Finds by itself what a run would have found. The rows of ORDER BY with LIMIT are found when they are asked for, as
    /// not all of them are put in order then.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit`.
    pub(crate) fn ask(&self) -> Result<()> {
        let _entered = self.enter()?;
        let bound = self.bound();
        if self.is_grouped() {
            self.groups().map(drop)
        } else if self.enough().is_some() {
            self.first_rows().map(drop)
        } else if bound.limit.is_some() && bound.order_by.is_empty() == bound.distinct {
            // The least by an order, or the first that differ: found without all hits when rows are asked for.
            Ok(())
        } else {
            self.positions().map(drop)
        }
    }
}
