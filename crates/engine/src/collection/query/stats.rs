//! What a query of a collection did so far.

use std::sync::{MutexGuard, PoisonError};

use super::*;

/// What a query over a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CollectionStats {
    /// Objects that the catalog left.
    pub objects: u64,
    /// Sources that hold them.
    pub sources: u64,
    /// Objects whose data were evaluated.
    pub evaluated: u64,
    /// Objects that lack an array of the query: they have no hits.
    pub lacking: u64,
    /// Rows, once known.
    pub hits: Option<u64>,
    /// Sources that were opened.
    pub sources_opened: u64,
    /// Bytes read of sources.
    pub bytes_read: u64,
    /// Requests to sources.
    pub requests: u64,
    /// Seconds for asking the catalog.
    pub catalog_seconds: f64,
    /// Seconds for opening and evaluating.
    pub run_seconds: f64,
}

impl Inner {
    pub(super) fn lock_stats(&self) -> MutexGuard<'_, CollectionStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, walk: &Walk, started: Instant, evaluated: u64, lacking: u64) {
        let mut stats = self.lock_stats();
        stats.run_seconds += started.elapsed().as_secs_f64();
        (stats.evaluated, stats.lacking) = (evaluated, lacking);
        stats.sources_opened = walk.traffic.sources_opened;
        (stats.bytes_read, stats.requests) = (walk.traffic.bytes_read, walk.traffic.requests);
    }
}
