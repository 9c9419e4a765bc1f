//! Ordinals: the keys of a stored type shifted to unsigned integers that loops can work on.
//!
//! Types of up to 32 bits have 32-bit ordinals, wider ones 64-bit ordinals; NaN has the greatest of all.

use sieva_types::{DType, keys::key_range};

use crate::Elements;

/// An ordinal in the width of its type.
pub(super) trait Ordinal: Copy + Ord + Send + Sync + 'static {
    /// The narrowing of a number that fits.
    fn new(value: u64) -> Self;
    /// The number.
    fn get(self) -> u64;
    /// `self - low <= span` where differences wrap around: whether it lies in `low..=low + span`.
    fn within(self, low: Self, span: Self) -> bool;
}

macro_rules! ordinal {
    ($($t:ty),*) => {$(
        impl Ordinal for $t {
            #[inline(always)]
            fn new(value: u64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn get(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn within(self, low: Self, span: Self) -> bool {
                self.wrapping_sub(low) <= span
            }
        }
    )*};
}
ordinal!(u32, u64);

/// What the numbers of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Single,
    Double,
}

/// How the ordinals of a type lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub kind: Kind,
    /// The ordinal of (positive) zero; key = ordinal - zero.
    pub zero: u64,
    /// Ordinals of the least and the greatest value, infinities included.
    pub first: u64,
    pub last: u64,
}

impl Scale {
    /// That of a type; texts have none.
    pub(super) fn of(dtype: DType) -> Option<Self> {
        let (kind, zero) = match dtype {
            DType::I8 | DType::I16 | DType::I32 => (Kind::Integer, 1 << 31),
            DType::I64 => (Kind::Integer, 1 << 63),
            DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => (Kind::Integer, 0),
            DType::F16 | DType::F32 => (Kind::Single, 1 << 31),
            DType::F64 => (Kind::Double, 1 << 63),
            DType::Str => return None,
        };
        // Truths come as bytes, whatever these hold.
        let (low, high) = key_range(if dtype == DType::Bool { DType::U8 } else { dtype });
        let ordinal = |key: i128| (key + i128::from(zero)) as u64;
        Some(Self { kind, zero, first: ordinal(low), last: ordinal(high) })
    }

    /// The key of an ordinal.
    pub(super) fn key(&self, ordinal: u64) -> i128 {
        i128::from(ordinal) - i128::from(self.zero)
    }

    /// The ordinals of an interval of keys, cut to the type's own; `None` where none is left.
    pub(super) fn clip(&self, low: i128, high: i128) -> Option<(u64, u64)> {
        let (low, high) = (low.max(self.key(self.first)), high.min(self.key(self.last)));
        (low <= high).then(|| {
            let ordinal = |key: i128| (key + i128::from(self.zero)) as u64;
            (ordinal(low), ordinal(high))
        })
    }

    /// Whether the numbers are floats, which have a negative zero.
    pub(super) fn is_float(&self) -> bool {
        self.kind != Kind::Integer
    }

    /// Ordinals from the least to the greatest zero.
    pub(super) fn zeros(&self) -> (u64, u64) {
        (self.zero - u64::from(self.is_float()), self.zero)
    }

    /// Ordinals of the finite negative numbers, `None` where there are none.
    pub(super) fn negatives(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.first + u64::from(self.is_float()), self.zeros().0.checked_sub(1)?);
        (first <= last).then_some((first, last))
    }

    /// Ordinals of the finite positive numbers.
    pub(super) fn positives(&self) -> (u64, u64) {
        (self.zero + 1, self.last - u64::from(self.is_float()))
    }

    /// Distance from zero: that of an integer in units, that of a float as the bits of its absolute value.
    pub(super) fn magnitude(&self, ordinal: u64) -> u64 {
        if ordinal >= self.zero { ordinal - self.zero } else { self.zeros().0 - ordinal }
    }

    /// The ordinal of a number of this distance from zero.
    pub(super) fn at(&self, magnitude: u64, negative: bool) -> u64 {
        if negative { self.zeros().0 - magnitude } else { self.zero + magnitude }
    }
}

/// Ordinals of the elements, in one of the two: the one that is not empty (if there are elements).
pub(super) fn ordinals(elements: Elements<'_>, narrow: &mut Vec<u32>, wide: &mut Vec<u64>) {
    narrow.clear();
    wide.clear();
    const SIGN: u32 = 1 << 31;
    match elements {
        Elements::I8(v) => narrow.extend(v.iter().map(|&x| i32::from(x) as u32 ^ SIGN)),
        Elements::I16(v) => narrow.extend(v.iter().map(|&x| i32::from(x) as u32 ^ SIGN)),
        Elements::I32(v) => narrow.extend(v.iter().map(|&x| x as u32 ^ SIGN)),
        Elements::I64(v) => wide.extend(v.iter().map(|&x| x as u64 ^ 1 << 63)),
        Elements::U8(v) => narrow.extend(v.iter().map(|&x| u32::from(x))),
        Elements::U16(v) => narrow.extend(v.iter().map(|&x| u32::from(x))),
        Elements::U32(v) => narrow.extend_from_slice(v),
        Elements::U64(v) => wide.extend_from_slice(v),
        Elements::F32(v) => narrow.extend(v.iter().map(|&x| single(x))),
        Elements::F64(v) => wide.extend(v.iter().map(|&x| double(x))),
    }
}

#[inline(always)]
fn single(x: f32) -> u32 {
    let bits = x.to_bits();
    // Negative: all bits mirrored; positive: the sign set.
    let ordinal = bits ^ ((bits as i32 >> 31) as u32 | 1 << 31);
    if x.is_nan() { u32::MAX } else { ordinal }
}

#[inline(always)]
fn double(x: f64) -> u64 {
    let bits = x.to_bits();
    let ordinal = bits ^ ((bits as i64 >> 63) as u64 | 1 << 63);
    if x.is_nan() { u64::MAX } else { ordinal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sieva_types::keys::{f32_key, f64_key};

    #[test]
    fn ordinals_are_shifted_keys() {
        let values = [f64::NEG_INFINITY, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, f64::INFINITY];
        let (single_scale, double_scale) = (Scale::of(DType::F32).unwrap(), Scale::of(DType::F64).unwrap());
        for v in values {
            assert_eq!(double_scale.key(double(v)), f64_key(v));
            assert_eq!(single_scale.key(single(v as f32).into()), f32_key(v as f32));
            let at = double(v);
            assert_eq!(double_scale.at(double_scale.magnitude(at), v.is_sign_negative()), at);
        }
        assert_eq!((single(-f32::NAN), double(-f64::NAN)), (u32::MAX, u64::MAX));
        assert!(u64::from(single(f32::INFINITY)) == single_scale.last && single_scale.last < u32::MAX.into());
    }
}
