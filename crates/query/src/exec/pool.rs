//! Jobs on a few threads, their results taken in the order of the jobs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};

use sieva_types::{Error, ErrorKind, Result};

use super::threads;

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
    consume: impl FnMut(R) -> Result<Flow>,
) -> Result<()> {
    in_order_within((jobs, u64::MAX), threads, cancel, |_| 0, state, work, consume)
}

/// As [`in_order`], of results that take memory: `weigh` says how many bytes. Once those that wait to be taken have more
/// than `most`, only the job is worked on whose result is taken next.
///
/// # Errors
/// As [`in_order`].
pub fn in_order_within<S, R: Send>(
    (jobs, most): (usize, u64),
    threads: usize,
    cancel: &AtomicBool,
    weigh: impl Fn(&R) -> u64 + Sync,
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
    threads::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads {
            let (send, board, state, work, weigh) = (send.clone(), &board, &state, &work, &weigh);
            started += usize::from(scope.spawn(move || {
                let mut state = state();
                while let Some(job) = board.next(jobs, WINDOW_PER_THREAD * threads, most) {
                    let result = caught(|| check(cancel).and_then(|()| work(&mut state, job)));
                    board.wait_to_be_taken(result.as_ref().map_or(0, weigh));
                    if send.send((job, result)).is_err() {
                        return;
                    }
                }
            }));
        }
        drop(send);
        if started == 0 {
            return Err(Error::new(ErrorKind::Io, "the system starts no more threads"));
        }
        let _stopped_in_the_end = Stopping(&board);
        take_in_order(jobs, &receive, &board, &weigh, &mut consume)
    })
}

/// As [`in_order_within`], with `batch` consecutive jobs handed on together, so many that waking the consumer costs little.
///
/// # Errors
/// As [`in_order`].
pub fn in_order_batched<S, R: Send>(
    (jobs, batch, most): (usize, usize, u64),
    threads: usize,
    cancel: &AtomicBool,
    weigh: impl Fn(&R) -> u64 + Sync,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<R> + Sync,
    mut consume: impl FnMut(R) -> Result<Flow>,
) -> Result<()> {
    let some = |state: &mut S, i: usize| {
        (i * batch..jobs.min((i + 1) * batch))
            .map(|job| check(cancel).and_then(|()| work(state, job)))
            .collect()
    };
    let weigh_all = |all: &Vec<R>| all.iter().map(&weigh).sum();
    let batches = (jobs.div_ceil(batch), most);
    in_order_within(batches, threads, cancel, weigh_all, state, some, |results: Vec<R>| {
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
                return Err((job, e));
            }
        }
    };
    // Whether the system started a thread, where it may start no more, and what came of it.
    let mut others: Vec<_> = (1..threads.min(jobs)).map(|_| (false, None)).collect();
    let own = threads::scope(|scope| {
        for (started, end) in &mut others {
            let run = &run;
            *started = scope.spawn(move || *end = Some(run()));
        }
        run()
    });
    let others = others.into_iter().filter(|(started, _)| *started);
    let others = others.map(|(_, end)| end.unwrap_or_else(|| Err((usize::MAX, panicked()))));
    let states: Vec<_> = std::iter::once(own).chain(others).collect();
    // All jobs before one that failed were begun before it, so that the first that fails is the same on any threads.
    match states.iter().filter_map(|s| s.as_ref().err()).min_by_key(|(job, _)| *job) {
        Some((_, e)) => Err(e.clone()),
        None => Ok(states.into_iter().filter_map(|s| s.ok()).collect()),
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "a worker thread ended unexpectedly")
}

/// What `work` gives; an error where it panics, so that nobody waits for it.
fn caught<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

fn take_in_order<R>(
    jobs: usize,
    receive: &mpsc::Receiver<(usize, Result<R>)>,
    board: &Board,
    weigh: &impl Fn(&R) -> u64,
    consume: &mut impl FnMut(R) -> Result<Flow>,
) -> Result<()> {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (job, result) in receive {
        waiting.insert(job, result);
        while let Some(result) = waiting.remove(&next) {
            let result = result?;
            let weight = weigh(&result);
            if consume(result)?.is_break() {
                return Ok(());
            }
            next += 1;
            board.taken(next, weight);
        }
    }
    // All threads have ended: one that could not make its state did without a word.
    if next == jobs { Ok(()) } else { Err(panicked()) }
}

/// Whether to go on.
///
/// # Errors
/// `cancelled`.
pub fn check(cancel: &AtomicBool) -> Result<()> {
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
    taken: Mutex<Taken>,
    moved: Condvar,
}

/// How many results were taken, and the bytes of those that were made and not taken.
#[derive(Default)]
struct Taken {
    results: usize,
    waiting: u64,
}

impl Board {
    /// The next job, once it is no further than `window` ahead of what was taken, and no more than `most` bytes wait
    /// before it.
    fn next(&self, jobs: usize, window: usize, most: u64) -> Option<usize> {
        let job = self.next.fetch_add(1, Ordering::Relaxed);
        if job >= jobs {
            return None;
        }
        let mut taken = self.lock();
        // The job whose result is taken next never waits, so that there is always one that goes on.
        while (job >= taken.results + window || (taken.waiting > most && job > taken.results))
            && !self.stopped.load(Ordering::Relaxed)
        {
            taken = self.moved.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        (!self.stopped.load(Ordering::Relaxed)).then_some(job)
    }

    fn wait_to_be_taken(&self, bytes: u64) {
        self.lock().waiting += bytes;
    }

    fn taken(&self, n: usize, bytes: u64) {
        let mut taken = self.lock();
        (taken.results, taken.waiting) = (n, taken.waiting.saturating_sub(bytes));
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        // Under the lock, so that no worker misses it between its check and its wait.
        let _guard = self.lock();
        self.stopped.store(true, Ordering::Relaxed);
        self.moved.notify_all();
    }
}

/// Stops the workers of a board when it is dropped: they do not wait for a consumer that panics.
struct Stopping<'a>(&'a Board);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop();
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
            let jobs = (1000, 7, u64::MAX);
            in_order_batched(jobs, threads, &cancel, |_| 0, || (), |(), j| Ok(j), take).unwrap();
            assert_eq!(got, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn results_that_weigh_do_not_pile_up() {
        for threads in [2, 4] {
            let (alive, most, cancel) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
            let mut got = Vec::new();
            let work = |(): &mut (), j: usize| {
                most.fetch_max(alive.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                Ok(j)
            };
            let take = |j| {
                alive.fetch_sub(1, Ordering::SeqCst);
                got.push(j);
                Ok(Flow::Continue(()))
            };
            // Each weighs as much as may wait: one waits, and each thread may have begun another.
            in_order_within((500, 9), threads, &cancel, |_| 10, || (), work, take).unwrap();
            assert_eq!(got, (0..500).collect::<Vec<_>>());
            assert!(most.into_inner() <= 2 * threads + 1);
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
    fn a_panic_is_an_error() {
        let (cancel, go_on) = (AtomicBool::new(false), |_| Ok(Flow::Continue(())));
        let bad = |j: usize| if std::hint::black_box(j) == 30 { panic!("job 30") } else { Ok(j) };
        for threads in [2, 5] {
            let e = in_order(1000, threads, &cancel, || (), |(), j| bad(j), go_on).unwrap_err();
            assert_eq!(e.message(), "a worker thread ended unexpectedly");
            let no_state = || -> usize { panic!("no state") };
            let e = in_order(1000, threads, &cancel, no_state, |_, j| Ok(j), go_on).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Internal);
            let taking = || in_order(1000, threads, &cancel, || (), |(), j| Ok(j), |_| panic!("taking"));
            assert!(catch_unwind(AssertUnwindSafe(taking)).is_err());
        }
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
