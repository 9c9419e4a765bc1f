//! Work that goes on in a thread of its own while the caller does something else.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sieva::{Error, ErrorKind, Result};

use crate::given::{self, Out};
use crate::outcome::Outcome;
use crate::query::QueryHandle;
use crate::selection::SelectionHandle;
use crate::status::{self, PENDING, guarded, invalid};
use crate::target::Target;

/// `SIEVA_NHITS`
const NHITS: i32 = 1;
/// `SIEVA_SELECTION`
const SELECTION: i32 = 2;

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

    fn end(&self, outcome: Result<Outcome>, stop: &AtomicBool) {
        let mut place = self.lock();
        // A query that is told to stop would refuse every later question.
        let stopped = stop.load(Ordering::Relaxed) && matches!(&outcome, Ok(o) if o.is_stopped_by_flag());
        *place = Some(if stopped {
            Err(Error::new(ErrorKind::Cancelled, "the request was cancelled"))
        } else {
            outcome
        });
        drop(place);
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
    thread: Option<JoinHandle<()>>,
}

impl RequestHandle {
    /// Starts work that comes to a number. It is stopped by `cancel`, which it is given.
    ///
    /// # Errors
    /// `io-error` where there is no thread for it.
    pub fn counting(
        cancel: Arc<AtomicBool>,
        work: impl FnOnce(&Arc<AtomicBool>) -> Result<u64> + Send + 'static,
    ) -> Result<Box<Self>> {
        Self::start(cancel, move |stop| work(stop).map(Outcome::Count))
    }

    /// Starts work. It is stopped by `cancel`, which it is given.
    ///
    /// # Errors
    /// `io-error` where there is no thread for it.
    pub fn start(
        cancel: Arc<AtomicBool>,
        work: impl FnOnce(&Arc<AtomicBool>) -> Result<Outcome> + Send + 'static,
    ) -> Result<Box<Self>> {
        let progress = Arc::<Progress>::default();
        let (shared, stop) = (Arc::clone(&progress), Arc::clone(&cancel));
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(|| work(&stop)));
            shared.end(done.unwrap_or_else(|panic| Err(status::of_panic(panic))), &stop);
        };
        let thread = std::thread::Builder::new()
            .name("sieva-request".into())
            .spawn(run)
            .map_err(|e| Error::io("cannot start a thread", &e))?;
        Ok(Box::new(Self { progress, cancel, thread: Some(thread) }))
    }

    /// What the work came to; `None` before its end.
    pub fn outcome(&self) -> Option<Result<Outcome>> {
        self.progress.lock().clone()
    }

    /// Stops the work if it has not ended: what it came to may share the flag.
    fn stop(&self) {
        let outcome = self.progress.lock();
        if outcome.is_none() {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// Freeing a request ends its work: the caller's memory is its own again.
impl Drop for RequestHandle {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Hands out the request that `start` makes of what the caller gave.
///
/// # Safety
/// `request` must be NULL or valid for a handle.
pub unsafe fn starting(
    request: *mut *mut RequestHandle,
    start: impl FnOnce() -> Result<Box<RequestHandle>>,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        let started = start()?;
        // SAFETY: the caller's promise.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start(
    query: *const QueryHandle,
    what: i32,
    request: *mut *mut RequestHandle,
) -> i32 {
    let start = || {
        // SAFETY: the promises of sieva.h.
        let handle = unsafe { given::handle(query, "query") }?;
        if ![NHITS, SELECTION].contains(&what) {
            return Err(invalid(format!("{what} is nothing to start: SIEVA_NHITS (1), SIEVA_SELECTION (2)")));
        }
        let (query, asked, options) = (handle.again()?, handle.asked.clone(), handle.options());
        RequestHandle::start(query.cancel_flag(), move |_| match what {
            NHITS => query.count().map(Outcome::Count),
            _ => {
                let made = SelectionHandle::found(asked, query, options)?;
                Ok(Outcome::Selected(Arc::from(made)))
            }
        })
    };
    // SAFETY: the promises of sieva.h.
    unsafe { starting(request, start) }
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
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let (handle, array) = (given::handle(selection, "selection")?, given::text(array, "array")?);
            let target = Target::new(r#type, values, capacity, missing)?;
            start_reading(handle, array, (0, handle.len()), target)
        })
    }
}

/// Starts reading hits of a selection: the number of the first, and how many.
///
/// # Safety
/// The target's memory must be as its maker said until the request has ended.
pub unsafe fn start_reading(
    handle: &SelectionHandle,
    array: &str,
    (first, n): (u64, u64),
    mut target: Target,
) -> Result<Box<RequestHandle>> {
    target.check_room(n)?;
    let cancel = Arc::<AtomicBool>::default();
    let mut reader = handle.reader(array, &cancel)?;
    RequestHandle::counting(cancel, move |stop| {
        // SAFETY: the caller's promise.
        unsafe { reader.read((first, n), &mut target, stop) }?;
        Ok(n)
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
        unsafe { given::handle(request, "request") }?.stop();
        Ok(())
    })
}

/// `sieva_request_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_request_free(request: *mut RequestHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(request) }
}

/// As [`guarded`]; false is `SIEVA_PENDING`.
pub fn pending_or(work: impl FnOnce() -> Result<bool>) -> i32 {
    let mut done = true;
    let code = guarded(|| {
        done = work()?;
        Ok(())
    });
    if code == status::OK && !done { PENDING } else { code }
}
