//! Long calls of tasks and results in a form that starts them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva::{Error, ErrorKind, Query, QueryOptions, Result, Task};

use crate::given::{self, Out};
use crate::logical::PlanHandle;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::query::{QueryHandle, Question};
use crate::request::RequestHandle;
use crate::result::{ResultHandle, ResultOptions, bytes, own_or};
use crate::source::{Opened, SourceHandle};
use crate::start::Place;
use crate::status::guarded;
use crate::tasks::{MergeHandle, TasksHandle, kind_of};

/// The options of a request, and the flag that stops it.
///
/// # Safety
/// As [`own_or`].
unsafe fn stoppable(source: &Opened, options: *const Options) -> Result<(QueryOptions, Arc<AtomicBool>)> {
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (source, plan) = unsafe { both(source, plan) }?;
        let kind = kind_of(kind)?;
        // SAFETY: as above.
        let (options, cancel) = unsafe { stoppable(&source, std::ptr::null()) }?;
        let started = RequestHandle::start(cancel, move || {
            TasksHandle::of(&source, &plan, &options, (kind, parts)).map(Outcome::Tasks)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (source, bytes) =
            unsafe { (Arc::clone(&given::handle(source, "source")?.0), given::values(task, count, "task")?) };
        let task = Task::from_bytes(&bytes)?;
        // SAFETY: as above.
        let (options, cancel) = unsafe { stoppable(&source, options) }?;
        let started = RequestHandle::start(cancel, move || {
            let found = source.source.run_task(&task, &options)?;
            Ok(Outcome::Merge(*MergeHandle::new(found)))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_merge_add`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_merge_add(
    merge: *mut MergeHandle,
    other: *const MergeHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (own, other) = unsafe {
            (given::handle(merge.cast_const(), "merge")?.clone(), given::handle(other, "other")?.clone())
        };
        let cancel = Arc::<AtomicBool>::default();
        let stop = Arc::clone(&cancel);
        let started = RequestHandle::counting(cancel, move || {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "merging was cancelled"));
            }
            own.add(&other).map(|()| 1)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (merge, (source, plan)) =
            unsafe { (given::handle(merge, "merge")?.clone(), both(source, plan)?) };
        // SAFETY: as above.
        let (options, cancel) = unsafe { stoppable(&source, options) }?;
        let started = RequestHandle::start(cancel, move || {
            let known = Arc::new(merge.finished(&source, &plan, &options)?);
            let made = QueryHandle::knowing(&source, Question::Plan(plan), options, known);
            Ok(Outcome::Query(Arc::from(made)))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (merge, (source, plan)) =
            unsafe { (given::handle(merge, "merge")?.clone(), both(source, plan)?) };
        let ask = move |source: &Opened, options: &QueryOptions| merge.finished(source, &plan, options);
        // SAFETY: as above.
        unsafe { start_result(source, (options, result_options), ask, request) }
    })
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
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (source, sql) = unsafe {
            (Arc::clone(&given::handle(source, "source")?.0), given::text(sql, "sql")?.to_string())
        };
        let ask = move |source: &Opened, options: &QueryOptions| source.source.ask(&sql, options);
        // SAFETY: as above.
        unsafe { start_result(source, (options, result_options), ask, request) }
    })
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
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (source, plan) = unsafe { both(source, plan) }?;
        let ask = move |source: &Opened, options: &QueryOptions| source.source.query_plan(&plan, options);
        // SAFETY: as above.
        unsafe { start_result(source, (options, result_options), ask, request) }
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let encoded = Arc::clone(&unsafe { given::handle(result, "result") }?.0);
        given::check_room(capacity, capacity, buffer.is_null(), "buffer")?;
        let place = Place(buffer);
        // Reading in pieces, so that it can be stopped between them.
        let cancel = Arc::<AtomicBool>::default();
        let stop = Arc::clone(&cancel);
        let started = RequestHandle::counting(cancel, move || {
            let place = place;
            let wanted = capacity.min(encoded.size()?.saturating_sub(offset));
            // SAFETY: the header asks to leave the memory alone until the request has ended.
            let buffer = unsafe { bytes(place.0, wanted) }?;
            let mut done = 0;
            for piece in buffer.chunks_mut(sieva_encode::BLOCK) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::new(ErrorKind::Cancelled, "reading the result was cancelled"));
                }
                done += encoded.read_at(offset + done, piece)? as u64;
            }
            Ok(done)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// A source and a plan of the caller.
unsafe fn both(
    source: *const SourceHandle,
    plan: *const PlanHandle,
) -> Result<(Arc<Opened>, Arc<sieva::Plan>)> {
    // SAFETY: the caller's promises.
    unsafe {
        Ok((Arc::clone(&given::handle(source, "source")?.0), Arc::clone(&given::handle(plan, "plan")?.0)))
    }
}

/// Starts what makes the rows of a query a file.
unsafe fn start_result(
    source: Arc<Opened>,
    (options, how): (*const Options, *const ResultOptions),
    ask: impl FnOnce(&Opened, &QueryOptions) -> Result<Query> + Send + 'static,
    request: *mut *mut RequestHandle,
) -> Result<()> {
    let out = Out::handle(request, "request")?;
    // SAFETY: the caller's promises.
    let (how, (options, cancel)) = unsafe { (ResultOptions::read(how)?, stoppable(&source, options)?) };
    let started = RequestHandle::start(cancel, move || {
        let query = Arc::new(ask(&source, &options)?);
        Ok(Outcome::Encoded(ResultHandle::of(query, how)?.0))
    })?;
    // SAFETY: as above.
    unsafe { out.set(started) };
    Ok(())
}
