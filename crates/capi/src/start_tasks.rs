//! Long calls of tasks and results in a form that starts them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva::{Error, ErrorKind, QueryOptions, Result};

use crate::asked::{AnyTask, Asked, Bound};
use crate::given;
use crate::logical::PlanHandle;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::query::QueryHandle;
use crate::request::{RequestHandle, starting};
use crate::result::{ResultHandle, ResultOptions, bytes, own_or};
use crate::source::SourceHandle;
use crate::start::Place;
use crate::tasks::{MergeHandle, kind_of};

/// The options of a request, and the flag that stops it.
///
/// # Safety
/// As [`own_or`].
unsafe fn stoppable(source: &Asked, options: *const Options) -> Result<(QueryOptions, Arc<AtomicBool>)> {
    // SAFETY: the caller's promise.
    let mut options = unsafe { own_or(source, options) }?;
    let cancel = Arc::clone(options.cancel.get_or_insert_default());
    Ok((options, cancel))
}

/// `sieva_start_plan_tasks`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_plan_tasks(
    source: *const SourceHandle,
    plan: *const PlanHandle,
    kind: i32,
    parts: u64,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let (source, plan) = both(source, plan)?;
            let kind = kind_of(kind)?;
            let (options, cancel) = stoppable(&source, std::ptr::null())?;
            RequestHandle::start(cancel, move |_| {
                source.tasks(&plan, &options, (kind, parts)).map(Outcome::Tasks)
            })
        })
    }
}

/// `sieva_start_task_run`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_task_run(
    source: *const SourceHandle,
    task: *const u8,
    count: u64,
    options: *const Options,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let source = given::handle(source, "source")?.0.clone();
            let task = AnyTask::from_bytes(&given::values(task, count, "task")?)?;
            let (options, cancel) = stoppable(&source, options)?;
            RequestHandle::start(cancel, move |_| {
                let found = source.run(&task, &options)?;
                Ok(Outcome::Merge(*MergeHandle::new(found)))
            })
        })
    }
}

/// `sieva_start_merge_add`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_merge_add(
    merge: *mut MergeHandle,
    other: *const MergeHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let own = given::handle(merge.cast_const(), "merge")?.clone();
            let other = given::handle(other, "other")?.clone();
            RequestHandle::counting(Arc::default(), move |stop| {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::new(ErrorKind::Cancelled, "merging was cancelled"));
                }
                own.add(&other).map(|()| 1)
            })
        })
    }
}

/// `sieva_start_merge_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_merge_query(
    merge: *const MergeHandle,
    source: *const SourceHandle,
    plan: *const PlanHandle,
    options: *const Options,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let (merge, (source, plan)) = (given::handle(merge, "merge")?.clone(), both(source, plan)?);
            let (options, cancel) = stoppable(&source, options)?;
            RequestHandle::start(cancel, move |_| {
                let known = merge.finished(&source, &plan, &options)?;
                let made = QueryHandle::knowing(&source, &plan, options, known);
                Ok(Outcome::Query(Arc::from(made)))
            })
        })
    }
}

/// `sieva_start_merge_result`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_merge_result(
    merge: *const MergeHandle,
    source: *const SourceHandle,
    plan: *const PlanHandle,
    options: *const Options,
    result_options: *const ResultOptions,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let (merge, (source, plan)) = (given::handle(merge, "merge")?.clone(), both(source, plan)?);
            start_result(source, (options, result_options), move |source, options| {
                merge.finished(source, &plan, options)
            })
        })
    }
}

/// `sieva_start_result_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_result_open(
    source: *const SourceHandle,
    sql: *const c_char,
    options: *const Options,
    result_options: *const ResultOptions,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let source = given::handle(source, "source")?.0.clone();
            let sql = given::text(sql, "sql")?.to_string();
            start_result(source, (options, result_options), move |source, options| source.ask(&sql, options))
        })
    }
}

/// `sieva_start_result_of_plan`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_result_of_plan(
    source: *const SourceHandle,
    plan: *const PlanHandle,
    options: *const Options,
    result_options: *const ResultOptions,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let (source, plan) = both(source, plan)?;
            start_result(source, (options, result_options), move |source, options| {
                source.query(&plan, options)
            })
        })
    }
}

/// `sieva_start_result_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_result_read(
    result: *const ResultHandle,
    offset: u64,
    buffer: *mut c_void,
    capacity: u64,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let encoded = Arc::clone(&given::handle(result, "result")?.0);
            given::check_room(capacity, capacity, buffer.is_null(), "buffer")?;
            let place = Place(buffer);
            // Reading in pieces, so that it can be stopped between them.
            RequestHandle::counting(Arc::default(), move |stop| {
                let place = place;
                let wanted = capacity.min(encoded.size()?.saturating_sub(offset));
                let mut done = 0;
                for piece in bytes(place.0, wanted)?.chunks_mut(sieva_encode::BLOCK) {
                    if stop.load(Ordering::Relaxed) {
                        return Err(Error::new(ErrorKind::Cancelled, "reading the result was cancelled"));
                    }
                    done += encoded.read_at(offset + done, piece)? as u64;
                }
                Ok(done)
            })
        })
    }
}

/// A source and a plan of the caller.
unsafe fn both(source: *const SourceHandle, plan: *const PlanHandle) -> Result<(Asked, Arc<sieva::Plan>)> {
    // SAFETY: the caller's promises.
    unsafe { Ok((given::handle(source, "source")?.0.clone(), Arc::clone(&given::handle(plan, "plan")?.0))) }
}

/// Starts what makes the rows of a query a file.
unsafe fn start_result(
    source: Asked,
    (options, how): (*const Options, *const ResultOptions),
    ask: impl FnOnce(&Asked, &QueryOptions) -> Result<Bound> + Send + 'static,
) -> Result<Box<RequestHandle>> {
    // SAFETY: the caller's promises.
    let (how, (options, cancel)) = unsafe { (ResultOptions::read(how)?, stoppable(&source, options)?) };
    RequestHandle::start(cancel, move |_| {
        Ok(Outcome::Encoded(ResultHandle::of(&ask(&source, &options)?, &how)?.0))
    })
}
