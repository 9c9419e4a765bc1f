//! Functions that choose among their arguments, row by row.

use super::{Element, Shape, ValueType, Values, Vector, compare};
use crate::ast::CompareOp;
use crate::mask::Mask;
use sieva_types::{Error, ErrorKind, Result, Texts};
use std::borrow::Cow;

/// The first argument that is not missing.
pub(super) fn coalesce(args: &[&Vector], result: ValueType) -> Result<Vector> {
    let shape = Shape::common(args)?;
    pick(args, result, shape, |row| args.iter().position(|a| !a.is_missing(row)))
}

/// The least or the greatest of the arguments that are not missing, the first of several such.
pub(super) fn extreme(args: &[&Vector], result: ValueType, greatest: bool) -> Result<Vector> {
    let shape = Shape::common(args)?;
    let args = args.iter().map(|a| a.widen(result)).collect::<Result<Vec<_>>>()?;
    let Some((first, rest)) = args.split_first() else {
        return Err(Error::new(ErrorKind::Internal, "least or greatest of nothing"));
    };
    let op = if greatest { CompareOp::Gt } else { CompareOp::Lt };
    let mut best = Cow::Borrowed(&**first);
    for next in rest {
        let shape = Shape::common(&[&best, next])?;
        let better = compare(op, next, &best)?;
        best = Cow::Owned(pick(&[&best, next], result, shape, |row| {
            let is_better = better.is_valid(row) && truth(&better, row);
            match best.is_valid(row) {
                true => Some(usize::from(is_better)),
                false => next.is_valid(row).then_some(1),
            }
        })?);
    }
    if args.iter().all(|a| a.failed_rows().is_none()) {
        return Ok(best.into_owned());
    }
    // Which of them is the least is not known where one of them failed.
    let failed = |row: usize| args.iter().map(|a| &**a).find(|a| a.is_failed(row));
    Ok(best.into_owned().after_each(shape, failed))
}

/// `a` where `condition` is true, else `b`: also where it is missing, as in SQL's CASE.
pub(super) fn if_else(condition: &Vector, a: &Vector, b: &Vector, result: ValueType) -> Result<Vector> {
    let shape = Shape::common(&[condition, a, b])?;
    let choose = |row| Some(usize::from(!(condition.is_valid(row) && truth(condition, row))));
    let picked = pick(&[a, b], result, shape, |row| choose(row).filter(|_| !condition.is_failed(row)))?;
    Ok(if condition.failed_rows().is_some() { picked.after_each(shape, |_| Some(condition)) } else { picked })
}

/// `a`, missing where it equals `b`.
pub(super) fn null_if(a: &Vector, b: &Vector, result: ValueType) -> Result<Vector> {
    let shape = Shape::common(&[a, b])?;
    let equal = compare(CompareOp::Eq, a, b)?;
    let picked =
        pick(&[a], result, shape, |row| (!(equal.is_valid(row) && truth(&equal, row))).then_some(0))?;
    Ok(if equal.failed_rows().is_some() { picked.after_each(shape, |_| Some(&equal)) } else { picked })
}

fn truth(condition: &Vector, row: usize) -> bool {
    let i = if condition.is_constant() { 0 } else { row };
    matches!(&condition.values, Values::Bool(v) if v[i])
}

/// For each row the value of the argument that `choose` gives, as `result`; missing if none.
fn pick(
    args: &[&Vector],
    result: ValueType,
    shape: Shape,
    choose: impl Fn(usize) -> Option<usize>,
) -> Result<Vector> {
    let args = args.iter().map(|a| a.widen(result)).collect::<Result<Vec<_>>>()?;
    let picked = match result {
        ValueType::Bool => pick_values::<bool>(&args, shape, &choose),
        ValueType::I64 => pick_values::<i64>(&args, shape, &choose),
        ValueType::U64 => pick_values::<u64>(&args, shape, &choose),
        ValueType::F64 => pick_values::<f64>(&args, shape, &choose),
        ValueType::Str => pick_texts(&args, shape, &choose),
    };
    if args.iter().all(|a| a.failed_rows().is_none()) {
        return Ok(picked);
    }
    Ok(picked.after_each(shape, |row| choose(row).map(|arg| &*args[arg])))
}

fn pick_values<T: Element>(
    args: &[Cow<'_, Vector>],
    shape: Shape,
    choose: impl Fn(usize) -> Option<usize>,
) -> Vector {
    let mut values = Vec::with_capacity(shape.len());
    let mut valid = Vec::with_capacity(shape.len());
    for row in 0..shape.len() {
        let value = picked(args, row, &choose).and_then(|(values, i)| T::slice(values)?.get(i));
        valid.push(value.is_some());
        values.push(value.cloned().unwrap_or_default());
    }
    let valid = Mask::from(&valid[..]).unless_all();
    Vector::from_parts(T::wrap(values), valid, shape)
}

fn pick_texts(args: &[Cow<'_, Vector>], shape: Shape, choose: impl Fn(usize) -> Option<usize>) -> Vector {
    let mut texts = Texts::with_room(shape.len(), 0);
    let mut valid = Vec::with_capacity(shape.len());
    for row in 0..shape.len() {
        let text = match picked(args, row, &choose) {
            Some((Values::Str(v), i)) => v.get(i),
            _ => None,
        };
        valid.push(text.is_some());
        texts.push(text.unwrap_or_default());
    }
    let valid = Mask::from(&valid[..]).unless_all();
    Vector::from_parts(Values::Str(texts), valid, shape)
}

/// The values that a row takes its own of, and the place there; `None` where it is missing.
fn picked<'a>(
    args: &'a [Cow<'_, Vector>],
    row: usize,
    choose: impl Fn(usize) -> Option<usize>,
) -> Option<(&'a Values, usize)> {
    let arg = choose(row).map(|arg| &args[arg]).filter(|arg| arg.is_valid(row))?;
    Some((&arg.values, if arg.is_constant() { 0 } else { row }))
}

#[cfg(test)]
mod tests {
    use super::super::{Function, Scalar, testing::*};
    use super::*;

    fn call(name: &str, args: &[&Vector]) -> Vector {
        Function::from_name(name).unwrap().apply(args).unwrap()
    }

    #[test]
    fn coalesce_takes_the_first_that_is_there() {
        let a = without(ints(&[1, 2]), &[1]);
        assert_eq!(call("coalesce", &[&a, &constant(Scalar::I64(0))]), ints(&[1, 0]));
        assert_eq!(call("coalesce", &[&constant(Scalar::Null), &a]), a);
        assert_eq!(call("coalesce", &[&a, &floats(&[0.5, 0.5])]), floats(&[1.0, 0.5]));
        assert_eq!(call("coalesce", &[&a]).value_type(), Some(ValueType::I64));
    }

    #[test]
    fn least_and_greatest_pass_over_missing() {
        let (a, b) = (without(ints(&[1, 5, 9]), &[2]), without(ints(&[3, 2, 4]), &[0]));
        assert_eq!(call("least", &[&a, &b]), ints(&[1, 2, 4]));
        assert_eq!(call("greatest", &[&a, &b, &constant(Scalar::Null)]), ints(&[1, 5, 4]));
        assert_eq!(call("greatest", &[&texts(&["b", "a"]), &texts(&["a", "c"])]), texts(&["b", "c"]));
        assert_eq!(call("least", &[&constant(Scalar::Null)]).scalar(0), Scalar::Null);
    }

    #[test]
    fn if_takes_the_other_where_the_condition_is_missing() {
        let condition = bools(&[Some(true), Some(false), None]);
        let one = constant(Scalar::I64(1));
        assert_eq!(call("if", &[&condition, &one, &ints(&[7, 8, 9])]), ints(&[1, 8, 9]));
        assert_eq!(
            call("if", &[&condition, &one, &constant(Scalar::Null)]),
            without(ints(&[1, 0, 0]), &[1, 2])
        );
    }

    #[test]
    fn nullif_keeps_the_type_of_the_first() {
        let a = ints(&[1, -999]);
        assert_eq!(call("nullif", &[&a, &constant(Scalar::F64(-999.0))]), without(a.clone(), &[1]));
        assert_eq!(call("nullif", &[&a, &constant(Scalar::Null)]), a);
    }
}
