//! The threads that read a batch: those of queries, the calling one among them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sieva_format::read::Crew;
use sieva_query::exec::threads;

/// Threads of a session.
pub(super) struct Threads(pub(super) usize);

impl Crew for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn each(&self, jobs: usize, most: usize, work: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let run = || {
            loop {
                let job = next.fetch_add(1, Relaxed);
                if job >= jobs {
                    return;
                }
                work(job);
            }
        };
        // Where the system starts no more threads, the calling one does the work.
        threads::scope(|scope| {
            for _ in 1..self.0.min(most).min(jobs) {
                scope.spawn(run);
            }
            run();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_job_is_done_once() {
        for threads in [1, 2, 5] {
            let done = Mutex::new(Vec::new());
            Threads(threads).each(100, 3, &|job| done.lock().unwrap().push(job));
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..100).collect::<Vec<_>>());
        }
    }
}
