//! Histograms: of a whole array from what is kept of it, and of the hits of a query.

use std::ffi::c_char;

use sieva::Result;

use crate::given::{self, Out, copy_out};
use crate::query::QueryHandle;
use crate::source::{SourceHandle, opened};
use crate::status::{guarded, invalid};

/// `sieva_histogram`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_histogram(
    source: *const SourceHandle,
    array: *const c_char,
    capacity: u64,
    counts: *mut u64,
    edges: *mut f64,
    bins: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(bins, "bins")?;
        // SAFETY: the promises of sieva.h.
        let (source, array) = unsafe { (opened(source)?, given::text(array, "array")?) };
        let histogram = source.source.global_histogram(array)?;
        let (own, own_edges) = (histogram.counts(), histogram.edges());
        // SAFETY: as above.
        unsafe { out.set(own.len() as u64) };
        if counts.is_null() && edges.is_null() && capacity == 0 {
            return Ok(());
        }
        if own.len() as u64 > capacity {
            return Err(invalid(format!("room for {capacity} bins, {} are needed", own.len())));
        }
        // SAFETY: as above; `edges` has room for one more than `counts`.
        unsafe { put(&own, &own_edges, counts, edges) }
    })
}

/// `sieva_query_histogram`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_histogram(
    query: *const QueryHandle,
    array: *const c_char,
    bins: u64,
    counts: *mut u64,
    edges: *mut f64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (query, array) = unsafe { (given::handle(query, "query")?, given::text(array, "array")?) };
        let bins = room(bins, counts, edges)?;
        let value = query.file()?.value(array)?.to_string();
        let (own, own_edges) = query.bound_of_file()?.histogram(&value, bins)?;
        // SAFETY: as above.
        unsafe { put(&own, &own_edges, counts, edges) }
    })
}

/// The number of bins, for which the caller has room.
///
/// # Errors
/// `invalid-value` for NULL, and for more than memory has.
pub fn room(bins: u64, counts: *mut u64, edges: *mut f64) -> Result<usize> {
    if counts.is_null() || edges.is_null() {
        return Err(invalid(format!("counts or edges is NULL: room for {bins} and one more is needed")));
    }
    given::in_memory::<u64>(bins, "counts")
}

/// Copies a histogram out.
///
/// # Errors
/// `invalid-value` for NULL.
///
/// # Safety
/// There must be room for all counts, and for one edge more.
pub unsafe fn put(counts: &[u64], edges: &[f64], to_counts: *mut u64, to_edges: *mut f64) -> Result<()> {
    if to_counts.is_null() || (to_edges.is_null() && !edges.is_empty()) {
        return Err(invalid("counts or edges is NULL"));
    }
    // SAFETY: the caller's promise.
    unsafe {
        copy_out(counts, to_counts, u64::MAX, "counts")?;
        copy_out(edges, to_edges, u64::MAX, "edges")
    }
}
