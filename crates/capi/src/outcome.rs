//! What requests come to, and the handles that are made of it.

use std::ffi::c_char;
use std::sync::Arc;

use sieva::Result;
use sieva_encode::Encoded;

use crate::collection::SearchHandle;
use crate::given::{self, Out};
use crate::query::QueryHandle;
use crate::request::{RequestHandle, pending_or};
use crate::result::ResultHandle;
use crate::selection::SelectionHandle;
use crate::source::{Opened, SourceHandle};
use crate::status::invalid;
use crate::tasks::{MergeHandle, TasksHandle};

/// What came of the work.
#[derive(Clone)]
pub enum Outcome {
    /// So many of what the work counts.
    Count(u64),
    /// A text.
    Text(Arc<str>),
    /// A source.
    Opened(Arc<Opened>),
    /// Positions.
    Selected(Arc<SelectionHandle>),
    /// A query.
    Query(Arc<QueryHandle>),
    /// Tasks.
    Tasks(TasksHandle),
    /// What a task found.
    Merge(MergeHandle),
    /// Rows as a file.
    Encoded(Arc<Encoded>),
    /// Objects of a collection.
    Search(SearchHandle),
}

impl Outcome {
    /// `sieva_request_count`
    fn count(&self) -> u64 {
        match self {
            Self::Count(n) => *n,
            Self::Selected(handle) => handle.len(),
            Self::Tasks(tasks) => tasks.len(),
            Self::Encoded(encoded) => encoded.rows(),
            Self::Search(search) => search.count(),
            Self::Text(text) => text.len() as u64,
            Self::Opened(_) | Self::Query(_) | Self::Merge(_) => 1,
        }
    }

    /// Whether it asks, later on, the flag that stops the request.
    pub fn is_stopped_by_flag(&self) -> bool {
        matches!(self, Self::Query(_) | Self::Encoded(_) | Self::Selected(_))
    }
}

/// Gives a new handle of what a request came to; `of` is `None` for what is nothing of that kind.
///
/// # Safety
/// The request must be NULL or live, the place NULL or valid for a handle.
unsafe fn give<T>(
    request: *const RequestHandle,
    (place, what, start): (*mut *mut T, &str, &str),
    of: impl FnOnce(Outcome) -> Option<Result<Box<T>>>,
) -> i32 {
    pending_or(|| {
        let out = Out::handle(place, what)?;
        // SAFETY: the caller's promise.
        let request = unsafe { given::handle(request, "request") }?;
        let Some(outcome) = request.outcome() else { return Ok(false) };
        let made = of(outcome?).ok_or_else(|| {
            invalid(format!("the request was not for a {what}")).hint(format!("start it with {start}"))
        })??;
        // SAFETY: as above.
        unsafe { out.set(made) };
        Ok(true)
    })
}

/// `sieva_request_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_count(request: *const RequestHandle, count: *mut u64) -> i32 {
    pending_or(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        let Some(outcome) = request.outcome() else { return Ok(false) };
        // SAFETY: as above.
        unsafe { out.set(outcome?.count()) };
        Ok(true)
    })
}

/// `sieva_request_text`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_text(
    request: *const RequestHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    pending_or(|| {
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        let Some(outcome) = request.outcome() else { return Ok(false) };
        let Outcome::Text(own) = outcome? else {
            return Err(invalid("the request was not for a text")
                .hint("start it with sieva_start_query_explain() or sieva_start_source_schema()"));
        };
        // SAFETY: as above.
        unsafe { given::put_text(&own, text, capacity, needed) }?;
        Ok(true)
    })
}

/// `sieva_request_selection`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_selection(
    request: *const RequestHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    let place = (selection, "selection", "SIEVA_SELECTION");
    // SAFETY: the promises of sieva.h.
    unsafe {
        give(request, place, |outcome| match outcome {
            Outcome::Selected(found) => Some(Ok(found.same())),
            _ => None,
        })
    }
}

/// `sieva_request_source`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_source(
    request: *const RequestHandle,
    source: *mut *mut SourceHandle,
) -> i32 {
    let place = (source, "source", "sieva_start_open()");
    // SAFETY: the promises of sieva.h.
    unsafe {
        give(request, place, |outcome| match outcome {
            Outcome::Opened(opened) => Some(Ok(SourceHandle::of(opened))),
            _ => None,
        })
    }
}

/// `sieva_request_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_query(
    request: *const RequestHandle,
    query: *mut *mut QueryHandle,
) -> i32 {
    let place = (query, "query", "sieva_start_merge_query() or sieva_start_search_query()");
    // SAFETY: the promises of sieva.h.
    unsafe {
        give(request, place, |outcome| match outcome {
            Outcome::Query(query) => Some(Ok(query.same())),
            _ => None,
        })
    }
}

/// `sieva_request_tasks`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_tasks(
    request: *const RequestHandle,
    tasks: *mut *mut TasksHandle,
) -> i32 {
    let place = (tasks, "sieva_tasks", "sieva_start_plan_tasks()");
    // SAFETY: the promises of sieva.h.
    unsafe {
        give(request, place, |outcome| match outcome {
            Outcome::Tasks(tasks) => Some(Ok(Box::new(tasks))),
            _ => None,
        })
    }
}

/// `sieva_request_merge`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_merge(
    request: *const RequestHandle,
    merge: *mut *mut MergeHandle,
) -> i32 {
    let place = (merge, "sieva_merge", "sieva_start_task_run()");
    // SAFETY: the promises of sieva.h.
    unsafe {
        give(request, place, |outcome| match outcome {
            Outcome::Merge(merge) => Some(merge.copy()),
            _ => None,
        })
    }
}

/// `sieva_request_result`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_result(
    request: *const RequestHandle,
    result: *mut *mut ResultHandle,
) -> i32 {
    let place = (result, "result", "sieva_start_result_open(), _of_plan() or sieva_start_merge_result()");
    // SAFETY: the promises of sieva.h.
    unsafe {
        give(request, place, |outcome| match outcome {
            Outcome::Encoded(encoded) => Some(Ok(Box::new(ResultHandle(encoded)))),
            _ => None,
        })
    }
}

/// `sieva_request_search`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_search(
    request: *const RequestHandle,
    search: *mut *mut SearchHandle,
) -> i32 {
    let place = (search, "search", "sieva_start_search_create()");
    // SAFETY: the promises of sieva.h.
    unsafe {
        give(request, place, |outcome| match outcome {
            Outcome::Search(search) => Some(Ok(Box::new(search))),
            _ => None,
        })
    }
}
