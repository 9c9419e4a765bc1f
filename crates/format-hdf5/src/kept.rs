//! A result that is found on first use and kept, unless it failed for a reason that may pass.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

/// What is found once, by one thread while others wait for it.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    found: OnceLock<Result<Arc<T>>>,
    finding: Mutex<()>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { found: OnceLock::new(), finding: Mutex::new(()) }
    }
}

impl<T> Kept<T> {
    /// Whether it was found.
    pub(crate) fn is_found(&self) -> bool {
        self.found.get().is_some()
    }

    /// What was found, or finds it.
    pub(crate) fn get_or_find(&self, find: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        if let Some(found) = self.found.get() {
            return found.clone();
        }
        let _one = self.finding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.found.get() {
            return found.clone();
        }
        let found = find().map(Arc::new);
        if found.as_ref().err().is_none_or(is_of_the_file) {
            // Nobody else sets it while the lock is held.
            let _ = self.found.set(found.clone());
        }
        found
    }
}

/// Whether an error lies in the file itself, and not in how it was reached this time.
fn is_of_the_file(e: &Error) -> bool {
    use ErrorKind::{CorruptFile, FilterUnavailable, LinkRefused, Overflow, Unsupported};
    matches!(e.kind(), CorruptFile | FilterUnavailable | LinkRefused | Overflow | Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again_and_what_stays_is_kept() {
        for (kind, tries) in [(ErrorKind::Io, 2), (ErrorKind::CorruptFile, 1)] {
            let (kept, mut tried) = (Kept::<u8>::default(), 0);
            for _ in 0..2 {
                let find = || {
                    tried += 1;
                    Err(Error::new(kind, "no"))
                };
                assert_eq!(kept.get_or_find(find).unwrap_err().kind(), kind);
            }
            assert_eq!(tried, tries, "{kind:?}");
        }
        let kept = Kept::default();
        assert_eq!(*kept.get_or_find(|| Ok(1)).unwrap(), 1);
        assert_eq!(*kept.get_or_find(|| Ok(2)).unwrap(), 1);
    }
}
