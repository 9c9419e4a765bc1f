//! Exact comparison of numbers of different types, and order-preserving integer keys of stored values.

use std::cmp::Ordering;

use sieva_format::decoding::Number;
use sieva_types::DType;

/// Compares two numbers as real numbers, exactly; `None` where one is NaN.
pub fn compare_exact(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        (Number::Int(a), Number::Float(b)) => int_with_float(a, b),
        (Number::Float(a), Number::Int(b)) => int_with_float(b, a).map(Ordering::reverse),
    }
}

fn int_with_float(i: i128, f: f64) -> Option<Ordering> {
    if f.is_nan() {
        return None;
    }
    // Beyond i128 (infinities included) the float decides; within it `trunc` is an exact integer.
    if f >= 2_f64.powi(127) {
        return Some(Ordering::Less);
    }
    if f < -(2_f64.powi(127)) {
        return Some(Ordering::Greater);
    }
    let whole = f.trunc();
    Some(i.cmp(&(whole as i128)).then_with(|| 0.0.partial_cmp(&(f - whole)).unwrap_or(Ordering::Equal)))
}

/// Key of a float: the bits, with the negative half mirrored, so that keys order as values do.
/// -0.0 and 0.0 have neighbouring keys.
pub(super) fn f64_key(x: f64) -> i128 {
    let bits = x.to_bits() as i64;
    i128::from(bits ^ (((bits >> 63) as u64) >> 1) as i64)
}

pub(super) fn f64_of_key(key: i128) -> f64 {
    let bits = key as i64;
    f64::from_bits((bits ^ (((bits >> 63) as u64) >> 1) as i64) as u64)
}

pub(super) fn f32_key(x: f32) -> i128 {
    let bits = x.to_bits() as i32;
    i128::from(bits ^ (((bits >> 31) as u32) >> 1) as i32)
}

pub(super) fn f32_of_key(key: i128) -> f32 {
    let bits = key as i32;
    f32::from_bits((bits ^ (((bits >> 31) as u32) >> 1) as i32) as u32)
}

/// Smallest and largest key of a stored type: all values but NaN.
pub(super) fn key_range(dtype: DType) -> (i128, i128) {
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

/// The stored value of a key.
pub(super) fn value_of_key(dtype: DType, key: i128) -> Number {
    match dtype {
        DType::F16 | DType::F32 => Number::Float(f64::from(f32_of_key(key))),
        DType::F64 => Number::Float(f64_of_key(key)),
        _ => Number::Int(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_2_53_compare_exactly() {
        let big = (1_i128 << 53) + 1;
        assert_eq!(compare_exact(Number::Int(big), Number::Float(2_f64.powi(53))), Some(Ordering::Greater));
        assert_eq!(
            compare_exact(Number::Float(2_f64.powi(63)), Number::Int(i64::MAX.into())),
            Some(Ordering::Greater)
        );
        assert_eq!(compare_exact(Number::Int(-1), Number::Float(-1.5)), Some(Ordering::Greater));
        assert_eq!(compare_exact(Number::Int(0), Number::Float(-0.0)), Some(Ordering::Equal));
        assert_eq!(compare_exact(Number::Int(5), Number::Float(f64::NEG_INFINITY)), Some(Ordering::Greater));
        assert_eq!(compare_exact(Number::Int(5), Number::Float(f64::NAN)), None);
    }

    #[test]
    fn keys_keep_the_order_of_floats() {
        let values = [f64::NEG_INFINITY, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, f64::INFINITY];
        assert!(values.windows(2).all(|w| f64_key(w[0]) < f64_key(w[1])));
        assert!(values.iter().all(|&v| f64_of_key(f64_key(v)).to_bits() == v.to_bits()));
        let narrow = values.map(|v| v as f32);
        assert!(narrow.iter().all(|&v| f32_of_key(f32_key(v)).to_bits() == v.to_bits()));
        assert_eq!(f64_key(0.0) - f64_key(-0.0), 1);
    }
}
