//! The positions that satisfy a query's condition: evaluated once, whatever is asked, and known to the session.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use sieva_query::bind::{Bound, Condition, Value};
use sieva_query::exec::{self, ExecStats, Found};
use sieva_types::{Result, Selection};

use super::Query;
use crate::advise;
use crate::stats::Phase;

/// This share of a query's memory may be taken by positions that counting keeps (1/8).
const KEPT_SHARE: u64 = 8;

/// What is known of the positions that satisfy a condition.
#[derive(Default)]
pub(super) struct Evaluated {
    count: Option<u64>,
    /// What counting kept, until somebody wants the positions.
    found: Option<Found>,
    selection: Option<Arc<Selection>>,
    /// The first positions: so many as were wanted.
    pub(super) first: Option<Arc<Selection>>,
}

impl Evaluated {
    /// Notes how many positions there are.
    pub(super) fn set_count(&mut self, count: u64) {
        self.count = Some(count);
    }

    /// Whether all positions, or their number, are known.
    pub(super) fn is_known(&self) -> bool {
        self.selection.is_some() || self.count.is_some()
    }

    /// Notes the positions, where somebody knows them.
    pub(super) fn set_known(&mut self, selection: Option<Arc<Selection>>) {
        self.selection = selection;
    }

    /// Notes how many positions there are, and what counting kept of them.
    pub(super) fn set_found(&mut self, count: u64, found: Option<Found>) {
        (self.count, self.found) = (Some(count), found);
    }

    /// Notes the positions.
    pub(super) fn set_selection(&mut self, selection: Arc<Selection>) {
        self.selection = Some(selection);
    }
}

impl Query {
    pub(super) fn evaluated(&self) -> MutexGuard<'_, Evaluated> {
        self.evaluated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of positions that satisfy the condition.
    pub(super) fn positions(&self) -> Result<u64> {
        let execution = self.execution()?;
        let mut evaluated = self.evaluated();
        if let Some(known) = evaluated.selection.as_ref().map(|s| s.len()).or(evaluated.count) {
            return Ok(known);
        }
        if let Some(known) = self.kept_selection()? {
            evaluated.selection = Some(Arc::clone(&known));
            return Ok(known.len());
        }
        let started = Instant::now();
        let counted = exec::count(execution, self.memory() / KEPT_SHARE);
        self.lock_stats().add(Phase::Select, started);
        self.take_counted(&mut evaluated, counted?, started.elapsed().as_secs_f64())
    }

    /// The positions that satisfy the condition.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit`.
    pub fn selection(&self) -> Result<Arc<Selection>> {
        let _entered = self.enter()?;
        let mut evaluated = self.evaluated();
        if let Some(known) = &evaluated.selection {
            return Ok(Arc::clone(known));
        }
        if let Some(known) = self.kept_selection()? {
            evaluated.selection = Some(Arc::clone(&known));
            self.lock_stats().hits = Some(known.len());
            return Ok(known);
        }
        let started = Instant::now();
        if let Some(found) = &evaluated.found {
            let selection = Arc::new(found.selection(self.execution()?)?);
            (evaluated.selection, evaluated.found) = (Some(Arc::clone(&selection)), None);
            if let Some(key) = self.key.get() {
                self.source.session().keep_selection(key, &selection);
            }
            self.lock_stats().add(Phase::Select, started);
            return Ok(selection);
        }
        let (selection, did) = self.timed(Phase::Select, || exec::select(self.execution()?, None))?;
        let selection = Arc::new(selection);
        evaluated.selection = Some(Arc::clone(&selection));
        drop(evaluated);
        if let Some(key) = self.key.get() {
            self.source.session().keep_selection(key, &selection);
        }
        self.note_evaluation(did);
        self.lock_stats().hits = Some(selection.len());
        advise::used(self, "select", Some(selection.len()), &did, started.elapsed().as_secs_f64());
        Ok(selection)
    }

    /// Keeps the positions that counting found for who asks for them next, where the session keeps such.
    pub(crate) fn keep_counted(&self) -> Result<()> {
        if self.key.get().is_some() && self.evaluated().found.is_some() {
            self.selection()?;
        }
        Ok(())
    }

    /// The positions, where the session knows them and the source is what it was.
    pub(super) fn kept_selection(&self) -> Result<Option<Arc<Selection>>> {
        let Some(key) = self.key.get() else { return Ok(None) };
        let Some(known) = self.source.session().known_selection(key) else { return Ok(None) };
        self.source.reader().store().check_unchanged()?;
        Ok(Some(known))
    }

    pub(super) fn note_evaluation(&self, did: ExecStats) {
        self.lock_stats().evaluation(did);
        self.source.session().count_evaluation();
    }

    /// The positions, where they are known or counting kept them.
    pub(super) fn known_selection(&self) -> Result<Option<Arc<Selection>>> {
        self.execution()?;
        let is_known = {
            let mut evaluated = self.evaluated();
            if evaluated.selection.is_none() && evaluated.found.is_none() {
                evaluated.selection = self.kept_selection()?;
            }
            evaluated.selection.is_some() || evaluated.found.is_some()
        };
        if is_known { self.selection().map(Some) } else { Ok(None) }
    }
}

/// What the positions of a query depend on, for one state of a source: the condition with its constants, the arrays in it,
/// and their places among the dimensions of the rows.
pub(super) fn positions_key(bound: &Bound) -> String {
    let mut used = BTreeSet::new();
    arrays_of(&bound.condition, &mut used);
    let arrays: Vec<_> =
        used.into_iter().map(|a| (a, bound.arrays[a].index, &bound.arrays[a].axes)).collect();
    format!("{:?} {:?} {arrays:?} {:?}", bound.rows.dims, bound.rows.shape, bound.condition)
}

/// The bound arrays in a condition.
fn arrays_of(condition: &Condition, used: &mut BTreeSet<usize>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|p| arrays_of(p, used)),
        Condition::Stored { array, .. } => drop(used.insert(*array)),
        Condition::Computed(value) => value.walk(&mut |v| {
            if let Value::Array { array, .. } | Value::Date(_, array) = v {
                used.insert(*array);
            }
        }),
        Condition::Always | Condition::Never | Condition::Position { .. } => {}
    }
}
