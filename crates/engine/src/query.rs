//! A query over a source: bound once, then asked for what is wanted of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use sieva_query::ast::{Expr, Projection, Select, SelectItem};
use sieva_query::bind::{Body, Bound, Output, bind_condition, bind_select, bind_within};
use sieva_query::exec::{
    self, Access, Column, ExecOptions, ExecStats, Execution, FetchWay, Gatherer, GroupTable, OrderedRows,
    Plan, RowStream,
};
use sieva_query::parse;
use sieva_query::values::Scalar;
use sieva_store::CountersSnapshot;
use sieva_types::{Error, ErrorKind, Result, Selection};

use crate::advise;
use crate::open::Source;
use crate::stats::{Phase, QueryStats};

/// Positions that are fetched at once.
const READ_PIECE: usize = 1 << 20;

/// How a query is run.
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// The ways of evaluating conditions that may be taken.
    pub access: Access,
    /// How values at selected positions are fetched.
    pub fetch: FetchWay,
    /// Bytes that reading and results in flight may take; `None`: 1 GiB.
    pub memory: Option<u64>,
    /// Threads; `None`: one for each core.
    pub threads: Option<usize>,
}

/// A bound query. Its condition is evaluated at most once, whatever is asked.
pub struct Query {
    source: Source,
    options: QueryOptions,
    /// The condition as a tree, for [`Query::read`] of other arrays.
    condition: Option<Expr>,
    /// The whole of it, in the printed form and without FROM.
    text: String,
    pub(crate) execution: Arc<Execution>,
    cancel: Arc<AtomicBool>,
    selection: OnceLock<Arc<Selection>>,
    groups: OnceLock<Arc<GroupTable>>,
    stats: Arc<Mutex<QueryStats>>,
    /// What ended a stream of batches: an Arrow stream hands on its words only.
    failure: Arc<Mutex<Option<Error>>>,
    before: CountersSnapshot,
    index_before: (u64, u64),
}

impl Query {
    pub(crate) fn of_condition(
        source: &Source,
        condition: Option<Expr>,
        select: Option<Vec<Expr>>,
        options: &QueryOptions,
    ) -> Result<Self> {
        let started = Instant::now();
        let bound = source.with_binding(options, |binding| {
            bind_condition(source.schema(), condition.as_ref(), select.as_deref(), binding)
        })?;
        let item = |expr: Expr| SelectItem { text: expr.to_string(), expr, alias: None };
        let projection = select
            .filter(|list| !list.is_empty())
            .map_or(Projection::All, |list| Projection::Items(list.into_iter().map(item).collect()));
        Self::new(source, bound, Select { projection, condition, ..Select::default() }, options, started)
    }

    pub(crate) fn of_select(source: &Source, select: Select, options: &QueryOptions) -> Result<Self> {
        let started = Instant::now();
        let bound = source.with_binding(options, |binding| bind_select(source.schema(), &select, binding))?;
        Self::new(source, bound, select, options, started)
    }

    fn new(
        source: &Source,
        bound: Bound,
        select: Select,
        options: &QueryOptions,
        started: Instant,
    ) -> Result<Self> {
        let before = source.reader().store().counters().snapshot();
        let cancel = Arc::new(AtomicBool::new(false));
        let execution = Arc::new(source.execution(bound, exec_options(options, &cancel))?);
        let index_before = execution.indexes.traffic();
        let mut stats = QueryStats { open_seconds: source.opened_in(), ..QueryStats::default() };
        stats.add(Phase::Bind, started);
        Ok(Self {
            source: source.clone(),
            options: options.clone(),
            text: Select { from: None, collection: None, ..select.clone() }.to_string(),
            condition: select.condition,
            execution,
            cancel,
            selection: OnceLock::new(),
            groups: OnceLock::new(),
            stats: Arc::new(Mutex::new(stats)),
            failure: Arc::default(),
            before,
            index_before,
        })
    }

    /// The source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The query as text: a SELECT in the printed form, without FROM.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of threads that it is run with.
    pub fn threads(&self) -> usize {
        self.execution.options.threads
    }

    /// Bytes that reading and results in flight may take.
    pub fn memory(&self) -> u64 {
        self.execution.options.memory
    }

    /// A flag that stops the query when it is set.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Names and lengths of the row space's dimensions.
    pub fn rows(&self) -> Vec<(String, u64)> {
        let rows = &self.bound().rows;
        rows.names.iter().cloned().zip(rows.shape.iter().copied()).collect()
    }

    /// Whether rows are groups.
    pub fn is_grouped(&self) -> bool {
        matches!(self.bound().body, Body::Groups { .. })
    }

    pub(crate) fn bound(&self) -> &Bound {
        &self.execution.bound
    }

    pub(crate) fn lock_stats(&self) -> MutexGuard<'_, QueryStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shared_stats(&self) -> Arc<Mutex<QueryStats>> {
        Arc::clone(&self.stats)
    }

    pub(crate) fn shared_failure(&self) -> Arc<Mutex<Option<Error>>> {
        Arc::clone(&self.failure)
    }

    /// The error that ended a stream of its batches, if one did; it is told once.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What it did so far.
    pub fn stats(&self) -> QueryStats {
        let io = self.source.reader().store().counters().snapshot().since(self.before);
        let (bytes, requests) = self.execution.indexes.traffic();
        let index = (bytes - self.index_before.0, requests - self.index_before.1);
        QueryStats { io, index, ..*self.lock_stats() }
    }

    /// The number of rows that come back.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn count(&self) -> Result<u64> {
        let bound = self.bound();
        if bound.distinct {
            let mut stream = self.row_stream(1 << 16)?;
            let mut n = 0;
            while let Some(columns) = stream.next_batch()? {
                n += columns.first().map_or(0, Column::len) as u64;
            }
            return Ok(n);
        }
        let all = if self.is_grouped() { self.groups()?.len as u64 } else { self.positions()? };
        let n = all.saturating_sub(bound.offset).min(bound.limit.unwrap_or(u64::MAX));
        self.lock_stats().hits = Some(n);
        Ok(n)
    }

    /// The number of positions that satisfy the condition.
    fn positions(&self) -> Result<u64> {
        if let Some(known) = self.selection.get() {
            return Ok(known.len());
        }
        let started = Instant::now();
        let (n, did) = self.timed(Phase::Select, || exec::count(&self.execution))?;
        self.lock_stats().exec = did;
        advise::used(self, "count", Some(n), &did, started.elapsed().as_secs_f64());
        Ok(n)
    }

    /// The positions that satisfy the condition.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit`.
    pub fn selection(&self) -> Result<Arc<Selection>> {
        if let Some(known) = self.selection.get() {
            return Ok(Arc::clone(known));
        }
        let started = Instant::now();
        let (selection, did) = self.timed(Phase::Select, || exec::select(&self.execution, None))?;
        let took = started.elapsed().as_secs_f64();
        let mut stats = self.lock_stats();
        stats.exec = did;
        stats.hits = Some(selection.len());
        drop(stats);
        advise::used(self, "select", Some(selection.len()), &did, took);
        Ok(Arc::clone(self.selection.get_or_init(|| Arc::new(selection))))
    }

    pub(crate) fn groups(&self) -> Result<Arc<GroupTable>> {
        if let Some(known) = self.groups.get() {
            return Ok(Arc::clone(known));
        }
        let started = Instant::now();
        let (table, did) = self.timed(Phase::Select, || exec::aggregate(&self.execution))?;
        self.lock_stats().exec = did;
        advise::used(self, "aggregate", None, &did, started.elapsed().as_secs_f64());
        Ok(Arc::clone(self.groups.get_or_init(|| Arc::new(table))))
    }

    /// Sets what the groups are: they were put together elsewhere.
    pub(crate) fn set_groups(&self, table: GroupTable) {
        let _ = self.groups.set(Arc::new(table));
    }

    fn timed<R>(
        &self,
        phase: Phase,
        work: impl FnOnce() -> Result<(R, ExecStats)>,
    ) -> Result<(R, ExecStats)> {
        let started = Instant::now();
        let done = work();
        self.lock_stats().add(phase, started);
        done
    }

    /// Bounds of the number of positions that satisfy the condition; reads coordinates at most.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn estimate(&self) -> Result<(u64, u64)> {
        Ok(self.plan()?.estimate)
    }

    pub(crate) fn plan(&self) -> Result<Plan> {
        self.execution.plan()
    }

    /// The positions of the first rows, where LIMIT wants no more: the scan ends with the tile that has the last.
    fn first_rows(&self) -> Result<Option<Selection>> {
        let bound = self.bound();
        let (Some(limit), true, false, None) =
            (bound.limit, bound.order_by.is_empty(), bound.distinct, self.selection.get())
        else {
            return Ok(None);
        };
        let enough = Some(limit.saturating_add(bound.offset));
        let started = Instant::now();
        let (first, did) = self.timed(Phase::Select, || exec::select(&self.execution, enough))?;
        self.lock_stats().exec = did;
        advise::used(self, "first", None, &did, started.elapsed().as_secs_f64());
        Ok(Some(first))
    }

    /// The rows of an ungrouped query, any part of them at any time.
    pub(crate) fn ordered_rows(&self) -> Result<OrderedRows> {
        let selection = match self.first_rows()? {
            Some(first) => Arc::new(first),
            None => self.selection()?,
        };
        OrderedRows::new(Arc::clone(&self.execution), selection)
    }

    /// The rows of an ungrouped query.
    pub(crate) fn row_stream(&self, batch: usize) -> Result<RowStream> {
        if let Some(first) = self.first_rows()? {
            return RowStream::new(Arc::clone(&self.execution), Arc::new(first), batch);
        }
        if self.selection.get().is_none() {
            let started = Instant::now();
            if let Some(rows) = RowStream::of_replica(&self.execution, batch)? {
                let found = self.execution.chosen().map_or(0, |c| c.count());
                let did = ExecStats { by_replica: found, ..ExecStats::default() };
                let mut stats = self.lock_stats();
                stats.add(Phase::Select, started);
                stats.exec = did;
                stats.hits = Some(found);
                drop(stats);
                advise::used(self, "select", Some(found), &did, started.elapsed().as_secs_f64());
                return Ok(rows);
            }
        }
        RowStream::new(Arc::clone(&self.execution), self.selection()?, batch)
    }

    /// The values of `name` (an array or an expression) at the selected positions, in C order.
    ///
    /// # Errors
    /// `dimension-mismatch` where it varies along a dimension that the rows do not have; reading errors.
    pub fn read(&self, name: &str) -> Result<Column> {
        if self.is_grouped() {
            return Err(Error::new(ErrorKind::Unsupported, "read() of a grouped query")
                .hint("take its rows as Arrow or a table"));
        }
        let expr = parse::parse_expression(name)?;
        let select = [expr];
        let bound = self.source.with_binding(&self.options, |binding| {
            bind_within(
                self.source.schema(),
                &self.bound().rows.dims,
                self.condition.as_ref(),
                &select,
                binding,
            )
        })?;
        if bound.rows != self.bound().rows {
            let (got, want) = (bound.rows.names.join(", "), self.bound().rows.names.join(", "));
            return Err(Error::new(
                ErrorKind::DimensionMismatch,
                format!("'{name}' has rows ({got}), the query has rows ({want})"),
            )
            .hint("name it in select=, so that the query's rows have its dimensions"));
        }
        let selection = self.selection()?;
        let started = Instant::now();
        let execution = Arc::new(self.source.execution(bound, exec_options(&self.options, &self.cancel))?);
        execution.fetch_from(self.execution.chosen());
        let mut gatherer = Gatherer::new(Arc::clone(&execution));
        let mut fetch = |positions: &[u64]| {
            let mut columns = exec::fetch(&mut gatherer, &execution.bound.outputs, positions)?;
            columns.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "nothing was fetched"))
        };
        // Piece by piece: only the result itself grows with the number of hits.
        let mut pieces = selection.batches(READ_PIECE);
        let mut column = fetch(&pieces.next().unwrap_or_default())?;
        for positions in pieces {
            column.append(fetch(&positions)?)?;
        }
        self.lock_stats().add(Phase::Fetch, started);
        advise::fetched(self, &execution.bound, selection.len(), started.elapsed().as_secs_f64());
        Ok(column)
    }

    /// Counts and edges of the histogram of `name` over the selected positions, as `numpy.histogram`.
    ///
    /// # Errors
    /// Reading errors; `type-mismatch` for text.
    pub fn histogram(&self, name: &str, bins: usize) -> Result<(Vec<u64>, Vec<f64>)> {
        let expr = parse::parse_expression(&format!("histogram({name}, {bins})"))?;
        let select = Select {
            projection: Projection::Items(vec![SelectItem { expr, alias: None, text: name.to_string() }]),
            condition: self.condition.clone(),
            ..Select::default()
        };
        let query = Self::of_select(&self.source, select, &self.options)?;
        let first = query.groups()?.aggregates.first().and_then(|a| a.first()).cloned();
        match first {
            Some(Scalar::Histogram { edges, counts }) => Ok((counts, edges)),
            _ => Err(Error::new(ErrorKind::Internal, "a histogram was not made")),
        }
    }

    /// The value of a query of one row and one column; NULL where it has no row.
    pub(crate) fn single_value(&self) -> Result<Scalar> {
        let [output] = self.bound().outputs.as_slice() else {
            let n = self.bound().outputs.len();
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("a subquery used as a value has {n} columns, not one"),
            ));
        };
        let vector = if self.is_grouped() {
            self.groups()?.evaluate(&self.execution, &output.value)?
        } else {
            match self.row_stream(2)?.next_batch()?.and_then(|mut c| c.pop()) {
                Some(column) => column.into_vector()?,
                None => return Ok(Scalar::Null),
            }
        };
        match vector.len() {
            0 => Ok(Scalar::Null),
            1 => Ok(vector.scalar(0)),
            _ => Err(Error::new(ErrorKind::InvalidValue, "a subquery used as a value has more than one row")
                .hint("use an aggregate or LIMIT 1")),
        }
    }

    /// The columns of the result.
    pub fn outputs(&self) -> &[Output] {
        &self.bound().outputs
    }

    /// Stops it, from any thread.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

fn exec_options(options: &QueryOptions, cancel: &Arc<AtomicBool>) -> ExecOptions {
    let default = ExecOptions::default();
    ExecOptions {
        threads: options.threads.unwrap_or(default.threads).max(1),
        memory: options.memory.unwrap_or(default.memory),
        cancel: Arc::clone(cancel),
        access: options.access,
        fetch: options.fetch,
    }
}
