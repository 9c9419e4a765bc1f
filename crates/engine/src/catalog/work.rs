//! Tasks that many threads share: doing one may add others.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tasks to do, the latest first: a tree of directories is walked in depth, so that few are waiting at a time.
pub(super) struct Tasks<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// Threads that are doing one, and may add others.
    busy: usize,
    stopped: bool,
}

impl<T> Tasks<T> {
    /// These, the first of them first.
    pub(super) fn new(mut first: Vec<T>) -> Self {
        first.reverse();
        Self { state: Mutex::new(State { waiting: first, busy: 0, stopped: false }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task.
    pub(super) fn push(&self, task: T) {
        self.lock().waiting.push(task);
        self.changed.notify_one();
    }

    /// How many are waiting.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Lets all threads come to their end.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// The next task; `None` when all are done. [`Tasks::done`] is to be called after each.
    fn next(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(task) = state.waiting.pop() {
                state.busy += 1;
                return Some(task);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        self.lock().busy -= 1;
        self.changed.notify_all();
    }

    /// Does tasks until there are none.
    pub(super) fn work(&self, mut each: impl FnMut(T)) {
        /// A task that panics must not leave others waiting.
        struct Busy<'a, T>(&'a Tasks<T>);
        impl<T> Drop for Busy<'_, T> {
            fn drop(&mut self) {
                self.0.done();
            }
        }
        while let Some(task) = self.next() {
            let busy = Busy(self);
            each(task);
            drop(busy);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn tasks_that_tasks_add_are_done_too() {
        let (tasks, sum) = (Tasks::new(vec![12u64]), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    tasks.work(|n| {
                        sum.fetch_add(1, Relaxed);
                        (0..n).for_each(|m| tasks.push(m));
                    });
                });
            }
        });
        // A tree in which n has children 0..n has 2^n nodes.
        assert_eq!(sum.into_inner(), 1 << 12);
    }

    #[test]
    fn stopped_tasks_are_left() {
        let tasks = Tasks::new((0..100).collect());
        let mut done = Vec::new();
        tasks.work(|n: i32| {
            done.push(n);
            if n == 3 {
                tasks.stop();
            }
        });
        assert_eq!(done, [0, 1, 2, 3]);
    }
}
