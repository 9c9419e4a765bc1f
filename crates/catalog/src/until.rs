//! Ending what is asked of a catalog: the flag of who waits for it, which statements that run look at.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva_types::{Error, ErrorKind};

thread_local! {
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Does `work`; what it asks of catalogs on this thread ends with `cancelled` soon after `cancel` is set, and a change that had
/// been begun is taken back.
pub fn until<R>(cancel: &Arc<AtomicBool>, work: impl FnOnce() -> R) -> R {
    let _before = Before(FLAG.replace(Some(Arc::clone(cancel))));
    work()
}

/// The flag that was looked at before, which is so again in the end, even of a panic.
struct Before(Option<Arc<AtomicBool>>);

impl Drop for Before {
    fn drop(&mut self) {
        FLAG.set(self.0.take());
    }
}

/// Whether the flag of this thread is set.
pub(crate) fn is_over() -> bool {
    FLAG.with_borrow(|flag| flag.as_ref().is_some_and(|f| f.load(Ordering::Relaxed)))
}

/// What is told then.
pub(crate) fn over() -> Error {
    Error::new(ErrorKind::Cancelled, "the question to the catalog was cancelled")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_of_their_scope_and_thread() {
        let (outer, inner) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
        until(&outer, || {
            assert!(!is_over());
            assert!(until(&inner, is_over));
            assert!(!is_over());
            outer.store(true, Ordering::Relaxed);
            assert!(is_over() && !std::thread::spawn(is_over).join().unwrap());
        });
        assert!(!is_over());
    }
}
