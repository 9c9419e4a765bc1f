//! How often a local file's state is looked at while it is read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A look at a file's state that takes longer asks a server, as of file systems of clusters: not at each read.
const CHEAP: Duration = Duration::from_micros(5);
/// Of the time such looks take at most this part.
const SELDOM: u32 = 50;
/// The longest time between two looks.
const LONGEST: Duration = Duration::from_millis(20);

/// When a file was looked at, and what that takes.
#[derive(Debug)]
pub(crate) struct Looks {
    opened: Instant,
    /// The least that a look took so far, in nanoseconds: others were interrupted.
    took: AtomicU64,
    /// When the last one was, in nanoseconds since the file was opened.
    last: AtomicU64,
}

impl Looks {
    pub fn new() -> Self {
        Self { opened: Instant::now(), took: AtomicU64::new(0), last: AtomicU64::new(0) }
    }

    /// Whether the file is to be looked at again.
    pub fn are_due(&self) -> bool {
        let took = Duration::from_nanos(self.took.load(Relaxed));
        let last = Duration::from_nanos(self.last.load(Relaxed));
        took <= CHEAP || self.opened.elapsed() >= last + (took * SELDOM).min(LONGEST)
    }

    /// Does what looks at the file.
    pub fn look<R>(&self, look: impl FnOnce() -> R) -> R {
        let begun = self.opened.elapsed();
        let found = look();
        let ended = self.opened.elapsed();
        let took = nanos(ended.saturating_sub(begun));
        let known = self.took.load(Relaxed);
        self.took.store(if known == 0 { took } else { known.min(took) }, Relaxed);
        self.last.store(nanos(ended), Relaxed);
        found
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_looks_are_always_due_and_dear_ones_seldom() {
        let looks = Looks::new();
        assert!(looks.are_due());
        looks.look(|| std::thread::sleep(Duration::from_millis(2)));
        // Interrupted once is not dear for ever.
        assert!(!looks.are_due());
        std::thread::sleep(LONGEST);
        assert!(looks.are_due());
        looks.look(|| ());
        assert!(looks.are_due());
    }
}
