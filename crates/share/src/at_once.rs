//! Requests that are sent side by side, as many as a store takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use sieva::{Error, ErrorKind, Result};

/// What `f` gives of each item, in their order; `most` at once, and one after the other where there are no threads. After an
/// error no more are begun.
///
/// # Errors
/// The first error in the order of the items that were begun.
pub(crate) fn map<T: Sync, R: Send>(
    most: usize,
    items: &[T],
    f: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if most < 2 || items.len() < 2 {
        return items.iter().map(f).collect();
    }
    let next = AtomicUsize::new(0);
    let found: Vec<Mutex<Option<Result<R>>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return };
            let result = f(item);
            if result.is_err() {
                next.fetch_max(items.len(), Ordering::Relaxed);
            }
            *found[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    thread::scope(|scope| {
        for _ in 1..most.min(items.len()) {
            // Where no thread is to be had this one does it all.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut results = Vec::with_capacity(items.len());
    let mut failed = None;
    for slot in found {
        match slot.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(result)) => results.push(result),
            Some(Err(e)) => {
                failed.get_or_insert(e);
            }
            None => {}
        }
    }
    match failed {
        Some(e) => Err(e),
        None if results.len() == items.len() => Ok(results),
        None => Err(Error::new(ErrorKind::Internal, "a request was not made")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_are_in_order_and_requests_side_by_side() {
        let items: Vec<usize> = (0..40).collect();
        let barrier = Barrier::new(4);
        // Nobody goes on before four are there.
        let doubled = map(4, &items, |&n| {
            barrier.wait();
            Ok(2 * n)
        });
        assert_eq!(doubled.unwrap(), items.iter().map(|n| 2 * n).collect::<Vec<_>>());
        assert_eq!(map(4, &[] as &[usize], |&n| Ok(n)).unwrap(), [0; 0]);
    }

    #[test]
    fn after_an_error_no_more_are_begun() {
        let items: Vec<usize> = (0..10_000).collect();
        let begun = AtomicUsize::new(0);
        let e = map(4, &items, |&n| {
            begun.fetch_add(1, Ordering::Relaxed);
            if n == 7 { Err(Error::new(ErrorKind::Io, "seven")) } else { Ok(n) }
        });
        assert_eq!(e.unwrap_err().message(), "seven");
        assert!(begun.into_inner() < 10_000);
    }
}
