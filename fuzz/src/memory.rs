//! Bounded memory: asking for more than small inputs can need ends the process.
//!
//! libFuzzer's own limits see the memory that is touched, or need a sanitizer; a size that was believed is often
//! asked for and never touched.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::process::abort;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes asked for at once, at most.
const AT_ONCE: usize = 64 << 20;
/// Bytes in use, at most.
const IN_USE: usize = 256 << 20;

#[global_allocator]
static BOUNDED: Bounded = Bounded(AtomicUsize::new(0));

/// The system's allocator, with a count of the bytes in use.
struct Bounded(AtomicUsize);

impl Bounded {
    fn take(&self, bytes: usize) {
        let used = self.0.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        if bytes > AT_ONCE || used > IN_USE {
            // The message takes memory too.
            self.0.fetch_sub(bytes, Relaxed);
            let place = Backtrace::force_capture();
            eprintln!("{bytes} bytes asked for, {used} in use with them\n{place}");
            abort();
        }
    }
}

// SAFETY: all is done by the system's allocator; nothing unwinds.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.take(size);
        self.0.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}
