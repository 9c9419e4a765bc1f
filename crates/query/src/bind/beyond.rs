//! Comparisons with integer literals beyond 64 bits, which no constant of a value's type can hold.
//!
//! Such a literal lies strictly between two neighbouring float64, and no integer of 64 bits lies between these, so
//! that any number is below it exactly if it is below the upper neighbour. One neighbour does for all comparisons, so that
//! NOT of one is the other as it would have been written.

use std::cmp::Ordering;

use sieva_format::decoding::Number;
use sieva_types::Result;

use super::Value;
use crate::ast::CompareOp;
use crate::raw::compare_exact;
use crate::values::{Scalar, Vector};

/// `a op b` of two values, each with the integer that it is if it was written so.
pub(crate) fn compare(
    op: CompareOp,
    (a, left): (Value, Option<i128>),
    (b, right): (Value, Option<i128>),
) -> Result<Value> {
    match (left.filter(is_beyond), right.filter(is_beyond)) {
        (None, None) => Ok(Value::Compare(op, Box::new(a), Box::new(b))),
        (None, Some(literal)) => with_literal(op, a, literal),
        (Some(literal), None) => with_literal(op.mirrored(), b, literal),
        (Some(x), Some(y)) => Ok(Value::Constant(Vector::constant(&Scalar::Bool(op.holds(x.cmp(&y))))?)),
    }
}

/// Whether neither 64 bits nor a float64 hold an integer.
fn is_beyond(i: &i128) -> bool {
    i64::try_from(*i).is_err() && u64::try_from(*i).is_err() && order(*i) != Some(Ordering::Equal)
}

/// How an integer compares with the float64 nearest to it.
fn order(i: i128) -> Option<Ordering> {
    compare_exact(Number::Int(i), Number::Float(i as f64))
}

fn with_literal(op: CompareOp, value: Value, literal: i128) -> Result<Value> {
    let nearest = literal as f64;
    let above = if order(literal) == Some(Ordering::Less) { nearest } else { nearest.next_up() };
    let side = |op: CompareOp, value: Value| -> Result<Value> {
        let neighbour = Value::Constant(Vector::constant(&Scalar::F64(above))?);
        Ok(Value::Compare(op, Box::new(value), Box::new(neighbour)))
    };
    let both = |value: Value| -> Result<Vec<Value>> {
        Ok(vec![side(CompareOp::Lt, value.clone())?, side(CompareOp::GtEq, value)?])
    };
    match op {
        CompareOp::Lt | CompareOp::LtEq => side(CompareOp::Lt, value),
        CompareOp::Gt | CompareOp::GtEq => side(CompareOp::GtEq, value),
        // Nothing is equal to it; where the value is missing, so is the answer.
        CompareOp::Eq => Ok(Value::And(both(value)?)),
        CompareOp::NotEq => Ok(Value::Or(both(value)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::evaluate_constant;

    fn answer(op: CompareOp, value: Scalar, literal: i128) -> Scalar {
        let constant = |s: &Scalar| Value::Constant(Vector::constant(s).unwrap());
        let (value, literal) = ((constant(&value), None), (constant(&Scalar::Null), Some(literal)));
        let one = compare(op, value.clone(), literal.clone()).unwrap();
        let other = compare(op.mirrored(), literal, value).unwrap();
        let [one, other] = [one, other].map(|v| evaluate_constant(&v).unwrap().scalar(0));
        assert_eq!(one, other);
        one
    }

    #[test]
    fn neighbours_of_a_literal_are_not_equal_to_it() {
        let two_to_63 = 2_f64.powi(63);
        for (value, literal, expected) in [
            (Scalar::I64(i64::MIN), i128::from(i64::MIN) - 1, Ordering::Greater),
            (Scalar::F64(-two_to_63), i128::from(i64::MIN) - 1, Ordering::Greater),
            (Scalar::F64((-two_to_63).next_down()), i128::from(i64::MIN) - 1, Ordering::Less),
            (Scalar::U64(u64::MAX), i128::from(u64::MAX) + 2, Ordering::Less),
            (Scalar::F64(2.0 * two_to_63), i128::from(u64::MAX) + 2, Ordering::Less),
            (Scalar::F64(2_f64.powi(127)), i128::MAX, Ordering::Greater),
            (Scalar::F64(f64::NEG_INFINITY), i128::MIN + 1, Ordering::Less),
        ] {
            for op in [
                CompareOp::Eq,
                CompareOp::NotEq,
                CompareOp::Lt,
                CompareOp::LtEq,
                CompareOp::Gt,
                CompareOp::GtEq,
            ] {
                let holds = Scalar::Bool(op.holds(expected));
                assert_eq!(answer(op, value.clone(), literal), holds, "{value:?} {} {literal}", op.symbol());
            }
        }
    }

    #[test]
    fn a_missing_value_compares_as_missing() {
        assert_eq!(answer(CompareOp::NotEq, Scalar::Null, i128::MAX), Scalar::Null);
        assert_eq!(answer(CompareOp::Lt, Scalar::Null, i128::MIN + 1), Scalar::Null);
    }

    #[test]
    fn two_literals_are_compared_as_they_are() {
        let null = || Value::Constant(Vector::constant(&Scalar::Null).unwrap());
        let v = compare(CompareOp::Gt, (null(), Some(i128::MAX)), (null(), Some(i128::MAX - 1))).unwrap();
        assert_eq!(evaluate_constant(&v).unwrap().scalar(0), Scalar::Bool(true));
    }
}
