//! Functions of numbers.

use super::{
    Failed, Function, Shape, ValueType, Values, Vector, all_valid, narrow, not_a_number, overflow, zip_with,
};
use crate::mask::Mask;
use sieva_types::Result;

/// A function of one number, in `float64`.
pub(super) fn of_floats(function: Function, x: &Vector) -> Result<Vector> {
    use Function as F;
    match function {
        F::Abs => unary(x, f64::abs),
        F::Sign => unary(x, sign),
        F::Floor => unary(x, f64::floor),
        F::Ceil => unary(x, f64::ceil),
        F::Trunc => unary(x, f64::trunc),
        F::Round => unary(x, f64::round_ties_even),
        F::Sqrt => unary(x, f64::sqrt),
        F::Cbrt => unary(x, f64::cbrt),
        F::Exp => unary(x, f64::exp),
        F::Exp2 => unary(x, f64::exp2),
        F::Expm1 => unary(x, f64::exp_m1),
        F::Ln => unary(x, f64::ln),
        F::Log1p => unary(x, f64::ln_1p),
        F::Log2 => unary(x, f64::log2),
        F::Log10 => unary(x, f64::log10),
        F::Sin => unary(x, f64::sin),
        F::Cos => unary(x, f64::cos),
        F::Tan => unary(x, f64::tan),
        F::Asin => unary(x, f64::asin),
        F::Acos => unary(x, f64::acos),
        F::Atan => unary(x, f64::atan),
        F::Sinh => unary(x, f64::sinh),
        F::Cosh => unary(x, f64::cosh),
        F::Tanh => unary(x, f64::tanh),
        F::Degrees => unary(x, f64::to_degrees),
        F::Radians => unary(x, f64::to_radians),
        _ => Err(not_a_number(x.values.value_type())),
    }
}

/// Each function gets a loop of its own, for the optimiser to see it.
fn unary(x: &Vector, f: impl Fn(f64) -> f64) -> Result<Vector> {
    let values = x.to_f64()?.iter().map(|&x| f(x)).collect();
    Ok(Vector::from_parts(Values::F64(values), x.valid.clone(), Shape::of(x)))
}

pub(super) fn binary(a: &Vector, b: &Vector, f: impl Fn(f64, f64) -> f64) -> Result<Vector> {
    let shape = Shape::common(&[a, b])?;
    let values = zip_with(&a.to_f64()?, &b.to_f64()?, shape, |&x, &y| f(x, y));
    Ok(Vector::from_parts(Values::F64(values), all_valid(&[a, b], shape), shape))
}

pub(super) fn test(x: &Vector, f: impl Fn(f64) -> bool) -> Result<Vector> {
    let values = x.to_f64()?.iter().map(|&x| f(x)).collect();
    Ok(Vector::from_parts(Values::Bool(values), x.valid.clone(), Shape::of(x)))
}

/// As numpy's: 0.0 for both zeros.
fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else if x == 0.0 {
        0.0
    } else {
        x
    }
}

/// A function that leaves integers integers.
pub(super) fn of_integers(function: Function, x: &Vector, result: ValueType) -> Result<Vector> {
    let f: fn(i128) -> i128 = match function {
        Function::Abs => i128::abs,
        Function::Sign => i128::signum,
        // The others round, and integers are round.
        _ => return x.widen(result).map(|v| v.into_owned()),
    };
    let wide: Vec<_> = x.to_i128()?.into_iter().map(f).collect();
    Ok(from_wide(&wide, x.valid.clone(), result, Shape::of(x)))
}

fn from_wide(wide: &[i128], valid: Option<Mask>, to: ValueType, shape: Shape) -> Vector {
    let to = if to == ValueType::U64 { to } else { ValueType::I64 };
    let (values, failed) = narrow(wide, valid.as_ref(), to);
    Vector::from_parts(values, valid, shape).failing(failed)
}

/// `round(x, digits)`; of integers exactly.
pub(super) fn round(x: &Vector, digits: &Vector, result: ValueType) -> Result<Vector> {
    let shape = Shape::common(&[x, digits])?;
    let valid = all_valid(&[x, digits], shape);
    // No float64 has a digit beyond these.
    let digits: Vec<i32> = digits.to_i128()?.into_iter().map(|d| d.clamp(-400, 400) as i32).collect();
    if result == ValueType::F64 {
        let values = zip_with(&x.to_f64()?, &digits, shape, |&x, &d| round_float(x, d));
        return Ok(Vector::from_parts(Values::F64(values), valid, shape));
    }
    let wide = zip_with(&x.to_i128()?, &digits, shape, |&x, &d| round_integer(x, d));
    Ok(from_wide(&wide, valid, result, shape))
}

/// As numpy's `round`, which scales, rounds and scales back, and so is not always the nearest decimal.
fn round_float(x: f64, digits: i32) -> f64 {
    let scale = 10.0_f64.powf(f64::from(digits.abs()));
    match digits {
        0 => x.round_ties_even(),
        1.. => (x * scale).round_ties_even() / scale,
        _ => (x / scale).round_ties_even() * scale,
    }
}

fn round_integer(x: i128, digits: i32) -> i128 {
    if digits >= 0 {
        return x;
    }
    // Of 64 bits nothing is left at 10^21.
    let Some(unit) = 10_i128.checked_pow(digits.unsigned_abs()).filter(|_| digits > -21) else { return 0 };
    let (quotient, rest) = (x.div_euclid(unit), x.rem_euclid(unit));
    let up = 2 * rest > unit || (2 * rest == unit && quotient % 2 != 0);
    (quotient + i128::from(up)) * unit
}

/// `int64(x)`: toward zero.
pub(super) fn to_int64(x: &Vector) -> Result<Vector> {
    let Values::F64(values) = &x.values else {
        return x.widen(ValueType::I64).map(|v| v.into_owned());
    };
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let outside = |v: f64| !(-LIMIT..LIMIT).contains(&v);
    let failed = Failed::find(values.len(), |i| {
        let fails = outside(values[i]) && x.is_valid(i);
        fails.then(|| {
            overflow(format!("{:?} does not fit in int64", values[i])).hint("leave it in floating point")
        })
    });
    let values = values.iter().map(|&v| v as i64).collect();
    Ok(Vector::from_parts(Values::I64(values), x.valid.clone(), Shape::of(x)).failing(failed))
}

#[cfg(test)]
mod tests {
    use super::super::{Scalar, testing::*};
    use super::*;
    use sieva_types::ErrorKind;

    fn call(name: &str, args: &[&Vector]) -> Vector {
        Function::from_name(name).unwrap().apply(args).unwrap()
    }

    #[test]
    fn outside_of_the_domain_is_missing() {
        let x = floats(&[-1.0, 4.0]);
        assert_eq!(call("sqrt", &[&x]), floats(&[f64::NAN, 2.0]));
        assert_eq!(call("ln", &[&floats(&[-1.0, 0.0])]), floats(&[f64::NAN, f64::NEG_INFINITY]));
        assert_eq!(call("asin", &[&ints(&[2])]).scalar(0), Scalar::Null);
    }

    /// What numpy 2.4 gives.
    #[test]
    fn rounding_is_numpys() {
        let x = floats(&[0.5, 1.5, 2.5, -0.4, -2.5]);
        assert_eq!(call("round", &[&x]), floats(&[0.0, 2.0, 2.0, -0.0, -2.0]));
        let two = constant(Scalar::I64(2));
        assert_eq!(call("round", &[&floats(&[1.005, 2.675, 1.115]), &two]), floats(&[1.0, 2.68, 1.12]));
        let minus_one = constant(Scalar::I64(-1));
        assert_eq!(call("round", &[&ints(&[15, 25, -15, 14]), &minus_one]), ints(&[20, 20, -20, 10]));
        assert_eq!(call("round", &[&floats(&[15.0, 25.0]), &minus_one]), floats(&[20.0, 20.0]));
        assert_eq!(call("round", &[&ints(&[i64::MIN]), &constant(Scalar::I64(-30))]), ints(&[0]));
        assert_eq!(call("round", &[&unsigned(&[7]), &two]), unsigned(&[7]));
    }

    #[test]
    fn integers_stay_integers() {
        let near = (1_i64 << 53) + 1;
        assert_eq!(call("floor", &[&ints(&[near])]), ints(&[near]));
        assert_eq!(call("abs", &[&ints(&[-near])]), ints(&[near]));
        assert_eq!(call("sign", &[&unsigned(&[0, 9])]), unsigned(&[0, 1]));
        assert_eq!(call("trunc", &[&bools(&[Some(true)])]), ints(&[1]));
        let e = Function::Abs.apply(&[&ints(&[i64::MIN])]).unwrap().sound().unwrap_err();
        assert_eq!(
            (e.kind(), e.message()),
            (ErrorKind::Overflow, "9223372036854775808 does not fit in int64")
        );
    }

    #[test]
    fn signs_and_angles() {
        let x = floats(&[-2.0, -0.0, 0.0, f64::INFINITY]);
        assert_eq!(call("sign", &[&x]), floats(&[-1.0, 0.0, 0.0, 1.0]));
        assert!(matches!(call("sign", &[&x]).scalar(1), Scalar::F64(v) if v.is_sign_positive()));
        let one = constant(Scalar::I64(1));
        assert_eq!(call("atan2", &[&one, &one]).scalar(0), Scalar::F64(std::f64::consts::FRAC_PI_4));
        assert_eq!(call("hypot", &[&ints(&[3]), &constant(Scalar::I64(4))]), floats(&[5.0]));
        assert_eq!(call("degrees", &[&floats(&[std::f64::consts::PI])]), floats(&[180.0]));
    }

    #[test]
    fn int64_goes_toward_zero_and_refuses_what_does_not_fit() {
        assert_eq!(call("int64", &[&floats(&[-1.9, 1.9])]), ints(&[-1, 1]));
        let x = without(floats(&[1e300, 1.0]), &[0]);
        assert_eq!(call("int64", &[&x]).scalar(0), Scalar::Null);
        let e = Function::Int64.apply(&[&floats(&[9_223_372_036_854_775_808.0])]).unwrap();
        let e = e.sound().unwrap_err();
        assert_eq!(e.message(), "9.223372036854776e18 does not fit in int64");
    }

    #[test]
    fn infinity_is_told_from_missing() {
        let x = floats(&[1.0, f64::NEG_INFINITY, f64::NAN]);
        assert_eq!(call("isinf", &[&x]), bools(&[Some(false), Some(true), None]));
        assert_eq!(call("isfinite", &[&x]), bools(&[Some(true), Some(false), None]));
    }
}
