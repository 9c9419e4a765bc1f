//! How queries are made: a tree to a plan, the plan to a bound query. Nothing is read or run for it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use sieva_format::read::ChunkCache;
use sieva_plan::Plan;
use sieva_query::ast::{Expr, Projection, Select, SelectItem};
use sieva_query::bind::{Bound, column_name};
use sieva_query::exec::Access;
use sieva_query::lower::Answer;
use sieva_types::Result;

use super::parts::Part;
use super::positions::{Evaluated, positions_key};
use super::{Query, QueryOptions, exec_options};
use crate::open::Source;
use crate::session::Turn;
use crate::stats::{Phase, QueryStats};
use crate::subqueries::Subqueries;

/// A query to be made.
pub(super) struct Asked {
    pub(super) plan: Arc<Plan>,
    pub(super) bound: Bound,
    pub(super) within: Option<Part>,
    pub(super) select: Option<Select>,
    pub(super) subqueries: Arc<Subqueries>,
    pub(super) open: Vec<Plan>,
    /// What is found of the condition, and decoded chunks.
    pub(super) shared: (Arc<Mutex<Evaluated>>, Arc<ChunkCache>),
    pub(super) started: Instant,
}

impl Query {
    pub(crate) fn of_condition(
        source: &Source,
        condition: Option<Expr>,
        select: Option<Vec<Expr>>,
        options: &QueryOptions,
    ) -> Result<Self> {
        let (started, subqueries) = (Instant::now(), Subqueries::default());
        let (plan, _) = source.plan_rows(&[], condition.as_ref(), select.as_deref(), &subqueries, options)?;
        let item = |expr: Expr| SelectItem { text: column_name(&expr), expr, alias: None };
        let projection =
            select.map_or(Projection::All, |list| Projection::Items(list.into_iter().map(item).collect()));
        let select = Select { projection, condition, ..Select::default() };
        Self::new(source, plan, &[], Some(select), subqueries.into(), options, started)
    }

    pub(crate) fn of_select(source: &Source, select: Select, options: &QueryOptions) -> Result<Self> {
        let (started, subqueries) = (Instant::now(), Subqueries::default());
        let (plan, _) = source.plan_select(&select, &subqueries, options)?;
        Self::new(source, plan, &[], Some(select), subqueries.into(), options, started)
    }

    /// The query of a plan of this source's arrays.
    pub(crate) fn of_plan(
        source: &Source,
        plan: Plan,
        options: &QueryOptions,
        started: Instant,
    ) -> Result<Self> {
        Self::new(source, plan, &[], None, Arc::default(), options, started)
    }

    /// The query of the plan of an object of a collection, with what is known of its columns that are constants.
    pub(crate) fn of_object(
        source: &Source,
        plan: Plan,
        constants: &[Answer],
        options: &QueryOptions,
    ) -> Result<Self> {
        Self::new(source, plan, constants, None, Arc::default(), options, Instant::now())
    }

    /// The same query, made of its plan in its one form, as its tasks are: aggregates that stand in HAVING alone may come in
    /// another order there.
    pub(crate) fn in_one_form(&self) -> Result<Self> {
        let (plan, select) = (self.logical_plan()?, self.select.get().cloned());
        let subqueries = Arc::clone(&self.subqueries);
        let asked =
            Self::lowered(&self.source, plan, &[], select, subqueries, &self.options, Instant::now())?;
        Self::alone(&self.source, asked, &self.options)
    }

    fn new(
        source: &Source,
        plan: Plan,
        constants: &[Answer],
        select: Option<Select>,
        subqueries: Arc<Subqueries>,
        options: &QueryOptions,
        started: Instant,
    ) -> Result<Self> {
        source.session().count_query();
        let asked = Self::lowered(source, plan, constants, select, subqueries, options, started)?;
        Self::alone(source, asked, options)
    }

    fn lowered(
        source: &Source,
        plan: Plan,
        constants: &[Answer],
        select: Option<Select>,
        subqueries: Arc<Subqueries>,
        options: &QueryOptions,
        started: Instant,
    ) -> Result<Asked> {
        let open = RefCell::new(Vec::new());
        let bound = source.lowered_with(
            &plan,
            constants,
            &|plan| {
                open.borrow_mut().push(plan.clone());
                subqueries.unknown(source, plan, options)
            },
            options,
        )?;
        let mut open = open.into_inner();
        open.sort_unstable();
        open.dedup();
        let (plan, shared) = (Arc::new(plan), (Arc::default(), Arc::new(ChunkCache::new(0))));
        Ok(Asked { plan, bound, within: None, select, subqueries, open, shared, started })
    }

    /// A query that finds for itself what it is asked.
    pub(super) fn alone(source: &Source, asked: Asked, options: &QueryOptions) -> Result<Self> {
        let (session, bound) = (source.session(), &asked.bound);
        let memory = options.memory.unwrap_or_else(|| session.query_memory());
        let arrays: Vec<usize> = bound.arrays.iter().map(|a| a.index).collect();
        let state = session.state_of(source, &arrays);
        let asked = Asked { shared: (Arc::default(), session.chunks(state, memory)), ..asked };
        let mut query = Self::made(source, asked, options)?;
        // A way that somebody asks for is to be gone.
        query.state = state.filter(|_| options.access == Access::Auto);
        if query.open.is_empty() {
            query.set_key(query.bound());
        }
        Ok(query)
    }

    pub(super) fn made(source: &Source, asked: Asked, options: &QueryOptions) -> Result<Self> {
        let Asked { plan, bound, within, select, subqueries, open, shared: (evaluated, cache), started } =
            asked;
        let options = QueryOptions { cross: options.cross || plan.scan.cross, ..options.clone() };
        let select =
            select.map(|select| Select { cross: options.cross, from: None, collection: None, ..select });
        let before = source.reader().store().counters().snapshot();
        let cancel = options.cancel.clone().unwrap_or_default();
        let known =
            Arc::new(source.execution(bound, exec_options(source.session(), &options, &cancel, &cache))?);
        // Where chunks are, and samples of the file where it has indexes: what the price does not know of.
        let made = source.reader().store().counters().snapshot();
        let spent = (made.bytes_read - before.bytes_read, made.requests - before.requests);
        let turn = Turn::new(source.session(), known.options.memory, &cancel);
        let index_before = known.indexes.traffic();
        let mut stats = QueryStats { open_seconds: source.opened_in(), ..QueryStats::default() };
        stats.add(Phase::Bind, started);
        Ok(Self {
            source: source.clone(),
            options,
            plan,
            canonical: OnceLock::new(),
            select: select.map_or_else(OnceLock::new, OnceLock::from),
            text: OnceLock::new(),
            subqueries,
            open,
            within,
            known,
            answered: OnceLock::new(),
            answering: Mutex::default(),
            cancel,
            evaluated,
            cache,
            run_cache: OnceLock::new(),
            turn,
            state: None,
            key: OnceLock::new(),
            groups: OnceLock::new(),
            stats: Arc::new(Mutex::new(stats)),
            failure: Arc::default(),
            before,
            spent,
            index_before,
        })
    }

    /// What the query is, to be made again.
    pub(super) fn asked(&self, shared: (Arc<Mutex<Evaluated>>, Arc<ChunkCache>)) -> Asked {
        Asked {
            plan: Arc::clone(&self.plan),
            bound: self.known.bound.clone(),
            within: self.within.clone(),
            select: self.select.get().cloned(),
            subqueries: Arc::clone(&self.subqueries),
            open: self.open.clone(),
            shared,
            started: Instant::now(),
        }
    }

    /// The same query, to be stopped by itself: what either finds of the condition, both know.
    ///
    /// # Errors
    /// As those of making it.
    pub fn again(&self, cancel: Option<Arc<std::sync::atomic::AtomicBool>>) -> Result<Self> {
        let options = QueryOptions { cancel, ..self.options.clone() };
        let asked = self.asked((Arc::clone(&self.evaluated), Arc::clone(self.cache())));
        let made = Self::made(&self.source, asked, &options)?;
        if let Some(known) = self.groups.get() {
            let _ = made.groups.set(Arc::clone(known));
        }
        Ok(Self { state: self.state, key: self.key.clone(), ..made })
    }

    /// Sets what its positions are known by, where they are kept: `bound` has the values of its subqueries.
    pub(super) fn set_key(&self, bound: &Bound) {
        if let Some(state) = self.state {
            let _ = self.key.set((state, positions_key(bound)));
        }
    }
}
