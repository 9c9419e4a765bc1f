//! Long work without the GIL, that Ctrl-C ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::to_python;

/// How often signals are looked for while work is done.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own while this one looks for signals; a signal sets `cancel`, and its
/// exception (KeyboardInterrupt) is raised once the work has ended.
pub fn interruptible<R: Send>(
    py: Python<'_>,
    cancel: &Arc<AtomicBool>,
    work: impl FnOnce() -> sieva::Result<R> + Send,
) -> PyResult<R> {
    let mut signal = None;
    let result = py.detach(|| {
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _ = send.send(work());
            });
            loop {
                match receive.recv_timeout(POLL) {
                    Ok(result) => return Some(result),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(e) = Python::attach(|py| py.check_signals()) {
                            cancel.store(true, Ordering::Relaxed);
                            signal.get_or_insert(e);
                        }
                    }
                }
            }
        })
    });
    // A reader in Python may have been interrupted in place of this thread, which was not told yet.
    if signal.is_none() && matches!(result, Some(Err(_))) {
        signal = py.check_signals().err();
    }
    if let Some(e) = signal {
        // The next question may be asked anew.
        cancel.store(false, Ordering::Relaxed);
        return Err(e);
    }
    match result {
        Some(result) => result.map_err(to_python),
        None => Err(PyRuntimeError::new_err("a worker thread of sieva ended unexpectedly")),
    }
}
