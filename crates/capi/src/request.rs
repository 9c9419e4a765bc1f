//! Work that goes on in a thread of its own while the caller does something else.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sieva::{Error, Query, Result, Selection};

use crate::given::{self, Out};
use crate::query::QueryHandle;
use crate::read::read_into;
use crate::selection::SelectionHandle;
use crate::source::{Opened, SourceHandle};
use crate::status::{self, PENDING, guarded, invalid};
use crate::target::Target;

/// `SIEVA_NHITS`
const NHITS: i32 = 1;
/// `SIEVA_SELECTION`
const SELECTION: i32 = 2;

/// What came of the work.
#[derive(Clone)]
enum Outcome {
    Count(u64),
    Selected(Arc<Selection>),
    Opened(Arc<Opened>),
}

impl Outcome {
    fn count(&self) -> u64 {
        match self {
            Self::Count(n) => *n,
            Self::Selected(selection) => selection.len(),
            Self::Opened(_) => 1,
        }
    }
}

/// What the worker and those who wait share.
#[derive(Default)]
struct Progress {
    outcome: Mutex<Option<Result<Outcome>>>,
    ended: Condvar,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, Option<Result<Outcome>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, outcome: Result<Outcome>) {
        *self.lock() = Some(outcome);
        self.ended.notify_all();
    }

    /// The outcome, once there is one or `until` has come (`None`: never).
    fn wait(&self, until: Option<Instant>) -> Option<Result<Outcome>> {
        let mut outcome = self.lock();
        while outcome.is_none() {
            outcome = match until.map(|u| u.saturating_duration_since(Instant::now())) {
                None => self.ended.wait(outcome).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return None,
                Some(left) => {
                    self.ended.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        outcome.clone()
    }
}

/// `sieva_request`.
pub struct RequestHandle {
    progress: Arc<Progress>,
    cancel: Arc<AtomicBool>,
    /// Makes the selection's handle of what was found.
    finish: Option<Finish>,
    thread: Option<JoinHandle<()>>,
}

/// What a selection's handle needs besides the positions.
struct Finish {
    source: Arc<crate::source::Opened>,
    query: Arc<Query>,
    options: sieva::QueryOptions,
}

impl RequestHandle {
    /// Starts work that comes to a number; `cancel` stops it.
    ///
    /// # Errors
    /// `io-error` where there is no thread for it.
    pub fn counting(
        cancel: Arc<AtomicBool>,
        work: impl FnOnce() -> Result<u64> + Send + 'static,
    ) -> Result<Box<Self>> {
        Self::start(cancel, None, move || work().map(Outcome::Count))
    }

    /// Starts work that comes to a source.
    ///
    /// # Errors
    /// `io-error` where there is no thread for it.
    pub fn opening(
        cancel: Arc<AtomicBool>,
        work: impl FnOnce() -> Result<Arc<Opened>> + Send + 'static,
    ) -> Result<Box<Self>> {
        Self::start(cancel, None, move || work().map(Outcome::Opened))
    }

    fn start(
        cancel: Arc<AtomicBool>,
        finish: Option<Finish>,
        work: impl FnOnce() -> Result<Outcome> + Send + 'static,
    ) -> Result<Box<Self>> {
        let progress = Arc::<Progress>::default();
        let shared = Arc::clone(&progress);
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            shared.end(done.unwrap_or_else(|panic| Err(status::of_panic(panic))));
        };
        let thread = std::thread::Builder::new()
            .name("sieva-request".into())
            .spawn(run)
            .map_err(|e| Error::io("cannot start a thread", &e))?;
        Ok(Box::new(Self { progress, cancel, finish, thread: Some(thread) }))
    }
}

/// Freeing a request ends its work: the caller's memory is its own again.
impl Drop for RequestHandle {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// `sieva_start`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start(
    query: *const QueryHandle,
    what: i32,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let handle = unsafe { given::handle(query, "query") }?;
        if ![NHITS, SELECTION].contains(&what) {
            return Err(invalid(format!("{what} is nothing to start: SIEVA_NHITS (1), SIEVA_SELECTION (2)")));
        }
        let query = handle.again()?;
        let (cancel, worker) = (query.cancel_flag(), Arc::clone(&query));
        let finish = Finish { source: Arc::clone(&handle.source), query, options: handle.options() };
        let started = RequestHandle::start(cancel, Some(finish), move || match what {
            NHITS => worker.count().map(Outcome::Count),
            _ => worker.selection().map(Outcome::Selected),
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_read(
    selection: *const SelectionHandle,
    array: *const c_char,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (handle, array) =
            unsafe { (given::handle(selection, "selection")?, given::text(array, "array")?) };
        let mut target = Target::new(r#type, values, capacity, missing)?;
        let n = handle.selection.len();
        target.check_room(n)?;
        let cancel = Arc::<AtomicBool>::default();
        let mut points = handle.points(array, Arc::clone(&cancel))?;
        let (selection, stop) = (Arc::clone(&handle.selection), Arc::clone(&cancel));
        let started = RequestHandle::start(cancel, None, move || {
            // SAFETY: the header asks to leave the memory alone until the request has ended.
            unsafe { read_into(&selection, &mut points, (0, n), &mut target, &stop) }?;
            Ok(Outcome::Count(n))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_test`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_test(request: *const RequestHandle, done: *mut i32) -> i32 {
    guarded(|| {
        let out = Out::new(done, "done")?;
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        let ended = request.progress.lock().is_some();
        // SAFETY: as above.
        unsafe { out.set(ended.into()) };
        Ok(())
    })
}

/// `sieva_wait`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_wait(request: *const RequestHandle, timeout_ms: i64) -> i32 {
    pending_or(|| {
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        // A time that no clock reaches is none.
        let until = timeout.and_then(|t| Instant::now().checked_add(t));
        match request.progress.wait(until) {
            None => Ok(false),
            Some(outcome) => outcome.map(|_| true),
        }
    })
}

/// `sieva_cancel`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_cancel(request: *const RequestHandle) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        request.cancel.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// `sieva_request_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_count(request: *const RequestHandle, count: *mut u64) -> i32 {
    pending_or(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        let Some(outcome) = request.progress.lock().clone() else { return Ok(false) };
        // SAFETY: as above.
        unsafe { out.set(outcome?.count()) };
        Ok(true)
    })
}

/// `sieva_request_selection`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_selection(
    request: *const RequestHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    pending_or(|| {
        let out = Out::handle(selection, "selection")?;
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        let Some(outcome) = request.progress.lock().clone() else { return Ok(false) };
        let (Outcome::Selected(found), Some(finish)) = (outcome?, &request.finish) else {
            return Err(invalid("the request was not for a selection").hint("start it with SIEVA_SELECTION"));
        };
        let handle = SelectionHandle {
            source: Arc::clone(&finish.source),
            query: Arc::clone(&finish.query),
            options: finish.options.clone(),
            selection: found,
            reader: Mutex::new(None),
        };
        // SAFETY: as above.
        unsafe { out.set(Box::new(handle)) };
        Ok(true)
    })
}

/// `sieva_request_source`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_source(
    request: *const RequestHandle,
    source: *mut *mut SourceHandle,
) -> i32 {
    pending_or(|| {
        let out = Out::handle(source, "source")?;
        // SAFETY: the promises of sieva.h.
        let request = unsafe { given::handle(request, "request") }?;
        let Some(outcome) = request.progress.lock().clone() else { return Ok(false) };
        let Outcome::Opened(opened) = outcome? else {
            return Err(invalid("the request was not for a source").hint("start it with sieva_start_open"));
        };
        // SAFETY: as above.
        unsafe { out.set(Box::new(SourceHandle(opened))) };
        Ok(true)
    })
}

/// `sieva_request_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_free(request: *mut RequestHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(request) }
}

/// As [`guarded`]; false is `SIEVA_PENDING`.
fn pending_or(work: impl FnOnce() -> Result<bool>) -> i32 {
    let mut done = true;
    let code = guarded(|| {
        done = work()?;
        Ok(())
    });
    if code == status::OK && !done { PENDING } else { code }
}
