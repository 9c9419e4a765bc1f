//! Large pieces of memory, in large pages where the system gives some: clearing and mapping 4 KiB at a time takes longer
//! than writing the values of a result.

use std::alloc::{Layout, alloc_zeroed};

/// Pieces of fewer bytes are not worth a call.
const LEAST: usize = 4 << 20;
/// Bytes of a large page.
const PAGE: usize = 2 << 20;

/// An empty vector with room for `n` values.
pub fn with_room<T>(n: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(n);
    let room = values.spare_capacity_mut();
    ask_for_large_pages(room.as_mut_ptr().cast(), size_of_val(room));
    values
}

/// A copy of `values`.
pub fn copy_of<T: Clone>(values: &[T]) -> Vec<T> {
    let mut copy = with_room(values.len());
    copy.extend_from_slice(values);
    copy
}

/// So many zeros.
pub fn zeros<T: crate::Element + Default>(n: usize) -> Vec<T> {
    // The allocator has cleared pages of the system for this, which nobody has written to so far.
    let mut values = vec![T::default(); n];
    ask_for_large_pages(values.as_mut_ptr().cast(), size_of_val(&values[..]));
    values
}

/// The same; `None` where the system has no such memory.
pub fn try_zeros<T: crate::Element + Default>(n: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(n).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout is of some bytes.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    ask_for_large_pages(start, layout.size());
    // SAFETY: the allocator of vectors gave it, with the layout of `n` elements; zeros are values of each of them.
    Some(unsafe { Vec::from_raw_parts(start.cast(), n, n) })
}

/// Asks for large pages for bytes that nobody has written to so far.
pub fn in_large_pages(fresh: &mut [u8]) {
    ask_for_large_pages(fresh.as_mut_ptr(), fresh.len());
}

/// Asks for large pages where these bytes of ours are written for the first time; a system that has none gives small ones.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(start: *mut u8, bytes: usize) {
    let skipped = start.align_offset(PAGE);
    let whole = bytes.saturating_sub(skipped) / PAGE * PAGE;
    if bytes < LEAST || whole == 0 {
        return;
    }
    // SAFETY: the advice changes nothing of what pages hold; where they are not mapped it is refused.
    unsafe {
        libc::madvise(start.wrapping_add(skipped).cast(), whole, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pieces_are_like_small_ones() {
        for n in [0, 1, 1000, 600_000, 3_000_001] {
            assert_eq!(zeros::<f64>(n), vec![0.0; n]);
            assert_eq!(try_zeros::<f64>(n).unwrap(), vec![0.0; n]);
            let numbers: Vec<u16> = (0..n).map(|i| i as u16).collect();
            assert_eq!(copy_of(&numbers), numbers);
            let room = with_room::<u64>(n);
            assert!(room.is_empty() && room.capacity() >= n);
        }
        assert!(try_zeros::<u64>(usize::MAX / 4).is_none() && try_zeros::<u64>(1 << 59).is_none());
    }
}
