//! Selections that are kept from query to query.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sieva_types::Selection;

/// What a selection takes besides its positions: names, key, place in the table.
const ENTRY_BYTES: u64 = 512;

/// Selections by the state of their source and their condition; the least recently used dropped first.
pub(super) struct Selections {
    limit: u64,
    state: Mutex<State>,
}

type Key = (u64, String);

#[derive(Default)]
struct State {
    /// Each with its bytes and the time of its last use.
    kept: HashMap<Key, (Arc<Selection>, u64, u64)>,
    bytes: u64,
    clock: u64,
}

impl Selections {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Selection>> {
        let mut state = self.lock();
        state.clock += 1;
        let now = state.clock;
        let (selection, _, used) = state.kept.get_mut(key)?;
        *used = now;
        Some(Arc::clone(selection))
    }

    pub(super) fn keep(&self, key: &Key, selection: &Arc<Selection>) {
        let bytes = selection.memory_bytes() + key.1.len() as u64 + ENTRY_BYTES;
        if bytes > self.limit {
            return;
        }
        let mut state = self.lock();
        state.clock += 1;
        state.bytes += bytes;
        let entry = (Arc::clone(selection), bytes, state.clock);
        if let Some((_, old, _)) = state.kept.insert(key.clone(), entry) {
            state.bytes -= old;
        }
        while state.bytes > self.limit {
            let Some(oldest) = state.kept.iter().min_by_key(|(_, e)| e.2).map(|(k, _)| k.clone()) else {
                return;
            };
            if let Some((_, old, _)) = state.kept.remove(&oldest) {
                state.bytes -= old;
            }
        }
    }

    /// Their number and bytes.
    pub(super) fn held(&self) -> (u64, u64) {
        let state = self.lock();
        (state.kept.len() as u64, state.bytes)
    }

    pub(super) fn clear(&self) {
        let mut state = self.lock();
        *state = State { clock: state.clock, ..State::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let all = Arc::new(Selection::all(vec!["x".into()], vec![9]).unwrap());
        let one = all.memory_bytes() + 1 + ENTRY_BYTES;
        let kept = Selections::new(2 * one);
        let key = |name: &str| (1, name.to_string());
        kept.keep(&key("a"), &all);
        kept.keep(&key("b"), &all);
        assert!(kept.get(&key("a")).is_some() && kept.get(&(2, "a".into())).is_none());
        kept.keep(&key("c"), &all);
        assert!(kept.get(&key("b")).is_none() && kept.get(&key("a")).is_some());
        assert_eq!(kept.held(), (2, 2 * one));
        kept.clear();
        assert_eq!(kept.held(), (0, 0));
    }
}
