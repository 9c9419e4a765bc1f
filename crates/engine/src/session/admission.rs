//! Who may run now: shares of the session's memory, and a bound on how many have one.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};

use super::SessionStats;

/// How often who waits looks whether it was stopped.
const POLL: Duration = Duration::from_millis(20);

thread_local! {
    /// Shares that this thread's callers have: what one of them asks for on the way must not wait for itself.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdmissionLimits {
    /// Bytes for queries.
    pub(super) memory: u64,
    /// Queries at once.
    pub(super) queries: usize,
    /// Whether one that asks for more than there is is refused.
    pub(super) strict: bool,
}

pub(super) struct Admission {
    /// A forked process waits for none of its parent's queries, nor for their locks.
    process: u32,
    limits: AdmissionLimits,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    reserved: u64,
    peak: u64,
    waiting: u64,
    admitted: u64,
    refused: u64,
    closed: bool,
    /// Of those that run: a number, and the flag that stops it.
    running: Vec<(u64, Weak<AtomicBool>)>,
}

/// A share of a session's memory, given back when it is dropped.
pub(crate) struct Permit {
    /// `None` in a forked process, which counts no shares of its parent's session.
    admission: Option<Arc<Admission>>,
    number: u64,
    bytes: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(admission) = self.admission.as_ref().filter(|admission| !admission.is_of_parent()) else {
            return;
        };
        let mut state = admission.lock();
        state.reserved -= self.bytes;
        state.running.retain(|(number, _)| *number != self.number);
        drop(state);
        admission.freed.notify_all();
    }
}

/// That a thread works with a share.
pub(crate) struct Working(std::marker::PhantomData<*const ()>);

impl Working {
    pub(crate) fn begin() -> Self {
        HELD.set(HELD.get() + 1);
        Self(std::marker::PhantomData)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

impl Admission {
    pub(super) fn new(limits: AdmissionLimits) -> Self {
        Self { process: std::process::id(), limits, state: Mutex::default(), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was made by the process that this one was forked from.
    pub(super) fn is_of_parent(&self) -> bool {
        self.process != std::process::id()
    }

    /// A share of `bytes`, once there is one; at once in a forked process.
    ///
    /// # Errors
    /// `memory-limit` where there is never so much; `cancelled`, also where the session is closed.
    pub(super) fn admit(self: &Arc<Self>, bytes: u64, cancel: &Arc<AtomicBool>) -> Result<Permit> {
        let AdmissionLimits { memory, queries, strict } = self.limits;
        let is_refused = bytes > memory && strict;
        if self.is_of_parent() && !is_refused {
            return Ok(Permit { admission: None, number: 0, bytes: 0 });
        }
        if is_refused {
            if !self.is_of_parent() {
                self.lock().refused += 1;
            }
            let message = format!("a query of {bytes} bytes in a session that has {memory} for queries");
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("give the query less (memory=), or the session more"));
        }
        let mut state = self.lock();
        let bytes = bytes.min(memory);
        let is_inner = HELD.get() > 0;
        let is_full = |s: &State| s.running.len() >= queries || s.reserved + bytes > memory;
        if !state.closed && !is_inner && is_full(&state) {
            state.waiting += 1;
            while !state.closed && is_full(&state) && !cancel.load(Ordering::Relaxed) {
                state = self.freed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
            }
            state.waiting -= 1;
        }
        if state.closed || cancel.load(Ordering::Relaxed) {
            let what = if state.closed { "the session is closed" } else { "the query was interrupted" };
            return Err(Error::new(ErrorKind::Cancelled, what));
        }
        state.reserved += bytes;
        state.peak = state.peak.max(state.reserved);
        state.admitted += 1;
        let number = state.admitted;
        state.running.push((number, Arc::downgrade(cancel)));
        Ok(Permit { admission: Some(Arc::clone(self)), number, bytes })
    }

    pub(super) fn cancel(&self) {
        let state = self.lock();
        let flags = state.running.iter().filter_map(|(_, flag)| flag.upgrade());
        flags.for_each(|flag| flag.store(true, Ordering::Relaxed));
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.cancel();
        self.freed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Adds what is known here.
    pub(super) fn tell(&self, stats: SessionStats) -> SessionStats {
        let state = self.lock();
        SessionStats {
            reserved: state.reserved,
            peak_reserved: state.peak,
            running: state.running.len() as u64,
            waiting: state.waiting,
            admitted: state.admitted,
            refused: state.refused,
            ..stats
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(memory: u64, queries: usize, strict: bool) -> Arc<Admission> {
        Arc::new(Admission::new(AdmissionLimits { memory, queries, strict }))
    }

    #[test]
    fn who_finds_no_room_waits_for_it() {
        let (admission, flag) = (admission(100, 9, true), Arc::default());
        let first = admission.admit(80, &flag).unwrap();
        let waiting = std::thread::spawn({
            let (admission, flag) = (Arc::clone(&admission), Arc::clone(&flag));
            move || admission.admit(30, &flag).map(|permit| permit.bytes)
        });
        while admission.tell(SessionStats::default()).waiting == 0 {
            std::thread::yield_now();
        }
        // What asks on behalf of one that runs is let in.
        {
            let _working = Working::begin();
            admission.admit(30, &flag).unwrap();
        }
        drop(first);
        assert_eq!(waiting.join().unwrap().unwrap(), 30);
        let stats = admission.tell(SessionStats::default());
        assert_eq!((stats.reserved, stats.peak_reserved, stats.running, stats.admitted), (0, 110, 0, 3));
    }

    #[test]
    fn a_forked_process_waits_for_nobody() {
        let limits = AdmissionLimits { memory: 100, queries: 1, strict: true };
        let parents = Admission { process: std::process::id() ^ 1, ..Admission::new(limits) };
        let (parents, flag) = (Arc::new(parents), Arc::default());
        let _held = parents.lock();
        let _first = parents.admit(100, &flag).unwrap();
        drop(parents.admit(100, &flag).unwrap());
        assert_eq!(parents.admit(101, &flag).map(drop).unwrap_err().kind(), ErrorKind::MemoryLimit);
    }

    #[test]
    fn what_never_fits_is_refused_or_runs_alone() {
        let flag = Arc::default();
        let e = admission(100, 9, true).admit(101, &flag).map(drop).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
        assert_eq!(admission(100, 9, false).admit(101, &flag).unwrap().bytes, 100);
    }

    #[test]
    fn no_more_run_than_may() {
        let (admission, flag) = (admission(100, 1, true), Arc::<AtomicBool>::default());
        let first = admission.admit(1, &flag).unwrap();
        let other = Arc::new(AtomicBool::new(true));
        assert_eq!(admission.admit(1, &other).map(drop).unwrap_err().kind(), ErrorKind::Cancelled);
        admission.cancel();
        assert!(flag.load(Ordering::Relaxed));
        drop(first);
        admission.close();
        let e = admission.admit(1, &Arc::default()).map(drop).unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::Cancelled, "the session is closed"));
    }
}
