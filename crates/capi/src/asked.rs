//! What a plan is asked of: a file, or the objects of a collection. Both have the same calls; what only a file has is
//! refused of a collection.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sieva::{
    Collection, CollectionPartial, CollectionQuery, CollectionTask, Error, ErrorKind, Partial, Plan, Price,
    Query, QueryOptions, Result, Task, TaskKind,
};
use sieva_encode::{EncodeOptions, Encoded, Format};

use crate::source::Opened;
use crate::tasks::TasksHandle;

/// What a plan is asked of.
#[derive(Clone)]
pub enum Asked {
    /// A file, or many as one.
    File(Arc<Opened>),
    /// The objects of a collection.
    Collection(Arc<Gathered>),
}

/// A collection that is open.
pub struct Gathered {
    /// The engine's collection.
    pub collection: Collection,
    /// What queries are run with unless they have options of their own.
    pub options: QueryOptions,
    /// For each plan that was asked of it, as long as a handle of that is there, what the catalog said.
    planned: Mutex<Vec<(Weak<Plan>, CollectionQuery)>>,
}

/// A query of the engine.
#[derive(Clone)]
pub enum Bound {
    /// Of a file.
    File(Arc<Query>),
    /// Of a collection.
    Collection(CollectionQuery),
}

/// A part of the work of a plan.
pub enum AnyTask {
    /// Some rows of a file.
    File(Task),
    /// Some objects of a collection.
    Collection(CollectionTask),
}

/// What tasks found.
pub enum Found {
    /// In a file.
    File(Partial),
    /// In a collection.
    Collection(CollectionPartial),
}

/// The error of a task, or of what tasks found, of the other kind of source.
fn of_other_source(own: &str, other: &str) -> Error {
    let message = format!("a task of {other}, or what such tasks found, with {own} as the source");
    Error::new(ErrorKind::InvalidValue, message).hint("give the source that the tasks were made of")
}

fn mixed() -> Error {
    let message = "what was found in a file and what was found in a collection were to be merged";
    Error::new(ErrorKind::InvalidValue, message).hint("merge those of the tasks of one query")
}

/// That something is not to be had of a collection.
fn of_files_alone(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} is a collection, where a file is expected"))
        .hint("plans, their tasks, results and selections are asked of it; sieva_search_query() has the query of one object")
}

impl Asked {
    /// The file.
    ///
    /// # Errors
    /// `unsupported` of a collection.
    pub fn file(&self) -> Result<&Arc<Opened>> {
        match self {
            Self::File(file) => Ok(file),
            Self::Collection(_) => Err(of_files_alone("the source")),
        }
    }

    /// What queries are run with unless they have options of their own.
    pub fn options(&self) -> &QueryOptions {
        match self {
            Self::File(file) => &file.options,
            Self::Collection(all) => &all.options,
        }
    }

    /// The plan of a SELECT, or of a condition alone.
    ///
    /// # Errors
    /// As `sieva_plan_sql()`.
    pub fn plan(&self, sql: &str) -> Result<Arc<Plan>> {
        match self {
            Self::File(file) => file.source.ask_plan(sql, &file.options).map(Arc::new),
            Self::Collection(all) => {
                let query = all.collection.ask(sql, &all.options)?;
                let plan = Arc::new(query.logical_plan()?);
                all.remember(&plan, query);
                Ok(plan)
            }
        }
    }

    /// The query of a plan.
    ///
    /// # Errors
    /// As `sieva_plan_query()`.
    pub fn query(&self, plan: &Arc<Plan>, options: &QueryOptions) -> Result<Bound> {
        match self {
            Self::File(file) => file.source.query_plan(plan, options).map(Bound::of),
            Self::Collection(all) => all.planned(plan)?.run_with(options).map(Bound::Collection),
        }
    }

    /// The query of a SELECT, or of a condition alone.
    ///
    /// # Errors
    /// As `sieva_result_open()`.
    pub fn ask(&self, sql: &str, options: &QueryOptions) -> Result<Bound> {
        match self {
            Self::File(file) => file.source.ask(sql, options).map(Bound::of),
            Self::Collection(all) => all.collection.ask(sql, options).map(Bound::Collection),
        }
    }

    /// The work of a plan, of a kind or of that which answers all, in so many parts.
    ///
    /// # Errors
    /// As `sieva_plan_tasks()`.
    pub fn tasks(
        &self,
        plan: &Arc<Plan>,
        options: &QueryOptions,
        (kind, parts): (Option<TaskKind>, u64),
    ) -> Result<TasksHandle> {
        let parts = usize::try_from(parts).unwrap_or(usize::MAX);
        match self {
            Self::File(file) => {
                let query = file.source.query_plan(plan, options)?;
                Ok(TasksHandle::of(query.shares_of(kind.unwrap_or_else(|| query.usual_kind()), parts)?))
            }
            Self::Collection(all) => {
                let query = all.planned(plan)?.again(options.cancel.clone());
                let made = query.tasks_of(kind.unwrap_or_else(|| query.usual_kind()), parts)?;
                Ok(TasksHandle::of_collection(query, made))
            }
        }
    }

    /// Runs a task.
    ///
    /// # Errors
    /// As `sieva_task_run()`.
    pub fn run(&self, task: &AnyTask, options: &QueryOptions) -> Result<Found> {
        match (self, task) {
            (Self::File(file), AnyTask::File(task)) => file.source.run_task(task, options).map(Found::File),
            (Self::Collection(all), AnyTask::Collection(task)) => {
                all.collection.run_task(task, options).map(Found::Collection)
            }
            (Self::File(_), _) => Err(of_other_source("a file", "a collection")),
            (Self::Collection(_), _) => Err(of_other_source("a collection", "a file")),
        }
    }

    /// The query of a plan that knows its answer by what all its tasks found.
    ///
    /// # Errors
    /// As `sieva_merge_query()`.
    pub fn finished(&self, found: Found, plan: &Arc<Plan>, options: &QueryOptions) -> Result<Bound> {
        match (self, found) {
            (Self::File(file), Found::File(found)) => {
                file.source.query_plan(plan, options)?.finish(found).map(Bound::of)
            }
            (Self::Collection(all), Found::Collection(found)) => {
                all.planned(plan)?.finish_with(found, options).map(Bound::Collection)
            }
            (Self::File(_), _) => Err(of_other_source("a file", "a collection")),
            (Self::Collection(_), _) => Err(of_other_source("a collection", "a file")),
        }
    }

    /// Whether both are one and the same.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) => Arc::ptr_eq(a, b),
            (Self::Collection(a), Self::Collection(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Gathered {
    /// A collection of which nothing was asked.
    pub fn new(collection: Collection, options: QueryOptions) -> Arc<Self> {
        Arc::new(Self { collection, options, planned: Mutex::default() })
    }

    /// The query of a plan, with the objects that the catalog told of when the plan was first asked.
    fn planned(&self, plan: &Arc<Plan>) -> Result<CollectionQuery> {
        let known = {
            let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
            planned.iter().find(|(p, _)| p.as_ptr() == Arc::as_ptr(plan)).map(|(_, query)| query.clone())
        };
        match known {
            Some(query) => Ok(query),
            None => {
                let query = self.collection.query_plan(plan, &self.options)?;
                self.remember(plan, query.clone());
                Ok(query)
            }
        }
    }

    fn remember(&self, plan: &Arc<Plan>, query: CollectionQuery) {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        planned.retain(|(plan, _)| plan.strong_count() > 0);
        planned.push((Arc::downgrade(plan), query));
    }
}

impl Bound {
    fn of(query: Query) -> Self {
        Self::File(Arc::new(query))
    }

    /// The query of a file.
    ///
    /// # Errors
    /// `unsupported` of one of a collection.
    pub fn file(&self) -> Result<Arc<Query>> {
        match self {
            Self::File(query) => Ok(Arc::clone(query)),
            Self::Collection(_) => Err(of_files_alone("what is asked here")),
        }
    }

    /// The same for one use, which can be cancelled without harm to others.
    ///
    /// # Errors
    /// As [`Query::again`].
    pub fn again(&self, stop: Option<Arc<AtomicBool>>) -> Result<Self> {
        match self {
            Self::File(query) => query.again(stop).map(Self::of),
            Self::Collection(query) => Ok(Self::Collection(query.again(stop))),
        }
    }

    /// What stops it.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        match self {
            Self::File(query) => query.cancel_flag(),
            Self::Collection(query) => query.cancel_flag(),
        }
    }

    /// The number of rows.
    ///
    /// # Errors
    /// As `sieva_query_nhits()`.
    pub fn count(&self) -> Result<u64> {
        match self {
            Self::File(query) => query.count(),
            Self::Collection(query) => query.count(),
        }
    }

    /// How it is answered, in words.
    ///
    /// # Errors
    /// As `sieva_query_explain()`.
    pub fn explain(&self) -> Result<String> {
        match self {
            Self::File(query) => query.explain(false),
            Self::Collection(query) => query.explain(false),
        }
    }

    /// What giving back all of its rows takes.
    ///
    /// # Errors
    /// As `sieva_query_price()`.
    pub fn price(&self) -> Result<Price> {
        match self {
            Self::File(query) => query.price(),
            Self::Collection(query) => query.price(),
        }
    }

    /// The plan of it.
    ///
    /// # Errors
    /// As `sieva_query_plan()`.
    pub fn plan(&self) -> Result<Plan> {
        match self {
            Self::File(query) => query.logical_plan(),
            Self::Collection(query) => query.logical_plan(),
        }
    }

    /// Its rows in a format.
    ///
    /// # Errors
    /// As [`Encoded::new`].
    pub fn encoded(&self, (format, how): &(Format, EncodeOptions)) -> Result<Encoded> {
        match self {
            Self::File(query) => Encoded::new(Arc::clone(query), *format, how),
            Self::Collection(query) => Encoded::of_collection(query, *format, how),
        }
    }
}

impl AnyTask {
    /// The task of these bytes.
    ///
    /// # Errors
    /// `invalid-value` for what is none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match CollectionTask::is_begun_by(bytes) {
            true => CollectionTask::from_bytes(bytes).map(Self::Collection),
            false => Task::from_bytes(bytes).map(Self::File),
        }
    }
}

impl Found {
    /// What was found, of its bytes; it, and what is added to it, may take so many bytes (0: 1 GiB).
    ///
    /// # Errors
    /// As `sieva_merge_from_bytes()`.
    pub fn from_bytes(bytes: &[u8], memory: u64) -> Result<Self> {
        match (CollectionPartial::is_begun_by(bytes), memory) {
            (false, 0) => Partial::from_bytes(bytes).map(Self::File),
            (false, memory) => Partial::from_bytes_within(bytes, memory).map(Self::File),
            (true, 0) => CollectionPartial::from_bytes(bytes).map(Self::Collection),
            (true, memory) => CollectionPartial::from_bytes_within(bytes, memory).map(Self::Collection),
        }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// As `sieva_merge_bytes()`.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::File(found) => found.to_bytes(),
            Self::Collection(found) => found.to_bytes(),
        }
    }

    /// The same once more.
    ///
    /// # Errors
    /// `memory-limit`.
    pub fn copy(&self) -> Result<Self> {
        match self {
            Self::File(found) => found.copy().map(Self::File),
            Self::Collection(found) => found.copy().map(Self::Collection),
        }
    }

    /// That another may be added.
    ///
    /// # Errors
    /// `invalid-value` where it may not.
    pub fn check_mergeable(&self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::File(own), Self::File(other)) => own.check_mergeable(other),
            (Self::Collection(own), Self::Collection(other)) => own.check_mergeable(other),
            _ => Err(mixed()),
        }
    }

    /// Adds what others found.
    ///
    /// # Errors
    /// As `sieva_merge_add()`.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        match (self, other) {
            (Self::File(own), Self::File(other)) => own.merge(other),
            (Self::Collection(own), Self::Collection(other)) => own.merge(other),
            _ => Err(mixed()),
        }
    }
}
