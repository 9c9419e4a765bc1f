//! Conditions to negation normal form over sets of stored values.

use sieva_format::decoding::Number;
use sieva_plan::{CompareOp, Expr, Literal};
use sieva_types::{DType, Error, ErrorKind, Result};

use super::Lowering;
use super::compare::{compare_op, comparison, decided, positions};
use super::junction::{all, any};
use super::value::{constant, exact_number, written, written_literal};
use crate::bind::{Condition, Value, beyond, constant_number, not_if};
use crate::raw::Comparison;
use crate::values::{self, ValueType};

/// A side of a comparison, and the integer that it is if it was written so.
type Side = (Value, Option<i128>);

impl Lowering<'_> {
    /// Where a condition is true; `negated`: where it is false (missing values are in neither).
    pub(super) fn condition(&self, expr: &Expr, negated: bool) -> Result<Condition> {
        match expr {
            Expr::And(parts) if !negated => Ok(all(self.each(parts, false)?)),
            Expr::And(parts) => Ok(any(self.each(parts, true)?)),
            Expr::Or(parts) if !negated => Ok(any(self.each(parts, false)?)),
            Expr::Or(parts) => Ok(all(self.each(parts, true)?)),
            Expr::Not(inner) => self.condition(inner, !negated),
            Expr::Compare(op, a, b) => {
                let (left, right) = self.comparable(a, b)?;
                self.compared(comparison(*op), (left, written(a)), (right, written(b)), negated)
            }
            Expr::In(a, list) => self.listed(self.value(a)?, list, negated),
            Expr::IsNull(a) => self.missing(self.value(a)?, negated),
            Expr::Literal(Literal::Bool(b)) => Ok(always_if(*b != negated)),
            Expr::Literal(Literal::Null) => Ok(Condition::Never),
            _ => self.computed(expr, negated),
        }
    }

    fn each(&self, parts: &[Expr], negated: bool) -> Result<Vec<Condition>> {
        parts.iter().map(|p| self.condition(p, negated)).collect()
    }

    /// Any other condition: evaluated as a value. A bare bool array is a condition by itself.
    fn computed(&self, expr: &Expr, negated: bool) -> Result<Condition> {
        let value = self.value(expr)?;
        if let Value::Constant(v) = &value {
            return Ok(always_if(v.mask(1)?.get(0) != negated && v.is_valid(0)));
        }
        if self.type_of(&value)?.is_some_and(|t| t != ValueType::Bool) {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                "the condition of the plan is a value, not a condition",
            ));
        }
        if let Value::Array { array, raw } = value {
            let wanted = Number::Int(i128::from(!negated));
            let set = self.arrays[array].domain.satisfying(Comparison::Equal, wanted);
            return Ok(Condition::Stored { array, raw, set });
        }
        Ok(Condition::Computed(not_if(negated, value)))
    }

    /// A comparison: decided, of stored values or positions with a constant, or else computed.
    fn compared(&self, op: Comparison, left: Side, right: Side, negated: bool) -> Result<Condition> {
        let op = if negated { op.negated() } else { op };
        if is_null(&left.0) || is_null(&right.0) {
            return Ok(Condition::Never);
        }
        if let (Value::Constant(_), Value::Constant(_), None) = (&left.0, &right.0, constant_number(&left.0))
        {
            let compared = Value::Compare(compare_op(op), Box::new(left.0), Box::new(right.0));
            return Ok(always_if(crate::exec::evaluate_constant(&compared)?.mask(1)?.get(0)));
        }
        match (exact_number(&left.0, left.1), exact_number(&right.0, right.1)) {
            (Some(x), Some(y)) => Ok(decided(op, x, y)),
            (None, Some(y)) => self.with_constant(op, left.0, y, right),
            (Some(x), None) => self.with_constant(op.mirrored(), right.0, x, left),
            (None, None) => {
                let (a, b) = (Box::new(left.0), Box::new(right.0));
                Ok(Condition::Computed(Value::Compare(compare_op(op), a, b)))
            }
        }
    }

    fn with_constant(
        &self,
        op: Comparison,
        value: Value,
        literal: Number,
        constant: Side,
    ) -> Result<Condition> {
        Ok(match value {
            Value::Array { array, raw } => {
                let bound = &self.arrays[array];
                let domain = if raw { &bound.raw_domain } else { &bound.domain };
                Condition::Stored { array, raw, set: domain.satisfying(op, literal) }
            }
            Value::Position { dim } => {
                Condition::Position { dim, ranges: positions(op, literal, self.schema.dims[dim].len) }
            }
            _ => Condition::Computed(beyond::compare(compare_op(op), (value, None), constant)?),
        })
    }

    fn listed(&self, value: Value, list: &[Literal], negated: bool) -> Result<Condition> {
        if let Some(found) = self.look_up(&value, list)? {
            return Ok(Condition::Computed(not_if(negated, found)));
        }
        let value_type = self.type_of(&value)?;
        let each = list.iter().map(|literal| {
            let other = constant(literal)?;
            values::check_comparable(CompareOp::Eq, value_type, other.value_type())?;
            let other = (Value::Constant(other), written_literal(literal));
            self.compared(Comparison::Equal, (value.clone(), None), other, negated)
        });
        let each = each.collect::<Result<Vec<_>>>()?;
        Ok(if negated { all(each) } else { any(each) })
    }

    fn missing(&self, value: Value, negated: bool) -> Result<Condition> {
        match value {
            Value::Array { array, raw }
                if self.schema.arrays[self.arrays[array].index].dtype != DType::Str =>
            {
                let bound = &self.arrays[array];
                let domain = if raw { &bound.raw_domain } else { &bound.domain };
                let set = if negated { domain.present() } else { domain.missing().clone() };
                Ok(Condition::Stored { array, raw, set })
            }
            Value::Constant(_) => Ok(always_if(is_null(&value) != negated)),
            other => Ok(Condition::Computed(not_if(negated, Value::IsNull(Box::new(other))))),
        }
    }
}

fn always_if(holds: bool) -> Condition {
    if holds { Condition::Always } else { Condition::Never }
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Constant(v) if !v.is_valid(0))
}
