//! Bound values, a column at a time. Where the columns come from is the provider's matter.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_types::{Error, ErrorKind, Result};

use crate::bind::{DatePart, Value, part_of};
use crate::mask::Mask;
use crate::values::{self, LikePattern, Values, Vector};

/// Gives the columns that an expression is computed from, all of one length.
pub trait Provider {
    /// The array's values: decoded, or as stored.
    fn array(&mut self, array: usize, raw: bool) -> Result<Vector>;
    /// The positions along a dimension.
    fn position(&mut self, dim: usize) -> Result<Vector>;
    /// The dates' parts of a time coordinate.
    fn units(&self, array: usize) -> Option<&sieva_format::cf::TimeUnits>;
    /// What stops the query.
    fn cancel(&self) -> Arc<AtomicBool>;
    /// The groups' keys of this number.
    fn key(&mut self, _key: usize) -> Result<Vector> {
        Err(Error::new(ErrorKind::Internal, "a group's key outside of a group"))
    }
    /// The groups' aggregates of this number.
    fn aggregated(&mut self, _aggregate: usize) -> Result<Vector> {
        Err(Error::new(ErrorKind::Internal, "an aggregate outside of a group"))
    }
}

/// The value's column.
///
/// # Errors
/// Reading errors, `type-mismatch`. Rows whose value cannot be represented fail: see [`Vector::sound`].
pub fn evaluate(value: &Value, from: &mut dyn Provider) -> Result<Vector> {
    match value {
        Value::Constant(v) => Ok(v.clone()),
        Value::Array { array, raw } => from.array(*array, *raw),
        Value::Position { dim } => from.position(*dim),
        Value::Arithmetic(op, a, b) => {
            let (a, b) = (evaluate(a, from)?, evaluate(b, from)?);
            values::arithmetic(*op, &a, &b)
        }
        Value::Negate(a) => values::negate(&evaluate(a, from)?),
        Value::Compare(op, a, b) => {
            let (a, b) = (evaluate(a, from)?, evaluate(b, from)?);
            values::compare(*op, &a, &b)
        }
        Value::And(parts) => combine(parts, from, values::and),
        Value::Or(parts) => combine(parts, from, values::or),
        Value::Not(a) => values::not(&evaluate(a, from)?),
        Value::IsNull(a) => Ok(values::is_null(&evaluate(a, from)?)),
        Value::OneOf(a, constants) => constants.hold(&evaluate(a, from)?),
        Value::Like(a, pattern) => like(&evaluate(a, from)?, pattern),
        Value::Call(function, args) => {
            let args = args.iter().map(|a| evaluate(a, from)).collect::<Result<Vec<_>>>()?;
            function.apply(&args.iter().collect::<Vec<_>>())
        }
        Value::Code(called, args) => {
            let args = args.iter().map(|a| evaluate(a, from)).collect::<Result<Vec<_>>>()?;
            called.apply(&args.iter().collect::<Vec<_>>(), &from.cancel())
        }
        Value::Reduced(..) => Err(Error::new(ErrorKind::Internal, "a reduction of single rows")),
        Value::Date(part, array) => {
            let numbers = from.array(*array, false)?;
            let units = from.units(*array);
            dates(*part, &numbers, |part, x| units.and_then(|u| part_of(part, u, x)))
        }
        Value::Subquery(..) => Err(Error::new(ErrorKind::Internal, "a subquery that was not answered")),
        Value::Unknown(_) => Err(Error::new(ErrorKind::Internal, "a key without its value")),
        Value::Key(key) => from.key(*key),
        Value::Aggregated(aggregate) => from.aggregated(*aggregate),
    }
}

fn like(texts: &Vector, pattern: &LikePattern) -> Result<Vector> {
    let Values::Str(texts_held) = &texts.values else {
        return Err(Error::new(ErrorKind::TypeMismatch, "LIKE needs text"));
    };
    let found = Values::Bool(texts_held.iter().map(|t| pattern.matches(t)).collect());
    Ok(Vector::new(found, texts.valid.clone())?.after(&[texts]))
}

fn combine(
    parts: &[Value],
    from: &mut dyn Provider,
    with: impl Fn(&Vector, &Vector) -> Result<Vector>,
) -> Result<Vector> {
    let mut all = parts.iter();
    let Some(first) = all.next() else {
        return Err(Error::new(ErrorKind::Internal, "an empty list of conditions"));
    };
    let mut out = evaluate(first, from)?;
    for part in all {
        out = with(&out, &evaluate(part, from)?)?;
    }
    Ok(out)
}

fn dates(part: DatePart, numbers: &Vector, part_of: impl Fn(DatePart, f64) -> Option<i64>) -> Result<Vector> {
    let numbers = numbers.widen(values::ValueType::F64)?;
    let Values::F64(x) = &numbers.values else {
        return Err(Error::new(ErrorKind::Internal, "a time coordinate that is not numeric"));
    };
    // Neighbours along other dimensions share a date: one conversion for each run of equal numbers.
    let mut last: Option<(u64, Option<i64>)> = None;
    let parts: Vec<Option<i64>> = (0..x.len())
        .map(|i| {
            if !numbers.is_valid(i) {
                return None;
            }
            match last {
                Some((bits, part)) if bits == x[i].to_bits() => part,
                _ => {
                    let found = part_of(part, x[i]);
                    last = Some((x[i].to_bits(), found));
                    found
                }
            }
        })
        .collect();
    let valid = Mask::from_fn(parts.len(), |i| parts[i].is_some()).unless_all();
    Vector::new(Values::I64(parts.into_iter().map(Option::unwrap_or_default).collect()), valid)
}

/// The one value of an expression without arrays.
///
/// # Errors
/// As [`evaluate`], and `arithmetic-overflow`.
pub fn evaluate_constant(value: &Value) -> Result<Vector> {
    struct Nothing;
    impl Provider for Nothing {
        fn array(&mut self, _: usize, _: bool) -> Result<Vector> {
            Err(Error::new(ErrorKind::Internal, "an array in a constant"))
        }
        fn position(&mut self, _: usize) -> Result<Vector> {
            Err(Error::new(ErrorKind::Internal, "a position in a constant"))
        }
        fn units(&self, _: usize) -> Option<&sieva_format::cf::TimeUnits> {
            None
        }
        fn cancel(&self) -> Arc<AtomicBool> {
            Arc::default()
        }
    }
    let v = evaluate(value, &mut Nothing)?.sound()?;
    Vector::constant(&v.scalar(0))
}
