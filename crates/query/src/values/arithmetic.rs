//! Arithmetic operators.
//!
//! Integers stay integers and are exact: a row whose result is out of range fails, and is never wrapped. `/` and `^` are always
//! `float64`, as numpy's `/` is (for `^` so that `2 ^ -1` and `2 ^ 1` are of one type). Everything in `float64` is
//! what numpy computes. Of two `uint64` the result is `uint64`; of `uint64` and another integer it is `int64`.
//! Integer division by zero is missing, for there is no infinity to give.

use super::{Failed, Shape, ValueType, Values, Vector, all_valid, narrow, overflow, zip_with};
use crate::ast::BinaryOp;
use crate::mask::Mask;
use sieva_types::{Error, ErrorKind, Result};
use std::fmt::Display;

/// The type of `a op b`; `None` is the untyped NULL.
///
/// # Errors
/// `TypeMismatch` if one of them is text.
pub fn arithmetic_type(op: BinaryOp, a: Option<ValueType>, b: Option<ValueType>) -> Result<ValueType> {
    if a == Some(ValueType::Str) || b == Some(ValueType::Str) {
        let (a, b, op) = (type_name(a), type_name(b), op.symbol());
        return Err(Error::new(ErrorKind::TypeMismatch, format!("{op} needs numbers, got {a} {op} {b}")));
    }
    if matches!(op, BinaryOp::Div | BinaryOp::Pow) {
        return Ok(ValueType::F64);
    }
    Ok(match (a, b) {
        (None, None) => ValueType::F64,
        (Some(ValueType::Bool), None) | (None, Some(ValueType::Bool)) => ValueType::I64,
        (Some(t), None) | (None, Some(t)) => t,
        (Some(ValueType::F64), _) | (_, Some(ValueType::F64)) => ValueType::F64,
        (Some(ValueType::U64), Some(ValueType::U64)) => ValueType::U64,
        _ => ValueType::I64,
    })
}

/// `a op b`, row by row; missing where either is.
///
/// # Errors
/// `TypeMismatch` for text. Rows whose integer result is out of range fail with `Overflow`: see [`Vector::sound`].
pub fn arithmetic(op: BinaryOp, a: &Vector, b: &Vector) -> Result<Vector> {
    let result = arithmetic_type(op, a.value_type(), b.value_type())?;
    let shape = Shape::common(&[a, b])?;
    if a.value_type().is_none() || b.value_type().is_none() {
        return Ok(Vector::missing(result, shape));
    }
    let valid = all_valid(&[a, b], shape);
    let computed = match (&a.values, &b.values, result) {
        (_, _, ValueType::F64) => {
            let values = on_floats(op, &a.to_f64()?, &b.to_f64()?, shape, b.is_constant());
            Vector::from_parts(Values::F64(values), valid, shape)
        }
        (Values::I64(x), Values::I64(y), _) => on_integers(op, x, y, valid, shape),
        (Values::U64(x), Values::U64(y), _) => on_integers(op, x, y, valid, shape),
        // 128 bits hold every result of mixed operands; it is narrowed at the end.
        _ => on_integers(op, &a.to_i128()?, &b.to_i128()?, valid, shape),
    };
    Ok(computed.after(&[a, b]))
}

/// The type of `-a`; `None` is the untyped NULL.
///
/// # Errors
/// `TypeMismatch` if it is text.
pub fn negate_type(a: Option<ValueType>) -> Result<ValueType> {
    match a {
        None | Some(ValueType::F64) => Ok(ValueType::F64),
        Some(ValueType::Str) => Err(Error::new(ErrorKind::TypeMismatch, "- needs a number, got str")),
        Some(_) => Ok(ValueType::I64),
    }
}

/// `-a`, of integers always `int64`.
///
/// # Errors
/// `TypeMismatch` for text. Rows fail as those of [`arithmetic`].
pub fn negate(a: &Vector) -> Result<Vector> {
    let result = negate_type(a.value_type())?;
    let shape = Shape::of(a);
    let negated = match &a.values {
        _ if a.value_type().is_none() => Vector::missing(result, shape),
        Values::F64(v) => {
            let values = Values::F64(v.iter().map(|x| -x).collect());
            Vector::from_parts(values, a.valid.clone(), shape)
        }
        Values::I64(v) => on_integers(BinaryOp::Sub, &[0], v, a.valid.clone(), shape),
        _ => on_integers(BinaryOp::Sub, &[0], &a.to_i128()?, a.valid.clone(), shape),
    };
    Ok(negated.after(&[a]))
}

/// How a type is called in a message.
pub(super) fn type_name(t: Option<ValueType>) -> &'static str {
    t.map_or("NULL", |t| t.dtype().name())
}

/// Integers of one width.
trait Integer: Copy + PartialEq + Display {
    const ZERO: Self;
    /// The result, and whether it is wrong because it left the range. A divisor is not zero.
    fn apply(self, op: BinaryOp, other: Self) -> (Self, bool);
    /// The results as values, and those of which the type does not hold them.
    fn into_values(results: Vec<Self>, valid: Option<&Mask>) -> (Values, Option<Failed>);
}

/// The operators of one signed or unsigned type; `$floor` corrects a quotient and remainder rounded toward zero.
macro_rules! integer_operators {
    ($a:ident, $op:ident, $b:ident, $floor:expr) => {
        match $op {
            BinaryOp::Add => $a.overflowing_add($b),
            BinaryOp::Sub => $a.overflowing_sub($b),
            BinaryOp::Mul => $a.overflowing_mul($b),
            BinaryOp::FloorDiv | BinaryOp::Rem => {
                let (q, overflow) = $a.overflowing_div($b);
                let (r, _) = $a.overflowing_rem($b);
                let (q, r) = $floor(q, r);
                if $op == BinaryOp::Rem { (r, false) } else { (q, overflow) }
            }
            // These are computed in floating point and do not come here.
            BinaryOp::Div | BinaryOp::Pow => (Self::ZERO, true),
        }
    };
}

impl Integer for i64 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn apply(self, op: BinaryOp, b: Self) -> (Self, bool) {
        let floor = |q: i64, r: i64| if r != 0 && (r < 0) != (b < 0) { (q - 1, r + b) } else { (q, r) };
        integer_operators!(self, op, b, floor)
    }

    fn into_values(results: Vec<Self>, _: Option<&Mask>) -> (Values, Option<Failed>) {
        (Values::I64(results), None)
    }
}

impl Integer for u64 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn apply(self, op: BinaryOp, b: Self) -> (Self, bool) {
        integer_operators!(self, op, b, |q, r| (q, r))
    }

    fn into_values(results: Vec<Self>, _: Option<&Mask>) -> (Values, Option<Failed>) {
        (Values::U64(results), None)
    }
}

impl Integer for i128 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn apply(self, op: BinaryOp, b: Self) -> (Self, bool) {
        let floor = |q: i128, r: i128| if r != 0 && (r < 0) != (b < 0) { (q - 1, r + b) } else { (q, r) };
        integer_operators!(self, op, b, floor)
    }

    fn into_values(results: Vec<Self>, valid: Option<&Mask>) -> (Values, Option<Failed>) {
        narrow(&results, valid, ValueType::I64)
    }
}

fn on_integers<T: Integer>(op: BinaryOp, a: &[T], b: &[T], mut valid: Option<Mask>, shape: Shape) -> Vector {
    let by_zero = matches!(op, BinaryOp::FloorDiv | BinaryOp::Rem) && b.contains(&T::ZERO);
    if by_zero {
        let mut divisible = Mask::from(&zip_with(a, b, shape, |_, &y| y != T::ZERO)[..]);
        if let Some(valid) = &valid {
            divisible.and(valid);
        }
        valid = Some(divisible);
    }
    let mut any_overflow = false;
    let mut run = |op: BinaryOp| {
        zip_with(a, b, shape, |&x, &y| {
            let (result, overflow) = if by_zero && y == T::ZERO { (x, false) } else { x.apply(op, y) };
            any_overflow |= overflow;
            result
        })
    };
    // Each operator gets a loop of its own, for the optimiser to see it.
    let results = match op {
        BinaryOp::Add => run(BinaryOp::Add),
        BinaryOp::Sub => run(BinaryOp::Sub),
        BinaryOp::Mul => run(BinaryOp::Mul),
        other => run(other),
    };
    let is_valid = |i: usize| valid.as_ref().is_none_or(|v| v.get(i));
    let (values, unfit) = T::into_values(results, valid.as_ref());
    let failed = any_overflow.then(|| {
        // Only what is there counts: the place of a missing value may hold anything.
        let operands = zip_with(a, b, shape, |&x, &y| (x, y, !by_zero || y != T::ZERO));
        Failed::find(operands.len(), |i| {
            let (x, y, ok) = operands[i];
            let fails = ok && is_valid(i) && x.apply(op, y).1;
            fails
                .then(|| overflow(format!("{x} {} {y} is out of the range of its integer type", op.symbol())))
        })
    });
    let failed = failed.flatten();
    Vector::from_parts(values, valid, shape).failing(unfit).failing(failed)
}

fn on_floats(op: BinaryOp, a: &[f64], b: &[f64], shape: Shape, is_constant: bool) -> Vec<f64> {
    match op {
        BinaryOp::Add => zip_with(a, b, shape, |x, y| x + y),
        BinaryOp::Sub => zip_with(a, b, shape, |x, y| x - y),
        BinaryOp::Mul => zip_with(a, b, shape, |x, y| x * y),
        BinaryOp::Div => zip_with(a, b, shape, |x, y| x / y),
        BinaryOp::FloorDiv => zip_with(a, b, shape, |&x, &y| floor_divide(x, y)),
        BinaryOp::Rem => zip_with(a, b, shape, |&x, &y| floor_remainder(x, y)),
        BinaryOp::Pow => power(a, b, shape, is_constant),
    }
}

/// `a ^ b`; the exponents that numpy's `**` treats apart when they are scalars are treated so here.
pub(super) fn power(a: &[f64], b: &[f64], shape: Shape, is_constant: bool) -> Vec<f64> {
    match b {
        [y] if is_constant && *y == 2.0 => a.iter().map(|x| x * x).collect(),
        [y] if is_constant && *y == 0.5 => a.iter().map(|x| x.sqrt()).collect(),
        [y] if is_constant && *y == -1.0 => a.iter().map(|x| 1.0 / x).collect(),
        _ => zip_with(a, b, shape, |x, y| x.powf(*y)),
    }
}

/// Python's and numpy's `%`: of the sign of the divisor.
fn floor_remainder(a: f64, b: f64) -> f64 {
    let r = a % b;
    if b == 0.0 {
        r
    } else if r == 0.0 {
        0.0_f64.copysign(b)
    } else if (b < 0.0) != (r < 0.0) {
        r + b
    } else {
        r
    }
}

/// Python's and numpy's `//`: consistent with `%`, so that `a` is near `b * (a // b) + a % b`.
fn floor_divide(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let r = a % b;
    let mut quotient = (a - r) / b;
    if r != 0.0 && (b < 0.0) != (r < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return 0.0_f64.copysign(a / b);
    }
    // (a - r) / b is a whole number but for rounding.
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

#[cfg(test)]
mod tests {
    use super::super::{Scalar, testing::*};
    use super::*;
    use BinaryOp::*;

    fn of(op: BinaryOp, a: Vector, b: Vector) -> Vector {
        arithmetic(op, &a, &b).unwrap().sound().unwrap()
    }

    fn error(op: BinaryOp, a: Vector, b: Vector) -> Error {
        arithmetic(op, &a, &b).unwrap().sound().unwrap_err()
    }

    #[test]
    fn integers_stay_exact() {
        let big = (1 << 53) + 1;
        assert_eq!(of(Add, ints(&[big, -1]), constant(Scalar::I64(1))), ints(&[big + 1, 0]));
        assert_eq!(of(Mul, ints(&[3]), ints(&[-4])), ints(&[-12]));
        assert_eq!(of(Sub, unsigned(&[1 << 63]), constant(Scalar::U64(1))), unsigned(&[(1 << 63) - 1]));
        assert_eq!(of(Sub, unsigned(&[3]), ints(&[5])), ints(&[-2]));
        assert_eq!(of(Add, bools(&[Some(true), None]), ints(&[1, 1])), without(ints(&[2, 0]), &[1]));
    }

    #[test]
    fn overflow_names_the_operation() {
        let e = error(Add, ints(&[0, i64::MAX]), constant(Scalar::I64(1)));
        assert_eq!(e.kind(), ErrorKind::Overflow);
        assert_eq!(e.message(), "9223372036854775807 + 1 is out of the range of its integer type");
        assert_eq!(e.hint_text(), Some("compute in floating point: float64(x)"));
        let e = error(Mul, unsigned(&[u64::MAX]), ints(&[i64::MIN]));
        assert_eq!(e.kind(), ErrorKind::Overflow);
        error(FloorDiv, ints(&[i64::MIN]), ints(&[-1]));
        assert!(negate(&ints(&[i64::MIN])).unwrap().sound().is_err());
        error(Sub, unsigned(&[1]), unsigned(&[2]));
    }

    #[test]
    fn missing_places_do_not_overflow() {
        let a = without(ints(&[i64::MAX, 1]), &[0]);
        assert_eq!(of(Add, a, ints(&[1, 1])), without(ints(&[0, 2]), &[0]));
        let a = without(unsigned(&[u64::MAX, 1]), &[0]);
        assert_eq!(of(Add, a, ints(&[1, 1])), without(ints(&[0, 2]), &[0]));
    }

    #[test]
    fn integer_division_floors_and_by_zero_is_missing() {
        let (a, b) = (ints(&[7, -7, 7, -7, 6, 1]), ints(&[2, 2, -2, -2, -3, 0]));
        assert_eq!(of(FloorDiv, a.clone(), b.clone()), without(ints(&[3, -4, -4, 3, -2, 0]), &[5]));
        assert_eq!(of(Rem, a, b), without(ints(&[1, 1, -1, -1, 0, 0]), &[5]));
        assert_eq!(of(Rem, ints(&[i64::MIN]), ints(&[-1])), ints(&[0]));
        assert_eq!(of(Rem, unsigned(&[u64::MAX]), constant(Scalar::I64(10))), ints(&[5]));
        assert_eq!(of(FloorDiv, ints(&[4, 5]), constant(Scalar::I64(0))), without(ints(&[0, 0]), &[0, 1]));
    }

    /// What numpy 2.4 gives for the same operands.
    #[test]
    fn float_division_is_numpys() {
        let inf = f64::INFINITY;
        let a = floats(&[7.5, -7.5, 7.5, -7.5, inf, 1.0, 0.0, -0.0, 1.0, -1.0, 5.0, -1e-300]);
        let b = floats(&[2.0, 2.0, -2.0, -2.0, 3.0, inf, 5.0, 5.0, 0.0, 0.0, -inf, 1e300]);
        let quotients = floats(&[3.0, -4.0, -4.0, 3.0, f64::NAN, 0.0, 0.0, -0.0, inf, -inf, -1.0, -1.0]);
        assert_eq!(of(FloorDiv, a.clone(), b.clone()), quotients);
        let nan = f64::NAN;
        let remainders = floats(&[1.5, 0.5, -0.5, -1.5, nan, 1.0, 0.0, 0.0, nan, nan, -inf, 1e300]);
        assert_eq!(of(Rem, a, b), remainders);
    }

    #[test]
    fn true_division_is_float() {
        let q = of(Div, ints(&[1, 1, 0]), ints(&[2, 0, 0]));
        assert_eq!(q, floats(&[0.5, f64::INFINITY, f64::NAN]));
        assert_eq!(q.valid, Some(Mask::from(&[true, true, false][..])));
    }

    #[test]
    fn powers_are_float() {
        assert_eq!(of(Pow, ints(&[2, 3]), constant(Scalar::I64(-1))), floats(&[0.5, 1.0 / 3.0]));
        assert_eq!(of(Pow, ints(&[-8, 4]), constant(Scalar::F64(0.5))), floats(&[f64::NAN, 2.0]));
        assert_eq!(of(Pow, ints(&[2]), ints(&[10])), floats(&[1024.0]));
    }

    #[test]
    fn null_takes_the_type_of_its_neighbour() {
        let sum = of(Add, ints(&[1, 2]), constant(Scalar::Null));
        assert_eq!((sum.value_type(), sum.len(), sum.is_valid(0)), (Some(ValueType::I64), 2, false));
        assert!(of(Add, constant(Scalar::Null), constant(Scalar::I64(1))).is_constant());
    }

    #[test]
    fn text_is_refused() {
        let e = arithmetic(Add, &texts(&["a"]), &ints(&[1])).unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::TypeMismatch, "+ needs numbers, got str + int64"));
    }

    #[test]
    fn minus_makes_integers_signed() {
        assert_eq!(negate(&unsigned(&[3])).unwrap(), ints(&[-3]));
        assert_eq!(negate(&floats(&[0.0])).unwrap().scalar(0), Scalar::F64(-0.0));
        assert!(negate(&unsigned(&[u64::MAX])).unwrap().sound().is_err());
        assert_eq!(negate(&unsigned(&[1 << 63])).unwrap(), ints(&[i64::MIN]));
    }
}
