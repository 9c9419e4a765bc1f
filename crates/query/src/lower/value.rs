//! Expressions of a plan to bound values.

use std::collections::HashSet;
use std::sync::Arc;

use sieva_format::decoding::Number;
use sieva_plan::{Call, ColumnId, CompareOp, Expr, Literal};
use sieva_types::{DType, Error, ErrorKind, Result};

use super::{Answer, Lowering};
use crate::aggregate::REDUCTION;
use crate::bind::{
    Value, as_unsigned, beyond, call_of_code, constant_number, date_part, reduction_of_code, type_of,
    unknown_function, unsigned_arguments,
};
use crate::values::{self, Constants, Function, LikePattern, Scalar, Shape, ValueType, Vector};

/// So many comparisons are as fast as a look-up.
const FEW: usize = 8;

impl Lowering<'_> {
    /// The value of an expression per position, or per group.
    pub(super) fn value(&self, expr: &Expr) -> Result<Value> {
        let value = match expr {
            Expr::Literal(literal) => Value::Constant(constant(literal)?),
            Expr::Column(ColumnId(id)) => self.columns.get(*id as usize).cloned().ok_or_else(|| {
                Error::new(ErrorKind::Internal, format!("column {id} of a plan that was checked"))
            })?,
            Expr::Negate(a) => Value::Negate(Box::new(self.value(a)?)),
            Expr::Binary(op, a, b) => {
                let (left, right) = (self.value(a)?, self.value(b)?);
                let left = self.unsigned_beside(left, a, &right)?;
                let right = self.unsigned_beside(right, b, &left)?;
                Value::Arithmetic(*op, Box::new(left), Box::new(right))
            }
            Expr::Compare(op, a, b) => {
                let (left, right) = self.comparable(a, b)?;
                beyond::compare(*op, (left, written(a)), (right, written(b)))?
            }
            Expr::In(a, list) => self.one_of(self.value(a)?, list)?,
            Expr::IsNull(a) => Value::IsNull(Box::new(self.value(a)?)),
            Expr::Like(a, pattern) => {
                let pattern = LikePattern::new(pattern, None)?;
                Value::Like(Box::new(self.of_type(a, ValueType::Str, "LIKE")?), pattern)
            }
            Expr::And(parts) => Value::And(self.conditions(parts)?),
            Expr::Or(parts) => Value::Or(self.conditions(parts)?),
            Expr::Not(a) => Value::Not(Box::new(self.of_type(a, ValueType::Bool, "NOT")?)),
            Expr::Call(function, args) => self.call(function, args)?,
            Expr::Subquery(plan) => match (self.options.subqueries)(plan)? {
                Answer::Unknown(value_type) => Value::Subquery(Arc::new((**plan).clone()), value_type),
                Answer::Known(Scalar::Null, Some(t)) => Value::Constant(Vector::missing(t, Shape::Constant)),
                Answer::Known(value, _) => Value::Constant(Vector::constant(&value)?),
            },
        };
        self.folded(value)
    }

    pub(super) fn type_of(&self, value: &Value) -> Result<Option<ValueType>> {
        type_of(value, &self.arrays, &self.key_types, &self.aggregate_types)
    }

    /// The value, once its types were checked; what is computed from constants alone is computed once, here.
    fn folded(&self, value: Value) -> Result<Value> {
        let value_type = self.type_of(&value)?;
        let children = value.children();
        if children.is_empty() || !children.iter().all(|c| matches!(c, Value::Constant(_))) {
            return Ok(value);
        }
        let known = crate::exec::evaluate_constant(&value)?;
        // One that is missing keeps its type, as one that is there does.
        Ok(Value::Constant(match value_type {
            Some(t) if !known.is_valid(0) => Vector::missing(t, Shape::Constant),
            _ => known,
        }))
    }

    fn unsigned_beside(&self, value: Value, expr: &Expr, other: &Value) -> Result<Value> {
        let is_beside = self.type_of(other)? == Some(ValueType::U64);
        if is_beside && is_written(expr) { as_unsigned(value) } else { Ok(value) }
    }

    fn conditions(&self, parts: &[Expr]) -> Result<Vec<Value>> {
        if parts.is_empty() {
            return Err(Error::new(ErrorKind::InvalidValue, "a plan with AND or OR of nothing"));
        }
        parts.iter().map(|p| self.of_type(p, ValueType::Bool, "AND and OR")).collect()
    }

    /// A value that must be of one type (or NULL).
    pub(super) fn of_type(&self, expr: &Expr, wanted: ValueType, of: &str) -> Result<Value> {
        let value = self.value(expr)?;
        match self.type_of(&value)? {
            Some(got) if got != wanted => {
                let what = if wanted == ValueType::Bool { "a condition" } else { "text" };
                Err(Error::new(ErrorKind::TypeMismatch, format!("{of} needs {what}, got {got}")))
            }
            _ => Ok(value),
        }
    }

    /// Both sides of a comparison, of types that compare.
    pub(super) fn comparable(&self, a: &Expr, b: &Expr) -> Result<(Value, Value)> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        values::check_comparable(CompareOp::Eq, self.type_of(&a)?, self.type_of(&b)?)?;
        Ok((a, b))
    }

    /// Whether a value is one of some constants, as a value.
    fn one_of(&self, value: Value, list: &[Literal]) -> Result<Value> {
        if let Some(found) = self.look_up(&value, list)? {
            return Ok(found);
        }
        if list.is_empty() {
            return Ok(Value::Constant(Vector::constant(&Scalar::Bool(false))?));
        }
        let value_type = self.type_of(&value)?;
        let equal = list.iter().map(|literal| {
            let other = constant(literal)?;
            values::check_comparable(CompareOp::Eq, value_type, other.value_type())?;
            beyond::compare(
                CompareOp::Eq,
                (value.clone(), None),
                (Value::Constant(other), written_literal(literal)),
            )
        });
        Ok(Value::Or(equal.collect::<Result<_>>()?))
    }

    /// One look-up in place of many comparisons, where the value is computed or text; `None` where comparisons do.
    pub(super) fn look_up(&self, value: &Value, list: &[Literal]) -> Result<Option<Value>> {
        if list.len() <= FEW {
            return Ok(None);
        }
        match value {
            Value::Constant(_) | Value::Position { .. } => return Ok(None),
            // Numbers that are stored are tested as they are.
            Value::Array { array, .. }
                if self.schema.arrays[self.arrays[*array].index].dtype != DType::Str =>
            {
                return Ok(None);
            }
            _ => {}
        }
        let constants = match self.type_of(value)? {
            None => None,
            Some(ValueType::Str) => texts(list).map(Constants::Texts),
            Some(_) => numbers(list).map(Constants::of_numbers),
        };
        Ok(constants.map(|c| Value::OneOf(Box::new(value.clone()), Arc::new(c))))
    }

    /// What a reduction that came as code takes in.
    pub(super) fn reduction(&self, call: &Call) -> Result<Value> {
        let wrong = || {
            let message =
                format!("not a plan: '{REDUCTION}' takes the call of a reduction, and nothing else");
            Error::new(ErrorKind::InvalidValue, message)
        };
        let (false, [], Some(Expr::Call(function, args))) =
            (call.distinct, &call.parameters[..], &call.argument)
        else {
            return Err(wrong());
        };
        let args = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>>>()?;
        let functions = self.options.functions;
        let found = reduction_of_code(functions, function, args, &self.arrays, &|v| self.type_of(v))?;
        found.ok_or_else(wrong)
    }

    fn call(&self, function: &str, args: &[Expr]) -> Result<Value> {
        let are_written = |i: usize| args.get(i).is_some_and(is_written);
        let values = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>>>()?;
        if let Some(part) = date_part(function) {
            return match values[..] {
                [Value::Array { array, raw: false }] if self.arrays[array].time.is_some() => {
                    Ok(Value::Date(part, array))
                }
                _ => {
                    let message = format!("{function}() needs one time coordinate");
                    Err(Error::new(ErrorKind::TypeMismatch, message)
                        .hint("a time coordinate has units '<unit> since <date>'"))
                }
            };
        }
        let Some(f) = Function::from_name(function) else {
            let functions = self.options.functions;
            let called = call_of_code(functions, function, values, &self.arrays, &|v| self.type_of(v))?;
            return called.ok_or_else(|| unknown_function(function));
        };
        Ok(Value::Call(f, unsigned_arguments(f, values, &are_written, &|v| self.type_of(v))?))
    }
}

/// Whether an expression is computed of literals alone. Keys of a collection's objects are not: they have a type.
fn is_written(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => false,
        other => other.children().into_iter().all(is_written),
    }
}

/// A literal as a constant. Integers beyond 64 bits become the nearest float64, which is not how they compare.
pub(super) fn constant(literal: &Literal) -> Result<Vector> {
    crate::bind::constant(&literal.into())
}

/// The integer that an expression is.
pub(super) fn written(expr: &Expr) -> Option<i128> {
    if let Expr::Literal(literal) = expr { written_literal(literal) } else { None }
}

pub(super) fn written_literal(literal: &Literal) -> Option<i128> {
    if let Literal::Int(i) = literal { Some(*i) } else { None }
}

/// The number that a constant is. A literal beyond 64 bits, which no value has, is taken as written.
pub(super) fn exact_number(value: &Value, written: Option<i128>) -> Option<Number> {
    written.map(Number::Int).or_else(|| constant_number(value))
}

fn texts(list: &[Literal]) -> Option<HashSet<String>> {
    list.iter().map(|l| if let Literal::Text(text) = l { Some(text.clone()) } else { None }).collect()
}

fn numbers(list: &[Literal]) -> Option<Vec<Number>> {
    let number = |l: &Literal| match l {
        Literal::Bool(b) => Some(Number::Int((*b).into())),
        Literal::Int(i) => Some(Number::Int(*i)),
        Literal::Float(f) if !f.is_nan() => Some(Number::Float(*f)),
        _ => None,
    };
    list.iter().map(number).collect()
}
