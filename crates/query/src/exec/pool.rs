//! Jobs on a few threads, their results taken in the order of the jobs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};

use sieva_types::{Error, ErrorKind, Result};

/// How far ahead of the consumer the workers may be, per thread: bounds what waits to be taken.
const WINDOW_PER_THREAD: usize = 4;

/// Whether the consumer wants more.
pub type Flow = ControlFlow<()>;

/// Runs `jobs` jobs on `threads` threads. Each thread makes its state once. `consume` is called on the
/// calling thread with the results in the order of the jobs, whatever thread ran them, so that what is
/// made of them does not depend on the number of threads.
///
/// # Errors
/// The first error of a job or of `consume`; `cancelled` when `cancel` is set.
pub fn in_order<S, R: Send>(
    jobs: usize,
    threads: usize,
    cancel: &AtomicBool,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<R> + Sync,
    mut consume: impl FnMut(R) -> Result<Flow>,
) -> Result<()> {
    let threads = threads.min(jobs).max(1);
    if threads == 1 {
        let mut state = state();
        for job in 0..jobs {
            check(cancel)?;
            if consume(work(&mut state, job)?)?.is_break() {
                break;
            }
        }
        return Ok(());
    }
    let board = Board::default();
    let (send, receive) = mpsc::channel::<(usize, Result<R>)>();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (send, board, state, work) = (send.clone(), &board, &state, &work);
            scope.spawn(move || {
                let mut state = state();
                while let Some(job) = board.next(jobs, WINDOW_PER_THREAD * threads) {
                    let result = check(cancel).and_then(|()| work(&mut state, job));
                    if send.send((job, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let done = take_in_order(&receive, &board, &mut consume);
        board.stop();
        done
    })
}

/// As [`in_order`], with so many consecutive jobs handed on together that waking the consumer costs little.
///
/// # Errors
/// As [`in_order`].
pub fn in_order_batched<S, R: Send>(
    (jobs, batch): (usize, usize),
    threads: usize,
    cancel: &AtomicBool,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<R> + Sync,
    mut consume: impl FnMut(R) -> Result<Flow>,
) -> Result<()> {
    let some = |state: &mut S, i: usize| {
        (i * batch..jobs.min((i + 1) * batch))
            .map(|job| check(cancel).and_then(|()| work(state, job)))
            .collect()
    };
    in_order(jobs.div_ceil(batch), threads, cancel, state, some, |results: Vec<R>| {
        for result in results {
            if consume(result)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    })
}

/// Runs `jobs` jobs on `threads` threads, the calling one among them, each adding to its own state: for what
/// does not depend on the order. Returns the states.
///
/// # Errors
/// The first error of a job; `cancelled` when `cancel` is set.
pub fn fold<S: Send>(
    jobs: usize,
    threads: usize,
    cancel: &AtomicBool,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return Ok(state);
            }
            if let Err(e) = check(cancel).and_then(|()| work(&mut state, job)) {
                // The others need not go on.
                next.store(jobs, Ordering::Relaxed);
                return Err(e);
            }
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(jobs)).map(|_| scope.spawn(run)).collect();
        let mut states = vec![run()];
        states.extend(others.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(panicked()))));
        states.into_iter().collect()
    })
}

fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "a worker thread ended unexpectedly")
}

fn take_in_order<R>(
    receive: &mpsc::Receiver<(usize, Result<R>)>,
    board: &Board,
    consume: &mut impl FnMut(R) -> Result<Flow>,
) -> Result<()> {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (job, result) in receive {
        waiting.insert(job, result);
        while let Some(result) = waiting.remove(&next) {
            if consume(result?)?.is_break() {
                return Ok(());
            }
            next += 1;
            board.taken(next);
        }
    }
    Ok(())
}

fn check(cancel: &AtomicBool) -> Result<()> {
    if cancel.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::Cancelled, "the query was interrupted"));
    }
    Ok(())
}

/// Which job is next, and how many results have been taken.
#[derive(Default)]
struct Board {
    next: AtomicUsize,
    stopped: AtomicBool,
    taken: Mutex<usize>,
    moved: Condvar,
}

impl Board {
    /// The next job, once it is no further than `window` ahead of what was taken.
    fn next(&self, jobs: usize, window: usize) -> Option<usize> {
        let job = self.next.fetch_add(1, Ordering::Relaxed);
        if job >= jobs {
            return None;
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while job >= *taken + window && !self.stopped.load(Ordering::Relaxed) {
            taken = self.moved.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        (!self.stopped.load(Ordering::Relaxed)).then_some(job)
    }

    fn taken(&self, n: usize) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = n;
        self.moved.notify_all();
    }

    fn stop(&self) {
        // Under the lock, so that no worker misses it between its check and its wait.
        let _guard = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopped.store(true, Ordering::Relaxed);
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(jobs: usize, threads: usize, until: usize) -> Result<Vec<usize>> {
        let mut got = Vec::new();
        let cancel = AtomicBool::new(false);
        in_order(
            jobs,
            threads,
            &cancel,
            || (),
            |(), j| Ok(j * j),
            |r| {
                got.push(r);
                Ok(if got.len() == until { Flow::Break(()) } else { Flow::Continue(()) })
            },
        )?;
        Ok(got)
    }

    #[test]
    fn results_come_in_order_whatever_the_threads() {
        for threads in [1, 2, 5] {
            let want: Vec<usize> = (0..1000).map(|j| j * j).collect();
            assert_eq!(squares(1000, threads, 0).unwrap(), want);
            assert_eq!(squares(1000, threads, 10).unwrap(), want[..10]);
            assert!(squares(0, threads, 0).unwrap().is_empty());
            let (mut got, cancel) = (Vec::new(), AtomicBool::new(false));
            let take = |j| {
                got.push(j);
                Ok(if got.len() == 50 { Flow::Break(()) } else { Flow::Continue(()) })
            };
            in_order_batched((1000, 7), threads, &cancel, || (), |(), j| Ok(j), take).unwrap();
            assert_eq!(got, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn folding_does_each_job_once() {
        let cancel = AtomicBool::new(false);
        for threads in [1, 2, 5] {
            let add = |sum: &mut usize, j| {
                *sum += j;
                Ok(())
            };
            let states = fold(1000, threads, &cancel, || 0, add).unwrap();
            assert_eq!(states.into_iter().sum::<usize>(), 499_500);
        }
        let fail = |(): &mut (), j| if j == 30 { Err(Error::corrupt("job 30")) } else { Ok(()) };
        assert_eq!(fold(1000, 2, &cancel, || (), fail).unwrap_err().message(), "job 30");
    }

    #[test]
    fn an_error_and_a_cancellation_end_it() {
        let cancel = AtomicBool::new(false);
        let fail = |(): &mut (), j| if j == 30 { Err(Error::corrupt("job 30")) } else { Ok(j) };
        let e = in_order(1000, 2, &cancel, || (), fail, |_| Ok(Flow::Continue(()))).unwrap_err();
        assert_eq!(e.message(), "job 30");
        let consume = |j: usize| {
            cancel.fetch_or(j == 20, Ordering::Relaxed);
            Ok(Flow::Continue(()))
        };
        let e = in_order(1_000_000, 2, &cancel, || (), |(), j| Ok(j), consume).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Cancelled);
    }
}
