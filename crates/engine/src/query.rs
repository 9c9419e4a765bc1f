//! A query over a source: a logical plan, lowered once, then asked for what is wanted of it.

mod execution;
mod made;
mod order;
mod parts;
mod positions;
mod together;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use sieva_format::read::ChunkCache;
use sieva_plan::Plan;
use sieva_query::ast::{Expr, Literal, Projection, Select, SelectItem};
use sieva_query::bind::{Body, Bound, Output, Value, column_name};
use sieva_query::code::Functions;
use sieva_query::exec::{
    self, Access, Column, ExecOptions, ExecStats, Execution, FetchWay, Gatherer, GroupTable,
};
use sieva_query::logical::select_of;
use sieva_query::values::{Scalar, ValueType};
use sieva_store::CountersSnapshot;
use sieva_types::{Error, ErrorKind, Result};

use crate::advise;
use crate::open::Source;
use crate::session::{Session, Turn};
use crate::stats::{Phase, QueryStats};
use crate::subqueries::Subqueries;
pub(crate) use parts::{Known, Part};
use positions::Evaluated;

/// Positions that are fetched at once.
const READ_PIECE: usize = 1 << 20;

/// Bytes that sorting may write to temporary files, where it is not said.
const SPILL: u64 = 16 << 30;

/// This share of a query's memory is for instances of functions that came as code (1/8).
const CODE_SHARE: u64 = 8;
/// Bytes of memory of an instance, at least and at most.
const LEAST_OF_CODE: u64 = 4 << 20;
const MOST_OF_CODE: u64 = 256 << 20;

/// How a query is run.
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// The ways of evaluating conditions that may be taken.
    pub access: Access,
    /// How values at selected positions are fetched.
    pub fetch: FetchWay,
    /// Bytes that reading and results in flight may take; `None`: 1 GiB, or less where the session has less.
    pub memory: Option<u64>,
    /// Bytes that ORDER BY and DISTINCT may write to temporary files where memory does not do; `None`: 16 GiB, 0: none.
    pub spill: Option<u64>,
    /// Threads; `None`: those of the session, one for each core.
    pub threads: Option<usize>,
    /// A flag that stops the query when it is set, and its subqueries. `None`: one of its own, [`Query::cancel_flag`].
    pub cancel: Option<Arc<AtomicBool>>,
    /// Whether arrays that do not line up make a product, as by `CROSS`; else they are `unaligned-dimensions`.
    pub cross: bool,
    /// Functions that came as code, by name. An eighth of the memory is for their instances.
    pub functions: Functions,
}

/// A query. Making it reads no values and runs nothing: it is a logical plan, lowered to the arrays of its source. Its
/// subqueries are answered, once, when something is asked of it that takes running it. Its condition is evaluated once,
/// whatever is asked of it and in which order; where counting found more positions than an eighth of its memory holds, a
/// second time for the positions ([`QueryStats::evaluations`]).
pub struct Query {
    source: Source,
    options: QueryOptions,
    /// As it was asked, over the source that is given.
    plan: Arc<Plan>,
    /// In its one form, once somebody wants it.
    canonical: OnceLock<Plan>,
    /// The whole of it as a tree, without FROM; of a query that was made of a plan once somebody wants it.
    select: OnceLock<Select>,
    /// The whole of it, in the printed form and without FROM.
    text: OnceLock<String>,
    subqueries: Arc<Subqueries>,
    /// The plans of its subqueries.
    open: Vec<Plan>,
    /// Which rows it has, where it is a part of another query.
    within: Option<Part>,
    /// Without the values of its subqueries; where there are none this is what is run.
    known: Arc<Execution>,
    /// With the values of its subqueries, once something was asked that takes them, or with the chunks of a run.
    answered: OnceLock<Arc<Execution>>,
    /// Held while they are answered.
    answering: Mutex<()>,
    cancel: Arc<AtomicBool>,
    /// Held while the condition is evaluated: who asks meanwhile waits for what comes of it.
    evaluated: Arc<Mutex<Evaluated>>,
    /// Decoded chunks that all parts of the query share.
    cache: Arc<ChunkCache>,
    /// Those of the queries that it was run with, once it was.
    run_cache: OnceLock<Arc<ChunkCache>>,
    /// Where its callers wait for their share of the session.
    turn: Turn,
    /// The state of the source that its positions are kept for from query to query, if they are.
    state: Option<u64>,
    /// What its positions are known by in the session then.
    key: OnceLock<(u64, String)>,
    groups: OnceLock<Arc<GroupTable>>,
    stats: Arc<Mutex<QueryStats>>,
    /// What ended a stream of batches: an Arrow stream hands on its words only.
    failure: Arc<Mutex<Option<Error>>>,
    before: CountersSnapshot,
    /// Bytes and requests that making it took.
    spent: (u64, u64),
    index_before: (u64, u64),
}

impl Query {
    /// The source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The query as text: a SELECT in the printed form, without FROM.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| self.select().map(text_of).unwrap_or_default())
    }

    /// The query as a tree, without FROM.
    fn select(&self) -> Result<&Select> {
        if let Some(known) = self.select.get() {
            return Ok(known);
        }
        let made = Select { from: None, collection: None, ..select_of(&self.plan)? };
        Ok(self.select.get_or_init(|| made))
    }

    /// Its plan in the one form of equal questions, over the source that is given.
    pub(crate) fn canonical_plan(&self) -> &Plan {
        self.canonical.get_or_init(|| self.plan.canonical())
    }

    /// The number of threads that it is run with.
    pub fn threads(&self) -> usize {
        self.known.options.threads
    }

    /// Bytes that reading and results in flight may take.
    pub fn memory(&self) -> u64 {
        self.known.options.memory
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

    /// The decoded chunks that it holds.
    pub(crate) fn cache(&self) -> &Arc<ChunkCache> {
        self.run_cache.get().unwrap_or(&self.cache)
    }

    /// Where its callers come in.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
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
        let (bytes, requests) = self.known.indexes.traffic();
        let index = (bytes - self.index_before.0, requests - self.index_before.1);
        QueryStats { io, index, ..*self.lock_stats() }
    }

    /// The number of rows that come back.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn count(&self) -> Result<u64> {
        let _entered = self.enter()?;
        let bound = self.bound();
        if bound.distinct {
            return self.count_distinct();
        }
        let all = if self.is_grouped() { self.groups()?.len as u64 } else { self.positions_wanted()? };
        let n = all.saturating_sub(bound.offset).min(bound.limit.unwrap_or(u64::MAX));
        self.lock_stats().hits = Some(n);
        Ok(n)
    }

    /// The number of positions that satisfy the condition, or of those that LIMIT wants, where it fails behind them.
    fn positions_wanted(&self) -> Result<u64> {
        match self.positions() {
            Err(e) if e.kind() == ErrorKind::Overflow && self.bound().limit == Some(0) => Ok(0),
            Err(e) if e.kind() == ErrorKind::Overflow => self.first_rows()?.map(|first| first.len()).ok_or(e),
            counted => counted,
        }
    }

    /// Whether LIMIT may want no row behind one whose value cannot be represented.
    pub(crate) fn may_end_early(&self) -> bool {
        let bound = self.bound();
        bound.limit.is_some() && bound.order_by.is_empty() && !self.is_grouped()
    }

    /// The number of different rows, or groups.
    fn count_distinct(&self) -> Result<u64> {
        if self.is_grouped() {
            let all = self.batches(1 << 16)?;
            return all.map(|batch| batch.map(|b| b.num_rows() as u64)).sum();
        }
        let mut stream = self.row_stream(1 << 16)?;
        let mut n = 0;
        while let Some(columns) = stream.next_batch()? {
            n += columns.first().map_or(0, Column::len) as u64;
        }
        Ok(n)
    }

    pub(crate) fn groups(&self) -> Result<Arc<GroupTable>> {
        let _entered = self.enter()?;
        let execution = self.execution()?;
        if let Some(known) = self.groups.get() {
            return Ok(Arc::clone(known));
        }
        if execution.reduces_in_order() {
            let selection = self.selection()?;
            let started = Instant::now();
            let table = exec::reduce(execution, &selection);
            self.lock_stats().add(Phase::Fetch, started);
            let table = Arc::new(table?);
            return Ok(Arc::clone(self.groups.get_or_init(|| table)));
        }
        let started = Instant::now();
        let (table, did) = self.timed(Phase::Select, || exec::aggregate(execution))?;
        self.note_evaluation(did);
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

    /// Whether so many values can be given at once: a file may declare any number, all of them its fill value.
    fn fits(&self, bound: &Bound, values: u64, name: &str) -> Result<()> {
        let size = bound.outputs.first().and_then(|o| match &o.value {
            Value::Array { array, .. } => Some(bound.arrays[*array].domain.dtype().size()),
            _ => None,
        });
        let (need, limit) = (values.saturating_mul(size.unwrap_or(8).max(1) as u64), self.source.memory());
        if need <= limit {
            return Ok(());
        }
        let message = format!("{values} values of '{name}' take {need} bytes, the limit is {limit}");
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("take them as batches, or open the source with more: memory= in Python"))
    }

    /// The values of `name` (an array or an expression) at the selected positions, in C order.
    ///
    /// # Errors
    /// `dimension-mismatch` where it varies along a dimension that the rows do not have; reading errors.
    pub fn read(&self, name: &str) -> Result<Column> {
        self.read_value(&self.source.parse_expression(name)?)
    }

    /// The same of an expression's tree.
    ///
    /// # Errors
    /// As [`Query::read`].
    pub fn read_value(&self, value: &Expr) -> Result<Column> {
        if self.is_grouped() {
            return Err(Error::new(ErrorKind::Unsupported, "read() of a grouped query")
                .hint("take its rows as Arrow or a table"));
        }
        let name = &*column_name(value);
        let select = std::slice::from_ref(value);
        let own = self.execution()?;
        let (dims, options) = (&own.bound.rows.dims, &self.options);
        let (plan, _) = self.source.plan_rows(dims, None, Some(select), &self.subqueries, options)?;
        let bound = self.source.lowered_to_run(&plan, &self.subqueries, options)?;
        if bound.rows != self.bound().rows {
            let (got, want) = (bound.rows.names.join(", "), self.bound().rows.names.join(", "));
            return Err(Error::new(
                ErrorKind::DimensionMismatch,
                format!("'{name}' has rows ({got}), the query has rows ({want})"),
            )
            .hint("name it in select=, so that the query's rows have its dimensions"));
        }
        let _entered = self.enter()?;
        let selection = self.selection()?;
        self.fits(&bound, selection.len(), name)?;
        let started = Instant::now();
        let execution = Arc::new(self.source.execution(
            bound,
            exec_options(self.source.session(), &self.options, &self.cancel, self.cache()),
        )?);
        execution.fetch_from(own.chosen_for(selection.len())?);
        let mut gatherer = Gatherer::new(Arc::clone(&execution));
        let mut fetch = |positions: &[u64]| {
            let mut columns = exec::fetch(&mut gatherer, &execution.bound.outputs, positions)?;
            columns.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "nothing was fetched"))
        };
        // Piece by piece: only the result itself grows with the number of hits.
        let piece = READ_PIECE.min(execution.rows_fetched(execution.bound.outputs.iter().map(|o| &o.value)));
        let mut pieces = selection.batches(piece);
        let mut column = fetch(&pieces.next().unwrap_or_default())?;
        self.allow_result(name, selection.len(), &column)?;
        column
            .reserve(usize::try_from(selection.len()).unwrap_or(usize::MAX).saturating_sub(column.len()))?;
        for positions in pieces {
            column.append(fetch(&positions)?)?;
            self.allow_result(name, selection.len(), &column)?;
        }
        self.lock_stats().add(Phase::Fetch, started);
        advise::fetched(self, &execution.bound, selection.len(), started.elapsed().as_secs_f64());
        Ok(column)
    }

    /// Whether `rows` values like those of `first` may be given in memory: without a limit of its own a query gives what
    /// it is asked for, as large as that is.
    fn allow_result(&self, name: &str, rows: u64, first: &Column) -> Result<()> {
        let Some(limit) = self.options.memory else { return Ok(()) };
        let known = first.len().max(1) as u64;
        let need = first.used_bytes().max(first.used_bytes() / known * rows);
        if need <= limit {
            return Ok(());
        }
        let message = format!("read() of {rows} values of '{name}' takes {need} bytes; the limit is {limit}");
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("go through it in batches, write it to a file, or raise the limit (memory= in Python)"))
    }

    /// Counts and edges of the histogram of `name` over the selected positions, as `numpy.histogram`.
    ///
    /// # Errors
    /// Reading errors; `type-mismatch` for text.
    pub fn histogram(&self, name: &str, bins: usize) -> Result<(Vec<u64>, Vec<f64>)> {
        self.histogram_of(self.source.parse_expression(name)?, bins)
    }

    /// The same of an expression's tree.
    ///
    /// # Errors
    /// As [`Query::histogram`].
    pub fn histogram_of(&self, value: Expr, bins: usize) -> Result<(Vec<u64>, Vec<f64>)> {
        let args = vec![value, Expr::Literal(Literal::Int(bins as i128))];
        let expr = Expr::Call { function: "histogram".into(), args, distinct: false, star: false };
        let query = self.of_its_rows(vec![expr])?;
        let first = query.groups()?.aggregates.first().filter(|a| !a.is_empty()).map(|a| a.scalar(0));
        match first {
            Some(Scalar::Histogram { edges, counts }) => Ok((counts, edges.to_vec())),
            _ => Err(Error::new(ErrorKind::Internal, "a histogram was not made")),
        }
    }

    /// A query of the same condition for other expressions, aggregates among them. Stopping this one stops it.
    ///
    /// # Errors
    /// `unknown-array`, `type-mismatch` and the like.
    pub fn of_its_rows(&self, values: Vec<Expr>) -> Result<Self> {
        let item = |expr: Expr| SelectItem { text: column_name(&expr), expr, alias: None };
        let select = Select {
            projection: Projection::Items(values.into_iter().map(item).collect()),
            condition: self.select()?.condition.clone(),
            ..Select::default()
        };
        let options = QueryOptions { cancel: Some(self.cancel_flag()), ..self.options.clone() };
        Self::of_select(&self.source, select, &options)
    }

    /// The same query with more columns behind its own; none where they would change its rows: of DISTINCT.
    ///
    /// # Errors
    /// `unknown-array`, `type-mismatch` and the like.
    pub fn with_columns(&self, more: Vec<Expr>) -> Result<Option<Self>> {
        let select = self.select()?;
        if select.distinct {
            return Ok(None);
        }
        let item = |expr: Expr| SelectItem { text: column_name(&expr), expr, alias: None };
        let own = match &select.projection {
            Projection::Items(items) => items.clone(),
            Projection::All => self.outputs().iter().map(|o| item(Expr::name(o.name.as_str()))).collect(),
        };
        let items = own.into_iter().chain(more.into_iter().map(item)).collect();
        let select = Select { projection: Projection::Items(items), ..select.clone() };
        Self::of_select(&self.source, select, &self.options).map(Some)
    }

    /// The value of a query of one column and at most one row, as a subquery has it: NULL where it has no row. With its type,
    /// which one that is missing has as well; none of what is of no type.
    ///
    /// # Errors
    /// `type-mismatch` for more columns, `invalid-value` for more rows; those of running it.
    pub fn scalar(&self) -> Result<(Scalar, Option<ValueType>)> {
        let value = self.single_value()?;
        let bound = &self.execution()?.bound;
        Ok((value, bound.outputs.first().and_then(|o| bound.type_of(&o.value))))
    }

    /// The value of a query of one row and one column; NULL where it has no row.
    pub(crate) fn single_value(&self) -> Result<Scalar> {
        let execution = self.execution()?;
        let [output] = execution.bound.outputs.as_slice() else {
            let n = execution.bound.outputs.len();
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("a subquery used as a value has {n} columns, not one"),
            ));
        };
        let vector = if self.is_grouped() {
            self.groups()?.evaluate(execution, &output.value)?
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

/// A query in the printed form; one without columns as one of all.
fn text_of(select: &Select) -> String {
    match &select.projection {
        Projection::Items(items) if items.is_empty() => {
            Select { projection: Projection::All, ..select.clone() }.to_string()
        }
        _ => select.to_string(),
    }
}

/// Threads and bytes that a query may have.
fn means(session: &Session, options: &QueryOptions) -> (usize, u64) {
    let threads = options.threads.unwrap_or_else(|| session.threads()).max(1);
    (threads, options.memory.unwrap_or_else(|| session.query_memory()))
}

/// What of a query's memory is for functions that came as code.
pub(crate) fn memory_of_code(options: &QueryOptions, memory: u64) -> u64 {
    if options.functions.is_empty() { 0 } else { memory / CODE_SHARE }
}

/// The functions of a query, each instance with the memory that it may have.
pub(crate) fn functions_of(session: &Session, options: &QueryOptions) -> Functions {
    let (threads, memory) = means(session, options);
    options.functions.within((memory / CODE_SHARE / threads as u64).clamp(LEAST_OF_CODE, MOST_OF_CODE))
}

fn exec_options(
    session: &Session,
    options: &QueryOptions,
    cancel: &Arc<AtomicBool>,
    cache: &Arc<ChunkCache>,
) -> ExecOptions {
    let (threads, memory) = means(session, options);
    ExecOptions {
        threads,
        memory,
        room: None,
        code: memory_of_code(options, memory),
        spill: options.spill.unwrap_or(SPILL),
        cancel: Arc::clone(cancel),
        access: options.access,
        fetch: options.fetch,
        cache: Some(Arc::clone(cache)),
    }
}
