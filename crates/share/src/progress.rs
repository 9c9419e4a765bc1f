//! How far a pass is, for who looks on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sieva::Progress;

/// Who is told how far something is, from whatever thread does it: nobody by default.
#[derive(Clone, Default)]
pub struct OnProgress(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl OnProgress {
    /// Calls a function with what is done and what there is to do.
    pub fn new(told: Arc<dyn Fn(Progress) + Send + Sync>) -> Self {
        Self(Some(told))
    }

    /// Whether somebody is told.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Begins something of so many parts.
    pub(crate) fn begin(&self, total: u64) -> Meter {
        let meter = Meter { on: self.clone(), total, done: AtomicU64::new(0) };
        meter.tell(0);
        meter
    }
}

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnProgress({})", self.is_wanted())
    }
}

/// Something under way.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    on: OnProgress,
    total: u64,
    done: AtomicU64,
}

impl Meter {
    /// Notes that so much more is done.
    pub fn add(&self, more: u64) {
        let before = self.done.fetch_add(more, Ordering::Relaxed);
        self.tell(before.saturating_add(more));
    }

    /// Notes that so much is done, if it is more than was noted: what was left out counts as done.
    pub fn reach(&self, done: u64) {
        self.done.fetch_max(done, Ordering::Relaxed);
        self.tell(done);
    }

    fn tell(&self, done: u64) {
        if let Some(told) = self.on.0.as_ref().filter(|_| self.total > 0) {
            // What was not known of at first may be more than all.
            told(Progress { done: done.min(self.total), total: self.total });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn who_looks_on_is_told_from_the_beginning_to_the_end() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&told);
        let on = OnProgress::new(Arc::new(move |p: Progress| seen.lock().unwrap().push((p.done, p.total))));
        let meter = on.begin(10);
        meter.add(3);
        meter.reach(5);
        meter.add(9);
        assert_eq!(*told.lock().unwrap(), [(0, 10), (3, 10), (5, 10), (10, 10)]);
        // Of nothing nothing is told.
        on.begin(0).add(1);
        assert_eq!(told.lock().unwrap().len(), 4);
        OnProgress::default().begin(1).add(1);
        assert!(on.is_wanted() && !OnProgress::default().is_wanted());
    }
}
