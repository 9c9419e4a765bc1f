//! Threads that wait between queries for the work of the next one: starting a thread takes longer than a small query.
//!
//! Work that borrows is given to them within a [`scope`], which does not end before the work has. Each piece of work has
//! a thread of its own, one that waits or a new one, so that work which waits for other work always goes on. A process
//! that was forked off has none of its parent's threads, and begins with none. They end before the process does.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

/// How long a thread waits for work before it ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// Threads that wait at most; others end with their work.
const MOST_WAITING: usize = 64;

/// Where work is given to threads; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    running: Arc<Running>,
    /// As in `std::thread::Scope`: no lifetime may be shortened or lengthened.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The work of a scope that has not ended.
struct Running {
    left: AtomicUsize,
    /// Who waits for it.
    owner: Thread,
}

impl Running {
    fn one_less(&self) {
        if self.left.fetch_sub(1, Ordering::Release) == 1 {
            self.owner.unpark();
        }
    }
}

/// Calls `f` with a scope, and returns when all work that was given to threads within it has ended. As
/// `std::thread::scope`, but for work that panics: that ends it alone, and whoever gave it finds no result.
pub fn scope<'env, R>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let running = Arc::new(Running { left: AtomicUsize::new(0), owner: thread::current() });
    let scope = Scope { running, scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    while scope.running.left.load(Ordering::Acquire) > 0 {
        thread::park();
    }
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

impl<'scope> Scope<'scope, '_> {
    /// Has a thread do `work`. Returns whether there was one: the system may refuse more, and the work is dropped.
    pub fn spawn(&'scope self, work: impl FnOnce() + Send + 'scope) -> bool {
        let work: Box<dyn FnOnce() + Send + 'scope> = Box::new(work);
        // SAFETY: `scope` waits until `left` is 0, whatever panics, and by then the work was called, which drops what it
        // borrows, or was dropped. So nothing that it borrows is used when `'scope` is over.
        let work: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(work) };
        self.running.left.fetch_add(1, Ordering::Relaxed);
        let started = Pool::current().start(Job { work, running: Arc::clone(&self.running) });
        if !started {
            self.running.one_less();
        }
        started
    }
}

/// Work, and the scope that waits for it.
struct Job {
    work: Box<dyn FnOnce() + Send>,
    running: Arc<Running>,
}

/// What a thread that waits is told.
enum Told {
    Job(Job),
    End,
}

/// Where a thread waits for its next job.
#[derive(Default)]
struct Seat {
    told: Mutex<Option<Told>>,
    given: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Seat {
    fn tell(&self, told: Told) {
        *lock(&self.told) = Some(told);
        self.given.notify_one();
    }

    /// What it is told, if that is before the time is over.
    fn wait(&self, at_most: Duration) -> Option<Told> {
        let told = lock(&self.told);
        let done = self.given.wait_timeout_while(told, at_most, |told| told.is_none());
        done.unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

/// That of this process, or of the one that it was forked from.
static CURRENT: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

/// Ends the threads that wait, as the process ends or forgets this library.
extern "C" fn end() {
    // SAFETY: null, or a pool that was leaked.
    let Some(pool) = (unsafe { CURRENT.load(Ordering::Acquire).as_ref() }) else { return };
    if pool.process != std::process::id() {
        return;
    }
    let waiting = std::mem::take(&mut *lock(&pool.waiting));
    waiting.iter().for_each(|seat| seat.tell(Told::End));
    for seat in waiting {
        let thread = lock(&seat.thread).take();
        thread.map(JoinHandle::join);
    }
}

/// The threads of a process.
struct Pool {
    process: u32,
    /// Those that wait; the last one is taken first.
    waiting: Mutex<Vec<Arc<Seat>>>,
}

impl Pool {
    /// That of this process.
    fn current() -> &'static Pool {
        let process = std::process::id();
        let known = CURRENT.load(Ordering::Acquire);
        // SAFETY: null, or a pool that was leaked below.
        if let Some(pool) = unsafe { known.as_ref() }
            && pool.process == process
        {
            return pool;
        }
        static AT_THE_END: Once = Once::new();
        // SAFETY: `end` may be called at any time, and does not unwind. Where it is refused, the system ends the threads.
        AT_THE_END.call_once(|| _ = unsafe { libc::atexit(end) });
        // The parent's is left alone, not locked: a thread that is not here may have locked it.
        let made = Box::into_raw(Box::new(Pool { process, waiting: Mutex::default() }));
        match CURRENT.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it was made above, and is never freed.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: nobody has seen the one made above; the other is leaked as well.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as above.
                unsafe { &*other }
            }
        }
    }

    fn start(&'static self, job: Job) -> bool {
        let waits = lock(&self.waiting).pop();
        if let Some(seat) = waits {
            seat.tell(Told::Job(job));
            return true;
        }
        let (seat, name) = (Arc::new(Seat::default()), thread::Builder::new().name("sieva-worker".into()));
        let own = Arc::clone(&seat);
        let started = name.spawn(move || self.work(job, &own));
        let is_started = started.is_ok();
        *lock(&seat.thread) = started.ok();
        is_started
    }

    /// What a thread does: its job, and then those that come in time.
    fn work(&self, mut job: Job, seat: &Arc<Seat>) {
        loop {
            // The panic was reported by the hook; its scope finds no result.
            let _ = catch_unwind(AssertUnwindSafe(job.work));
            // It waits before the scope is told, so that what comes next finds it.
            let waits = self.sit(seat);
            job.running.one_less();
            if !waits {
                return;
            }
            match self.next(seat) {
                Told::Job(next) => job = next,
                Told::End => return,
            }
        }
    }

    /// Whether there is room to wait.
    fn sit(&self, seat: &Arc<Seat>) -> bool {
        let mut waiting = lock(&self.waiting);
        let has_room = waiting.len() < MOST_WAITING;
        if has_room {
            waiting.push(Arc::clone(seat));
        }
        has_room
    }

    /// The next job; that it ends, once nobody can give it one any more.
    fn next(&self, seat: &Arc<Seat>) -> Told {
        if let Some(told) = seat.wait(PATIENCE) {
            return told;
        }
        let mut waiting = lock(&self.waiting);
        let at = waiting.iter().position(|s| Arc::ptr_eq(s, seat));
        if let Some(at) = at {
            waiting.remove(at);
            return Told::End;
        }
        drop(waiting);
        // Somebody took the seat and is about to tell it something.
        loop {
            if let Some(told) = seat.wait(PATIENCE) {
                return told;
            }
        }
    }
}

/// Locks what no panic leaves half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread::ThreadId;

    use super::*;

    #[test]
    fn work_borrows_and_has_ended_with_its_scope() {
        for n in [0_u64, 1, 7, 100] {
            let (mut parts, unit) = (vec![0; n as usize], [1]);
            scope(|s| {
                for (i, part) in parts.iter_mut().enumerate() {
                    let unit = &unit;
                    assert!(s.spawn(move || *part = i as u64 + unit[0]));
                }
            });
            assert_eq!(parts, (1..=n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn threads_are_used_again() {
        let seen = Mutex::new(HashSet::<ThreadId>::new());
        for _ in 0..200 {
            scope(|s| assert!(s.spawn(|| _ = lock(&seen).insert(thread::current().id()))));
        }
        // Tests beside this one take threads from it, and leave others.
        assert!(lock(&seen).len() < 100, "{} threads for 200 pieces of work", lock(&seen).len());
    }

    #[test]
    fn work_that_waits_for_other_work_goes_on() {
        let all = Barrier::new(40);
        scope(|outer| {
            for _ in 0..20 {
                let all = &all;
                outer.spawn(move || {
                    scope(|inner| {
                        inner.spawn(|| _ = all.wait());
                        all.wait();
                    });
                });
            }
        });
    }

    #[test]
    fn a_panic_ends_its_own_work_alone() {
        let (mut first, mut second) = (None, None);
        scope(|s| {
            s.spawn(|| first = Some(std::hint::black_box(Vec::<u8>::new())[0]));
            s.spawn(|| second = Some(2));
        });
        assert_eq!((first, second), (None, Some(2)));
        let done = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            scope(|s| {
                s.spawn(|| {
                    thread::sleep(Duration::from_millis(20));
                    done.fetch_add(1, Ordering::Relaxed);
                });
                panic!("in the scope");
            })
        }));
        // What was begun has ended all the same.
        assert!(caught.is_err() && done.into_inner() == 1);
    }
}
