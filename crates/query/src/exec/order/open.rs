//! What the first key's array tells before its values are decoded.

use sieva_format::decoding::Number;
use sieva_types::keys::f64_of_key;
use sieva_types::{Bx, DType, KeySet};

use super::encoded::FirstNumber;
use super::top::RowBound;
use crate::bind::Value;
use crate::exec::Execution;
use crate::raw::{Comparison, StoredDomain};

/// A first key that is an array's value, of numbers.
#[derive(Clone, Copy, Debug)]
pub struct FirstKey {
    /// The bound array.
    pub array: usize,
    /// As stored.
    pub raw: bool,
    descending: bool,
    nulls_first: bool,
    /// Whether it is the only key.
    is_only: bool,
}

impl FirstKey {
    /// That of a query; `None` where it is something else.
    pub fn of(execution: &Execution) -> Option<Self> {
        let keys = &execution.bound.order_by;
        let key = keys.first()?;
        let Value::Array { array, raw } = key.value else { return None };
        let dtype = execution.source.schema().arrays[execution.bound.arrays[array].index].dtype;
        // Of bool any byte but 0 is true.
        let is_number = !matches!(dtype, DType::Str | DType::Bool);
        let (descending, nulls_first) = (key.descending, key.nulls_first);
        is_number.then_some(Self { array, raw, descending, nulls_first, is_only: keys.len() == 1 })
    }

    fn domain<'e>(&self, execution: &'e Execution) -> &'e StoredDomain {
        let bound = &execution.bound.arrays[self.array];
        if self.raw { &bound.raw_domain } else { &bound.domain }
    }

    /// The stored values with which a row at `from` or behind may come before `bound`; `None`: any.
    pub fn open(&self, execution: &Execution, bound: &RowBound, from: u64) -> Option<KeySet> {
        let domain = self.domain(execution);
        // A row with the same keys comes before it only where its position does.
        let is_strict = self.is_only && from > bound.position;
        let place = match FirstNumber::of(&bound.keys, self.descending)? {
            FirstNumber::Missing => {
                return match (self.nulls_first, is_strict) {
                    (true, true) => Some(KeySet::EMPTY),
                    (true, false) => Some(domain.missing().clone()),
                    (false, true) => Some(domain.present()),
                    (false, false) => None,
                };
            }
            FirstNumber::Place(place) => place,
        };
        let op = match (self.descending, is_strict) {
            (false, false) => Comparison::LessEqual,
            (false, true) => Comparison::Less,
            (true, false) => Comparison::GreaterEqual,
            (true, true) => Comparison::Greater,
        };
        let open = domain.satisfying(op, number(domain, place));
        Some(if self.nulls_first { open.union(domain.missing()) } else { open })
    }

    /// What a box promises: the less, the sooner it is looked at. Those of which nothing is known come last.
    pub fn promise(&self, execution: &Execution, bx: &Bx) -> (u8, i128) {
        let Some(index) = execution.zones(self.array, self.raw) else { return (2, 0) };
        let is_falling = self.domain(execution).packing().is_some_and(|(scale, _)| scale < 0.0);
        let from_high = self.descending != is_falling;
        let mut best = (1, i128::MAX);
        for region in index.grid().touched(&execution.own_box(self.array, bx)) {
            let Some(stats) = index.stats(region) else { return (2, 0) };
            if self.nulls_first && stats.present() < stats.rows {
                return (0, 0);
            }
            if let Some((low, high)) = stats.bounds {
                best = best.min((1, if from_high { -high } else { low }));
            }
        }
        best
    }
}

/// The decoded number whose place in the order of its type this is.
fn number(domain: &StoredDomain, place: u64) -> Number {
    if domain.packing().is_some() || domain.dtype().is_float() {
        return Number::Float(f64_of_key(i128::from((place ^ (1 << 63)) as i64)));
    }
    match domain.dtype() {
        DType::U64 => Number::Int(place.into()),
        _ => Number::Int(i128::from((place ^ (1 << 63)) as i64)),
    }
}
