//! Order-preserving integer keys of stored values, and sets of stored values as intervals of keys.
//!
//! Integers are their own keys. A float's key orders as its value does, -0.0 just below 0.0; NaN has none.

use crate::DType;

/// Key of a float: the bits, with the negative half mirrored, so that keys order as values do.
/// -0.0 and 0.0 have neighbouring keys.
pub fn f64_key(x: f64) -> i128 {
    let bits = x.to_bits() as i64;
    i128::from(bits ^ (((bits >> 63) as u64) >> 1) as i64)
}

/// The float of a key.
pub fn f64_of_key(key: i128) -> f64 {
    let bits = key as i64;
    f64::from_bits((bits ^ (((bits >> 63) as u64) >> 1) as i64) as u64)
}

/// As [`f64_key`].
pub fn f32_key(x: f32) -> i128 {
    let bits = x.to_bits() as i32;
    i128::from(bits ^ (((bits >> 31) as u32) >> 1) as i32)
}

/// The float of a key.
pub fn f32_of_key(key: i128) -> f32 {
    let bits = key as i32;
    f32::from_bits((bits ^ (((bits >> 31) as u32) >> 1) as i32) as u32)
}

/// Smallest and largest key of a stored type: all values but NaN.
pub fn key_range(dtype: DType) -> (i128, i128) {
    match dtype {
        DType::Bool => (0, 1),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I64 => (i64::MIN.into(), i64::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::U64 => (0, u64::MAX.into()),
        DType::F16 | DType::F32 => (f32_key(f32::NEG_INFINITY), f32_key(f32::INFINITY)),
        DType::F64 => (f64_key(f64::NEG_INFINITY), f64_key(f64::INFINITY)),
        DType::Str => (0, -1),
    }
}

/// A set of stored values: disjoint, sorted, closed key intervals, and NaN or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet {
    /// Intervals, both ends included.
    pub ranges: Vec<(i128, i128)>,
    /// Whether NaN belongs to it.
    pub nan: bool,
}

impl KeySet {
    /// The empty set.
    pub const EMPTY: KeySet = KeySet { ranges: Vec::new(), nan: false };

    /// The values of the keys `low..=high`; none if `low > high`.
    pub fn interval(low: i128, high: i128) -> Self {
        Self { ranges: if low <= high { vec![(low, high)] } else { Vec::new() }, nan: false }
    }

    /// Whether nothing belongs to it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.nan
    }

    /// Whether the value of this key belongs to it.
    pub fn contains(&self, key: i128) -> bool {
        let at = self.ranges.partition_point(|r| r.1 < key);
        self.ranges.get(at).is_some_and(|r| r.0 <= key)
    }

    /// Values in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all: Vec<_> = self.ranges.iter().chain(&other.ranges).copied().collect();
        all.sort_unstable();
        let mut ranges: Vec<(i128, i128)> = Vec::with_capacity(all.len());
        for (low, high) in all {
            match ranges.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => ranges.push((low, high)),
            }
        }
        Self { ranges, nan: self.nan || other.nan }
    }

    /// Values in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut i, mut j, mut ranges) = (0, 0, Vec::new());
        while i < self.ranges.len() && j < other.ranges.len() {
            let (a, b) = (self.ranges[i], other.ranges[j]);
            let (low, high) = (a.0.max(b.0), a.1.min(b.1));
            if low <= high {
                ranges.push((low, high));
            }
            if a.1 < b.1 { i += 1 } else { j += 1 }
        }
        Self { ranges, nan: self.nan && other.nan }
    }

    /// Values of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut gaps = Vec::with_capacity(other.ranges.len() + 1);
        let mut low = i128::MIN;
        for &(a, b) in &other.ranges {
            gaps.push((low, a - 1));
            low = b + 1;
        }
        gaps.push((low, i128::MAX));
        self.intersection(&Self { ranges: gaps, nan: !other.nan })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_keep_the_order_of_floats() {
        let values = [f64::NEG_INFINITY, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, f64::INFINITY];
        assert!(values.windows(2).all(|w| f64_key(w[0]) < f64_key(w[1])));
        assert!(values.iter().all(|&v| f64_of_key(f64_key(v)).to_bits() == v.to_bits()));
        let narrow = values.map(|v| v as f32);
        assert!(narrow.iter().all(|&v| f32_of_key(f32_key(v)).to_bits() == v.to_bits()));
        assert_eq!(f64_key(0.0) - f64_key(-0.0), 1);
    }

    proptest! {
        #[test]
        fn set_operations_agree_with_membership(a in ranges(), b in ranges()) {
            let inside = |s: &KeySet, k: i128| s.ranges.iter().any(|r| r.0 <= k && k <= r.1);
            let (u, i, d) = (a.union(&b), a.intersection(&b), a.difference(&b));
            for k in -5..45 {
                prop_assert_eq!(inside(&u, k), inside(&a, k) || inside(&b, k));
                prop_assert_eq!(inside(&i, k), inside(&a, k) && inside(&b, k));
                prop_assert_eq!(inside(&d, k), inside(&a, k) && !inside(&b, k));
            }
        }
    }

    fn ranges() -> impl Strategy<Value = KeySet> {
        proptest::collection::vec((0..40_i128, 0..6_i128), 0..5)
            .prop_map(|v| v.into_iter().fold(KeySet::EMPTY, |s, (a, n)| s.union(&KeySet::interval(a, a + n))))
    }
}
