//! Stored values as unsigned ranks: one order, one compare, for all element types.
//!
//! The rank of a value is its key (see [`sieva_types::KeySet`]) moved to the unsigned range of the same width.
//! NaNs have ranks below that of -infinity and above that of +infinity, so that "is a number" is an interval.

use sieva_types::KeySet;
use sieva_types::keys::{f32_of_key, f64_of_key};

/// An unsigned integer as wide as an element.
pub(super) trait Word: Copy + Ord + Send + Sync + 'static {
    const MIN: Self;
    const MAX: Self;
    fn of(wide: u64) -> Self;
    fn wide(self) -> u64;
    /// The low byte of `self - base`, which wraps around.
    fn byte_from(self, base: Self) -> u8;
}

/// An element type with its ranks.
pub(super) trait Lane: Copy + Send + Sync + 'static {
    type Word: Word;
    /// Rank minus key.
    const OFFSET: i128;
    /// Ranks of the least and the greatest value that is not NaN.
    const NUMBERS: (Self::Word, Self::Word);
    /// Whether there are ranks of NaN.
    const FLOAT: bool;
    fn rank(self) -> Self::Word;
    /// The nearest `float64`.
    fn float(self) -> f64;
    /// The value of a key, which is not that of NaN.
    fn of_key(key: i128) -> Self;
    /// `floor(self / 2^exponent)` in two's complement. Meaningless for NaN and infinities, for an exponent less than
    /// that of the value's last digit, and for one that shifts all digits of an integer away.
    fn bin(self, exponent: i32) -> Self::Word;

    /// The key of a rank.
    fn key(rank: Self::Word) -> i128 {
        i128::from(rank.wide()) - Self::OFFSET
    }

    /// The ranks of the numbers whose keys are in `set`, as closed intervals, ascending.
    fn ranks(set: &KeySet) -> Vec<(Self::Word, Self::Word)> {
        let (low, high) = (Self::key(Self::NUMBERS.0), Self::key(Self::NUMBERS.1));
        let rank = |key: i128| Self::Word::of((key + Self::OFFSET) as u64);
        set.intersection(&KeySet::interval(low, high))
            .ranges
            .iter()
            .map(|&(a, b)| (rank(a), rank(b)))
            .collect()
    }
}

macro_rules! word {
    ($($w:ty),*) => {$(
        impl Word for $w {
            const MIN: Self = <$w>::MIN;
            const MAX: Self = <$w>::MAX;
            #[inline(always)]
            fn of(wide: u64) -> Self { wide as $w }
            #[inline(always)]
            fn wide(self) -> u64 { self.into() }
            #[inline(always)]
            fn byte_from(self, base: Self) -> u8 { self.wrapping_sub(base) as u8 }
        }
    )*};
}
word!(u8, u16, u32, u64);

macro_rules! integers {
    ($($t:ty, $w:ty);*) => {$(
        impl Lane for $t {
            type Word = $w;
            const OFFSET: i128 = -(<$t>::MIN as i128);
            const NUMBERS: ($w, $w) = (<$w>::MIN, <$w>::MAX);
            const FLOAT: bool = false;
            #[inline(always)]
            fn rank(self) -> $w { (self as $w).wrapping_add(Self::OFFSET as $w) }
            #[inline(always)]
            fn float(self) -> f64 { self as f64 }
            fn of_key(key: i128) -> Self { key as Self }
            #[inline(always)]
            fn bin(self, exponent: i32) -> $w { self.wrapping_shr(exponent as u32) as $w }
        }
    )*};
}
integers!(i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64);

macro_rules! floats {
    ($($t:ty, $w:ty, $i:ty, $digits:expr, $bias:expr, $of_key:expr);*) => {$(
        impl Lane for $t {
            type Word = $w;
            const OFFSET: i128 = 1 << (<$w>::BITS - 1);
            const NUMBERS: ($w, $w) = (!<$t>::NEG_INFINITY.to_bits(), <$t>::INFINITY.to_bits() | 1 << (<$w>::BITS - 1));
            const FLOAT: bool = true;
            #[inline(always)]
            fn rank(self) -> $w {
                let bits = self.to_bits();
                bits ^ (((bits as $i) >> (<$w>::BITS - 1)) as $w | 1 << (<$w>::BITS - 1))
            }
            #[inline(always)]
            fn float(self) -> f64 { self.into() }
            fn of_key(key: i128) -> Self { $of_key(key) }
            // The mantissa is shifted as an integer: exact, and the same under every floating-point environment
            // (a library that flushes subnormals to zero may live in our process).
            #[inline(always)]
            fn bin(self, exponent: i32) -> $w {
                const SIGN: $w = 1 << (<$w>::BITS - 1);
                let bits = self.to_bits();
                let biased = (bits & !SIGN) >> $digits;
                let implicit = <$w>::from(biased != 0) << $digits;
                let mantissa = bits & ((1 << $digits) - 1) | implicit;
                let shift = ((exponent + $bias) as $w).wrapping_sub(biased.max(1)).min(<$w>::from(<$w>::BITS - 1));
                // floor(-m / 2^s) is the complement of (m - 1) / 2^s; -0.0 is no negative number here.
                let negative = bits > SIGN;
                let rounded = mantissa.wrapping_sub(<$w>::from(negative)) >> shift;
                if negative { !rounded } else { rounded }
            }
        }
    )*};
}
floats!(f32, u32, i32, 23, 150, f32_of_key; f64, u64, i64, 52, 1075, f64_of_key);

#[cfg(test)]
mod tests {
    use super::*;
    use sieva_types::keys::{f32_key, f64_key};

    #[test]
    fn ranks_are_keys_moved() {
        for v in [f64::NEG_INFINITY, -1.5, -5e-324, -0.0, 0.0, 1e-310, 2.0, f64::INFINITY] {
            assert_eq!(f64::key(v.rank()), f64_key(v));
            assert_eq!(f32::key((v as f32).rank()), f32_key(v as f32));
        }
        assert_eq!((f32::key(f32::NUMBERS.0), f32::key(f32::NUMBERS.1)), range(f32_key, f32::INFINITY));
        assert_eq!((f64::key(f64::NUMBERS.0), f64::key(f64::NUMBERS.1)), range(f64_key, f64::INFINITY));
        for nan in [f32::NAN, -f32::NAN] {
            assert!(nan.rank() < f32::NUMBERS.0 || nan.rank() > f32::NUMBERS.1);
        }
        assert!([i64::MIN, -1, 0, i64::MAX].iter().all(|&v| i64::key(v.rank()) == v.into()));
        assert!([0, 1, u64::MAX].iter().all(|&v| u64::key(v.rank()) == v.into()));
    }

    fn range<T: std::ops::Neg<Output = T> + Copy>(key: fn(T) -> i128, infinity: T) -> (i128, i128) {
        (key(-infinity), key(infinity))
    }

    #[test]
    fn sets_are_clipped_to_the_type() {
        let set = KeySet { ranges: vec![(i128::MIN, -200), (-100, 5), (100, i128::MAX)], nan: true };
        assert_eq!(i8::ranks(&set), [(28, 133), (228, 255)]);
        assert_eq!(u8::ranks(&set), [(0, 5), (100, 255)]);
    }
}
