//! An allocator that counts: what is held now, and the most that was held at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    if held > PEAK.load(Relaxed) {
        PEAK.fetch_max(held, Relaxed);
    }
}

// SAFETY: every call is handed on to the system's allocator as it is; counting touches two atomics only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let place = unsafe { System.alloc(layout) };
        if !place.is_null() {
            grow(layout.size());
        }
        place
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let place = unsafe { System.alloc_zeroed(layout) };
        if !place.is_null() {
            grow(layout.size());
        }
        place
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        let place = unsafe { System.realloc(old, layout, size) };
        if !place.is_null() {
            grow(size);
            HELD.fetch_sub(layout.size(), Relaxed);
        }
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) };
        HELD.fetch_sub(layout.size(), Relaxed);
    }
}

/// Bytes that were held by `held` alone.
pub fn bytes_of<T>(held: T) -> u64 {
    let before = HELD.load(Relaxed);
    drop(held);
    before.saturating_sub(HELD.load(Relaxed)) as u64
}

/// What `work` gives, and the most that it held at once beyond what was held before.
pub fn peak_of<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let done = work();
    (done, PEAK.load(Relaxed).saturating_sub(before) as u64)
}
