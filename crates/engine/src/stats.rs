//! What a query did: counters and seconds by phase.

use std::time::Instant;

use sieva_query::exec::ExecStats;
use sieva_store::CountersSnapshot;

/// The parts of a query's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Parsing and binding.
    Bind,
    /// Evaluating the condition, and groups while scanning.
    Select,
    /// Fetching values.
    Fetch,
}

/// What a query did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryStats {
    /// Rows or positions found, once known.
    pub hits: Option<u64>,
    /// Tiles evaluated by reading, and decided without.
    pub exec: ExecStats,
    /// How often the condition was evaluated by testing tiles or through a replica: once, unless what counting found took
    /// more memory than it may, or LIMIT ended an evaluation.
    pub evaluations: u64,
    /// Traffic of the source.
    pub io: CountersSnapshot,
    /// Bytes and requests of its augmentations.
    pub index: (u64, u64),
    /// Seconds for opening the source.
    pub open_seconds: f64,
    /// Seconds for parsing and binding.
    pub bind_seconds: f64,
    /// Seconds for evaluating the condition.
    pub select_seconds: f64,
    /// Seconds for fetching values.
    pub fetch_seconds: f64,
}

impl QueryStats {
    /// Notes what an evaluation of the condition did. One that found all known beforehand is none.
    pub(crate) fn evaluation(&mut self, did: ExecStats) {
        self.exec = did;
        self.evaluations += u64::from(did.tiles_scanned > 0 || did.by_replica > 0);
    }

    /// Adds the seconds since `started` to a phase.
    pub fn add(&mut self, phase: Phase, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        match phase {
            Phase::Bind => self.bind_seconds += seconds,
            Phase::Select => self.select_seconds += seconds,
            Phase::Fetch => self.fetch_seconds += seconds,
        }
    }
}
