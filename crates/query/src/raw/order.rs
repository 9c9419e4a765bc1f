//! Exact comparison of numbers of different types, and the stored values of keys.

use std::cmp::Ordering;

use sieva_format::decoding::Number;
use sieva_types::DType;
use sieva_types::keys::{f32_of_key, f64_of_key};

/// Compares two numbers as real numbers, exactly; `None` where one is NaN.
pub fn compare_exact(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        (Number::Int(a), Number::Float(b)) => int_with_float(a, b),
        (Number::Float(a), Number::Int(b)) => int_with_float(b, a).map(Ordering::reverse),
    }
}

/// Not inlined: the compiler would round a literal's bytes before it knows that it is a float, and memory checkers see
/// bytes used that nothing was written to.
#[inline(never)]
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

/// The stored value of a key.
pub(crate) fn value_of_key(dtype: DType, key: i128) -> Number {
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
}
