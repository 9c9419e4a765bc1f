//! Conditions to negation normal form over sets of stored values.

use sieva_format::decoding::Number;
use sieva_format::schema::{AttrValue, Schema, attr};
use sieva_types::{DType, Error, ErrorKind, Result};

use super::value::{constant, constant_number};
use super::{Binder, Condition, Value, beyond, names};
use crate::ast::{CompareOp, Expr, Literal};
use crate::raw::{Comparison, compare_exact};
use crate::values::ValueType;

impl Binder<'_> {
    /// Binds a condition; `negated` asks for where it is false (missing values are in neither).
    pub(super) fn condition(&mut self, expr: &Expr, negated: bool) -> Result<Condition> {
        let condition = match expr {
            Expr::And(parts) if !negated => all(self.each(parts, false)?),
            Expr::And(parts) => any(self.each(parts, true)?),
            Expr::Or(parts) if !negated => any(self.each(parts, false)?),
            Expr::Or(parts) => all(self.each(parts, true)?),
            Expr::Not(inner) => self.condition(inner, !negated)?,
            Expr::Compare { op, left, right } => self.compared(comparison(*op), left, right, negated)?,
            Expr::Between { expr, low, high, negated: not } => {
                let negated = negated != *not;
                let low = self.compared(Comparison::GreaterEqual, expr, low, negated)?;
                let high = self.compared(Comparison::LessEqual, expr, high, negated)?;
                if negated { any(vec![low, high]) } else { all(vec![low, high]) }
            }
            Expr::InList { expr, list, negated: not } => {
                let negated = negated != *not;
                let each = list.iter().map(|item| self.compared(Comparison::Equal, expr, item, negated));
                let each = each.collect::<Result<Vec<_>>>()?;
                if negated { all(each) } else { any(each) }
            }
            Expr::IsNull { expr, negated: not } => self.missing(expr, negated != *not)?,
            Expr::Literal(Literal::Bool(b)) => {
                if *b != negated {
                    Condition::Always
                } else {
                    Condition::Never
                }
            }
            Expr::Literal(Literal::Null) => Condition::Never,
            _ => self.computed(expr, negated)?,
        };
        Ok(condition)
    }

    fn each(&mut self, parts: &[Expr], negated: bool) -> Result<Vec<Condition>> {
        parts.iter().map(|p| self.condition(p, negated)).collect()
    }

    /// Any other condition: evaluated as a value. A bare bool array is a condition by itself.
    fn computed(&mut self, expr: &Expr, negated: bool) -> Result<Condition> {
        let value = self.value(expr)?;
        if let Value::Constant(v) = &value {
            let holds = v.mask(1).map_err(|e| e.at(format!("'{expr}'")))?[0];
            return Ok(if v.is_valid(0) && holds != negated { Condition::Always } else { Condition::Never });
        }
        if self.type_of(&value)? != Some(ValueType::Bool) {
            return Err(Error::new(ErrorKind::TypeMismatch, format!("{expr} is a value, not a condition"))
                .hint("compare it with something: name > 5"));
        }
        if let Value::Array { array, raw } = value {
            let set =
                self.arrays[array].domain.satisfying(Comparison::Equal, Number::Int(i128::from(!negated)));
            return Ok(Condition::Stored { array, raw, set });
        }
        Ok(Condition::Computed(if negated { Value::Not(Box::new(value)) } else { value }))
    }

    fn compared(&mut self, op: Comparison, left: &Expr, right: &Expr, negated: bool) -> Result<Condition> {
        let op = if negated { op.negated() } else { op };
        let (a, b) = self.comparable(left, right)?;
        if is_null(&a) || is_null(&b) {
            return Ok(Condition::Never);
        }
        if let (Value::Constant(_), Value::Constant(_), None) = (&a, &b, constant_number(&a)) {
            let holds =
                crate::exec::evaluate_constant(&Value::Compare(compare_op(op), Box::new(a), Box::new(b)))?;
            return Ok(if holds.mask(1)?[0] { Condition::Always } else { Condition::Never });
        }
        match (exact_number(left, &a), exact_number(right, &b)) {
            (Some(x), Some(y)) => Ok(decided(op, x, y)),
            (None, Some(y)) => self.with_constant(op, (left, a), y, (right, b)),
            (Some(x), None) => self.with_constant(op.mirrored(), (right, b), x, (left, a)),
            (None, None) => Ok(Condition::Computed(Value::Compare(compare_op(op), Box::new(a), Box::new(b)))),
        }
    }

    /// A comparison with a constant: on stored values, on positions, or else computed.
    fn with_constant(
        &self,
        op: Comparison,
        (expr, value): (&Expr, Value),
        literal: Number,
        (literal_expr, constant): (&Expr, Value),
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
            _ => Condition::Computed(beyond::compare(compare_op(op), expr, value, literal_expr, constant)?),
        })
    }

    fn missing(&mut self, expr: &Expr, negated: bool) -> Result<Condition> {
        let value = self.value(expr)?;
        match value {
            Value::Array { array, raw }
                if self.schema.arrays[self.arrays[array].index].dtype != DType::Str =>
            {
                let bound = &self.arrays[array];
                let domain = if raw { &bound.raw_domain } else { &bound.domain };
                let set = if negated { domain.present() } else { domain.missing().clone() };
                Ok(Condition::Stored { array, raw, set })
            }
            Value::Constant(_) => {
                Ok(if is_null(&value) != negated { Condition::Always } else { Condition::Never })
            }
            other => {
                let missing = Value::IsNull(Box::new(other));
                Ok(Condition::Computed(if negated { Value::Not(Box::new(missing)) } else { missing }))
            }
        }
    }
}

/// The conjunction, flat, with the conditions on one array's stored values made into one.
pub fn all(parts: Vec<Condition>) -> Condition {
    let mut out: Vec<Condition> = Vec::new();
    for part in parts {
        match part {
            Condition::Always => {}
            Condition::Never => return Condition::Never,
            Condition::All(inner) => inner.into_iter().for_each(|c| merge(&mut out, c, true)),
            other => merge(&mut out, other, true),
        }
    }
    if out.iter().any(is_never) {
        return Condition::Never;
    }
    match out.len() {
        0 => Condition::Always,
        1 => out.swap_remove(0),
        _ => Condition::All(out),
    }
}

/// The disjunction, likewise.
pub fn any(parts: Vec<Condition>) -> Condition {
    let mut out: Vec<Condition> = Vec::new();
    for part in parts {
        match part {
            c if is_never(&c) => {}
            Condition::Always => return Condition::Always,
            Condition::Any(inner) => inner.into_iter().for_each(|c| merge(&mut out, c, false)),
            other => merge(&mut out, other, false),
        }
    }
    match out.len() {
        0 => Condition::Never,
        1 => out.swap_remove(0),
        _ => Condition::Any(out),
    }
}

fn is_never(c: &Condition) -> bool {
    match c {
        Condition::Never => true,
        Condition::Stored { set, .. } => set.is_empty(),
        Condition::Position { ranges, .. } => ranges.is_empty(),
        _ => false,
    }
}

fn merge(out: &mut Vec<Condition>, part: Condition, conjunction: bool) {
    if let Condition::Stored { array, raw, set } = &part {
        for known in out.iter_mut() {
            if let Condition::Stored { array: a, raw: r, set: s } = known
                && a == array
                && r == raw
            {
                *s = if conjunction { s.intersection(set) } else { s.union(set) };
                return;
            }
        }
    }
    out.push(part);
}

/// The positions below `n` that satisfy a comparison, as half-open ranges.
fn positions(op: Comparison, literal: Number, n: u64) -> Vec<(u64, u64)> {
    use std::cmp::Ordering::{Greater, Less};
    let order = |p: u64| compare_exact(Number::Int(p.into()), literal);
    if order(0).is_none() {
        return Vec::new();
    }
    let first = |past: &dyn Fn(std::cmp::Ordering) -> bool| {
        let (mut a, mut b) = (0, n);
        while a < b {
            let middle = a + (b - a) / 2;
            if order(middle).is_some_and(past) { b = middle } else { a = middle + 1 }
        }
        a
    };
    let (equal, after) = (first(&|o| o != Less), first(&|o| o == Greater));
    let ranges = match op {
        Comparison::Less => vec![(0, equal)],
        Comparison::LessEqual => vec![(0, after)],
        Comparison::Equal => vec![(equal, after)],
        Comparison::NotEqual => vec![(0, equal), (after, n)],
        Comparison::GreaterEqual => vec![(equal, n)],
        Comparison::Greater => vec![(after, n)],
    };
    ranges.into_iter().filter(|(a, b)| a < b).collect()
}

/// The number that a constant is. A literal beyond 64 bits, which no value has, is taken as written.
fn exact_number(expr: &Expr, value: &Value) -> Option<Number> {
    match expr {
        Expr::Literal(Literal::Int(i)) => Some(Number::Int(*i)),
        _ => constant_number(value),
    }
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Constant(v) if !v.is_valid(0))
}

fn decided(op: Comparison, a: Number, b: Number) -> Condition {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let holds = compare_exact(a, b).is_some_and(|o| match op {
        Comparison::Less => o == Less,
        Comparison::LessEqual => o != Greater,
        Comparison::Equal => o == Equal,
        Comparison::NotEqual => o != Equal,
        Comparison::GreaterEqual => o != Less,
        Comparison::Greater => o == Greater,
    });
    if holds { Condition::Always } else { Condition::Never }
}

fn comparison(op: CompareOp) -> Comparison {
    match op {
        CompareOp::Eq => Comparison::Equal,
        CompareOp::NotEq => Comparison::NotEqual,
        CompareOp::Lt => Comparison::Less,
        CompareOp::LtEq => Comparison::LessEqual,
        CompareOp::Gt => Comparison::Greater,
        CompareOp::GtEq => Comparison::GreaterEqual,
    }
}

fn compare_op(op: Comparison) -> CompareOp {
    match op {
        Comparison::Equal => CompareOp::Eq,
        Comparison::NotEqual => CompareOp::NotEq,
        Comparison::Less => CompareOp::Lt,
        Comparison::LessEqual => CompareOp::LtEq,
        Comparison::Greater => CompareOp::Gt,
        Comparison::GreaterEqual => CompareOp::GtEq,
    }
}

/// The value of an attribute as a constant.
pub(super) fn attribute(schema: &Schema, of: Option<&str>, wanted: &str) -> Result<Value> {
    let (attrs, place) = match of {
        None => (schema.attrs(), "the source".to_string()),
        Some(name) => {
            match schema.groups.iter().find(|g| !g.path.is_empty() && g.path == name.trim_start_matches('/'))
            {
                Some(group) => (group.attrs.as_slice(), format!("group '{}'", group.path)),
                None => match names::resolve(schema, name)? {
                    names::Meaning::Array(i) => {
                        (schema.arrays[i].attrs.as_slice(), format!("'{}'", schema.arrays[i].path))
                    }
                    names::Meaning::Dimension(_) => (&[][..], format!("dimension '{name}'")),
                },
            }
        }
    };
    let Some(value) = attr(attrs, wanted) else {
        let all: Vec<&str> = attrs.iter().map(|(n, _)| n.as_str()).collect();
        let e = Error::new(ErrorKind::UnknownAttribute, format!("{place} has no attribute '{wanted}'"));
        return Err(if all.is_empty() { e } else { e.hint(format!("it has {}", all.join(", "))) });
    };
    let literal = match value {
        AttrValue::Ints(_, v) if v.len() == 1 => Literal::Int(v[0]),
        AttrValue::Floats(_, v) if v.len() == 1 => Literal::Float(v[0]),
        other => match other.as_text() {
            Some(text) => Literal::Str(text.to_string()),
            None => {
                return Err(Error::new(
                    ErrorKind::TypeMismatch,
                    format!("attribute '{wanted}' of {place} is not one number or text"),
                ));
            }
        },
    };
    Ok(Value::Constant(constant(&literal)?))
}
