//! The arithmetic of bins: which exponent a region gets, and where a bin's edges lie among the keys.
//!
//! Bin `i` of exponent `k` is `[i * 2^k, (i + 1) * 2^k)`. All is done by shifts of integers and of mantissas: exact,
//! and the same under every floating-point environment.

use sieva_types::DType;
use sieva_types::keys::{f64_of_key, key_range};

/// Most bins of one region; it has more than half as many unless its values are fewer or as close as can be.
pub(super) const REGION_BINS: i128 = 100;

/// Least exponent of all: that of the subnormal float64.
pub(super) const LEAST_EXPONENT: i32 = -1074;

/// No values lead to a greater one: two bins of it hold all finite floats.
pub(super) const GREATEST_EXPONENT: i32 = 1023;

/// The bins of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bins {
    pub exponent: i32,
    pub first: i128,
    /// At most [`REGION_BINS`].
    pub len: usize,
}

impl Bins {
    /// Bins for finite values with keys `low..=high`: the narrowest that are at most [`REGION_BINS`], but no
    /// narrower than neighbouring values of the type lie apart.
    pub(super) fn new(dtype: DType, (low, high): (i128, i128)) -> Self {
        let mut exponent = precision(dtype, low).max(precision(dtype, high));
        loop {
            let (first, last) = (index(dtype, low, exponent), index(dtype, high, exponent));
            if last - first < REGION_BINS {
                return Self { exponent, first, len: (last - first + 1) as usize };
            }
            exponent += 1;
        }
    }
}

/// How a type of floats is laid out.
#[derive(Clone, Copy)]
struct Format {
    /// Digits of the mantissa that are stored.
    digits: u32,
    /// Exponent of the last digit of subnormal numbers.
    least: i32,
    /// Key of infinity: its bits.
    infinity: i128,
}

impl Format {
    const F32: Format = Format { digits: 23, least: -149, infinity: 0x7f80_0000 };
    const F64: Format = Format { digits: 52, least: LEAST_EXPONENT, infinity: 0x7ff0_0000_0000_0000 };

    fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::F16 | DType::F32 => Some(Self::F32),
            DType::F64 => Some(Self::F64),
            _ => None,
        }
    }

    /// The finite value of `key` as an integer times a power of two, the integer without its sign.
    fn parts(self, key: i128) -> (i128, i32) {
        let bits = if key < 0 { !key } else { key };
        let biased = (bits >> self.digits) as i32;
        let implicit = i128::from(biased > 0) << self.digits;
        (bits & ((1 << self.digits) - 1) | implicit, biased.max(1) + self.least - 1)
    }

    /// The least key of a value that is not less than `i * 2^k`; that of an infinity beyond the greatest.
    fn ceiling(self, i: i128, k: i32) -> i128 {
        if i == 0 {
            return 0;
        }
        let magnitude = i.unsigned_abs();
        let length = (128 - magnitude.leading_zeros()) as i32;
        let last = (k + length - 1 - self.digits as i32).max(self.least);
        let dropped = (last - k).clamp(0, 127);
        let kept = magnitude >> dropped << (k - last).clamp(0, 127);
        let inexact = magnitude & ((1 << dropped) - 1) != 0;
        // The leading digit of a normal number adds one to the exponent's field.
        let bits = (kept as i128 + (i128::from(last - self.least) << self.digits)).min(self.infinity);
        if i < 0 { !bits } else { (bits + i128::from(inexact)).min(self.infinity) }
    }
}

/// Exponent of the last digit of the value of `key`.
fn precision(dtype: DType, key: i128) -> i32 {
    Format::of(dtype).map_or(0, |format| format.parts(key).1)
}

/// The bin of the finite value of `key`, where `exponent` is at least the value's [`precision`].
pub(super) fn index(dtype: DType, key: i128, exponent: i32) -> i128 {
    let Some(format) = Format::of(dtype) else { return coarser(key, exponent) };
    let (mantissa, last) = format.parts(key);
    coarser(if key < 0 { -mantissa } else { mantissa }, exponent - last)
}

/// The bin that bin `i` lies in where bins are `2^by` times as wide.
pub(super) fn coarser(i: i128, by: i32) -> i128 {
    i >> by.clamp(0, 127)
}

/// `i * 2^k`: exact where that is a float64, else the next greater one; infinite beyond the greatest.
pub(super) fn edge(i: i128, k: i32) -> f64 {
    f64_of_key(Format::F64.ceiling(i, k))
}

/// Least and greatest key of stored values, bool being stored as bytes.
pub(super) fn value_keys(dtype: DType) -> (i128, i128) {
    key_range(if dtype == DType::Bool { DType::U8 } else { dtype })
}

/// The least key whose value is in bin `i` or in a later one. -0.0 counts as 0.0 and opens bin 0.
pub(super) fn lower_key(dtype: DType, i: i128, k: i32) -> i128 {
    match Format::of(dtype) {
        // The key of -0.0.
        Some(_) if i == 0 => -1,
        // No finite value is below all edges, and -infinity is in no bin.
        Some(format) => format.ceiling(i, k).max(!format.infinity + 1),
        None => {
            let width = if k < 127 { 1_i128 << k.max(0) } else { i128::MAX };
            i.saturating_mul(width)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sieva_types::keys::{f32_key, f64_key};

    #[test]
    fn regions_get_fifty_to_a_hundred_bins() {
        for (low, high) in
            [(0.0, 1.0), (-1e300, 1e300), (f64::MIN, f64::MAX), (-5e-324, 1e-318), (273.15, 300.2)]
        {
            let bins = Bins::new(DType::F64, (f64_key(low), f64_key(high)));
            assert!((51..=100).contains(&bins.len), "{low} to {high}: {bins:?}");
        }
        for (low, high) in [(0, u64::MAX.into()), (i64::MIN.into(), i64::MAX.into()), (-3, 100)] {
            let bins = Bins::new(DType::I64, (low, high));
            assert!((51..=100).contains(&bins.len), "{low} to {high}: {bins:?}");
        }
    }

    #[test]
    fn a_constant_has_one_bin_of_its_own() {
        for v in [0.0, -0.0, 1.0, -1.1, f64::MAX, f64::MIN, 5e-324, -5e-324] {
            let key = f64_key(v);
            let bins = Bins::new(DType::F64, (key, key));
            assert_eq!(bins.len, 1);
            let (low, next) = (
                lower_key(DType::F64, bins.first, bins.exponent),
                lower_key(DType::F64, bins.first + 1, bins.exponent),
            );
            assert!(low <= key && key < next, "{v}");
            assert_eq!(next - low, if v == 0.0 { 2 } else { 1 }, "{v}");
        }
        assert_eq!(
            Bins::new(DType::U64, (u64::MAX.into(), u64::MAX.into())),
            Bins { exponent: 0, first: u64::MAX.into(), len: 1 }
        );
    }

    #[test]
    fn edges_beyond_the_type_are_its_last_values() {
        assert_eq!(lower_key(DType::F64, -512, 1015), f64_key(f64::MIN));
        assert_eq!(lower_key(DType::F64, 512, 1015), f64_key(f64::INFINITY));
        assert_eq!(lower_key(DType::F32, -2, 127), f32_key(f32::MIN));
        assert_eq!(lower_key(DType::F32, 1, -1074), f32_key(0.0) + 1);
        assert_eq!(lower_key(DType::F32, -1, -1074), f32_key(-0.0));
        assert_eq!(lower_key(DType::I64, -1, 1000), -i128::MAX);
        assert_eq!(lower_key(DType::I64, 1 << 64, 127), i128::MAX);
    }

    #[test]
    fn edges_are_multiples_of_powers_of_two() {
        let tiny = f64::from_bits(1);
        let cases = [
            (0, 5, 0.0),
            (-3, -1, -1.5),
            (1, -1074, tiny),
            (-1, -1074, -tiny),
            ((1 << 53) - 1, 971, f64::MAX),
        ];
        for (i, k, want) in cases {
            assert_eq!(edge(i, k).to_bits(), want.to_bits());
        }
        assert_eq!((edge(1, 1024), edge(-1, 1024)), (f64::INFINITY, f64::NEG_INFINITY));
        assert_eq!(edge((1 << 53) + 1, 0), ((1_i64 << 53) + 2) as f64);
        assert_eq!(edge(-(1 << 53) - 1, 0), -((1_i64 << 53) as f64));
    }
}
