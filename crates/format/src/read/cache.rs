//! A bounded cache of decoded chunks: of one query, or shared by the queries of a session.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sieva_types::Result;

use super::flight::{Claim, Flight, Lease};

/// What a decoded chunk is known by: its file's number where there are many, its offset in it, and how it is decoded
/// (members of one compound share chunks, so the array is no part of the key; but arrays of a damaged file may claim
/// one chunk, and decode it each in its own way).
pub type ChunkKey = (u32, u64, u64);

/// A chunk's key with the number of the state of the source that it was read of.
pub(super) type Key = (u64, ChunkKey);

/// What the table takes for each chunk, besides its bytes.
const ENTRY_BYTES: usize = 256;
/// The most that a query with a cache of its own keeps of what it only passes: its values may be asked for next, but a
/// count of a large array should not hold all that its limit allows.
const OFFERED_ALONE: usize = 128 << 20;
/// Chunks of its own that a scan passes over to find one of others that it may replace.
const MOST_PASSED: usize = 64;

/// Decoded chunks of any number of sources; the least recently used dropped first.
#[derive(Debug)]
pub struct SharedCache {
    limit: usize,
    state: Mutex<State>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    chunks: HashMap<Key, Entry>,
    /// Keys by the time of their last use.
    order: BTreeMap<u64, Key>,
    /// Of each user: the bytes, and the keys by the time of their last use.
    users: HashMap<u64, (usize, BTreeMap<u64, Key>)>,
    bytes: usize,
    clock: u64,
    /// Chunks that are being decoded.
    flights: HashMap<Key, Arc<Flight>>,
}

#[derive(Debug)]
struct Entry {
    chunk: Arc<Vec<u8>>,
    used: u64,
    user: u64,
}

/// What a cache holds, and how often it was of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Bytes held.
    pub bytes: u64,
    /// Entries held.
    pub entries: u64,
    /// What was asked for and there.
    pub hits: u64,
    /// What was asked for and not there.
    pub misses: u64,
}

impl SharedCache {
    /// A cache that holds at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// What it holds.
    pub fn stats(&self) -> CacheStats {
        let state = self.lock();
        CacheStats {
            bytes: state.bytes as u64,
            entries: state.chunks.len() as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Drops all of it.
    pub fn clear(&self) {
        let mut state = self.lock();
        let flights = std::mem::take(&mut state.flights);
        *state = State { clock: state.clock, flights, ..State::default() };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, key: &Key) {
        let Some(old) = self.chunks.remove(key) else { return };
        self.bytes -= old.chunk.len() + ENTRY_BYTES;
        self.order.remove(&old.used);
        self.disown(&old);
    }

    fn disown(&mut self, entry: &Entry) {
        if let Some((bytes, order)) = self.users.get_mut(&entry.user) {
            *bytes -= entry.chunk.len() + ENTRY_BYTES;
            order.remove(&entry.used);
            if order.is_empty() {
                self.users.remove(&entry.user);
            }
        }
    }

    /// Takes a chunk in as the one that was used last, by `user`.
    fn insert(&mut self, key: Key, chunk: Arc<Vec<u8>>, user: u64) {
        self.remove(&key);
        self.clock += 1;
        let (used, bytes) = (self.clock, chunk.len() + ENTRY_BYTES);
        self.bytes += bytes;
        self.order.insert(used, key);
        let own = self.users.entry(user).or_default();
        own.0 += bytes;
        own.1.insert(used, key);
        self.chunks.insert(key, Entry { chunk, used, user });
    }

    fn owned(&self, user: u64) -> usize {
        self.users.get(&user).map_or(0, |own| own.0)
    }

    /// The chunk that was used longest ago of those that are not `user`'s.
    fn oldest_of_others(&self, user: u64) -> Option<Key> {
        let is_other = |key: &&Key| self.chunks.get(key).is_some_and(|e| e.user != user);
        self.order.values().take(MOST_PASSED).find(is_other).copied()
    }
}

/// The decoded chunks of one source as one query sees them: its own, or its part of a [`SharedCache`].
///
/// Of threads that miss the same chunk at once one decodes it, and the others wait for it (`flight.rs`).
#[derive(Clone, Debug)]
pub struct ChunkCache {
    shared: Arc<SharedCache>,
    source: u64,
    user: u64,
    /// Bytes that this query may put there.
    most: usize,
    /// Bytes of what it passes only, which are kept in case that it asks for them again.
    most_offered: usize,
    /// Whether others find what it puts there.
    is_shared: bool,
}

impl ChunkCache {
    /// A cache of its own, of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let most_offered = limit.min(OFFERED_ALONE);
        Self { is_shared: false, most_offered, ..Self::within(&Arc::new(SharedCache::new(limit)), 0, limit) }
    }

    /// The chunks of the source state `source` in a cache that others use, too; at most `most` bytes are put there. The
    /// number `source` must never have stood for other bytes.
    pub fn within(shared: &Arc<SharedCache>, source: u64, most: usize) -> Self {
        static USERS: AtomicU64 = AtomicU64::new(0);
        let user = USERS.fetch_add(1, Ordering::Relaxed);
        let most = most.min(shared.limit);
        Self { shared: Arc::clone(shared), source, user, most, most_offered: most, is_shared: true }
    }

    /// Bytes that this query may put there.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether what is put there is found by queries to come.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The chunk, if it is held.
    pub fn get(&self, key: ChunkKey) -> Option<Arc<Vec<u8>>> {
        if self.shared.limit == 0 {
            return None;
        }
        let mut state = self.shared.lock();
        let key = (self.source, key);
        let Some(chunk) = state.chunks.get(&key).map(|entry| Arc::clone(&entry.chunk)) else {
            self.shared.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        // It is this query's now: what it goes on to scan does not drive it out.
        state.insert(key, Arc::clone(&chunk), self.user);
        self.shared.hits.fetch_add(1, Ordering::Relaxed);
        Some(chunk)
    }

    /// The chunk, if it is held or comes of another thread that is decoding it, for which this one waits; or else that this one
    /// is to decode it. `check` is called now and then while it waits.
    ///
    /// # Errors
    /// Those of the other thread's reading; what `check` says.
    pub(super) fn claim(&self, key: ChunkKey, check: &mut dyn FnMut() -> Result<()>) -> Result<Claim<'_>> {
        let key = (self.source, key);
        if self.shared.limit == 0 {
            return Ok(Claim::Own(Lease::new(self, key, None)));
        }
        loop {
            if let Some(chunk) = self.get(key.1) {
                return Ok(Claim::Given(Some(chunk)));
            }
            let flight = {
                let mut state = self.shared.lock();
                if state.chunks.contains_key(&key) {
                    // It landed just now.
                    continue;
                }
                match state.flights.get(&key).filter(|flight| flight.is_here()) {
                    Some(flight) => Arc::clone(flight),
                    None => {
                        let own = Arc::new(Flight::new());
                        state.flights.insert(key, Arc::clone(&own));
                        return Ok(Claim::Own(Lease::new(self, key, Some(own))));
                    }
                }
            };
            if let Some(chunk) = flight.wait(check)? {
                return Ok(Claim::Given(chunk));
            }
        }
    }

    /// Drops what it and its likes hold.
    #[cfg(test)]
    pub(super) fn clear(&self) {
        self.shared.clear();
    }

    /// Ends that others wait for a chunk.
    pub(super) fn forget(&self, key: Key, flight: &Arc<Flight>) {
        let mut state = self.shared.lock();
        if state.flights.get(&key).is_some_and(|known| Arc::ptr_eq(known, flight)) {
            state.flights.remove(&key);
        }
    }

    /// Whether the chunk need not be read: it is held, or about to be.
    pub(super) fn is_at_hand(&self, key: ChunkKey) -> bool {
        let key = (self.source, key);
        let is_at_hand = |state: &State| {
            state.chunks.contains_key(&key) || state.flights.get(&key).is_some_and(|flight| flight.is_here())
        };
        self.shared.limit > 0 && is_at_hand(&self.shared.lock())
    }

    /// Whether the chunk is held.
    pub fn holds(&self, key: ChunkKey) -> bool {
        self.shared.limit > 0 && self.shared.lock().chunks.contains_key(&(self.source, key))
    }

    /// Keeps a chunk of which more is wanted soon, in the place of those that were used longest ago; unless it alone is
    /// over the limit.
    pub fn put(&self, key: ChunkKey, chunk: Arc<Vec<u8>>) {
        if chunk.len() + ENTRY_BYTES > self.most {
            return;
        }
        let mut state = self.shared.lock();
        state.insert((self.source, key), chunk, self.user);
        while state.owned(self.user) > self.most {
            let own = state.users.get(&self.user).and_then(|(_, order)| order.values().next().copied());
            let Some(own) = own else { break };
            state.remove(&own);
        }
        while state.bytes > self.shared.limit {
            let Some(oldest) = state.order.values().next().copied() else { break };
            state.remove(&oldest);
        }
    }

    /// Keeps a chunk that a scan passes, which may be asked for later: where there is room, or others left some. Chunks
    /// of the same scan stay, as the next one begins with those that came first.
    pub fn offer(&self, key: ChunkKey, chunk: &[u8]) {
        self.offer_copy(key, chunk, false);
    }

    /// The same. The copy is given back; one is made where it is kept, or `is_awaited`.
    pub(super) fn offer_copy(&self, key: ChunkKey, chunk: &[u8], is_awaited: bool) -> Option<Arc<Vec<u8>>> {
        let need = chunk.len() + ENTRY_BYTES;
        let fits = |state: &State| state.owned(self.user) + need <= self.most_offered;
        let is_kept = need <= self.most_offered && fits(&self.shared.lock());
        if !is_kept && !is_awaited {
            return None;
        }
        // The copy is made with the others going on.
        let chunk = Arc::new(chunk.to_vec());
        if !is_kept {
            return Some(chunk);
        }
        self.offer_made(key, &chunk);
        Some(chunk)
    }

    /// The same of a chunk that need not be copied.
    pub(super) fn offer_made(&self, key: ChunkKey, chunk: &Arc<Vec<u8>>) {
        let need = chunk.len() + ENTRY_BYTES;
        let mut state = self.shared.lock();
        if state.owned(self.user) + need > self.most_offered {
            return;
        }
        while state.bytes + need > self.shared.limit {
            let Some(oldest) = state.oldest_of_others(self.user) else { return };
            state.remove(&oldest);
        }
        state.insert((self.source, key), Arc::clone(chunk), self.user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 1000;
    const TWO: usize = 2 * (CHUNK + ENTRY_BYTES);

    fn chunk(n: u8) -> Arc<Vec<u8>> {
        Arc::new(vec![n; CHUNK])
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = ChunkCache::new(TWO);
        cache.put((0, 0, 0), chunk(0));
        cache.put((0, 1, 0), chunk(1));
        assert!(cache.get((0, 0, 0)).is_some());
        cache.put((0, 2, 0), chunk(2));
        assert!(cache.get((0, 1, 0)).is_none());
        assert!(cache.get((0, 0, 0)).is_some() && cache.get((0, 2, 0)).is_some());
        cache.put((0, 9, 0), Arc::new(vec![0; TWO]));
        assert!(cache.get((0, 9, 0)).is_none());
    }

    #[test]
    fn a_scan_keeps_its_first_chunks_and_replaces_those_of_others() {
        let shared = Arc::new(SharedCache::new(TWO));
        let (a, b) = (ChunkCache::within(&shared, 1, TWO), ChunkCache::within(&shared, 1, TWO));
        (0..5).for_each(|i| a.offer((0, i, 0), &chunk(i as u8)));
        assert_eq!((0..5).map(|i| a.holds((0, i, 0))).collect::<Vec<_>>(), [true, true, false, false, false]);
        // The next scan finds them, and does not drive out what it found.
        assert_eq!(b.get((0, 0, 0)), Some(chunk(0)));
        b.offer((0, 7, 0), &chunk(7));
        b.offer((0, 8, 0), &chunk(8));
        assert!(b.holds((0, 0, 0)) && !b.holds((0, 1, 0)) && b.holds((0, 7, 0)) && !b.holds((0, 8, 0)));
        // Another state of the source has chunks of its own.
        assert!(ChunkCache::within(&shared, 2, TWO).get((0, 0, 0)).is_none());
        let stats = shared.stats();
        assert_eq!((stats.entries, stats.bytes, stats.hits, stats.misses), (2, TWO as u64, 1, 1));
        shared.clear();
        assert_eq!((shared.stats().bytes, shared.stats().entries), (0, 0));
    }

    #[test]
    fn a_query_puts_no_more_there_than_its_share() {
        let shared = Arc::new(SharedCache::new(10 * TWO));
        let small = ChunkCache::within(&shared, 1, TWO);
        (0..9).for_each(|i| small.put((0, i, 0), chunk(0)));
        (0..9).for_each(|i| small.offer((1, i, 0), &chunk(0)));
        assert_eq!(shared.stats().bytes, TWO as u64);
        assert!(small.holds((0, 7, 0)) && small.holds((0, 8, 0)));
        let none = ChunkCache::new(0);
        none.put((0, 0, 0), chunk(0));
        none.offer((0, 0, 0), &chunk(0));
        assert!(none.get((0, 0, 0)).is_none() && !none.holds((0, 0, 0)));
    }
}
