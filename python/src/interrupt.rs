//! Long work without the GIL, that Ctrl-C ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::errors::to_python;

/// How often signals are looked for while work is done.
const POLL: Duration = Duration::from_millis(50);

/// That work on another thread met a KeyboardInterrupt, which it could not raise.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Runs `work` on a thread of its own while this one looks for signals; a signal sets `cancel`, and its
/// exception (KeyboardInterrupt) is raised once the work has ended. What it asks of a catalog on that thread ends by
/// `cancel`, too.
pub fn interruptible<R: Send>(
    py: Python<'_>,
    cancel: &Arc<AtomicBool>,
    work: impl FnOnce() -> sieva::Result<R> + Send,
) -> PyResult<R> {
    interruptible_all(py, std::slice::from_ref(cancel), work)
}

/// The same of work that each of `cancels` stops a part of; the first is that of the whole.
pub fn interruptible_all<R: Send>(
    py: Python<'_>,
    cancels: &[Arc<AtomicBool>],
    work: impl FnOnce() -> sieva::Result<R> + Send,
) -> PyResult<R> {
    let all = |stop: bool| cancels.iter().for_each(|cancel| cancel.store(stop, Ordering::Relaxed));
    let own = cancels.first().cloned().unwrap_or_default();
    let cancel = &own;
    let mut signal = None;
    let result = py.detach(|| {
        let (send, receive) = mpsc::channel();
        sieva::threads::scope(|scope| {
            // Where there is no thread for it, or it panics, nothing is sent.
            scope.spawn(move || drop(send.send(sieva::catalog::until(cancel, work))));
            loop {
                match receive.recv_timeout(POLL) {
                    Ok(result) => return Some(result),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(e) = Python::attach(|py| py.check_signals()) {
                            all(true);
                            signal.get_or_insert(e);
                        }
                    }
                }
            }
        })
    });
    // A reader in Python may have been interrupted in place of this thread, which was not told yet, or never is: where
    // SIGINT is ignored, as of a shell's background jobs, no signal can be asked for anew.
    let is_passed_on = INTERRUPTED.swap(false, Ordering::Relaxed);
    if signal.is_none() && matches!(result, Some(Err(_))) {
        let passed_on = || is_passed_on.then(|| PyKeyboardInterrupt::new_err(()));
        signal = py.check_signals().err().or_else(passed_on);
    }
    if let Some(e) = signal {
        // The next question may be asked anew.
        all(false);
        return Err(e);
    }
    match result {
        Some(result) => result.map_err(to_python),
        None => Err(PyRuntimeError::new_err("a worker thread of sieva ended unexpectedly")),
    }
}
