//! What a query will do, and what it did.

use std::ffi::c_char;

use sieva::{CollectionStats, Result};

use crate::asked::{Asked, Bound};
use crate::given::{self, Out};
use crate::query::{QueryHandle, traffic};
use crate::status::{guarded, invalid};

/// `sieva_stats`. New fields come at the end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Stats {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Tiles evaluated by reading data.
    pub tiles_scanned: u64,
    /// Tiles decided without reading data.
    pub tiles_skipped: u64,
    /// Bytes read from the source since the query was bound.
    pub bytes_read: u64,
    /// Requests for them.
    pub requests: u64,
    /// Bytes of augmentations read.
    pub index_bytes_read: u64,
    /// Seconds for evaluating conditions.
    pub select_seconds: f64,
    /// How often the condition was evaluated.
    pub evaluations: u64,
    /// Chunks decoded of the source since the query was bound.
    pub chunks_decoded: u64,
}

impl Stats {
    fn of(query: &QueryHandle) -> Result<Self> {
        if let Asked::File(_) = &query.asked {
            return Ok(Self::of_file(&*query.bound_of_file()?));
        }
        let (before, now) = (query.before, traffic(&query.asked));
        let did = match query.bound_before() {
            Some(Bound::Collection(query)) => query.stats(),
            _ => CollectionStats::default(),
        };
        Ok(Self {
            bytes_read: now.0 - before.0,
            requests: now.1 - before.1,
            select_seconds: did.run_seconds,
            evaluations: u64::from(did.evaluated + did.lacking > 0),
            ..Self::default()
        })
    }

    fn of_file(query: &sieva::Query) -> Self {
        let did = query.stats();
        Self {
            size: 0,
            tiles_scanned: did.exec.tiles_scanned,
            tiles_skipped: did.exec.tiles_skipped,
            bytes_read: did.io.bytes_read,
            requests: did.io.requests,
            index_bytes_read: did.index.0,
            select_seconds: did.select_seconds,
            evaluations: did.evaluations,
            chunks_decoded: did.io.chunks_decoded,
        }
    }
}

/// `sieva_query_estimate`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_estimate(
    query: *const QueryHandle,
    low: *mut u64,
    high: *mut u64,
) -> i32 {
    guarded(|| {
        let (low, high) = (Out::new(low, "low")?, Out::new(high, "high")?);
        // SAFETY: the promises of sieva.h.
        let bounds = unsafe { given::handle(query, "query") }?.bound_of_file()?.estimate()?;
        // SAFETY: as above.
        unsafe {
            low.set(bounds.0);
            high.set(bounds.1);
        }
        Ok(())
    })
}

/// `sieva_price`: of each quantity the least, what is expected, and the most; UINT64_MAX is no bound. New fields come at
/// the end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Price {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Rows that come back.
    pub rows: [u64; 3],
    /// Bytes read from the source.
    pub bytes_read: [u64; 3],
    /// Bytes of the values that come back.
    pub bytes_returned: [u64; 3],
    /// Requests for the bytes read.
    pub requests: [u64; 3],
    /// Seconds, estimated.
    pub seconds: [f64; 3],
}

impl Price {
    /// The bytes of the caller's struct.
    ///
    /// # Errors
    /// `invalid-value` for NULL, and for an impossible size.
    ///
    /// # Safety
    /// A pointer that is not NULL must lead to as many bytes as its first field says.
    pub unsafe fn given_size(price: *const Self) -> Result<u64> {
        if price.is_null() {
            return Err(invalid("price is NULL: no place for the result"));
        }
        // SAFETY: the first field is there, by the caller's promise.
        let size = unsafe { price.cast::<u64>().read_unaligned() };
        if !(8..=4096).contains(&size) {
            return Err(invalid(format!("price of {size} bytes"))
                .hint("set its first field: sieva_price price = SIEVA_PRICE_INIT"));
        }
        Ok(size)
    }

    /// Writes what a query costs to the caller's struct of `size` bytes.
    ///
    /// # Errors
    /// Those of pricing.
    ///
    /// # Safety
    /// The struct must be valid for writing `size` bytes.
    pub unsafe fn put(query: &Bound, price: *mut Self, size: u64) -> Result<()> {
        let found = query.price()?;
        let count = |n: sieva::Expected<u64>| [n.low, n.expected, n.high];
        let own = Self {
            size,
            rows: count(found.rows),
            bytes_read: count(found.bytes_read),
            bytes_returned: count(found.bytes_returned),
            requests: count(found.requests),
            seconds: [found.seconds.low, found.seconds.expected, found.seconds.high],
        };
        let known = (size as usize).min(size_of::<Self>());
        // SAFETY: the caller's struct has `size` bytes, by its promise.
        unsafe { std::ptr::copy_nonoverlapping((&raw const own).cast::<u8>(), price.cast::<u8>(), known) };
        Ok(())
    }
}

/// `sieva_query_price`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_price(query: *const QueryHandle, price: *mut Price) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (query, size) = unsafe { (given::handle(query, "query")?, Price::given_size(price)?) };
        // SAFETY: as above.
        unsafe { Price::put(&query.bound()?, price, size) }
    })
}

/// `sieva_query_explain`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_explain(
    query: *const QueryHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let plan = unsafe { given::handle(query, "query") }?.bound()?.explain()?;
        // SAFETY: as above.
        unsafe { given::put_text(&plan, text, capacity, needed) }
    })
}

/// `sieva_query_stats`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_stats(query: *const QueryHandle, stats: *mut Stats) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let query = unsafe { given::handle(query, "query") }?;
        if stats.is_null() {
            return Err(invalid("stats is NULL: no place for the result"));
        }
        // SAFETY: the first field is there, by the caller's promise.
        let size = unsafe { stats.cast::<u64>().read_unaligned() };
        if !(8..=4096).contains(&size) {
            return Err(invalid(format!("stats of {size} bytes"))
                .hint("set their first field: sieva_stats stats = SIEVA_STATS_INIT"));
        }
        let own = Stats { size, ..Stats::of(query)? };
        let known = (size as usize).min(size_of::<Stats>());
        // SAFETY: the caller's struct has `size` bytes, by its promise.
        unsafe { std::ptr::copy_nonoverlapping((&raw const own).cast::<u8>(), stats.cast::<u8>(), known) };
        Ok(())
    })
}
