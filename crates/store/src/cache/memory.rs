//! The process's memory of remote bytes: segments of objects, the least recently used of which goes first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::{Flight, Promise};

/// One object (of one version) in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group(u128);

impl Group {
    /// A group shared by all who know the same `identity`: address and version of an object.
    pub(crate) fn of(identity: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, identity);
        let mut half = [0; 16];
        half.copy_from_slice(&digest.as_ref()[..16]);
        Self(u128::from_le_bytes(half) | 1)
    }

    /// A group of its own: even numbers, which [`Group::of`] does not make.
    pub(crate) fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(u128::from(NEXT.fetch_add(1, Relaxed)) << 1)
    }
}

/// Bytes of an object that are there or on their way.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) range: Range<u64>,
    pub(crate) flight: Arc<Flight>,
}

#[derive(Debug)]
struct Slot {
    end: u64,
    flight: Arc<Flight>,
    tick: u64,
}

type Place = (Group, u64);

/// Segments of all objects. Those of one object never overlap.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    slots: BTreeMap<Place, Slot>,
    order: BTreeMap<u64, Place>,
    tick: u64,
    bytes: u64,
    limit: u64,
}

impl Cache {
    /// The process's cache. Held for the moment of a look-up only, never while bytes are copied or waited for.
    pub(crate) fn lock() -> MutexGuard<'static, Self> {
        static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
        CACHE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
        self.evict();
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The segments that touch `range`, in order; they count as used now.
    pub(crate) fn present(&mut self, group: Group, range: &Range<u64>) -> Vec<Part> {
        let before = self.slots.range(..(group, range.start)).next_back();
        let first = before.filter(|((g, _), slot)| *g == group && slot.end > range.start);
        let from = first.map_or((group, range.start), |(place, _)| *place);
        let places: Vec<Place> = self.slots.range(from..(group, range.end)).map(|(p, _)| *p).collect();
        places.into_iter().filter_map(|place| self.touch(place)).collect()
    }

    fn touch(&mut self, place: Place) -> Option<Part> {
        let slot = self.slots.get_mut(&place)?;
        self.tick += 1;
        self.order.remove(&slot.tick);
        slot.tick = self.tick;
        self.order.insert(self.tick, place);
        Some(Part { range: place.1..slot.end, flight: Arc::clone(&slot.flight) })
    }

    /// What of `range` the parts (in order) leave out.
    pub(crate) fn missing(range: &Range<u64>, parts: &[Part]) -> Vec<Range<u64>> {
        let mut at = range.start;
        let mut out = Vec::new();
        for part in parts {
            if part.range.start > at {
                out.push(at..part.range.start);
            }
            at = at.max(part.range.end);
        }
        if at < range.end {
            out.push(at..range.end);
        }
        out
    }

    /// Makes a place for bytes that the caller is going to fetch; none of `range` may be present.
    pub(crate) fn reserve(&mut self, group: Group, range: &Range<u64>) -> (Promise, Part) {
        let (promise, flight) = Promise::new();
        self.insert(group, range, Arc::clone(&flight));
        (promise, Part { range: range.clone(), flight })
    }

    /// Keeps bytes that came without being asked for, where nothing of them is present.
    pub(crate) fn keep(&mut self, group: Group, start: u64, bytes: Vec<u8>) {
        let range = start..start + bytes.len() as u64;
        if !bytes.is_empty() && self.present(group, &range).is_empty() {
            self.insert(group, &range, Flight::ready(Arc::new(bytes)));
        }
    }

    fn insert(&mut self, group: Group, range: &Range<u64>, flight: Arc<Flight>) {
        self.tick += 1;
        let place = (group, range.start);
        self.slots.insert(place, Slot { end: range.end, flight, tick: self.tick });
        self.order.insert(self.tick, place);
        self.bytes += range.end - range.start;
        self.evict();
    }

    /// Forgets a segment whose flight failed, so that the next who wants it tries anew.
    pub(crate) fn forget(&mut self, group: Group, part: &Part) {
        let place = (group, part.range.start);
        if self.slots.get(&place).is_some_and(|slot| Arc::ptr_eq(&slot.flight, &part.flight)) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: Place) {
        if let Some(slot) = self.slots.remove(&place) {
            self.order.remove(&slot.tick);
            self.bytes -= slot.end - place.1;
        }
    }

    /// Lets the least recently used go until the rest fits. What is on its way stays: somebody waits for it.
    fn evict(&mut self) {
        let mut over = self.bytes.saturating_sub(self.limit);
        let mut victims = Vec::new();
        for place in self.order.values() {
            if over == 0 {
                break;
            }
            if let Some(slot) = self.slots.get(place).filter(|slot| slot.flight.is_done()) {
                over = over.saturating_sub(slot.end - place.1);
                victims.push(*place);
            }
        }
        victims.into_iter().for_each(|place| self.remove(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(cache: &mut Cache, group: Group, range: Range<u64>) -> Vec<Range<u64>> {
        cache.present(group, &range).into_iter().map(|p| p.range).collect()
    }

    #[test]
    fn segments_are_found_by_any_overlap_and_only_in_their_group() {
        let mut cache = Cache { limit: 1000, ..Cache::default() };
        let (a, b) = (Group::unique(), Group::unique());
        cache.keep(a, 10, vec![0; 10]);
        cache.keep(a, 30, vec![0; 10]);
        cache.keep(b, 0, vec![0; 100]);
        assert_eq!(kept(&mut cache, a, 0..10), []);
        assert_eq!(kept(&mut cache, a, 19..31), [10..20, 30..40]);
        let parts = cache.present(a, &(5..50));
        assert_eq!(Cache::missing(&(5..50), &parts), [5..10, 20..30, 40..50]);
        cache.keep(a, 15, vec![0; 3]);
        assert_eq!(kept(&mut cache, a, 0..100), [10..20, 30..40]);
    }

    #[test]
    fn the_least_recently_used_goes_first_and_what_is_awaited_stays() {
        let mut cache = Cache { limit: 25, ..Cache::default() };
        let group = Group::unique();
        let (promise, part) = cache.reserve(group, &(0..10));
        cache.keep(group, 10, vec![0; 10]);
        cache.keep(group, 20, vec![0; 10]);
        assert_eq!(kept(&mut cache, group, 0..100), [0..10, 20..30]);
        promise.keep(Ok(vec![0; 10]));
        cache.present(group, &(0..1));
        cache.keep(group, 40, vec![0; 10]);
        assert_eq!(kept(&mut cache, group, 0..100), [0..10, 40..50]);
        cache.forget(group, &part);
        assert_eq!(kept(&mut cache, group, 0..100).first(), Some(&(40..50)));
        assert_eq!(cache.bytes, 10);
    }
}
