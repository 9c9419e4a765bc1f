//! Callers of several threads who want something of one source at the same time: what overlaps is read together.
//!
//! Who comes when nobody reads what he wants, and a core is free, reads at once and alone. Who comes while it is being
//! read, or while all cores are at work, opens a window: those that come before it closes join, and one of them reads for
//! all. It closes when what was in the way has ended, after some milliseconds, or when no more fit.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sieva_types::{Error, ErrorKind, Result};

/// How long a window is open, at most: about what reading and decoding a few chunks takes, so that waiting costs less than
/// reading them once more would.
const OPEN: Duration = Duration::from_millis(2);
/// How often who waits looks whether it was given up.
const POLL: Duration = Duration::from_millis(20);

/// What a caller wants.
pub(crate) trait Want: Clone {
    /// Whether reading both reads something twice.
    fn overlaps(&self, other: &Self) -> bool;
}

/// A caller's want, what it takes, and whether it was given up.
pub(crate) struct Caller<W> {
    pub(crate) want: W,
    /// Bytes.
    pub(crate) need: u64,
    pub(crate) cancel: Arc<AtomicBool>,
}

/// Where the callers of a source meet.
pub(crate) struct Window<W, T> {
    /// A forked process has none of its parent's callers, and must not wait for their locks.
    process: u32,
    state: Mutex<State<W, T>>,
    changed: Condvar,
}

struct State<W, T> {
    running: Vec<(u64, Vec<W>)>,
    /// Those that wait to be read together; the first one reads.
    waiting: Vec<(Caller<W>, Arc<Slot<T>>)>,
    bytes: u64,
    last: u64,
}

/// Where a caller finds its result.
struct Slot<T> {
    result: Mutex<Option<Result<T>>>,
    made: Condvar,
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, Option<Result<T>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W, T> Default for Window<W, T> {
    fn default() -> Self {
        let state = State { running: Vec::new(), waiting: Vec::new(), bytes: 0, last: 0 };
        Self { process: std::process::id(), state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<W: Want, T> Window<W, T> {
    fn lock(&self) -> MutexGuard<'_, State<W, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was made by the process that this one was forked from: then nothing of it may be waited for.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.process != std::process::id()
    }

    /// Reads what a caller wants: by `alone`, or with others by `together`, which one of them calls and which gives a result
    /// for each, in their order. `cores` read side by side; no more than `memory` is wanted together.
    ///
    /// # Errors
    /// Those of reading; `cancelled` once the caller's flag is set, whatever the others do.
    pub(crate) fn read(
        &self,
        caller: Caller<W>,
        (cores, memory): (usize, u64),
        alone: impl FnOnce() -> Result<T>,
        together: impl FnOnce(Vec<Caller<W>>) -> Vec<Result<T>>,
    ) -> Result<T> {
        if self.is_of_parent() {
            return alone();
        }
        let mut state = self.lock();
        loop {
            let is_free = |other: &W| !other.overlaps(&caller.want);
            let nobody_waits = state.waiting.iter().all(|(other, _)| is_free(&other.want));
            if state.running.len() < cores && nobody_waits && state.nothing_in_the_way(is_free) {
                let running = self.begin(&mut state, vec![caller.want]);
                drop(state);
                let result = alone();
                drop(running);
                return result;
            }
            if state.waiting.is_empty() || state.bytes.saturating_add(caller.need) <= memory {
                break;
            }
            if caller.cancel.load(Relaxed) {
                return Err(cancelled());
            }
            // No more fit: the next window is open when this one has closed.
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        let slot = Arc::new(Slot { result: Mutex::new(None), made: Condvar::new() });
        state.bytes = state.bytes.saturating_add(caller.need);
        let (is_first, cancel) = (state.waiting.is_empty(), Arc::clone(&caller.cancel));
        state.waiting.push((caller, Arc::clone(&slot)));
        if is_first {
            self.lead(state, (cores, memory), together);
        } else {
            drop(state);
        }
        wait_for(&slot, &cancel)
    }

    /// Waits for the window to close, and reads for all who came.
    fn lead(
        &self,
        mut state: MutexGuard<'_, State<W, T>>,
        (cores, memory): (usize, u64),
        together: impl FnOnce(Vec<Caller<W>>) -> Vec<Result<T>>,
    ) {
        let until = Instant::now() + OPEN;
        while !state.may_close(cores) && state.bytes < memory {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                break;
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.bytes = 0;
        let (callers, slots): (Vec<_>, VecDeque<_>) = std::mem::take(&mut state.waiting).into_iter().unzip();
        let running = self.begin(&mut state, callers.iter().map(|c: &Caller<W>| c.want.clone()).collect());
        drop(state);
        let results = catch_unwind(AssertUnwindSafe(|| together(callers)));
        drop(running);
        let mut results = results.unwrap_or_default().into_iter();
        for slot in slots {
            let ended = || Error::new(ErrorKind::Internal, "who read for several callers ended unexpectedly");
            *slot.lock() = Some(results.next().unwrap_or_else(|| Err(ended())));
            slot.made.notify_all();
        }
    }

    fn begin(&self, state: &mut State<W, T>, wants: Vec<W>) -> Running<'_, W, T> {
        state.last += 1;
        state.running.push((state.last, wants));
        // Who waits for room finds some.
        self.changed.notify_all();
        Running { window: self, number: state.last }
    }
}

impl<W: Want, T> State<W, T> {
    /// Whether `is_free` of all that is being read.
    fn nothing_in_the_way(&self, is_free: impl Fn(&W) -> bool) -> bool {
        self.running.iter().flat_map(|(_, wants)| wants).all(is_free)
    }

    /// Whether those that wait gain nothing by waiting on.
    fn may_close(&self, cores: usize) -> bool {
        self.running.is_empty()
            || self.running.len() < cores
                && self.waiting.iter().all(|(c, _)| self.nothing_in_the_way(|other| !other.overlaps(&c.want)))
    }
}

/// That something is being read; whatever ends it.
struct Running<'a, W: Want, T> {
    window: &'a Window<W, T>,
    number: u64,
}

impl<W: Want, T> Drop for Running<'_, W, T> {
    fn drop(&mut self) {
        self.window.lock().running.retain(|(number, _)| *number != self.number);
        self.window.changed.notify_all();
    }
}

/// The result that somebody puts there, unless the caller gives up.
fn wait_for<T>(slot: &Slot<T>, cancel: &AtomicBool) -> Result<T> {
    let mut result = slot.lock();
    loop {
        if let Some(result) = result.take() {
            return result;
        }
        if cancel.load(Relaxed) {
            return Err(cancelled());
        }
        result = slot.made.wait_timeout(result, POLL).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the reading was interrupted")
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    impl Want for Range<u32> {
        fn overlaps(&self, other: &Self) -> bool {
            self.start < other.end && other.start < self.end
        }
    }

    type Ranges = Window<Range<u32>, u32>;

    fn caller(want: Range<u32>) -> Caller<Range<u32>> {
        Caller { want, need: 1, cancel: Arc::default() }
    }

    fn sums(callers: Vec<Caller<Range<u32>>>) -> Vec<Result<u32>> {
        callers.into_iter().map(|c| Ok(c.want.sum())).collect()
    }

    /// Has a thread read `0..10` until `go_on`, and calls `then` meanwhile.
    fn while_one_reads(window: &Ranges, then: impl FnOnce(&Barrier)) {
        let (begun, go_on) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let alone = || {
                    begun.wait();
                    go_on.wait();
                    Ok(45)
                };
                assert_eq!(window.read(caller(0..10), (8, 100), alone, |_| vec![]).unwrap(), 45);
            });
            begun.wait();
            then(&go_on);
        });
        assert!(window.lock().running.is_empty() && window.lock().waiting.is_empty());
    }

    #[test]
    fn a_forked_process_reads_without_the_locks_of_its_parent() {
        let window = Ranges { process: std::process::id() ^ 1, ..Ranges::default() };
        let _held = window.lock();
        assert!(window.is_of_parent() && !Ranges::default().is_of_parent());
        assert_eq!(window.read(caller(1..4), (1, 9), || Ok(6), |_| vec![]).unwrap(), 6);
    }

    #[test]
    fn who_is_alone_reads_at_once_and_so_does_who_wants_something_else() {
        let window = Ranges::default();
        assert_eq!(window.read(caller(1..4), (1, 9), || Ok(6), |_| vec![]).unwrap(), 6);
        while_one_reads(&window, |go_on| {
            assert_eq!(window.read(caller(10..12), (2, 9), || Ok(21), |_| vec![]).unwrap(), 21);
            go_on.wait();
        });
    }

    #[test]
    fn those_that_overlap_are_read_by_one_of_them() {
        let window = Ranges::default();
        let (batches, served) = (AtomicUsize::new(0), AtomicUsize::new(0));
        while_one_reads(&window, |go_on| {
            thread::scope(|scope| {
                for i in 0..20 {
                    let (window, batches, served) = (&window, &batches, &served);
                    scope.spawn(move || {
                        let together = |callers: Vec<_>| {
                            batches.fetch_add(1, Relaxed);
                            served.fetch_add(callers.len(), Relaxed);
                            sums(callers)
                        };
                        let got = window.read(caller(i..10), (8, 100), || Ok(u32::MAX), together);
                        // 10 and more overlap nothing, and read alone.
                        assert_eq!(got.unwrap(), if i < 10 { (i..10).sum() } else { u32::MAX });
                    });
                }
            });
            go_on.wait();
        });
        assert!(batches.load(Relaxed) >= 1 && served.load(Relaxed) == 10);
    }

    #[test]
    fn a_caller_that_gives_up_and_a_reader_that_panics_leave_nobody_waiting() {
        let window = Ranges::default();
        while_one_reads(&window, |go_on| {
            let gone = caller(0..3);
            gone.cancel.store(true, Relaxed);
            let got = window.read(
                gone,
                (8, 100),
                || Ok(0),
                |callers| {
                    assert!(callers[0].cancel.load(Relaxed));
                    vec![Err(cancelled())]
                },
            );
            assert_eq!(got.unwrap_err().kind(), ErrorKind::Cancelled);
            let got = window.read(caller(0..3), (8, 100), || Ok(0), |_| panic!("while reading"));
            assert_eq!(got.unwrap_err().kind(), ErrorKind::Internal);
            go_on.wait();
        });
    }

    #[test]
    fn what_does_not_fit_waits_for_the_next_window() {
        let window = Ranges::default();
        let most = AtomicUsize::new(0);
        while_one_reads(&window, |go_on| {
            thread::scope(|scope| {
                for _ in 0..12 {
                    let (window, most) = (&window, &most);
                    scope.spawn(move || {
                        let together = |callers: Vec<_>| {
                            most.fetch_max(callers.len(), Relaxed);
                            sums(callers)
                        };
                        assert_eq!(window.read(caller(0..5), (8, 3), || Ok(0), together).unwrap(), 10);
                    });
                }
            });
            go_on.wait();
        });
        assert!((1..=3).contains(&most.load(Relaxed)));
    }
}
