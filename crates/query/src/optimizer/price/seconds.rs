//! Seconds: of reading, by costs that are learnt, and of what is done with rows, by what it took when it was measured.

use super::{Expected, UNBOUNDED};
use crate::bind::Body;
use crate::exec::{Execution, wanted_first};
use crate::optimizer::PhysicalPlan;

/// Nanoseconds of putting a row in order, for each time that twice as many rows are; of keeping the first ones alone; and of
/// fetching a row that lies anywhere.
const SORTED: f64 = 8.0;
const KEPT_FIRST: f64 = 0.5;
const ANYWHERE: f64 = 40.0;
/// Nanoseconds of looking whether a row was met before, and of keeping one that was not.
const COMPARED: f64 = 90.0;
const KEPT_DISTINCT: f64 = 500.0;

impl Execution {
    /// Seconds of reading and of the work on rows; `work` are requests and bytes: the least, about, the most.
    pub(super) fn seconds(
        &self,
        plan: &PhysicalPlan,
        work: [(u64, u64); 3],
        (hits, rows): (Expected<u64>, Expected<u64>),
    ) -> Expected<f64> {
        let chunked = plan.fetch.iter().any(|p| self.readers[p.array].layout().is_chunked())
            || self.readers.iter().any(|r| r.layout().is_chunked());
        let costs = if chunked { &self.indexes.costs.chunked } else { &self.indexes.costs.direct };
        let [low, expected, high] = work.map(|(requests, bytes)| costs.price(requests, bytes) / 1e9);
        let is_bounded = work[2].0 != UNBOUNDED && work[2].1 != UNBOUNDED;
        let expected = expected + self.row_seconds(hits.expected, rows.expected);
        let most = high + self.row_seconds(hits.high, rows.high);
        let high = if is_bounded { most.max(expected) } else { f64::INFINITY };
        Expected { low: low / self.options.threads as f64, expected, high }
    }

    /// Seconds of ORDER BY and DISTINCT over so many positions, of which so many rows are left.
    fn row_seconds(&self, hits: u64, rows: u64) -> f64 {
        let (bound, hits, rows) = (&self.bound, hits as f64, rows as f64);
        if !matches!(bound.body, Body::Rows) {
            return 0.0;
        }
        let mut each = 0.0;
        if bound.distinct {
            each += hits * COMPARED + rows.min(hits) * KEPT_DISTINCT;
        }
        if !bound.order_by.is_empty() {
            let sorted = if bound.distinct { rows } else { hits };
            each += match wanted_first(self) {
                Some(_) => hits * KEPT_FIRST,
                None => sorted * SORTED * sorted.max(2.0).log2(),
            };
            each += rows * ANYWHERE;
        }
        each / 1e9
    }
}
