//! Rows that come back, and the bytes of their values.

use sieva_types::DType;

use super::{Expected, UNBOUNDED};
use crate::aggregate::Aggregate;
use crate::bind::{Body, DatePart, Value};
use crate::exec::Execution;
use crate::optimizer::{Bounds, PhysicalPlan};
use crate::values::ValueType;

/// Bytes of a text or a list, about.
const USUAL_WIDTH: u64 = 16;
/// Bytes of a date: a number of 64 bits, or a text where those do not reach.
const DATE_WIDTH: Bounds = (0, 64);

impl Execution {
    /// The rows that come back of so many selected positions.
    pub(super) fn rows_of(&self, plan: &PhysicalPlan, hits: Expected<u64>) -> Expected<u64> {
        let bound = &self.bound;
        let (low, about, high) = match &bound.body {
            Body::Groups { keys, .. } if keys.is_empty() => (1, 1, 1),
            Body::Groups { keys, .. } => self.different_rows(plan, keys.iter(), hits),
            Body::Rows if bound.distinct => {
                self.different_rows(plan, bound.outputs.iter().map(|o| &o.value), hits)
            }
            Body::Rows => (hits.low, hits.expected, hits.high),
        };
        let is_left_out = matches!(&bound.body, Body::Groups { having: Some(_), .. });
        let is_one = matches!(&bound.body, Body::Groups { .. }) && bound.distinct;
        let low = if is_left_out {
            0
        } else if is_one {
            low.min(1)
        } else {
            low
        };
        let window = |n: u64| n.saturating_sub(bound.offset).min(bound.limit.unwrap_or(u64::MAX));
        let (low, high) = (window(low), window(high));
        Expected { low, expected: window(about).clamp(low, high), high }
    }

    /// How many different combinations of values so many positions have: no more than the dimensions along which the values
    /// vary have positions, nor than there are of the values by their types.
    fn different_rows<'v>(
        &self,
        plan: &PhysicalPlan,
        values: impl Iterator<Item = &'v Value>,
        hits: Expected<u64>,
    ) -> (u64, u64, u64) {
        let along = |axes: &[usize]| axes.iter().fold(1_u64, |n, &a| n.saturating_mul(plan.area.shape[a]));
        let (mut all, mut by_value) = (Vec::new(), 1_u64);
        for value in values {
            let axes = self.bound.axes_of(value);
            by_value = by_value.saturating_mul(along(&axes).min(self.different_values(value)));
            all.extend(axes);
        }
        all.sort_unstable();
        all.dedup();
        let high = along(&all).min(by_value).min(hits.high);
        (hits.low.min(1), high.min(hits.expected.max(1)), high)
    }

    /// The most different values that there are, one that is missing among them.
    fn different_values(&self, value: &Value) -> u64 {
        match value {
            Value::Constant(_) => 1,
            Value::Date(part, _) => match part {
                DatePart::Year => u64::MAX,
                DatePart::Month => 13,
                DatePart::Day => 32,
                DatePart::Hour => 25,
                DatePart::Minute | DatePart::Second => 62,
                DatePart::DayOfYear => 367,
                DatePart::Quarter | DatePart::Season => 5,
            },
            Value::Array { array, .. } => {
                match self.source.schema().arrays[self.bound.arrays[*array].index].dtype {
                    DType::Bool => 3,
                    DType::I8 | DType::U8 => 257,
                    DType::I16 | DType::U16 => 65_537,
                    _ => u64::MAX,
                }
            }
            other if self.bound.type_of(other) == Some(ValueType::Bool) => 3,
            _ => u64::MAX,
        }
    }

    /// Bytes of the values of so many rows that come back.
    pub fn bytes_of_rows(&self, rows: Expected<u64>) -> Expected<u64> {
        let (mut low, mut about, mut high) = (0_u64, 0_u64, 0_u64);
        for output in &self.bound.outputs {
            let (least, most) = self.width(&output.value);
            // Texts and lists may be of any length.
            let usual = if most == UNBOUNDED { USUAL_WIDTH } else { most.min(8) };
            (low, about) = (low.saturating_add(least), about.saturating_add(usual.max(least)));
            high = high.saturating_add(most);
        }
        let of = |rows: u64, width: u64| rows.saturating_mul(width);
        let least = of(rows.low, low);
        Expected { low: least, expected: of(rows.expected, about).max(least), high: of(rows.high, high) }
    }

    /// Bytes of a value of a column: its number, and what says that it is there.
    fn width(&self, value: &Value) -> Bounds {
        // Keys of groups and extremes of dates come back as dates do.
        let within = match (value, &self.bound.body) {
            (Value::Key(n), Body::Groups { keys, .. }) => keys.get(*n),
            (Value::Aggregated(n), Body::Groups { aggregates, .. }) => match aggregates.get(*n) {
                Some((Aggregate::Min | Aggregate::Max, argument)) => argument.as_ref(),
                _ => None,
            },
            _ => None,
        };
        if let Some(Value::Array { array, raw: false }) = within
            && self.bound.arrays[*array].time.is_some()
        {
            return DATE_WIDTH;
        }
        if let Value::Array { array, raw } = value {
            let bound = &self.bound.arrays[*array];
            let info = &self.source.schema().arrays[bound.index];
            let dtype = if *raw { info.dtype } else { info.decoding.decoded() };
            return match dtype {
                DType::Str => (0, UNBOUNDED),
                DType::Bool => (0, 2),
                _ if bound.time.is_some() => DATE_WIDTH,
                other => (other.size() as u64, 1 + other.size().max(4) as u64),
            };
        }
        match self.bound.type_of(value) {
            Some(ValueType::Str) => (0, UNBOUNDED),
            Some(ValueType::Bool) => (0, 2),
            _ if self.is_list(value) => (0, UNBOUNDED),
            _ => (0, 9),
        }
    }

    /// Whether a value is a histogram.
    fn is_list(&self, value: &Value) -> bool {
        let (Value::Aggregated(n), Body::Groups { aggregates, .. }) = (value, &self.bound.body) else {
            return false;
        };
        !aggregates.get(*n).is_some_and(|(aggregate, _)| !matches!(aggregate, Aggregate::Histogram { .. }))
    }
}
