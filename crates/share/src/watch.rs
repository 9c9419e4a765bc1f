//! What one ask may take of a producer, and a watch that stops what takes longer.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sieva::{BuildOptions, Error, ErrorKind, Result};

/// How often it is looked whether the whole pass was stopped.
const LOOK: Duration = Duration::from_millis(20);

/// What of a machine a pass may take, and one ask of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// Bytes that evaluating may take.
    pub memory: Option<u64>,
    /// Of these, one ask.
    pub ask_memory: Option<u64>,
    pub threads: Option<usize>,
    /// Who reads BP files.
    pub bp_worker: Vec<OsString>,
    /// How long an ask may take.
    pub time: Option<Duration>,
    /// Bytes of a result.
    pub size: Option<u64>,
    /// Stops the pass.
    pub cancel: Arc<AtomicBool>,
}

impl Limits {
    /// A flag that stops a query, for [`Limits::watch`].
    pub fn flag(&self) -> Arc<AtomicBool> {
        match self.time {
            Some(_) => Arc::default(),
            None => Arc::clone(&self.cancel),
        }
    }

    /// Sets flags when the time of an ask is over, or the pass is stopped, until the watch is dropped.
    ///
    /// # Errors
    /// `io-error` where there is no thread for it.
    pub fn watch(&self, flags: Vec<Arc<AtomicBool>>) -> Result<Watch> {
        Watch::start(&self.cancel, self.time, flags)
    }

    /// How zone maps are built: by one thread, so that they are one file.
    pub fn building(&self) -> BuildOptions {
        let default = BuildOptions { jobs: 1, cancel: Arc::clone(&self.cancel), ..BuildOptions::default() };
        let memory = self.ask_memory.or(self.memory).unwrap_or(default.memory);
        BuildOptions { memory: memory.min(default.memory), ..default }
    }

    /// Refuses a pass that was stopped.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn check(&self) -> Result<()> {
        match self.cancel.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Cancelled, "the pass was interrupted")),
            false => Ok(()),
        }
    }

    /// What is told of an ask that took longer.
    pub fn too_long(&self) -> Error {
        let seconds = self.time.unwrap_or_default().as_secs_f64();
        let message = format!("stopped after {seconds} s: this producer lets no ask take longer");
        Error::new(ErrorKind::Cancelled, message).hint("ask for less, or talk to the producer")
    }

    /// What is told of a result that is larger.
    pub fn too_large(&self) -> Error {
        let most = self.size.unwrap_or_default();
        let message = format!("a result of more than {most} bytes: this producer puts no larger one");
        Error::new(ErrorKind::MemoryLimit, message).hint("ask for less, or talk to the producer")
    }
}

/// A thread that waits for the end of some work's time.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_done: Mutex<bool>,
    changed: Condvar,
    is_over: AtomicBool,
}

impl Watch {
    fn start(cancel: &Arc<AtomicBool>, time: Option<Duration>, flags: Vec<Arc<AtomicBool>>) -> Result<Self> {
        let shared = Arc::<Shared>::default();
        let Some(time) = time else { return Ok(Self { shared, thread: None }) };
        let (seen, cancel, begun) = (Arc::clone(&shared), Arc::clone(cancel), Instant::now());
        let run = move || {
            let mut is_done = seen.is_done.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_done {
                let left = time.saturating_sub(begun.elapsed());
                let is_over = left.is_zero();
                if is_over || cancel.load(Ordering::Relaxed) {
                    seen.is_over.store(is_over, Ordering::Relaxed);
                    flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
                    return;
                }
                let waited = seen.changed.wait_timeout(is_done, left.min(LOOK));
                is_done = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        let thread = thread::Builder::new().spawn(run);
        let thread = thread.map_err(|e| Error::io("no thread to watch the time of an ask", &e))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Whether the time was over, and the flags were set.
    pub fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.shared.is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(flag: &AtomicBool) {
        while !flag.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }

    #[test]
    fn flags_are_set_when_the_time_is_over_or_the_pass_is_stopped() {
        let limits = Limits { time: Some(Duration::from_millis(1)), ..Limits::default() };
        let flags = [limits.flag(), limits.flag()];
        let watch = limits.watch(flags.to_vec()).unwrap();
        flags.iter().for_each(|flag| wait_for(flag));
        assert!(watch.is_over() && !limits.cancel.load(Ordering::Relaxed));

        let limits = Limits { time: Some(Duration::from_secs(3600)), ..Limits::default() };
        let flag = limits.flag();
        let watch = limits.watch(vec![Arc::clone(&flag)]).unwrap();
        assert!(!flag.load(Ordering::Relaxed) && limits.check().is_ok());
        limits.cancel.store(true, Ordering::Relaxed);
        wait_for(&flag);
        assert!(!watch.is_over() && limits.check().is_err());
        drop(watch);
    }

    #[test]
    fn what_ends_in_time_is_not_stopped_and_without_a_limit_nothing_is_watched() {
        let limits = Limits { time: Some(Duration::from_secs(3600)), ..Limits::default() };
        let flag = limits.flag();
        drop(limits.watch(vec![Arc::clone(&flag)]).unwrap());
        assert!(!flag.load(Ordering::Relaxed));
        let limits = Limits::default();
        assert!(Arc::ptr_eq(&limits.flag(), &limits.cancel));
        assert!(!limits.watch(vec![limits.flag()]).unwrap().is_over());
    }
}
