//! Conditions to negation normal form over sets of stored values.

use std::collections::HashMap;

use sieva_format::decoding::Number;
use sieva_format::schema::{AttrValue, Schema, attr};
use sieva_types::{DType, Error, ErrorKind, Result};

use super::value::{constant, constant_number, not_if};
use super::{Binder, Condition, Value, beyond, names};
use crate::ast::{CompareOp, Expr, Literal};
use crate::raw::{Comparison, KeySet, compare_exact};
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
                if list.is_empty() {
                    // The rows are those of what is named all the same.
                    self.value(expr)?;
                }
                if let Some(found) = self.one_of(expr, list)? {
                    return Ok(Condition::Computed(not_if(negated, found)));
                }
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

    /// A condition as a value.
    pub(super) fn asked(&mut self, expr: &Expr) -> Result<Value> {
        let value = self.value(expr)?;
        match self.type_of(&value)? {
            None | Some(ValueType::Bool) => Ok(value),
            Some(_) => Err(no_condition(expr)),
        }
    }

    /// Any other condition: evaluated as a value. A bare bool array is a condition by itself.
    fn computed(&mut self, expr: &Expr, negated: bool) -> Result<Condition> {
        let value = self.value(expr)?;
        if let Value::Constant(v) = &value {
            let holds = v.mask(1).map_err(|e| e.at(format!("'{expr}'")))?[0];
            return Ok(if v.is_valid(0) && holds != negated { Condition::Always } else { Condition::Never });
        }
        if self.type_of(&value)? != Some(ValueType::Bool) {
            return Err(no_condition(expr));
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

fn no_condition(expr: &Expr) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("{expr} is a value, not a condition"))
        .hint("compare it with something: name > 5")
}

/// The conjunction, flat, with the conditions on one array's stored values made into one.
pub fn all(parts: Vec<Condition>) -> Condition {
    let mut joined = Joined::default();
    for part in parts {
        match part {
            Condition::Always => {}
            Condition::Never => return Condition::Never,
            Condition::All(inner) => inner.into_iter().for_each(|c| joined.add(c)),
            other => joined.add(other),
        }
    }
    let mut out = joined.merged(|a, b| a.intersection(b), true);
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
    let mut joined = Joined::default();
    for part in parts {
        match part {
            c if is_never(&c) => {}
            Condition::Always => return Condition::Always,
            Condition::Any(inner) => inner.into_iter().for_each(|c| joined.add(c)),
            other => joined.add(other),
        }
    }
    let mut out = joined.merged(|a, b| a.union(b), false);
    match out.len() {
        0 => Condition::Never,
        1 => out.swap_remove(0),
        _ => Condition::Any(out),
    }
}

/// The parts of a junction, those on the stored values of one array in the place of the first of them.
#[derive(Default)]
struct Joined {
    parts: Vec<Condition>,
    /// Where in the parts, and the further sets that belong there.
    stored: HashMap<(usize, bool), (usize, Vec<KeySet>)>,
}

impl Joined {
    fn add(&mut self, part: Condition) {
        let place = self.parts.len();
        match part {
            Condition::Stored { array, raw, set } => {
                let (at, sets) = self.stored.entry((array, raw)).or_insert((place, Vec::new()));
                sets.push(set);
                if *at == place {
                    self.parts.push(Condition::Stored { array, raw, set: KeySet::EMPTY });
                }
            }
            other => self.parts.push(other),
        }
    }

    fn merged(mut self, join: impl Fn(&KeySet, &KeySet) -> KeySet, conjunction: bool) -> Vec<Condition> {
        for (at, sets) in self.stored.into_values() {
            if let Condition::Stored { set, .. } = &mut self.parts[at] {
                *set = folded(sets, &join);
            }
        }
        if conjunction { self.parts } else { positions_joined(self.parts) }
    }
}

/// Sets joined two by two, and what comes out likewise: each value is touched as often as the number of sets has bits.
fn folded(mut sets: Vec<KeySet>, join: &impl Fn(&KeySet, &KeySet) -> KeySet) -> KeySet {
    while sets.len() > 1 {
        sets = sets
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => join(a, b),
                rest => rest[0].clone(),
            })
            .collect();
    }
    sets.pop().unwrap_or(KeySet::EMPTY)
}

/// A disjunction with the conditions on the positions along each dimension made into one.
fn positions_joined(parts: Vec<Condition>) -> Vec<Condition> {
    let mut out: Vec<Condition> = Vec::with_capacity(parts.len());
    let mut places: HashMap<usize, usize> = HashMap::new();
    for part in parts {
        let Condition::Position { dim, ranges } = part else {
            out.push(part);
            continue;
        };
        let place = *places.entry(dim).or_insert(out.len());
        match out.get_mut(place) {
            Some(Condition::Position { ranges: all, .. }) => all.extend(ranges),
            _ => out.push(Condition::Position { dim, ranges }),
        }
    }
    for place in places.into_values() {
        if let Condition::Position { ranges, .. } = &mut out[place] {
            *ranges = ascending(std::mem::take(ranges));
        }
    }
    out
}

/// Half-open ranges, ascending, those that touch made into one.
fn ascending(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

fn is_never(c: &Condition) -> bool {
    match c {
        Condition::Never => true,
        Condition::Stored { set, .. } => set.is_empty(),
        Condition::Position { ranges, .. } => ranges.is_empty(),
        _ => false,
    }
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
pub(super) fn exact_number(expr: &Expr, value: &Value) -> Option<Number> {
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
