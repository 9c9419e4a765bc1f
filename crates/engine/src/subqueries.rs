//! Scalar subqueries: planned when a query is made, answered when it is run, each once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sieva_plan::{Plan, SourceRef};
use sieva_query::ast::Select;
use sieva_query::bind::Planned;
use sieva_query::lower::Answer;
use sieva_query::values::{Scalar, ValueType};
use sieva_types::{Error, ErrorKind, Result};

use crate::open::{OpenOptions, Source};
use crate::query::{Query, QueryOptions};

/// What is known of the subqueries of a query.
#[derive(Default)]
pub(crate) struct Subqueries {
    /// The sources that their FROM names, opened.
    sources: Mutex<HashMap<String, Source>>,
    types: Mutex<HashMap<Plan, Option<ValueType>>>,
    /// Held while one is answered: who wants the value meanwhile waits for it.
    values: Mutex<HashMap<Plan, Scalar>>,
}

impl Subqueries {
    /// The plan of a subquery of a query of `source`.
    pub(crate) fn planned(
        &self,
        source: &Source,
        select: &Select,
        options: &QueryOptions,
    ) -> Result<Planned> {
        if let Some(name) = &select.collection {
            return Err(of_a_collection(name));
        }
        let of = select.from.clone().map_or(SourceRef::Given, SourceRef::Path);
        let (plan, value_type) = self.source(source, &of)?.plan_select(select, &Self::default(), options)?;
        one_column(plan.outputs().len())?;
        let mut plan = plan.canonical();
        plan.scan.source = of;
        lock(&self.types).insert(plan.clone(), value_type);
        Ok((plan, value_type))
    }

    /// What is known of a subquery without running it: its type.
    pub(crate) fn unknown(&self, source: &Source, plan: &Plan, options: &QueryOptions) -> Result<Answer> {
        if let Some(known) = lock(&self.types).get(plan) {
            return Ok(Answer::Unknown(*known));
        }
        let of = self.source(source, &plan.scan.source)?;
        of.check_fits(plan, options)?;
        let bound = of.lowered(plan, &Self::default(), options)?;
        one_column(bound.outputs.len())?;
        let value_type = bound.outputs.first().and_then(|o| bound.type_of(&o.value));
        lock(&self.types).insert(plan.clone(), value_type);
        Ok(Answer::Unknown(value_type))
    }

    /// The value of a subquery, which is run unless it was.
    pub(crate) fn answered(&self, source: &Source, plan: &Plan, options: &QueryOptions) -> Result<Answer> {
        let Answer::Unknown(value_type) = self.unknown(source, plan, options)? else {
            return Err(Error::new(ErrorKind::Internal, "a subquery that was answered before it was run"));
        };
        let mut values = lock(&self.values);
        let value = match values.get(plan) {
            Some(known) => known.clone(),
            None => {
                let query = self.query(source, plan, options)?;
                let value = query.single_value()?;
                values.insert(plan.clone(), value.clone());
                value
            }
        };
        Ok(Answer::Known(value, value_type))
    }

    /// A subquery as a query.
    pub(crate) fn query(&self, source: &Source, plan: &Plan, options: &QueryOptions) -> Result<Query> {
        Query::of_plan(&self.source(source, &plan.scan.source)?, plan.clone(), options, Instant::now())
    }

    /// The source that a subquery of a query of `own` is asked of.
    fn source(&self, own: &Source, of: &SourceRef) -> Result<Source> {
        let path = match of {
            SourceRef::Path(path) if Path::new(path) != own.path() => path,
            SourceRef::Collection(name) => return Err(of_a_collection(name)),
            _ => return Ok(own.clone()),
        };
        if let Some(known) = lock(&self.sources).get(path) {
            return Ok(known.clone());
        }
        let options = OpenOptions { dims: Vec::new(), join: None, ..own.options().clone() };
        let opened = Source::open_many(&[path], &options)?;
        Ok(lock(&self.sources).entry(path.clone()).or_insert(opened).clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one_column(n: usize) -> Result<()> {
    if n == 1 {
        return Ok(());
    }
    let message = format!("a subquery used as a value has {n} columns, not one");
    Err(Error::new(ErrorKind::TypeMismatch, message))
}

fn of_a_collection(name: &str) -> Error {
    let message = format!("a subquery over collection('{name}')");
    Error::new(ErrorKind::Unsupported, message).hint("ask it first, and write its value")
}
