//! What is run of a query, and what is known of it before that.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use sieva_query::bind::Bound;
use sieva_query::exec::Execution;
use sieva_query::logical::select_of;
use sieva_query::optimizer::{Description, Expected, Price, UNBOUNDED};
use sieva_types::Result;

use super::{Query, exec_options};
use crate::session::Entered;
use crate::stats::Phase;

impl Query {
    /// What is run: its subqueries are answered when it is first asked for.
    pub(crate) fn execution(&self) -> Result<&Arc<Execution>> {
        if let Some(known) = self.answered.get() {
            return Ok(known);
        }
        if self.open.is_empty() {
            return Ok(&self.known);
        }
        let _answering = self.answering.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.answered.get() {
            return Ok(known);
        }
        let started = Instant::now();
        let bound = self.source.lowered_to_run(&self.plan, &self.subqueries, &self.subquery_options())?;
        let bound = match &self.within {
            Some(part) => part.of(bound)?,
            None => bound,
        };
        let options = exec_options(self.source.session(), &self.options, &self.cancel, self.cache());
        let execution = self.source.execution(bound, options)?;
        self.lock_stats().add(Phase::Bind, started);
        self.set_key(&execution.bound);
        Ok(self.answered.get_or_init(|| Arc::new(execution)))
    }

    /// How its subqueries are run: what stops it stops them.
    pub(super) fn subquery_options(&self) -> super::QueryOptions {
        super::QueryOptions { cancel: Some(Arc::clone(&self.cancel)), ..self.options.clone() }
    }

    /// Its share of the session, once there is one. Subqueries are answered before, as each takes a share of its own.
    pub(crate) fn enter(&self) -> Result<Entered> {
        self.execution()?;
        self.source.check_file()?;
        self.turn.enter()
    }

    /// What is known without running anything: it has the values of subqueries where they were answered already.
    pub(crate) fn known(&self) -> &Arc<Execution> {
        self.answered.get().unwrap_or(&self.known)
    }

    pub(crate) fn bound(&self) -> &Bound {
        &self.known().bound
    }

    /// Subqueries that were not answered yet, as text.
    fn unanswered(&self) -> Vec<String> {
        let open: &[_] = if self.answered.get().is_some() { &[] } else { &self.open };
        let text = |plan| select_of(plan).map_or_else(|_| "a subquery".into(), |s| format!("({s})"));
        open.iter().map(text).collect()
    }

    /// Whether there are subqueries that were not answered yet.
    pub(crate) fn has_open_subqueries(&self) -> bool {
        self.answered.get().is_none() && !self.open.is_empty()
    }

    /// The physical plan, made without reading a value.
    pub(crate) fn described(&self) -> Result<Description> {
        let mut plan = self.known().describe()?;
        let unanswered = self.unanswered();
        plan.notes.extend(unanswered.iter().map(|text| {
            format!("the value of {text} is not known before the query is run: this is planned without it")
        }));
        Ok(plan)
    }

    /// Bounds of the number of positions that satisfy the condition; reads coordinates at most, and runs no subquery: what
    /// one gives may be anything until it was answered.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn estimate(&self) -> Result<(u64, u64)> {
        let known = self.known();
        if self.unanswered().is_empty() { known.estimate() } else { Ok(known.describe()?.estimate) }
    }

    /// What giving back all of its rows takes, as a query that nothing was asked of yet, in batches of 65 536 rows or more.
    /// No value is read for it. Of a query with subqueries that were not answered yet it is theirs as well, and nothing
    /// says how much is read at most: that depends on what they give.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn price(&self) -> Result<Price> {
        let mut price = self.known().price()?;
        let plus = |n: Expected<u64>, more: u64| Expected {
            expected: n.expected.saturating_add(more),
            high: n.high.saturating_add(more),
            ..n
        };
        price.bytes_read = plus(price.bytes_read, self.spent.0);
        price.requests = plus(price.requests, self.spent.1);
        if self.answered.get().is_some() || self.open.is_empty() {
            return Ok(price);
        }
        let open_ended = |n: Expected<u64>| Expected { low: 0, high: UNBOUNDED, ..n };
        (price.bytes_read, price.requests) = (open_ended(price.bytes_read), open_ended(price.requests));
        price.seconds.low = 0.0;
        for plan in &self.open {
            let own = self.subqueries.query(&self.source, plan, &self.subquery_options())?.price()?;
            price.bytes_read.expected = price.bytes_read.expected.saturating_add(own.bytes_read.expected);
            price.requests.expected = price.requests.expected.saturating_add(own.requests.expected);
            price.seconds.expected += own.seconds.expected;
            price.seconds.high += own.seconds.high;
        }
        Ok(price)
    }
}
