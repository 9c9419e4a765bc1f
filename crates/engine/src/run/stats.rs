//! What a run of several queries did.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_query::exec::{Shared, Went};
use sieva_store::CountersSnapshot;

use crate::query::Query;

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Queries that were given.
    pub queries: u64,
    /// Of these, those that were evaluated together with others.
    pub together: u64,
    /// And by themselves.
    pub alone: u64,
    /// Times that data were gone through for several.
    pub scans: u64,
    /// Tiles that were evaluated for them, each for one query or more.
    pub tiles: u64,
    /// What queries asked for of arrays while tiles were evaluated together, and what was read for it.
    pub shared: Shared,
    /// Traffic of the sources of all queries.
    pub io: CountersSnapshot,
}

impl RunStats {
    pub(super) fn add(&mut self, went: Went, shared: Shared) {
        self.together += went.queries;
        self.scans += went.scans;
        self.tiles += went.tiles;
        self.shared.asked += shared.asked;
        self.shared.asked_bytes += shared.asked_bytes;
        self.shared.read += shared.read;
        self.shared.read_bytes += shared.read_bytes;
    }
}

/// The counters of some sources, each once.
pub(super) struct Traffic(Vec<(Arc<dyn ArraySource>, CountersSnapshot)>);

impl Traffic {
    /// Those of the sources of some queries, from now on.
    pub(super) fn begin(queries: &[&Query]) -> Self {
        let mut all: Vec<(Arc<dyn ArraySource>, CountersSnapshot)> = Vec::new();
        for query in queries {
            let reader = query.source().reader();
            if !all.iter().any(|(known, _)| Arc::ptr_eq(known, reader)) {
                all.push((Arc::clone(reader), reader.store().counters().snapshot()));
            }
        }
        Self(all)
    }

    /// What came to them.
    pub(super) fn so_far(&self) -> CountersSnapshot {
        let mut sum = CountersSnapshot::default();
        for (reader, before) in &self.0 {
            let own = reader.store().counters().snapshot().since(*before);
            sum.bytes_read += own.bytes_read;
            sum.requests += own.requests;
            sum.chunks_decoded += own.chunks_decoded;
            sum.library_reads += own.library_reads;
            sum.retries += own.retries;
            sum.cache_hits += own.cache_hits;
        }
        sum
    }
}
