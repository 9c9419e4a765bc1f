//! The order of conditions: those first that leave the least for the least.

use crate::bind::{Condition, Value};
use crate::exec::Execution;

/// Share of positions that a condition of which nothing is known is taken to select.
const UNKNOWN: f64 = 0.5;
/// A condition that selects nearly all is worth this little.
const LEAST_GAIN: f64 = 0.01;

/// Puts conditions that must all hold in the order in which they are evaluated: those on fewer dimensions first.
pub(super) fn sort(execution: &Execution, parts: &mut [Condition]) {
    parts.sort_by_cached_key(|c| (execution.bound.condition_axes(c).len(), execution.rank(c) as u64));
}

impl Execution {
    /// The rank of a condition among others that must hold too: its cost for each position that it rules out.
    /// Evaluating in ascending order of it is cheapest where conditions are independent.
    pub(super) fn rank(&self, condition: &Condition) -> f64 {
        self.cost(condition) / (1.0 - self.selectivity(condition)).max(LEAST_GAIN)
    }

    /// What evaluating a condition costs, in nanoseconds: reading its arrays, and more if it is computed.
    fn cost(&self, condition: &Condition) -> f64 {
        let of_array = |array: usize| {
            let info = &self.source.schema().arrays[self.bound.arrays[array].index];
            let layout = self.readers[array].layout();
            let bytes = info.shape.iter().product::<u64>().saturating_mul(info.dtype.size().max(16) as u64);
            self.read_costs(array).price(bytes.div_ceil(layout.chunk_bytes.max(1)), bytes)
        };
        match condition {
            Condition::Always | Condition::Never | Condition::Position { .. } => 0.0,
            Condition::Stored { array, .. } => of_array(*array),
            Condition::All(parts) | Condition::Any(parts) => parts.iter().map(|p| self.cost(p)).sum(),
            Condition::Computed(value) => {
                let mut cost = 1.0;
                value.walk(&mut |v| {
                    if let Value::Array { array, .. } | Value::Date(_, array) = v {
                        cost += 4.0 * of_array(*array);
                    }
                });
                cost
            }
        }
    }

    /// The share of positions that a condition selects, estimated from histograms.
    pub(super) fn selectivity(&self, condition: &Condition) -> f64 {
        match condition {
            Condition::Always => 1.0,
            Condition::Never => 0.0,
            Condition::All(parts) => parts.iter().map(|p| self.selectivity(p)).product(),
            Condition::Any(parts) => 1.0 - parts.iter().map(|p| 1.0 - self.selectivity(p)).product::<f64>(),
            Condition::Stored { array, raw, set } => {
                self.zones(*array, *raw).and_then(|index| index.share(set)).unwrap_or(UNKNOWN)
            }
            Condition::Position { dim, ranges } => {
                let axis = self.bound.rows.axis(*dim).unwrap_or_default();
                let kept: u64 = ranges.iter().map(|(a, b)| b.saturating_sub(*a)).sum();
                kept as f64 / self.bound.rows.shape[axis].max(1) as f64
            }
            Condition::Computed(_) => UNKNOWN,
        }
    }
}
