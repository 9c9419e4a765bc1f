//! A bounded cache whose values are made once, however many threads ask at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sieva_types::Result;

type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

/// Values by key; the least recently used are dropped first.
pub(crate) struct OnceCache<K, V> {
    limit: usize,
    state: Mutex<State<K, V>>,
}

struct State<K, V> {
    slots: HashMap<K, Held<V>>,
    bytes: usize,
    clock: u64,
}

struct Held<V> {
    slot: Slot<V>,
    bytes: usize,
    used: u64,
}

impl<K: Clone + Eq + Hash, V> OnceCache<K, V> {
    /// An empty cache of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::new(State { slots: HashMap::new(), bytes: 0, clock: 0 }) }
    }

    /// The value of `key`, made by `make` (which also tells its bytes) where it is not held.
    ///
    /// # Errors
    /// What `make` says; the next caller tries again.
    pub(crate) fn get(&self, key: &K, make: impl FnOnce() -> Result<(V, usize)>) -> Result<Arc<V>> {
        let slot = self.slot(key);
        let mut value = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        match make() {
            Ok((made, bytes)) => {
                let made = Arc::new(made);
                *value = Some(Arc::clone(&made));
                drop(value);
                self.account(key, bytes);
                Ok(made)
            }
            Err(e) => {
                self.state().slots.remove(key);
                Err(e)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, key: &K) -> Slot<V> {
        let mut state = self.state();
        state.clock += 1;
        let used = state.clock;
        let held =
            state.slots.entry(key.clone()).or_insert_with(|| Held { slot: Slot::default(), bytes: 0, used });
        held.used = used;
        Arc::clone(&held.slot)
    }

    /// Counts a value that was made, and drops others until all fit.
    fn account(&self, key: &K, bytes: usize) {
        let state = &mut *self.state();
        if let Some(held) = state.slots.get_mut(key) {
            state.bytes = state.bytes - held.bytes + bytes;
            held.bytes = bytes;
        }
        while state.bytes > self.limit && state.slots.len() > 1 {
            let made = state.slots.iter().filter(|(k, held)| held.bytes > 0 && *k != key);
            let Some(oldest) = made.min_by_key(|(_, held)| held.used).map(|(k, _)| k.clone()) else { return };
            if let Some(held) = state.slots.remove(&oldest) {
                state.bytes -= held.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sieva_types::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn many_threads_make_a_value_once() {
        let cache = OnceCache::new(100);
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let make = || {
                        made.fetch_add(1, Ordering::Relaxed);
                        Ok((7, 10))
                    };
                    assert_eq!(*cache.get(&1, make).unwrap(), 7);
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_oldest_goes_first_and_errors_are_not_kept() {
        let cache = OnceCache::new(20);
        assert!(cache.get(&0, || Err::<(i32, usize), _>(Error::corrupt("x"))).is_err());
        for key in [0, 1, 0, 2] {
            cache.get(&key, || Ok((key, 10))).unwrap();
        }
        assert_eq!(*cache.get(&0, || Ok((-1, 10))).unwrap(), 0);
        assert_eq!(*cache.get(&1, || Ok((-1, 10))).unwrap(), -1);
    }
}
