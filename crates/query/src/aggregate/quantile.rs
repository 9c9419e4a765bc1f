//! Quantiles: exact, so all values are kept until the end.

use crate::values::ValueType;

/// The values of a quantile; integers as they are.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    I64(Vec<i64>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

impl Kept {
    pub(super) fn new(input: ValueType) -> Self {
        match input {
            ValueType::U64 => Self::U64(Vec::new()),
            ValueType::F64 => Self::F64(Vec::new()),
            // Bool counts as 0 and 1; text was refused.
            ValueType::Bool | ValueType::I64 | ValueType::Str => Self::I64(Vec::new()),
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::I64(to), Self::I64(from)) => to.extend(from),
            (Self::U64(to), Self::U64(from)) => to.extend(from),
            (Self::F64(to), Self::F64(from)) => to.extend(from),
            // All values of a state are of one type.
            _ => {}
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let capacity = match self {
            Self::I64(v) => v.capacity(),
            Self::U64(v) => v.capacity(),
            Self::F64(v) => v.capacity(),
        };
        capacity * 8
    }

    /// The quantile of probability `q`, by numpy's method `linear`, its rounding included.
    pub(super) fn quantile(self, q: f64) -> Option<f64> {
        let ordered = |n: usize| {
            // The place among the sorted values, which the neighbours are weighted by.
            let place = (n - 1) as f64 * q;
            (place.floor() as usize, place.fract())
        };
        match self {
            Self::I64(v) => neighbours(v, ordered, Ord::cmp)
                .map(|(a, b, t)| between(a as f64, b as f64, (i128::from(b) - i128::from(a)) as f64, t)),
            Self::U64(v) => neighbours(v, ordered, Ord::cmp)
                .map(|(a, b, t)| between(a as f64, b as f64, (b - a) as f64, t)),
            Self::F64(v) => neighbours(v, ordered, f64::total_cmp).map(|(a, b, t)| between(a, b, b - a, t)),
        }
    }

    /// The middle value, or the mean of the two middle ones; this is numpy's `median`, which can differ in the
    /// last bit from its quantile of 0.5.
    pub(super) fn median(self) -> Option<f64> {
        let middle = |n: usize| ((n - 1) / 2, if n % 2 == 1 { 0.0 } else { 0.5 });
        let (a, b, t) = match self {
            Self::I64(v) => neighbours(v, middle, Ord::cmp).map(|(a, b, t)| (a as f64, b as f64, t))?,
            Self::U64(v) => neighbours(v, middle, Ord::cmp).map(|(a, b, t)| (a as f64, b as f64, t))?,
            Self::F64(v) => neighbours(v, middle, f64::total_cmp)?,
        };
        Some(if t == 0.0 { a } else { (a + b) / 2.0 })
    }
}

/// The values at a place of the sorted order and at the next one (the same at the end), and the weight of the
/// next one. `place` gives the first place and the weight for a number of values.
fn neighbours<T: Copy>(
    mut values: Vec<T>,
    place: impl Fn(usize) -> (usize, f64),
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Option<(T, T, f64)> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (at, weight) = place(n);
    let (_, &mut a, above) = values.select_nth_unstable_by(at.min(n - 1), &order);
    let b = above.iter().copied().min_by(&order).unwrap_or(a);
    Some((a, b, weight))
}

/// numpy's interpolation: from the nearer end, so that it is monotonic and meets both ends. As in numpy the
/// result is NaN where an infinity has no weight or meets another one.
fn between(a: f64, b: f64, difference: f64, t: f64) -> f64 {
    if t >= 0.5 { b - difference * (1.0 - t) } else { a + difference * t }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantile(values: &[f64], q: f64) -> Option<f64> {
        Kept::F64(values.to_vec()).quantile(q)
    }

    /// What numpy 2.4 gives.
    #[test]
    fn quantiles_are_numpys() {
        let x = [3.0, 1.0, 2.0, 10.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.9, 7.900000000000001), (1.0, 10.0)] {
            assert_eq!(quantile(&x, q), Some(expected), "{q}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.3), Some(7.0));
        assert_eq!(Kept::I64(vec![1, 2]).quantile(0.75), Some(1.75));
        assert_eq!(quantile(&[1.0, f64::INFINITY], 0.25), Some(f64::INFINITY));
        assert!(quantile(&[1.0, f64::INFINITY], 0.0).unwrap().is_nan());
    }

    #[test]
    fn integers_keep_their_distance() {
        assert_eq!(Kept::I64(vec![i64::MIN, i64::MAX]).quantile(0.5), Some(0.0));
        assert_eq!(Kept::U64(vec![u64::MAX, u64::MAX - 2]).quantile(1.0), Some(u64::MAX as f64));
    }

    #[test]
    fn medians() {
        let median = |v: &[f64]| Kept::F64(v.to_vec()).median();
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[1.0, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median(&[]), None);
        assert_eq!(Kept::I64(vec![1, 4]).median(), Some(2.5));
        assert_eq!(Kept::U64(vec![5]).median(), Some(5.0));
    }
}
