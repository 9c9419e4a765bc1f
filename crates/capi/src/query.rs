//! Queries: made of conditions or of a plan, joined, and asked for numbers of hits.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sieva::ast::{Expr, Junction, Shared};
use sieva::{Error, ErrorKind, Plan, Query, QueryOptions, Result};

use crate::asked::{Asked, Bound};
use crate::given::{self, Out};
use crate::options::{self, Options};
use crate::region;
use crate::source::{Opened, SourceHandle, opened};
use crate::status::{guarded, invalid};
use crate::types::{dtype_of, literal, operator_of};

/// `sieva_query`.
pub struct QueryHandle {
    /// What it asks.
    pub asked: Asked,
    /// Bytes read of a collection, and requests for them, before it was made.
    pub before: (u64, u64),
    state: Mutex<State>,
}

/// Bytes read of a collection so far, and requests for them.
pub fn traffic(asked: &Asked) -> (u64, u64) {
    match asked {
        Asked::File(_) => (0, 0),
        Asked::Collection(all) => {
            let (_, bytes, requests) = all.collection.traffic();
            (bytes, requests)
        }
    }
}

/// What is asked.
#[derive(Clone)]
pub enum Question {
    /// The rows that satisfy a condition.
    Condition(Arc<Shared>),
    /// Whatever a plan says.
    Plan(Arc<Plan>),
}

struct State {
    question: Question,
    /// The region that its rows are restricted to; a plan has none.
    region: Option<Arc<Shared>>,
    options: QueryOptions,
    /// The engine's query, once it was asked.
    bound: Option<Bound>,
    /// Counts what was set, so that a query which was bound meanwhile is not kept.
    version: u64,
}

impl State {
    /// Forgets the engine's query, because it would now be another.
    fn changed(&mut self) {
        self.bound = None;
        self.version += 1;
    }

    fn condition(&self) -> Result<&Arc<Shared>> {
        match &self.question {
            Question::Condition(condition) => Ok(condition),
            Question::Plan(_) => {
                let message = "a query of a plan, which says all, is neither joined nor restricted";
                Err(Error::new(ErrorKind::Unsupported, message)
                    .hint("join conditions: sieva_query_create(), sieva_query_text()"))
            }
        }
    }

    /// The condition, within its region.
    fn whole(&self) -> Result<Arc<Shared>> {
        match &self.region {
            None => self.condition().cloned(),
            Some(region) => Shared::join(Junction::And, region, self.condition()?),
        }
    }
}

impl QueryHandle {
    /// A query of a file by its condition.
    pub fn new(source: &Arc<Opened>, condition: Arc<Shared>, options: QueryOptions) -> Box<Self> {
        Self::made(Asked::File(Arc::clone(source)), Question::Condition(condition), options, None)
    }

    /// A query by its plan.
    pub fn of_plan(asked: &Asked, plan: &Arc<Plan>, options: QueryOptions) -> Box<Self> {
        Self::made(asked.clone(), Question::Plan(Arc::clone(plan)), options, None)
    }

    /// The same, answered by a query of the engine that knows the answer.
    pub fn knowing(asked: &Asked, plan: &Arc<Plan>, options: QueryOptions, known: Bound) -> Box<Self> {
        Self::made(asked.clone(), Question::Plan(Arc::clone(plan)), options, Some(known))
    }

    fn made(asked: Asked, question: Question, options: QueryOptions, bound: Option<Bound>) -> Box<Self> {
        let state = State { question, region: None, options, bound, version: 0 };
        let before = traffic(&asked);
        Box::new(Self { asked, before, state: Mutex::new(state) })
    }

    /// What was done of it so far, if anything was.
    pub fn bound_before(&self) -> Option<Bound> {
        self.lock().bound.clone()
    }

    /// The file that it asks.
    ///
    /// # Errors
    /// `unsupported` of a collection.
    pub fn file(&self) -> Result<&Arc<Opened>> {
        self.asked.file()
    }

    /// Another handle of the same query.
    pub fn same(&self) -> Box<Self> {
        let state = self.lock();
        let copy = State {
            question: state.question.clone(),
            region: state.region.clone(),
            options: state.options.clone(),
            bound: state.bound.clone(),
            version: 0,
        };
        Box::new(Self { asked: self.asked.clone(), before: self.before, state: Mutex::new(copy) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's query; its condition is evaluated at most once, whatever is asked.
    ///
    /// # Errors
    /// Those of binding: `unknown-array`, `type-mismatch` and the like.
    pub fn bound(&self) -> Result<Bound> {
        let version = {
            let state = self.lock();
            if let Some(known) = &state.bound {
                return Ok(known.clone());
            }
            state.version
        };
        let fresh = self.asked(Some(Vec::new()))?;
        let mut state = self.lock();
        Ok(if state.version == version { state.bound.get_or_insert(fresh).clone() } else { fresh })
    }

    /// The engine's query of a file.
    ///
    /// # Errors
    /// As [`QueryHandle::bound`]; `unsupported` of a collection.
    pub fn bound_of_file(&self) -> Result<Arc<Query>> {
        self.file()?;
        self.bound()?.file()
    }

    /// The same query for one use, which can be cancelled without harm to others; what it finds of the condition, all know.
    ///
    /// # Errors
    /// As [`QueryHandle::bound`].
    pub fn again(&self) -> Result<Bound> {
        let stop = self.lock().options.cancel.clone();
        // What stops the query stops this use of it, too.
        self.bound()?.again(stop)
    }

    /// The plan of it, with the columns of `SELECT *`.
    ///
    /// # Errors
    /// As [`QueryHandle::bound`].
    pub fn plan(&self) -> Result<Plan> {
        self.asked(None)?.plan()
    }

    /// The engine's query; `select` are the columns of one that is a condition.
    fn asked(&self, select: Option<Vec<Expr>>) -> Result<Bound> {
        let (question, options) = {
            let state = self.lock();
            let question = match &state.question {
                Question::Condition(_) => Question::Condition(state.whole()?),
                plan => plan.clone(),
            };
            (question, state.options.clone())
        };
        match question {
            Question::Condition(c) => {
                let query = self.file()?.source.query_tree(Some(c.tree()), select, &options)?;
                Ok(Bound::File(Arc::new(query)))
            }
            Question::Plan(plan) => self.asked.query(&plan, &options),
        }
    }

    /// The plan that it was made of.
    ///
    /// # Errors
    /// `unsupported` of a condition.
    pub fn own_plan(&self) -> Result<Arc<Plan>> {
        match &self.lock().question {
            Question::Plan(plan) => Ok(Arc::clone(plan)),
            Question::Condition(_) => {
                Err(Error::new(ErrorKind::Unsupported, "the query is not one of a plan")
                    .hint("sieva_plan_query() has that"))
            }
        }
    }

    /// Names and lengths of the dimensions of its rows.
    ///
    /// # Errors
    /// As [`QueryHandle::bound`].
    pub fn rows(&self) -> Result<(Vec<String>, Vec<u64>)> {
        Ok(self.bound_of_file()?.rows().into_iter().unzip())
    }

    /// What it is run with.
    pub fn options(&self) -> QueryOptions {
        self.lock().options.clone()
    }

    /// Restricts its rows to `region`, in the place of what they were restricted to.
    ///
    /// # Errors
    /// `unsupported` for the query of a plan.
    pub fn restrict(&self, region: Option<Expr>) -> Result<()> {
        let mut state = self.lock();
        state.condition()?;
        state.region = region.map(Shared::single);
        state.changed();
        Ok(())
    }

    /// The dimensions of its rows, whatever its region.
    ///
    /// # Errors
    /// As [`QueryHandle::bound`].
    pub fn own_dims(&self) -> Result<Vec<usize>> {
        let (condition, options) = {
            let state = self.lock();
            (Arc::clone(state.condition()?), state.options.clone())
        };
        let query = self.file()?.source.query_tree(Some(condition.tree()), Some(Vec::new()), &options)?;
        Ok(query.row_dims().to_vec())
    }

    fn joined(junction: Junction, a: &Self, b: &Self) -> Result<Box<Self>> {
        if !a.asked.is_same(&b.asked) {
            return Err(invalid("queries of different sources cannot be joined")
                .hint("make both with one sieva_source; read results of several files one by one"));
        }
        // One lock at a time: two threads may join the same two in either order.
        let (first, options) = {
            let state = a.lock();
            (state.whole()?, state.options.clone())
        };
        let second = b.lock().whole()?;
        Ok(Self::new(a.file()?, Shared::join(junction, &first, &second)?, options))
    }
}

/// `sieva_query_create`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_create(
    source: *const SourceHandle,
    array: *const c_char,
    op: i32,
    r#type: i32,
    value: *const c_void,
    query: *mut *mut QueryHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(query, "query")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let array = unsafe { source.array(array) }?;
        let (op, dtype) = (operator_of(op)?, dtype_of(r#type)?);
        // SAFETY: as above.
        let value = unsafe { literal(dtype, value) }?;
        let left = Box::new(Expr::name(source.source.schema().arrays[array].path.as_str()));
        let expr = Expr::Compare { op, left, right: Box::new(Expr::Literal(value)) };
        // SAFETY: as above.
        unsafe { out.set(QueryHandle::new(source, Shared::single(expr), source.options.clone())) };
        Ok(())
    })
}

/// `sieva_query_text`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_text(
    source: *const SourceHandle,
    condition: *const c_char,
    query: *mut *mut QueryHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(query, "query")?;
        // SAFETY: the promises of sieva.h.
        let (source, text) = unsafe { (opened(source)?, given::text(condition, "condition")?) };
        let condition = Shared::single(source.source.parse_condition(text)?);
        // SAFETY: as above.
        unsafe { out.set(QueryHandle::new(source, condition, source.options.clone())) };
        Ok(())
    })
}

/// `sieva_query_all`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_all(
    source: *const SourceHandle,
    array: *const c_char,
    query: *mut *mut QueryHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(query, "query")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let array = unsafe { source.array(array) }?;
        let everything = region::whole(source.source.schema(), array)?;
        // SAFETY: as above.
        unsafe { out.set(QueryHandle::new(source, Shared::single(everything), source.options.clone())) };
        Ok(())
    })
}

/// `sieva_query_and`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_and(
    a: *const QueryHandle,
    b: *const QueryHandle,
    query: *mut *mut QueryHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { join(Junction::And, a, b, query) })
}

/// `sieva_query_or`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_or(
    a: *const QueryHandle,
    b: *const QueryHandle,
    query: *mut *mut QueryHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { join(Junction::Or, a, b, query) })
}

unsafe fn join(
    junction: Junction,
    a: *const QueryHandle,
    b: *const QueryHandle,
    query: *mut *mut QueryHandle,
) -> Result<()> {
    let out = Out::handle(query, "query")?;
    // SAFETY: the caller's promises.
    let (a, b) = unsafe { (given::handle(a, "a")?, given::handle(b, "b")?) };
    let joined = QueryHandle::joined(junction, a, b)?;
    // SAFETY: as above.
    unsafe { out.set(joined) };
    Ok(())
}

/// `sieva_query_not`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_not(a: *const QueryHandle, query: *mut *mut QueryHandle) -> i32 {
    guarded(|| {
        let out = Out::handle(query, "query")?;
        // SAFETY: the promises of sieva.h.
        let a = unsafe { given::handle(a, "a") }?;
        let (whole, options) = {
            let state = a.lock();
            (state.whole()?, state.options.clone())
        };
        let opposite = QueryHandle::new(a.file()?, Shared::negated(&whole)?, options);
        // SAFETY: as above.
        unsafe { out.set(opposite) };
        Ok(())
    })
}

/// `sieva_query_set_options`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_set_options(query: *mut QueryHandle, options: *const Options) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (query, options) = unsafe { (given::handle(query, "query")?, options::query_options(options)?) };
        let mut state = query.lock();
        state.options = options;
        state.changed();
        Ok(())
    })
}

/// `sieva_query_nhits`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_nhits(query: *const QueryHandle, nhits: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(nhits, "nhits")?;
        // SAFETY: the promises of sieva.h.
        let query = unsafe { given::handle(query, "query") }?;
        let n = query.bound()?.count()?;
        // SAFETY: as above.
        unsafe { out.set(n) };
        Ok(())
    })
}

/// `sieva_query_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_free(query: *mut QueryHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(query) }
}
