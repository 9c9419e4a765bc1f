//! Three-valued logic (Kleene's, as in SQL): what is missing may be either, and so may what failed.

use super::{Shape, ValueType, Values, Vector};
use crate::mask::Mask;
use sieva_types::{Error, ErrorKind, Result};

/// `a AND b`: false if either is, true if both are, else missing.
///
/// # Errors
/// `TypeMismatch` if one is not a condition.
pub fn and(a: &Vector, b: &Vector) -> Result<Vector> {
    connect(a, b, false)
}

/// `a OR b`: true if either is, false if both are, else missing.
///
/// # Errors
/// `TypeMismatch` if one is not a condition.
pub fn or(a: &Vector, b: &Vector) -> Result<Vector> {
    connect(a, b, true)
}

/// `NOT a`; missing stays missing.
///
/// # Errors
/// `TypeMismatch` if it is not a condition.
pub fn not(a: &Vector) -> Result<Vector> {
    let shape = Shape::of(a);
    if a.value_type().is_none() {
        return Ok(Vector::missing(ValueType::Bool, shape));
    }
    let values = Values::Bool(condition(a)?.iter().map(|v| !v).collect());
    Ok(Vector::from_parts(values, a.valid.clone(), shape).after(&[a]))
}

/// `a IS NULL`; never missing.
pub fn is_null(a: &Vector) -> Vector {
    let shape = Shape::of(a);
    let missing = match &a.valid {
        Some(valid) => valid.iter().map(|ok| !ok).collect(),
        None => vec![false; shape.len()],
    };
    let found = Vector::from_parts(Values::Bool(missing), None, shape);
    if a.failed_rows().is_some() { found.after_each(shape, |_| Some(a)) } else { found }
}

/// AND and OR: `decisive` is the operand that settles the result whatever the other one is.
fn connect(a: &Vector, b: &Vector, decisive: bool) -> Result<Vector> {
    let shape = Shape::common(&[a, b])?;
    let (x, y) = (Truth::of(a)?, Truth::of(b)?);
    let n = shape.len();
    let mut values = vec![decisive; n];
    let mut valid = (x.valid.is_some() || y.valid.is_some()).then(|| vec![true; n]);
    for i in 0..n {
        let ((v, v_ok), (w, w_ok)) = (x.at(i), y.at(i));
        let decided = (v_ok & (v == decisive)) | (w_ok & (w == decisive));
        values[i] = decided == decisive;
        if let Some(valid) = &mut valid {
            valid[i] = decided | (v_ok & w_ok);
        }
    }
    let valid = valid.map(|flags| Mask::from(&flags[..]));
    let found = Vector::from_parts(Values::Bool(values), valid, shape);
    if a.failed_rows().is_none() && b.failed_rows().is_none() {
        return Ok(found);
    }
    // What failed matters unless the other one is decisive.
    let decided: Vec<bool> = (0..n).map(|i| [&x, &y].iter().any(|t| t.at(i) == (decisive, true))).collect();
    Ok(found.after_each(shape, |i| [a, b].into_iter().find(|o| o.is_failed(i)).filter(|_| !decided[i])))
}

/// An operand, row by row.
struct Truth<'a> {
    values: &'a [bool],
    valid: Option<&'a Mask>,
    /// 0 if one value stands for all rows.
    stride: usize,
}

impl<'a> Truth<'a> {
    fn of(vector: &'a Vector) -> Result<Self> {
        let stride = usize::from(!vector.is_constant());
        if vector.value_type().is_none() {
            return Ok(Self { values: &[false], valid: vector.valid.as_ref(), stride });
        }
        Ok(Self { values: condition(vector)?, valid: vector.valid.as_ref(), stride })
    }

    #[inline(always)]
    fn at(&self, row: usize) -> (bool, bool) {
        let i = row * self.stride;
        (self.values[i], self.valid.is_none_or(|v| v.get(i)))
    }
}

fn condition(vector: &Vector) -> Result<&[bool]> {
    match &vector.values {
        Values::Bool(v) => Ok(v),
        other => Err(not_a_condition(other.value_type())),
    }
}

pub(super) fn not_a_condition(got: ValueType) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("expected a condition, got {got}"))
        .hint("compare it with something, for example x <> 0")
}

#[cfg(test)]
mod tests {
    use super::super::{Scalar, testing::*};
    use super::*;

    const T: Option<bool> = Some(true);
    const F: Option<bool> = Some(false);
    const N: Option<bool> = None;

    #[test]
    fn truth_tables_are_kleenes() {
        let a = bools(&[T, T, T, F, F, F, N, N, N]);
        let b = bools(&[T, F, N, T, F, N, T, F, N]);
        assert_eq!(and(&a, &b).unwrap(), bools(&[T, F, N, F, F, F, N, F, N]));
        assert_eq!(or(&a, &b).unwrap(), bools(&[T, T, T, T, F, N, T, N, N]));
        assert_eq!(not(&b).unwrap(), bools(&[F, T, N, F, T, N, F, T, N]));
    }

    #[test]
    fn constants_and_null_broadcast() {
        let a: Vector = Values::Bool(vec![true, false]).into();
        assert_eq!(and(&a, &constant(Scalar::Null)).unwrap(), bools(&[N, F]));
        assert_eq!(or(&constant(Scalar::Bool(false)), &a).unwrap(), a);
        assert_eq!(or(&constant(Scalar::Bool(false)), &a).unwrap().valid, None);
        assert!(and(&constant(Scalar::Null), &constant(Scalar::Bool(true))).unwrap().is_constant());
    }

    #[test]
    fn is_null_is_never_missing() {
        let n = is_null(&without(ints(&[1, 2]), &[1]));
        assert_eq!((n.mask(2).unwrap(), n.valid), (Mask::from(&[false, true][..]), None));
        assert_eq!(is_null(&constant(Scalar::Null)).scalar(0), Scalar::Bool(true));
    }

    #[test]
    fn numbers_are_no_conditions() {
        let e = and(&ints(&[1]), &bools(&[T])).unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::TypeMismatch, "expected a condition, got int64"));
    }
}
