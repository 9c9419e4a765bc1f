//! A bounded cache of decoded chunks, for blocks that cut chunks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Decoded chunks of one source, known by their offset in it (members of one compound share chunks, so the
/// array is no part of the key); the least recently used dropped first.
///
/// Two threads that miss the same chunk at once both decode it: waiting for one another would cost
/// more than the rare double decode.
#[derive(Debug)]
pub struct ChunkCache {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chunks: HashMap<u64, (Arc<Vec<u8>>, u64)>,
    bytes: usize,
    clock: u64,
}

impl ChunkCache {
    /// A cache that holds at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// The chunk, if it is held.
    pub fn get(&self, offset: u64) -> Option<Arc<Vec<u8>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let now = state.clock;
        let (chunk, used) = state.chunks.get_mut(&offset)?;
        *used = now;
        Some(Arc::clone(chunk))
    }

    /// Keeps the chunk, unless it alone is over the limit.
    pub fn put(&self, offset: u64, chunk: Arc<Vec<u8>>) {
        if chunk.len() > self.limit {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        state.bytes += chunk.len();
        let now = state.clock;
        if let Some((old, _)) = state.chunks.insert(offset, (chunk, now)) {
            state.bytes -= old.len();
        }
        while state.bytes > self.limit {
            let Some(oldest) = state.chunks.iter().min_by_key(|(_, (_, used))| *used).map(|(k, _)| *k) else {
                return;
            };
            if let Some((old, _)) = state.chunks.remove(&oldest) {
                state.bytes -= old.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = ChunkCache::new(20);
        cache.put(0, Arc::new(vec![0; 10]));
        cache.put(1, Arc::new(vec![1; 10]));
        assert!(cache.get(0).is_some());
        cache.put(2, Arc::new(vec![2; 10]));
        assert!(cache.get(1).is_none());
        assert!(cache.get(0).is_some() && cache.get(2).is_some());
        cache.put(9, Arc::new(vec![0; 21]));
        assert!(cache.get(9).is_none());
    }
}
