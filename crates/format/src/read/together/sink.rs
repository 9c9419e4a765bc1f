//! Where what is read goes: the memory of one request, which many threads fill, and what became of it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

use crate::buffer::Buffer;

/// The memory of one request. Parts of it are written by whoever has read them, under a lock that is held for a copy.
pub(super) struct Sink<'a> {
    out: Mutex<Buffer>,
    failed: Mutex<Option<Error>>,
    /// Whether nothing more is wanted: it failed.
    is_over: AtomicBool,
    cancel: &'a AtomicBool,
}

impl<'a> Sink<'a> {
    /// One that fills `out`, until `cancel` is set.
    pub(super) fn new(out: Buffer, cancel: &'a AtomicBool) -> Self {
        Self { out: Mutex::new(out), failed: Mutex::default(), is_over: AtomicBool::new(false), cancel }
    }

    /// Its memory.
    pub(super) fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is any use in going on.
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_over.load(Relaxed) && !self.cancel.load(Relaxed)
    }

    /// What gives it up.
    pub(super) fn cancel(&self) -> &'a AtomicBool {
        self.cancel
    }

    /// Notes that something of it cannot be had. Of several errors the first is told.
    pub(super) fn fail(&self, e: Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        self.is_over.store(true, Relaxed);
    }

    /// What became of it.
    ///
    /// # Errors
    /// The first error, or `cancelled`.
    pub(super) fn end(self) -> Result<Buffer> {
        if let Some(e) = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(e);
        }
        if self.cancel.load(Relaxed) {
            return Err(given_up());
        }
        Ok(self.out.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The error of a request that is not wanted any more.
pub(super) fn given_up() -> Error {
    Error::new(ErrorKind::Cancelled, "the reading was interrupted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told_and_one_that_gave_up_is_not_wanted() {
        let cancel = AtomicBool::new(false);
        let sink = Sink::new(Buffer::zeros(4), &cancel);
        sink.lock().bytes_mut()[1] = 7;
        assert!(sink.is_wanted());
        sink.fail(Error::corrupt("one"));
        sink.fail(Error::corrupt("two"));
        assert!(!sink.is_wanted());
        assert_eq!(sink.end().unwrap_err().message(), "one");
        let sink = Sink::new(Buffer::zeros(3), &cancel);
        sink.lock().bytes_mut()[1] = 7;
        assert_eq!(sink.end().unwrap().bytes(), [0, 7, 0]);
        cancel.store(true, Relaxed);
        let sink = Sink::new(Buffer::default(), &cancel);
        assert!(!sink.is_wanted());
        assert_eq!(sink.end().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
