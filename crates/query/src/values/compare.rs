//! Comparisons, of numbers as real numbers whatever types hold them.

use super::{Shape, ValueType, Values, Vector, all_valid, arithmetic::type_name, zip_with};
use crate::ast::CompareOp;
use sieva_types::{Error, ErrorKind, Result, Texts};
use std::cmp::Ordering;

/// Whether values of these types can be compared; `None` is the untyped NULL.
///
/// # Errors
/// `TypeMismatch` if one is text and the other is not.
pub fn check_comparable(op: CompareOp, a: Option<ValueType>, b: Option<ValueType>) -> Result<()> {
    match (a, b) {
        (Some(x), Some(y)) if (x == ValueType::Str) != (y == ValueType::Str) => {
            let message = format!("cannot compare {} {} {}", type_name(a), op.symbol(), type_name(b));
            Err(Error::new(ErrorKind::TypeMismatch, message)
                .hint("text is compared with text ('...'), numbers with numbers"))
        }
        _ => Ok(()),
    }
}

/// `a op b`, row by row, as a condition; missing where either is.
///
/// Numbers are compared exactly, an integer beyond 2^53 with a float too; text by the bytes of its UTF-8, that is
/// by code points; false is below true, and bool beside a number is 0 or 1.
///
/// # Errors
/// `TypeMismatch` if one is text and the other is not.
pub fn compare(op: CompareOp, a: &Vector, b: &Vector) -> Result<Vector> {
    check_comparable(op, a.value_type(), b.value_type())?;
    let shape = Shape::common(&[a, b])?;
    if a.value_type().is_none() || b.value_type().is_none() {
        return Ok(Vector::missing(ValueType::Bool, shape));
    }
    let values = compare_values(op, &a.values, &b.values, shape);
    Ok(Vector::from_parts(Values::Bool(values), all_valid(&[a, b], shape), shape).after(&[a, b]))
}

fn compare_values(op: CompareOp, a: &Values, b: &Values, shape: Shape) -> Vec<bool> {
    use Values::{Bool, F64, I64, Str, U64};
    match (a, b) {
        (Bool(x), Bool(y)) => natively(op, x, y, shape),
        (I64(x), I64(y)) => natively(op, x, y, shape),
        (U64(x), U64(y)) => natively(op, x, y, shape),
        (F64(x), F64(y)) => natively(op, x, y, shape),
        (Str(x), Str(y)) => of_texts(op, x, y, shape),
        (I64(x), F64(y)) => by_order(op, x, y, shape, |&x, &y| i64_with_f64(x, y)),
        (U64(x), F64(y)) => by_order(op, x, y, shape, |&x, &y| u64_with_f64(x, y)),
        (I64(x), U64(y)) => by_order(op, x, y, shape, |&x, &y| i64_with_u64(x, y)),
        (Bool(x), F64(y)) => by_order(op, x, y, shape, |&x, &y| i64_with_f64(x.into(), y)),
        (Bool(x), I64(y)) => by_order(op, x, y, shape, |&x, &y| i64::from(x).cmp(&y)),
        (Bool(x), U64(y)) => by_order(op, x, y, shape, |&x, &y| u64::from(x).cmp(&y)),
        (Str(_), _) | (_, Str(_)) => vec![false; shape.len()],
        // The others are these the other way around.
        (F64(_), _) | (U64(_), I64(_) | Bool(_)) | (I64(_), Bool(_)) => {
            compare_values(op.mirrored(), b, a, shape)
        }
    }
}

/// By the operators of one type; each gets a loop of its own that the compiler can vectorise.
fn natively<T: PartialOrd>(op: CompareOp, a: &[T], b: &[T], shape: Shape) -> Vec<bool> {
    match op {
        CompareOp::Eq => zip_with(a, b, shape, |x, y| x == y),
        CompareOp::NotEq => zip_with(a, b, shape, |x, y| x != y),
        CompareOp::Lt => zip_with(a, b, shape, |x, y| x < y),
        CompareOp::LtEq => zip_with(a, b, shape, |x, y| x <= y),
        CompareOp::Gt => zip_with(a, b, shape, |x, y| x > y),
        CompareOp::GtEq => zip_with(a, b, shape, |x, y| x >= y),
    }
}

/// One text of an operand stands for all rows.
fn of_texts(op: CompareOp, a: &Texts, b: &Texts, shape: Shape) -> Vec<bool> {
    let at = |texts: &Texts, row: usize| if texts.len() == 1 { 0 } else { row };
    let each = (0..shape.len()).map(|row| (&a[at(a, row)], &b[at(b, row)]));
    match op {
        CompareOp::Eq => each.map(|(x, y)| x == y).collect(),
        CompareOp::NotEq => each.map(|(x, y)| x != y).collect(),
        CompareOp::Lt => each.map(|(x, y)| x < y).collect(),
        CompareOp::LtEq => each.map(|(x, y)| x <= y).collect(),
        CompareOp::Gt => each.map(|(x, y)| x > y).collect(),
        CompareOp::GtEq => each.map(|(x, y)| x >= y).collect(),
    }
}

fn by_order<A, B>(
    op: CompareOp,
    a: &[A],
    b: &[B],
    shape: Shape,
    order: impl Fn(&A, &B) -> Ordering,
) -> Vec<bool> {
    match op {
        CompareOp::Eq => zip_with(a, b, shape, |x, y| order(x, y).is_eq()),
        CompareOp::NotEq => zip_with(a, b, shape, |x, y| order(x, y).is_ne()),
        CompareOp::Lt => zip_with(a, b, shape, |x, y| order(x, y).is_lt()),
        CompareOp::LtEq => zip_with(a, b, shape, |x, y| order(x, y).is_le()),
        CompareOp::Gt => zip_with(a, b, shape, |x, y| order(x, y).is_gt()),
        CompareOp::GtEq => zip_with(a, b, shape, |x, y| order(x, y).is_ge()),
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Exact; of NaN, which is never valid, the answer means nothing.
fn i64_with_f64(a: i64, b: f64) -> Ordering {
    if b >= TWO_TO_63 {
        return Ordering::Less;
    }
    if b < -TWO_TO_63 {
        return Ordering::Greater;
    }
    // In this range the whole part is exact in both types.
    let whole = b as i64;
    a.cmp(&whole).then_with(|| 0.0_f64.total_cmp(&(b - whole as f64 + 0.0)))
}

fn u64_with_f64(a: u64, b: f64) -> Ordering {
    if b >= 2.0 * TWO_TO_63 {
        return Ordering::Less;
    }
    if b < 0.0 {
        return Ordering::Greater;
    }
    let whole = b as u64;
    a.cmp(&whole).then_with(|| 0.0_f64.total_cmp(&(b - whole as f64 + 0.0)))
}

fn i64_with_u64(a: i64, b: u64) -> Ordering {
    u64::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::super::{Scalar, testing::*};
    use super::*;
    use CompareOp::*;

    fn of(op: CompareOp, a: &Vector, b: &Vector) -> Vec<Option<bool>> {
        let c = compare(op, a, b).unwrap();
        (0..c.len())
            .map(|i| match c.scalar(i) {
                Scalar::Bool(v) => Some(v),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn integers_beyond_2_to_53_compare_exactly_with_floats() {
        let near = (1_i64 << 53) + 1;
        let float = (1_u64 << 53) as f64;
        assert_eq!(
            of(Gt, &ints(&[near, near - 1]), &constant(Scalar::F64(float))),
            [Some(true), Some(false)]
        );
        assert_eq!(of(Eq, &floats(&[float]), &ints(&[near])), [Some(false)]);
        assert_eq!(of(Lt, &ints(&[i64::MAX]), &floats(&[TWO_TO_63])), [Some(true)]);
        assert_eq!(of(Eq, &ints(&[i64::MIN]), &floats(&[-TWO_TO_63])), [Some(true)]);
        assert_eq!(of(Lt, &unsigned(&[u64::MAX]), &floats(&[2.0 * TWO_TO_63])), [Some(true)]);
        assert_eq!(of(Eq, &unsigned(&[1 << 63]), &floats(&[TWO_TO_63])), [Some(true)]);
    }

    #[test]
    fn fractions_infinities_and_zeros() {
        let b = floats(&[2.5, -0.5, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
        let a = ints(&[2, 0, i64::MAX, i64::MIN, 0]);
        let expected =
            [Ordering::Less, Ordering::Greater, Ordering::Less, Ordering::Greater, Ordering::Equal];
        for (i, order) in expected.into_iter().enumerate() {
            assert_eq!(of(Lt, &a, &b)[i], Some(order.is_lt()), "{i}");
            assert_eq!(of(LtEq, &a, &b)[i], Some(order.is_le()), "{i}");
            assert_eq!(of(Gt, &b, &a)[i], Some(order.is_lt()), "{i}");
            assert_eq!(of(NotEq, &b, &a)[i], Some(order.is_ne()), "{i}");
        }
        assert_eq!(of(Eq, &unsigned(&[0]), &floats(&[-0.0])), [Some(true)]);
        assert_eq!(of(Gt, &unsigned(&[0]), &floats(&[-1e-300])), [Some(true)]);
    }

    #[test]
    fn signed_with_unsigned() {
        assert_eq!(of(Lt, &ints(&[-1, i64::MAX]), &unsigned(&[u64::MAX, 0])), [Some(true), Some(false)]);
        assert_eq!(of(GtEq, &unsigned(&[5]), &ints(&[5])), [Some(true)]);
    }

    #[test]
    fn missing_compares_as_missing() {
        let a = without(ints(&[1, 2]), &[1]);
        assert_eq!(of(Eq, &a, &ints(&[1, 2])), [Some(true), None]);
        assert_eq!(of(NotEq, &floats(&[f64::NAN]), &floats(&[1.0])), [None]);
        assert_eq!(of(Eq, &texts(&["a"]), &constant(Scalar::Null)), [None]);
    }

    #[test]
    fn text_compares_by_bytes_and_only_with_text() {
        let a = texts(&["Z", "a", "é"]);
        assert_eq!(of(Lt, &a, &constant(Scalar::Str("a".into()))), [Some(true), Some(false), Some(false)]);
        let e = compare(Gt, &a, &ints(&[1, 2, 3])).unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::TypeMismatch, "cannot compare str > int64"));
    }

    #[test]
    fn bool_counts_as_a_number() {
        let a = bools(&[Some(true), Some(false)]);
        assert_eq!(of(Eq, &a, &constant(Scalar::I64(1))), [Some(true), Some(false)]);
        assert_eq!(of(Gt, &constant(Scalar::F64(0.5)), &a), [Some(false), Some(true)]);
        assert_eq!(of(Lt, &a, &constant(Scalar::U64(1))), [Some(false), Some(true)]);
    }
}
