//! A query over a collection: the objects that the catalog left, and what becomes of them.

mod batches;
mod each;
mod explain;
mod groups;
mod object;
mod parts;
mod price;
mod stats;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use sieva_catalog::{Filter, Find};
use sieva_plan::{ColumnKind, Plan};
use sieva_query::ast::{Expr, Projection, Select, SelectItem};
use sieva_query::bind::Body;
use sieva_query::exec::{ExecOptions, Groups, finish_groups, partial_groups};
use sieva_query::values::{Scalar, ValueType};
use sieva_types::{Error, ErrorKind, Result};

use super::keys::{Class, class_of};
use super::manifests::{self, Hint};
use super::names::Names;
use super::objects::{self, Object, SourceObjects};
use super::paths::array_of;
use super::plan::shown;
use super::run::{At, Setting, Walk};
use super::shape::Shape;
use super::tasks::Listing;
use super::{Collection, opener, plan, rows};
use crate::arrow::Batches;
use crate::open::Source;
use crate::query::{Query, QueryOptions};
pub use batches::CollectionBatches;
use object::{ObjectPlan, inputs, template};
pub(super) use parts::{Given, Known};
pub use stats::CollectionStats;

/// Objects that are looked at for one that has all arrays of a query.
const TRIED: usize = 1000;

/// A bound query over a collection. Cheap to clone; what stops one stops all of its clones.
#[derive(Clone)]
pub struct CollectionQuery {
    inner: Arc<Inner>,
    cancel: Arc<AtomicBool>,
}

struct Inner {
    collection: Collection,
    options: QueryOptions,
    /// As it was asked.
    select: Select,
    shape: Shape,
    /// Types of the keys in use.
    classes: Vec<Class>,
    sources: Vec<SourceObjects>,
    /// What was found of it elsewhere.
    known: Known,
    /// Its objects and the states of their sources, once somebody wanted tasks.
    listing: OnceLock<Arc<Listing>>,
    /// What is asked of each object.
    each: ObjectPlan,
    /// The whole query, bound to one object whose keys are not known. It is never run; groups of all objects are given to
    /// it to be finished.
    template: Query,
    /// That object.
    example: SourceObjects,
    /// Types of what the aggregates take in.
    inputs: Vec<Option<ValueType>>,
    schema: SchemaRef,
    stats: Mutex<CollectionStats>,
    failure: Mutex<Option<Error>>,
    /// Whether the template has its groups.
    grouped: Mutex<bool>,
}

impl CollectionQuery {
    pub(super) fn new(
        collection: &Collection,
        names: &Names<'_>,
        select: Select,
        options: &QueryOptions,
    ) -> Result<Self> {
        Self::made(collection, names, select, options, None)
    }

    /// A query, of the objects that the catalog leaves or of those that are given.
    pub(super) fn made(
        collection: &Collection,
        names: &Names<'_>,
        select: Select,
        options: &QueryOptions,
        given: Option<Given>,
    ) -> Result<Self> {
        let started = Instant::now();
        let options = &QueryOptions { cross: options.cross || select.cross, ..options.clone() };
        let shape = Shape::of(names, &select)?;
        let Given { sources, classes, example, known } = match given {
            Some(given) => given,
            None => Given::found(collection, &shape)?,
        };
        let catalog_seconds = started.elapsed().as_secs_f64();
        let one_thread = QueryOptions { threads: Some(1), ..options.clone() };
        let rest = plan::rest_of(collection.name(), &shape, options)?;
        let among = sources.iter().chain(&example);
        let (template, example) = template(collection, &shape, (&rest, &classes), among, &one_thread)?;
        let (inputs, schema) = (inputs(&template), rows::common(&*template.result_schema()?));
        let stats = CollectionStats {
            objects: sources.iter().map(|s| s.objects.len() as u64).sum(),
            sources: sources.len() as u64,
            catalog_seconds,
            ..CollectionStats::default()
        };
        Ok(Self {
            inner: Arc::new(Inner {
                collection: collection.clone(),
                options: options.clone(),
                select,
                shape,
                classes,
                sources,
                known,
                listing: OnceLock::new(),
                each: ObjectPlan::of(&rest)?,
                template,
                example,
                inputs,
                schema,
                stats: Mutex::new(stats),
                failure: Mutex::default(),
                grouped: Mutex::new(false),
            }),
            cancel: options.cancel.clone().unwrap_or_default(),
        })
    }

    /// The same query for one use, which can be cancelled without harm to others; what it finds of groups, all know.
    #[must_use]
    pub fn again(&self, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { inner: Arc::clone(&self.inner), cancel: stop.unwrap_or_default() }
    }

    /// Names and types of the columns, as of [`Query::columns`].
    ///
    /// # Errors
    /// As [`Query::columns`].
    pub fn columns(&self) -> Result<Vec<(String, String)>> {
        self.inner.template.columns()
    }

    /// The query as data, in its one form: a scan of the collection, whose keys are columns beside the arrays of its
    /// objects. Nothing is read or run for it; [`Collection::query_plan`] asks it again.
    ///
    /// # Errors
    /// None any more: a query without a plan is not made.
    pub fn logical_plan(&self) -> Result<Plan> {
        let inner = &self.inner;
        Ok(plan::plan_of(inner.collection.name(), &inner.shape, &inner.options)?.canonical())
    }

    /// Whether rows are groups.
    pub fn is_grouped(&self) -> bool {
        self.inner.shape.grouped
    }

    /// The number of rows.
    ///
    /// # Errors
    /// Reading errors, told with the object and its source; `type-mismatch` where an array differs in type between
    /// objects; `cancelled`.
    pub fn count(&self) -> Result<u64> {
        let inner = &self.inner;
        let count = if inner.shape.grouped {
            inner.make_groups(&self.cancel)?;
            inner.template.count()?
        } else {
            inner.count_rows(&self.cancel)?
        };
        inner.lock_stats().hits = Some(count);
        Ok(count)
    }

    /// The result as record batches of at most `size` rows: groups by key, rows by source, object and position.
    ///
    /// # Errors
    /// As [`CollectionQuery::count`], and `memory-limit` where the groups do not fit.
    pub fn batches(&self, size: usize) -> Result<CollectionBatches> {
        let inner = Arc::clone(&self.inner);
        let shape = &inner.shape;
        let (walk, ready) = if shape.grouped {
            inner.make_groups(&self.cancel)?;
            let all = inner.template.batches(size)?;
            let ready = all.map(|b| rows::conform(&inner.schema, &b?)).collect::<Result<VecDeque<_>>>()?;
            inner.lock_stats().hits = Some(ready.iter().map(|b| b.num_rows() as u64).sum());
            (None, ready)
        } else {
            (Some(Walk::new(&inner.sources)), VecDeque::new())
        };
        let (skip, left) = (shape.offset, shape.limit.unwrap_or(u64::MAX));
        let cancel = Arc::clone(&self.cancel);
        Ok(CollectionBatches { inner, cancel, walk, ready, size, skip, left, given: 0 })
    }

    /// The aggregates of a query of one group.
    fn totals(&self) -> Result<Vec<Scalar>> {
        self.inner.make_groups(&self.cancel)?;
        let groups = self.inner.template.groups()?;
        Ok(groups.aggregates.iter().filter(|a| !a.is_empty()).map(|a| a.scalar(0)).collect())
    }

    /// Locations of the sources that hold its objects.
    pub fn sources(&self) -> Vec<&str> {
        self.inner.sources.iter().map(|s| s.location.as_str()).collect()
    }

    /// What it did so far.
    pub fn stats(&self) -> CollectionStats {
        *self.inner.lock_stats()
    }

    /// A flag that stops it when it is set: that of its options, where they have one.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Stops it, from any thread.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// The error that ended a stream of its batches, if one did; it is told once.
    pub fn take_failure(&self) -> Option<Error> {
        self.inner.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Inner {
    fn threads(&self) -> usize {
        self.options.threads.unwrap_or_else(|| ExecOptions::default().threads).max(1)
    }

    fn setting<'a>(&'a self, cancel: &'a AtomicBool) -> Setting<'a> {
        Setting {
            catalog: self.collection.catalog.as_deref(),
            options: &self.collection.options,
            sources: &self.sources,
            threads: self.threads(),
            cancel,
            did: &self.collection.did,
        }
    }

    /// How the query of one object is run: one thread and its share of the memory.
    fn object_options(&self, cancel: &Arc<AtomicBool>) -> QueryOptions {
        let share = self.options.memory.unwrap_or(1 << 30) / self.threads() as u64;
        QueryOptions {
            threads: Some(1),
            memory: Some(share.max(1 << 20)),
            cancel: Some(Arc::clone(cancel)),
            ..self.options.clone()
        }
    }

    /// What `work` makes of one object, which is opened for it.
    fn at_object<R: Send>(
        &self,
        number: usize,
        cancel: &AtomicBool,
        work: &(dyn Fn(At<'_>) -> Result<Option<R>> + Sync),
    ) -> Result<Option<R>> {
        let mut walk = Walk::of(&self.sources, number..number + 1);
        let mut found = None;
        while let Some(all) = walk.window(&self.setting(cancel), work)? {
            found = all.into_iter().flatten().next();
        }
        Ok(found)
    }

    /// Hands on what `work` makes of each object, in order; `None` of those that lack an array.
    fn each_found<R: Send>(
        &self,
        cancel: &AtomicBool,
        work: &(dyn Fn(At<'_>) -> Result<Option<R>> + Sync),
        take: &mut dyn FnMut(Option<R>) -> Result<()>,
    ) -> Result<()> {
        let (started, mut evaluated, mut lacking) = (Instant::now(), 0, 0);
        let walk = self.walk(cancel, work, &mut |found| {
            evaluated += u64::from(found.is_some());
            lacking += u64::from(found.is_none());
            take(found)
        })?;
        self.note(&walk, started, evaluated, lacking);
        Ok(())
    }

    /// The same, of which the stats say nothing; and the way that was gone.
    fn walk<R: Send>(
        &self,
        cancel: &AtomicBool,
        work: &(dyn Fn(At<'_>) -> Result<Option<R>> + Sync),
        take: &mut dyn FnMut(Option<R>) -> Result<()>,
    ) -> Result<Walk> {
        let (mut walk, setting) = (Walk::new(&self.sources), self.setting(cancel));
        while let Some(all) = walk.window(&setting, work)? {
            all.into_iter().try_for_each(&mut *take)?;
        }
        Ok(walk)
    }

    fn count_rows(&self, cancel: &Arc<AtomicBool>) -> Result<u64> {
        let rows = match &self.known {
            Known::Count(n) => *n,
            Known::Rows(found) => found.values().map(|s| s.len()).fold(0, u64::saturating_add),
            Known::Nothing => {
                let (options, mut rows) = (self.object_options(cancel), 0_u64);
                let offset = self.shape.offset;
                let wanted = self.shape.limit.map(|n| if n > 0 { n.saturating_add(offset) } else { 0 });
                let of_object = |at: At<'_>, most: u64| {
                    self.query_within(at, most, &options)?.map(|q| q.count()).transpose()
                };
                let work = |at: At<'_>| match of_object(at, u64::MAX) {
                    Err(e) if wanted.is_some() && e.kind() == ErrorKind::Overflow => Ok(Some(Err(at.number))),
                    done => Ok(done?.map(Ok)),
                };
                self.each_found(cancel, &work, &mut |n| {
                    let n = match (n.transpose(), wanted.map(|w| w.saturating_sub(rows))) {
                        (Ok(n), _) => n,
                        (Err(_), Some(0)) => None,
                        (Err(number), left) => {
                            let left = left.unwrap_or(u64::MAX);
                            self.at_object(number, cancel, &|at| of_object(at, left))?
                        }
                    };
                    rows = rows.saturating_add(n.unwrap_or(0));
                    Ok(())
                })?;
                rows
            }
        };
        Ok(rows.saturating_sub(self.shape.offset).min(self.shape.limit.unwrap_or(u64::MAX)))
    }
}
