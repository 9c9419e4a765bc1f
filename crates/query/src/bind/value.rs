//! Expressions to bound values.

use std::sync::Arc;

use sieva_format::decoding::Number;
use sieva_format::schema::ArrayInfo;
use sieva_types::{Error, ErrorKind, Result};

use super::code::call_of_code;
use super::{Binder, BoundArray, Value, beyond, dates, names};
use crate::aggregate::Aggregate;
use crate::ast::{CompareOp, Expr, Literal, Name};
use crate::values::{self, Function, LikePattern, Scalar, ValueType, Vector};

impl Binder<'_> {
    /// Binds an expression to a value per position.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value> {
        if let Some(known) = self.of_group(expr)? {
            return Ok(known);
        }
        let value = match expr {
            Expr::Literal(literal) => Value::Constant(constant(literal)?),
            Expr::Name(name) => self.name(name)?,
            Expr::Unary { expr, .. } => Value::Negate(Box::new(self.value(expr)?)),
            Expr::Binary { op, left, right } => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                let a = self.unsigned_beside(a, &b)?;
                let b = self.unsigned_beside(b, &a)?;
                Value::Arithmetic(*op, Box::new(a), Box::new(b))
            }
            Expr::Compare { op, left, right } => self.comparison(*op, left, right)?,
            Expr::Between { expr, low, high, negated } => {
                let low = self.comparison(CompareOp::GtEq, expr, low)?;
                let high = self.comparison(CompareOp::LtEq, expr, high)?;
                not_if(*negated, Value::And(vec![low, high]))
            }
            Expr::InList { expr, list, negated } if list.is_empty() => {
                self.value(expr)?;
                Value::Constant(Vector::constant(&Scalar::Bool(*negated))?)
            }
            Expr::InList { expr, list, negated } => {
                let found = match self.one_of(expr, list)? {
                    Some(found) => found,
                    None => {
                        let equal = list.iter().map(|item| self.comparison(CompareOp::Eq, expr, item));
                        Value::Or(equal.collect::<Result<_>>()?)
                    }
                };
                not_if(*negated, found)
            }
            Expr::IsNull { expr, negated } => not_if(*negated, Value::IsNull(Box::new(self.value(expr)?))),
            Expr::Like { expr, pattern, negated } => {
                let Expr::Literal(Literal::Str(pattern)) = pattern.as_ref() else {
                    return Err(Error::new(
                        ErrorKind::TypeMismatch,
                        format!("LIKE needs a quoted pattern, got {pattern}"),
                    ));
                };
                let pattern = LikePattern::new(pattern, None)?;
                not_if(*negated, Value::Like(Box::new(self.of_type(expr, ValueType::Str, "LIKE")?), pattern))
            }
            Expr::And(parts) => Value::And(self.conditions(parts)?),
            Expr::Or(parts) => Value::Or(self.conditions(parts)?),
            Expr::Not(inner) => Value::Not(Box::new(self.of_type(inner, ValueType::Bool, "NOT")?)),
            Expr::Call { function, args, distinct, star } => {
                self.call(expr, function, args, *distinct || *star)?
            }
            Expr::Subquery(select) => {
                let (plan, value_type) = (self.options.subqueries)(select)?;
                Value::Subquery(Arc::new(plan), value_type)
            }
        };
        let value_type = self.type_of(&value).map_err(|e| e.at(format!("'{expr}'")))?;
        fold(value, value_type)
    }

    fn name(&mut self, name: &Name) -> Result<Value> {
        match names::resolve(self.schema, &name.text).map_err(|e| names::located(e, name))? {
            names::Meaning::Array(index) => Ok(Value::Array { array: self.array(index)?, raw: false }),
            names::Meaning::Dimension(dim) => {
                self.dims.push(dim);
                Ok(Value::Position { dim })
            }
        }
    }

    /// A non-negative literal beside unsigned values as one of them: `id + 1` stays exact beyond 2^63.
    fn unsigned_beside(&self, value: Value, other: &Value) -> Result<Value> {
        if self.type_of(other)? == Some(ValueType::U64) { as_unsigned(value) } else { Ok(value) }
    }

    fn conditions(&mut self, parts: &[Expr]) -> Result<Vec<Value>> {
        parts.iter().map(|p| self.of_type(p, ValueType::Bool, "AND and OR")).collect()
    }

    /// A value that must be of one type (or NULL).
    fn of_type(&mut self, expr: &Expr, wanted: ValueType, of: &str) -> Result<Value> {
        let value = self.value(expr)?;
        match self.type_of(&value)? {
            Some(got) if got != wanted => {
                let what = if wanted == ValueType::Bool { "a condition" } else { "text" };
                Err(Error::new(ErrorKind::TypeMismatch, format!("{of} needs {what}, got {got}: {expr}")))
            }
            _ => Ok(value),
        }
    }

    /// A comparison as a value; dates and names of enumerated values are turned into numbers first.
    fn comparison(&mut self, op: CompareOp, left: &Expr, right: &Expr) -> Result<Value> {
        let (a, b) = self.comparable(left, right)?;
        beyond::compare(op, (a, written(left)), (b, written(right)))
    }

    /// Both sides of a comparison, of one kind.
    pub(super) fn comparable(&mut self, left: &Expr, right: &Expr) -> Result<(Value, Value)> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        let a = self.in_units_of(a, left, &b)?;
        let b = self.in_units_of(b, right, &a)?;
        let (ta, tb) = (self.type_of(&a)?, self.type_of(&b)?);
        let Err(e) = values::check_comparable(CompareOp::Eq, ta, tb) else { return Ok((a, b)) };
        let (text, other) = if ta == Some(ValueType::Str) { (left, right) } else { (right, left) };
        match text {
            Expr::Literal(Literal::Str(s) | Literal::Date(s)) => Err(dates::no_time(s, &other.to_string())),
            _ => Err(e.at(format!("{left} beside {right}"))),
        }
    }

    /// A text literal beside a time coordinate or an enumeration as the number that it means there.
    fn in_units_of(&self, value: Value, expr: &Expr, other: &Value) -> Result<Value> {
        let (Expr::Literal(Literal::Str(text) | Literal::Date(text)), Value::Array { array, .. }) =
            (expr, other)
        else {
            return Ok(value);
        };
        let array = &self.arrays[*array];
        let info = &self.schema.arrays[array.index];
        if let Some(units) = &array.time {
            return Ok(Value::Constant(Vector::constant(&Scalar::F64(dates::date_number(text, units)?))?));
        }
        match enumerated(info, text)? {
            Some(number) => Ok(Value::Constant(constant(&Literal::Int(number))?)),
            None => Ok(value),
        }
    }

    fn call(&mut self, whole: &Expr, function: &str, args: &[Expr], odd: bool) -> Result<Value> {
        if odd {
            return Err(misplaced_aggregate(whole));
        }
        match function {
            "idx" => return self.position(args),
            "raw" => return self.stored(args),
            "attr" => return self.attribute(args),
            _ => {}
        }
        if let Some(part) = dates::date_part(function) {
            return self.date_call(function, part, args);
        }
        let args_of = |this: &mut Self| args.iter().map(|a| this.value(a)).collect::<Result<Vec<_>>>();
        if self.options.functions.is_reduction(function) {
            return Err(misplaced_aggregate(whole));
        }
        if self.options.functions.identity(function).is_some() {
            let args = args_of(self)?;
            let found =
                call_of_code(self.options.functions, function, args, &self.arrays, &|v| self.type_of(v))?;
            return found.ok_or_else(|| unknown_function(function));
        }
        let Some(f) = Function::from_name(function) else {
            if Aggregate::is_name(function) {
                return Err(misplaced_aggregate(whole));
            }
            return Err(unknown_function(function));
        };
        let args = args_of(self)?;
        Ok(Value::Call(f, unsigned_arguments(f, args, &|_| true, &|v| self.type_of(v))?))
    }

    fn date_call(&mut self, function: &str, part: super::DatePart, args: &[Expr]) -> Result<Value> {
        let [arg] = args else { return Err(one_argument(function, args.len())) };
        match self.value(arg)? {
            Value::Array { array, raw: false } if self.arrays[array].time.is_some() => {
                return Ok(Value::Date(part, array));
            }
            Value::Key(_) | Value::Aggregated(_) => {
                let message = format!(
                    "{function}() needs a time coordinate's own values, not what stands for a group: {arg}"
                );
                let hint = format!(
                    "GROUP BY {function}(...), or take it within the aggregate: max({function}(...))"
                );
                return Err(Error::new(ErrorKind::TypeMismatch, message).hint(hint));
            }
            _ => {}
        }
        Err(Error::new(ErrorKind::TypeMismatch, format!("{function}() needs a time coordinate, got {arg}"))
            .hint("a time coordinate has units '<unit> since <date>'"))
    }

    fn position(&mut self, args: &[Expr]) -> Result<Value> {
        let [Expr::Name(name)] = args else {
            return Err(Error::new(ErrorKind::TypeMismatch, "idx() needs the name of one dimension"));
        };
        let dim = names::dimension(self.schema, &name.text)?.ok_or_else(|| {
            let all: Vec<&str> = self.schema.dims.iter().take(20).map(|d| d.name.as_str()).collect();
            Error::new(ErrorKind::UnknownDimension, format!("no dimension '{}'", name.text))
                .hint(format!("the source has {}", all.join(", ")))
        })?;
        self.dims.push(dim);
        Ok(Value::Position { dim })
    }

    fn stored(&mut self, args: &[Expr]) -> Result<Value> {
        let [arg] = args else { return Err(one_argument("raw", args.len())) };
        match self.value(arg)? {
            Value::Array { array, .. } => Ok(Value::Array { array, raw: true }),
            _ => Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("raw() needs the name of an array, got {arg}"),
            )),
        }
    }

    fn attribute(&mut self, args: &[Expr]) -> Result<Value> {
        let (of, wanted) = match args {
            [Expr::Literal(Literal::Str(n))] => (None, n),
            [Expr::Name(a), Expr::Literal(Literal::Str(n))] => (Some(&a.text), n),
            [Expr::Literal(Literal::Str(a)), Expr::Literal(Literal::Str(n))] => (Some(a), n),
            _ => {
                return Err(Error::new(
                    ErrorKind::TypeMismatch,
                    "attr() needs an array and the quoted name of an attribute",
                )
                .hint("attr(TEMP, 'units'), or attr('title') for one of the source"));
            }
        };
        super::condition::attribute(self.schema, of.map(String::as_str), wanted)
    }

    /// The type of a bound value; `None` is NULL.
    pub(super) fn type_of(&self, value: &Value) -> Result<Option<ValueType>> {
        type_of(value, &self.arrays, &self.key_types, &self.aggregate_types)
    }
}

/// The error of an aggregate where rows are meant.
pub(crate) fn misplaced_aggregate(expr: &Expr) -> Error {
    Error::new(ErrorKind::Syntax, format!("an aggregate cannot stand here: {expr}")).hint(
        "aggregates belong in SELECT, HAVING and ORDER BY; to compare with one use (SELECT avg(x) FROM ...)",
    )
}

/// The error of a function that there is not.
pub(crate) fn unknown_function(function: &str) -> Error {
    Error::new(ErrorKind::UnknownFunction, format!("no function '{function}'")).hint(format!(
        "there are {}, idx, raw, attr, year, month, day, hour, minute, second, dayofyear, quarter, season; \
         and the aggregates {}",
        Function::names().collect::<Vec<_>>().join(", "),
        Aggregate::NAMES.join(", ")
    ))
}

/// The number that a name of an enumeration stands for; none where the array is no enumeration.
///
/// # Errors
/// `invalid-value` for a name that it does not have.
pub(crate) fn enumerated(info: &ArrayInfo, text: &str) -> Result<Option<i128>> {
    if info.enum_names.is_empty() {
        return Ok(None);
    }
    let known = info.enum_names.iter().find(|(_, name)| name == text);
    known.map(|(number, _)| Some(*number)).ok_or_else(|| {
        let all: Vec<&str> = info.enum_names.iter().map(|(_, n)| n.as_str()).collect();
        let message = format!("'{text}' is no value of the enumeration '{}'", info.path);
        Error::new(ErrorKind::InvalidValue, message).hint(format!("it has {}", all.join(", ")))
    })
}

/// The type of a value over these arrays, keys and aggregates; `None` is NULL.
pub(crate) fn type_of(
    value: &Value,
    arrays: &[BoundArray],
    keys: &[Option<ValueType>],
    aggregates: &[Option<ValueType>],
) -> Result<Option<ValueType>> {
    let of = |v: &Value| type_of(v, arrays, keys, aggregates);
    Ok(match value {
        Value::Constant(v) => v.value_type(),
        Value::Array { array, raw } => {
            let array = &arrays[*array];
            let domain = if *raw { &array.raw_domain } else { &array.domain };
            let packed = domain.packing().is_some();
            Some(if packed { ValueType::F64 } else { ValueType::of(domain.dtype()) })
        }
        Value::Position { .. } | Value::Date(..) => Some(ValueType::I64),
        Value::Arithmetic(op, a, b) => Some(values::arithmetic_type(*op, of(a)?, of(b)?)?),
        Value::Negate(a) => Some(values::negate_type(of(a)?)?),
        Value::Call(f, args) => {
            let types = args.iter().map(of).collect::<Result<Vec<_>>>()?;
            Some(f.result_type(&types)?)
        }
        Value::Code(f, _) => Some(f.result_type()),
        Value::Reduced(f, _) => Some(f.result_type()),
        Value::Subquery(_, value_type) => *value_type,
        Value::Unknown(value_type) => Some(*value_type),
        Value::Key(i) => keys.get(*i).copied().flatten(),
        Value::Aggregated(i) => aggregates.get(*i).copied().flatten(),
        _ => Some(ValueType::Bool),
    })
}

/// The arguments of a function whose result is of the type of several: non-negative literals among unsigned values are
/// of their type, as numpy has it. A negative one makes all `int64`. `is_written` tells of which number's argument it is one.
pub(crate) fn unsigned_arguments(
    f: Function,
    args: Vec<Value>,
    is_written: &dyn Fn(usize) -> bool,
    type_of: &dyn Fn(&Value) -> Result<Option<ValueType>>,
) -> Result<Vec<Value>> {
    let first = match f {
        Function::If => 1,
        Function::Coalesce | Function::Least | Function::Greatest | Function::Mod => 0,
        _ => return Ok(args),
    };
    let is_literal = |i: usize, v: &Value| matches!(v, Value::Constant(_)) && is_written(i);
    let others = args.iter().enumerate().skip(first).filter(|(i, v)| !is_literal(*i, v));
    let types = others.map(|(_, v)| type_of(v)).collect::<Result<Vec<_>>>()?;
    if types.is_empty() || types.iter().any(|t| *t != Some(ValueType::U64)) {
        return Ok(args);
    }
    let alike = |(i, value)| if i < first { Ok(value) } else { as_unsigned(value) };
    args.into_iter().enumerate().map(alike).collect()
}

/// A constant that is a non-negative integer as `uint64`, where it fits; any other value as it is.
pub(crate) fn as_unsigned(value: Value) -> Result<Value> {
    let number = constant_number(&value);
    let Some(u) = number.and_then(|n| if let Number::Int(i) = n { u64::try_from(i).ok() } else { None })
    else {
        return Ok(value);
    };
    Ok(Value::Constant(Vector::constant(&Scalar::U64(u))?))
}

pub(crate) fn not_if(negated: bool, value: Value) -> Value {
    if negated { Value::Not(Box::new(value)) } else { value }
}

fn one_argument(function: &str, n: usize) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("{function}() takes one argument, got {n}"))
}

/// A literal as a constant. Integers beyond 64 bits become the nearest float64, which is not how they compare: see
/// [`beyond`].
pub(crate) fn constant(literal: &Literal) -> Result<Vector> {
    Vector::constant(&match literal {
        Literal::Null => Scalar::Null,
        Literal::Bool(b) => Scalar::Bool(*b),
        Literal::Int(i) => match (i64::try_from(*i), u64::try_from(*i)) {
            (Ok(i), _) => Scalar::I64(i),
            (_, Ok(u)) => Scalar::U64(u),
            _ => Scalar::F64(*i as f64),
        },
        Literal::Float(f) => Scalar::from_f64(*f),
        Literal::Str(s) | Literal::Date(s) => Scalar::Str(s.clone()),
    })
}

/// The number that a constant is.
pub(crate) fn constant_number(value: &Value) -> Option<Number> {
    let Value::Constant(v) = value else { return None };
    match v.scalar(0) {
        Scalar::Bool(b) => Some(Number::Int(b.into())),
        Scalar::I64(i) => Some(Number::Int(i.into())),
        Scalar::U64(u) => Some(Number::Int(u.into())),
        Scalar::F64(f) => Some(Number::Float(f)),
        _ => None,
    }
}

/// The integer that an expression is.
fn written(expr: &Expr) -> Option<i128> {
    if let Expr::Literal(Literal::Int(i)) = expr { Some(*i) } else { None }
}

/// What is computed from constants alone is computed once, here, so that equal questions are equal plans. It stays as it
/// is where a plan's literal would be of another type: a value that is missing, a small unsigned one.
fn fold(value: Value, value_type: Option<ValueType>) -> Result<Value> {
    let children = value.children();
    if children.is_empty() || !children.iter().all(|c| matches!(c, Value::Constant(_))) {
        return Ok(value);
    }
    let known = crate::exec::evaluate_constant(&value)?;
    let keeps_type = match known.scalar(0) {
        Scalar::Null => value_type.is_none(),
        Scalar::U64(u) => i64::try_from(u).is_err(),
        _ => true,
    };
    Ok(if keeps_type { Value::Constant(known) } else { value })
}
