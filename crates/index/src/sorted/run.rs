//! Work shared out to threads: progress, cancellation, the first error.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use sieva_types::{Error, ErrorKind, Result};

use super::SortOptions;

/// A build under way.
pub(super) struct Run<'a> {
    options: &'a SortOptions<'a>,
    /// Threads that are used, which may be fewer than asked for.
    pub threads: usize,
    columns: u64,
    rows: u64,
    /// Elements done, of rows times columns in each of two phases.
    done: AtomicU64,
}

impl<'a> Run<'a> {
    /// A build of `rows` rows of `columns` columns, positions included.
    pub fn new(options: &'a SortOptions<'a>, threads: usize, columns: usize, rows: u64) -> Self {
        Self { options, threads, columns: columns as u64, rows, done: AtomicU64::new(0) }
    }

    /// Ends the build where the caller wants that.
    pub fn check(&self) -> Result<()> {
        if self.options.cancel.load(Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "sorting was cancelled"));
        }
        Ok(())
    }

    /// Counts elements as done, and tells the caller.
    pub fn advance(&self, elements: usize) {
        let done = self.done.fetch_add(elements as u64, Relaxed) + elements as u64;
        let of = 2 * self.rows;
        (self.options.progress)((done / self.columns).min(of), of);
    }

    /// Calls `work(thread, item)` for each item of `0..items`, in order of items, on the threads of this build.
    ///
    /// # Errors
    /// The first error of any, upon which no further item is begun.
    pub fn parallel(&self, items: usize, work: impl Fn(usize, usize) -> Result<()> + Sync) -> Result<()> {
        let (next, failed, first) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
        let worker = |thread: usize| {
            while !failed.load(Relaxed) {
                let item = next.fetch_add(1, Relaxed);
                if item >= items {
                    return;
                }
                if let Err(e) = self.check().and_then(|()| work(thread, item)) {
                    failed.store(true, Relaxed);
                    first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                }
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads.min(items))
                .map(|t| {
                    scope.spawn({
                        let w = &worker;
                        move || w(t)
                    })
                })
                .collect();
            worker(0);
            for other in others {
                if let Err(panic) = other.join() {
                    resume_unwind(panic);
                }
            }
        });
        first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}
