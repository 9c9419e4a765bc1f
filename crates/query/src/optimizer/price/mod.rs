//! The price of a query: what giving back its whole result takes, told before it is run and without reading a value.
//!
//! Each quantity has bounds that hold and an expectation. The bounds suppose nothing of caches of decoded chunks: a query that
//! finds what it needs in memory reads less, never more. What cannot be bounded (over a network, through a library, objects
//! whose stored length is not known) says so by a bound of [`UNBOUNDED`].
//!
//! What is read at most is each chunk once for each part of the work that wants something of it: tiles of the condition and of
//! groups (`conditions`), and steps in which rows are fetched, or keys of ORDER BY (`fetch`).

mod conditions;
mod fetch;
mod rows;
mod seconds;

use sieva_types::Result;

use super::PhysicalPlan;
use super::cost_of_boxes::Cost;
use crate::bind::Value;
use crate::exec::Execution;

/// The upper bound of what has none.
pub const UNBOUNDED: u64 = u64::MAX;
/// Rows of a batch, if a query's are not asked for in another size.
const BATCH: u64 = 1 << 16;
/// Bytes of a request, about, where nothing is known of it.
const BLOCK: u64 = 1 << 20;

/// A quantity that is not known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected<T> {
    /// It is at least this,
    pub low: T,
    /// about this,
    pub expected: T,
    /// and at most this.
    pub high: T,
}

/// What a query takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Rows that come back.
    pub rows: Expected<u64>,
    /// Bytes read from the source.
    pub bytes_read: Expected<u64>,
    /// Bytes of the values that come back.
    pub bytes_returned: Expected<u64>,
    /// Requests for the bytes read.
    pub requests: Expected<u64>,
    /// Seconds: an estimate, its bounds too.
    pub seconds: Expected<f64>,
}

impl Price {
    /// Adds what another query takes, that is run after it.
    pub fn add(&mut self, other: &Self) {
        let plus = |a: &mut Expected<u64>, b: Expected<u64>| {
            a.low = a.low.saturating_add(b.low);
            a.expected = a.expected.saturating_add(b.expected);
            a.high = a.high.saturating_add(b.high);
        };
        plus(&mut self.rows, other.rows);
        plus(&mut self.bytes_read, other.bytes_read);
        plus(&mut self.bytes_returned, other.bytes_returned);
        plus(&mut self.requests, other.requests);
        let (s, more) = (&mut self.seconds, other.seconds);
        (s.low, s.expected, s.high) = (s.low + more.low, s.expected + more.expected, s.high + more.high);
    }
}

impl Execution {
    /// What giving back all rows takes, in batches of 65 536 rows or more.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn price(&self) -> Result<Price> {
        let plan = self.physical();
        let hits = self.hits(plan)?;
        let rows = self.rows_of(plan, hits);
        let share = hits.expected as f64 / plan.area.len().max(1) as f64;
        let mut most = Cost::default();
        self.add_first_stage(plan, &mut most);
        let (condition, about) = self.cost_of_conditions(plan, share);
        most.add(condition);
        let mut likely = most.min(about);
        // What dates mean is told by the ends of the whole coordinate.
        for output in &self.bound.outputs {
            if let Value::Array { array, .. } = output.value
                && self.bound.arrays[array].time.is_some()
            {
                most.add(self.cost_of_whole(array).times(2));
            }
        }
        let (fetched, about) = self.cost_of_result(plan, hits)?;
        most.add(fetched);
        likely.add(about);
        let likely = self.bounded(likely).min(most);
        let least = self.least_fetched(plan, rows.low);
        let bytes_read =
            Expected { low: least, expected: likely.bytes.max(least), high: most.bytes.max(least) };
        let requests =
            Expected { low: least.min(1), expected: likely.requests.max(least.min(1)), high: most.requests };
        let work = [(0, least), (requests.expected, bytes_read.expected), (most.requests, most.bytes)];
        let seconds = self.seconds(plan, work, (hits, rows));
        Ok(Price { rows, bytes_read, bytes_returned: self.bytes_of_rows(rows), requests, seconds })
    }

    /// Positions that are selected: as zone maps tell, and the first stage, where what it takes is in memory.
    fn hits(&self, plan: &PhysicalPlan) -> Result<Expected<u64>> {
        let ((low, high), likely) = match self.prepared_at_hand(plan)? {
            Some(prepared) => {
                let outlook = self.outlook(&prepared, &self.tiles(&prepared, &[]))?;
                let exact = crate::exec::product(&prepared).map(|n| (n, n));
                (exact.unwrap_or(outlook.rows), outlook.likely)
            }
            None => {
                let (outlook, bounds) = self.planned_rows(plan, &plan.tiles(self))?;
                (bounds, outlook.likely)
            }
        };
        Ok(Expected { low, expected: (likely.round() as u64).clamp(low, high), high })
    }

    /// What is likely where nothing bounds it (a network, several files): the elements as they are decoded, in blocks.
    fn bounded(&self, likely: Cost) -> Cost {
        let all = self.bound.arrays.iter().enumerate().map(|(array, bound)| {
            let shape = &self.source.schema().arrays[bound.index].shape;
            let elements = shape.iter().fold(1_u64, |n, &m| n.saturating_mul(m));
            elements.saturating_mul(self.element_bytes(array))
        });
        let bytes = all.fold(0_u64, u64::saturating_add);
        let is_known = |n: u64| n < UNBOUNDED >> 8;
        Cost {
            bytes: if is_known(likely.bytes) { likely.bytes } else { bytes },
            requests: if is_known(likely.requests) { likely.requests } else { bytes / BLOCK + 1 },
        }
    }
}
