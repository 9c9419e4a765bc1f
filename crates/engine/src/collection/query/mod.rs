//! A query over a collection: the objects that the catalog left, and what becomes of them.

mod batches;
mod each;
mod object;
mod parts;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
use super::objects::{self, SourceObjects};
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

/// Objects that are looked at for one that has all arrays of a query.
const TRIED: usize = 1000;

/// What a query over a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CollectionStats {
    /// Objects that the catalog left.
    pub objects: u64,
    /// Sources that hold them.
    pub sources: u64,
    /// Objects whose data were evaluated.
    pub evaluated: u64,
    /// Objects that lack an array of the query: they have no hits.
    pub lacking: u64,
    /// Rows, once known.
    pub hits: Option<u64>,
    /// Sources that were opened.
    pub sources_opened: u64,
    /// Bytes read of sources.
    pub bytes_read: u64,
    /// Requests to sources.
    pub requests: u64,
    /// Seconds for asking the catalog.
    pub catalog_seconds: f64,
    /// Seconds for opening and evaluating.
    pub run_seconds: f64,
}

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
        let rest = plan::rest_of(collection.name(), &shape, options.cross)?;
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
        Ok(plan::plan_of(inner.collection.name(), &inner.shape, inner.options.cross)?.canonical())
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

    /// How it is answered; `analyze` runs it and adds what happened.
    ///
    /// # Errors
    /// As [`CollectionQuery::count`].
    pub fn explain(&self, analyze: bool) -> Result<String> {
        let inner = &self.inner;
        let shape = &inner.shape;
        let mut out = String::new();
        let filter = match shape.filter_text.join(" AND ") {
            none if none.is_empty() => "no condition on keys".to_string(),
            some => some,
        };
        let before = *inner.lock_stats();
        let _ = writeln!(out, "collection {}", inner.collection.name());
        let _ = writeln!(out, "catalog    {filter}");
        let _ = writeln!(out, "           {} objects in {} sources", before.objects, before.sources);
        let rest = if shape.rest_text.is_empty() { "no condition on data" } else { &shape.rest_text };
        let _ = writeln!(out, "data       {rest}");
        let _ = writeln!(out, "arrays     {}", shape.arrays.join(", "));
        let _ = writeln!(out, "estimate   at most {} bytes of arrays", inner.most_bytes());
        if analyze {
            let rows = self.count()?;
            let s = self.stats();
            let _ = writeln!(
                out,
                "analyzed   {rows} rows; {} objects evaluated, {} lack an array; {} sources opened",
                s.evaluated, s.lacking, s.sources_opened
            );
            let _ = writeln!(out, "           {} bytes in {} requests", s.bytes_read, s.requests);
            let _ = writeln!(
                out,
                "           catalog {:.6} s, open and evaluate {:.6} s",
                s.catalog_seconds, s.run_seconds
            );
        }
        Ok(sieva_types::printable_lines(&out).into_owned())
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
    fn lock_stats(&self) -> MutexGuard<'_, CollectionStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

    fn note(&self, walk: &Walk, started: Instant, evaluated: u64, lacking: u64) {
        let mut stats = self.lock_stats();
        stats.run_seconds += started.elapsed().as_secs_f64();
        (stats.evaluated, stats.lacking) = (evaluated, lacking);
        stats.sources_opened = walk.traffic.sources_opened;
        (stats.bytes_read, stats.requests) = (walk.traffic.bytes_read, walk.traffic.requests);
    }

    /// Bytes of the arrays of all objects, if they are all as large as those of the first.
    fn most_bytes(&self) -> u64 {
        let template = &self.template;
        let one: u64 = template
            .bound()
            .arrays
            .iter()
            .map(|a| &template.source().schema().arrays[a.index])
            .map(|info| info.shape.iter().product::<u64>().saturating_mul(info.dtype.size() as u64))
            .sum();
        one.saturating_mul(self.lock_stats().objects)
    }

    /// Puts the groups of all objects together and gives them to the template, once.
    fn make_groups(&self, cancel: &Arc<AtomicBool>) -> Result<()> {
        let mut done = self.grouped.lock().unwrap_or_else(PoisonError::into_inner);
        if *done {
            return Ok(());
        }
        let groups = self.gather(cancel, &mut |_| Ok(()))?;
        self.template.set_groups(finish_groups(self.template.execution()?, groups)?);
        *done = true;
        Ok(())
    }

    /// The groups of all objects. `note` is told how many rows each object has, `None` of one that lacks an array.
    fn gather(
        &self,
        cancel: &Arc<AtomicBool>,
        note: &mut dyn FnMut(Option<u64>) -> Result<()>,
    ) -> Result<Groups> {
        let mut groups = Groups::start(self.template.execution()?)?;
        let (options, limit, mut need) = (self.object_options(cancel), self.memory(), 0);
        self.each_found(cancel, &|at| self.groups_at(at, &options), &mut |part| {
            note(part.as_ref().map(|(rows, _)| *rows))?;
            let Some((_, part)) = part else { return Ok(()) };
            // An upper bound is enough until it is near the limit.
            need += part.memory_bytes();
            groups.merge(part)?;
            if need > limit {
                need = groups.memory_bytes();
            }
            if need <= limit {
                return Ok(());
            }
            Err(Error::new(
                ErrorKind::MemoryLimit,
                format!("the groups take {need} bytes, the limit is {limit}"),
            )
            .hint("group by fewer values, or raise the limit with --memory (memory= in Python)"))
        })?;
        Ok(groups)
    }

    /// Hands on what `work` makes of each object, in order; `None` of those that lack an array.
    fn each_found<R: Send>(
        &self,
        cancel: &AtomicBool,
        work: &(dyn Fn(At<'_>) -> Result<Option<R>> + Sync),
        take: &mut dyn FnMut(Option<R>) -> Result<()>,
    ) -> Result<()> {
        let started = Instant::now();
        let (mut walk, mut evaluated, mut lacking) = (Walk::new(&self.sources), 0, 0);
        let setting = self.setting(cancel);
        while let Some(all) = walk.window(&setting, work)? {
            for found in all {
                evaluated += u64::from(found.is_some());
                lacking += u64::from(found.is_none());
                take(found)?;
            }
        }
        self.note(&walk, started, evaluated, lacking);
        Ok(())
    }

    /// Bytes that groups may take.
    fn memory(&self) -> u64 {
        self.options.memory.unwrap_or(1 << 30)
    }

    fn count_rows(&self, cancel: &Arc<AtomicBool>) -> Result<u64> {
        let rows = match &self.known {
            Known::Count(n) => *n,
            Known::Rows(found) => found.values().map(|s| s.len()).fold(0, u64::saturating_add),
            Known::Nothing => {
                let (options, mut rows) = (self.object_options(cancel), 0_u64);
                let work = |at: At<'_>| self.query_at(at, &options)?.map(|q| q.count()).transpose();
                self.each_found(cancel, &work, &mut |n| {
                    rows = rows.saturating_add(n.unwrap_or(0));
                    Ok(())
                })?;
                rows
            }
        };
        Ok(rows.saturating_sub(self.shape.offset).min(self.shape.limit.unwrap_or(u64::MAX)))
    }
}
