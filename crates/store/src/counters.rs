//! What was read: counters that many threads add to.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Counters of a source's data path. Cheap to add to from many threads.
#[derive(Debug, Default)]
pub struct Counters {
    own: Arc<Totals>,
    /// Those of the objects that this one is made of.
    others: Mutex<Vec<Arc<Totals>>>,
}

#[derive(Debug, Default)]
struct Totals {
    bytes_read: AtomicU64,
    requests: AtomicU64,
    chunks_decoded: AtomicU64,
    library_reads: AtomicU64,
    retries: AtomicU64,
    cache_hits: AtomicU64,
    plan_nanoseconds: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountersSnapshot {
    /// Bytes asked of the storage.
    pub bytes_read: u64,
    /// Range requests made.
    pub requests: u64,
    /// Chunks decoded by our own reader.
    pub chunks_decoded: u64,
    /// Blocks read through a format's own library because our reader could not decode them.
    pub library_reads: u64,
    /// Requests over a network that repeated one which had failed; they are among `requests`.
    pub retries: u64,
    /// Reads of a remote object that needed no request of their own.
    pub cache_hits: u64,
    /// Time that batches of reads took until it was known what is read for whom.
    pub plan_nanoseconds: u64,
}

impl Counters {
    /// Counts one request of `bytes`.
    pub fn add_request(&self, bytes: u64) {
        self.own.bytes_read.fetch_add(bytes, Relaxed);
        self.own.requests.fetch_add(1, Relaxed);
    }

    /// Counts bytes that came for a request counted before.
    pub fn add_bytes(&self, bytes: u64) {
        self.own.bytes_read.fetch_add(bytes, Relaxed);
    }

    /// Counts one request made anew after a failure; the request itself is counted by [`Counters::add_request`].
    pub fn add_retry(&self) {
        self.own.retries.fetch_add(1, Relaxed);
    }

    /// Counts one read answered from what was fetched before.
    pub fn add_cache_hit(&self) {
        self.own.cache_hits.fetch_add(1, Relaxed);
    }

    /// Counts one chunk decoded.
    pub fn add_chunk(&self) {
        self.own.chunks_decoded.fetch_add(1, Relaxed);
    }

    /// Counts time that a batch of reads took to be planned.
    pub fn add_planning(&self, took: Duration) {
        self.own.plan_nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Counts one block of `bytes` read through a library.
    pub fn add_library_read(&self, bytes: u64) {
        self.own.bytes_read.fetch_add(bytes, Relaxed);
        self.own.library_reads.fetch_add(1, Relaxed);
    }

    /// Counts what another counter counts from now on as well; what it has counted before, too.
    pub fn include(&self, other: &Counters) {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&other.own));
    }

    /// The values now.
    pub fn snapshot(&self) -> CountersSnapshot {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = CountersSnapshot::default();
        for t in others.iter().chain([&self.own]) {
            all.bytes_read += t.bytes_read.load(Relaxed);
            all.requests += t.requests.load(Relaxed);
            all.chunks_decoded += t.chunks_decoded.load(Relaxed);
            all.library_reads += t.library_reads.load(Relaxed);
            all.retries += t.retries.load(Relaxed);
            all.cache_hits += t.cache_hits.load(Relaxed);
            all.plan_nanoseconds += t.plan_nanoseconds.load(Relaxed);
        }
        all
    }
}

impl CountersSnapshot {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: CountersSnapshot) -> CountersSnapshot {
        CountersSnapshot {
            bytes_read: self.bytes_read - earlier.bytes_read,
            requests: self.requests - earlier.requests,
            chunks_decoded: self.chunks_decoded - earlier.chunks_decoded,
            library_reads: self.library_reads - earlier.library_reads,
            retries: self.retries - earlier.retries,
            cache_hits: self.cache_hits - earlier.cache_hits,
            plan_nanoseconds: self.plan_nanoseconds - earlier.plan_nanoseconds,
        }
    }
}
