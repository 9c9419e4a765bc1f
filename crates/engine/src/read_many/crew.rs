//! The threads that read a batch: those of queries, the calling one among them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sieva_format::read::Crew;
use sieva_query::exec::threads;
use sieva_store::{RangedRead, Striping};

use crate::open::Source;

/// Threads of a session, for a batch of a source.
pub(super) struct Threads<'a>(pub(super) &'a Source);

impl Crew for Threads<'_> {
    fn threads(&self) -> usize {
        self.0.session().threads()
    }

    fn striping(&self, store: &Arc<dyn RangedRead>) -> Option<Striping> {
        let is_own = std::ptr::addr_eq(Arc::as_ptr(store), Arc::as_ptr(self.0.reader().store()));
        Some(if is_own { self.0.striping().clone() } else { self.0.striping_of(&**store) })
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
            for _ in 1..most.min(jobs) {
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
    use crate::OpenOptions;

    #[test]
    fn each_job_is_done_once_however_many_threads_there_are() {
        let path = std::env::temp_dir().join(format!("sieva-crew-{}.nc", std::process::id()));
        std::fs::write(&path, [b"CDF\x01".as_slice(), &[0; 28]].concat()).unwrap();
        let striping = Some("stripe_size=1MiB,stripe_count=4".parse().unwrap());
        let source = Source::open(&path, &OpenOptions { striping, ..OpenOptions::default() }).unwrap();
        for most in [1, 3, 40] {
            let done = Mutex::new(Vec::new());
            Threads(&source).each(100, most, &|job| done.lock().unwrap().push(job));
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..100).collect::<Vec<_>>());
        }
        let known = Threads(&source).striping(source.reader().store()).unwrap();
        assert_eq!((&known, known.servers()), (source.striping(), 4));
        std::fs::remove_file(path).unwrap();
    }
}
