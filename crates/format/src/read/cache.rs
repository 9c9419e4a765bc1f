//! A bounded cache of decoded chunks, for blocks that cut chunks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a decoded chunk is known by: its file's number where there are many, its offset in it, and how it is decoded
/// (members of one compound share chunks, so the array is no part of the key; but arrays of a damaged file may claim
/// one chunk, and decode it each in its own way).
pub type ChunkKey = (u32, u64, u64);

/// Decoded chunks of one source; the least recently used dropped first.
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
    chunks: HashMap<ChunkKey, (Arc<Vec<u8>>, u64)>,
    bytes: usize,
    clock: u64,
}

impl ChunkCache {
    /// A cache that holds at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// The chunk, if it is held.
    pub fn get(&self, key: ChunkKey) -> Option<Arc<Vec<u8>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let now = state.clock;
        let (chunk, used) = state.chunks.get_mut(&key)?;
        *used = now;
        Some(Arc::clone(chunk))
    }

    /// Keeps the chunk, unless it alone is over the limit.
    pub fn put(&self, key: ChunkKey, chunk: Arc<Vec<u8>>) {
        if chunk.len() > self.limit {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        state.bytes += chunk.len();
        let now = state.clock;
        if let Some((old, _)) = state.chunks.insert(key, (chunk, now)) {
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
        cache.put((0, 0, 0), Arc::new(vec![0; 10]));
        cache.put((0, 1, 0), Arc::new(vec![1; 10]));
        assert!(cache.get((0, 0, 0)).is_some());
        cache.put((0, 2, 0), Arc::new(vec![2; 10]));
        assert!(cache.get((0, 1, 0)).is_none());
        assert!(cache.get((0, 0, 0)).is_some() && cache.get((0, 2, 0)).is_some());
        cache.put((0, 9, 0), Arc::new(vec![0; 21]));
        assert!(cache.get((0, 9, 0)).is_none());
    }
}
