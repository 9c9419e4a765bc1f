//! From the names of a collection to those of one source: arrays by full path, keys by their values.

use sieva_catalog::Value;
use sieva_format::schema::Schema;
use sieva_query::ast::{Expr, Literal, Slot, SlotOf};
use sieva_query::values::{Scalar, ValueType};
use sieva_types::{Error, ErrorKind, Result};

use super::names::{Meaning, relative};
use super::objects::SourceObjects;

/// The type of a key's values in all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Int,
    Float,
    Text,
    Bool,
}

/// The type that holds all values of key number `number`.
pub(super) fn class_of(sources: &[SourceObjects], number: usize, key: &str) -> Result<Class> {
    let mut class = None;
    let values = sources.iter().flat_map(|s| &s.objects).filter_map(|o| o.values.get(number)?.as_ref());
    for value in values {
        let this = match value {
            Value::Int(_) => Class::Int,
            // Beyond 2^63 there is one number type less to mix: exact as long as the float is.
            Value::UInt(_) | Value::Float(_) => Class::Float,
            Value::Text(_) => Class::Text,
            Value::Bool(_) => Class::Bool,
        };
        class = match (class, this) {
            (None, this) => Some(this),
            (Some(known), this) if known == this => Some(this),
            (Some(Class::Int | Class::Float), Class::Int | Class::Float) => Some(Class::Float),
            (Some(known), this) => {
                return Err(Error::new(
                    ErrorKind::TypeMismatch,
                    format!(
                        "the key '{key}' is {} on one object and {} on another",
                        known.name(),
                        this.name()
                    ),
                )
                .hint("ask for the objects of one type only, or correct it by a tag"));
            }
        };
    }
    Ok(class.unwrap_or(Class::Float))
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::Int | Self::Float => "a number",
            Self::Text => "a text",
            Self::Bool => "a bool",
        }
    }

    /// A value in this type; `Null` where there is none.
    pub(super) fn scalar(self, value: Option<&Value>) -> Result<Scalar> {
        Ok(match (self, value) {
            (_, None) => Scalar::Null,
            (Self::Int, Some(Value::Int(i))) => Scalar::I64(*i),
            (Self::Float, Some(Value::Float(f))) => Scalar::from_f64(*f),
            (Self::Float, Some(Value::Int(i))) => exact(i128::from(*i))?,
            (Self::Float, Some(Value::UInt(u))) => exact(i128::from(*u))?,
            (Self::Text, Some(Value::Text(s))) => Scalar::Str(s.clone()),
            (Self::Bool, Some(Value::Bool(b))) => Scalar::Bool(*b),
            (_, Some(other)) => {
                return Err(Error::new(ErrorKind::TypeMismatch, format!("{other:?} is not {}", self.name())));
            }
        })
    }

    /// The constant number `number`, of this type and with a value that is not known yet.
    pub(super) fn slot(self, number: usize) -> Expr {
        let value_type = match self {
            Self::Int => ValueType::I64,
            Self::Float => ValueType::F64,
            Self::Text => ValueType::Str,
            Self::Bool => ValueType::Bool,
        };
        Expr::Slot(Slot { of: SlotOf::Constant(value_type, number), text: format!("constant {number}") })
    }
}

fn exact(i: i128) -> Result<Scalar> {
    let f = i as f64;
    if f as i128 == i {
        return Ok(Scalar::F64(f));
    }
    Err(Error::new(
        ErrorKind::Overflow,
        format!("the key's value {i} is no 64-bit float, as others of the key are"),
    )
    .hint("ask for the objects of one type only"))
}

/// The constant that says a value.
pub(super) fn literal(value: Scalar) -> Expr {
    Expr::Literal(match value {
        Scalar::Bool(b) => Literal::Bool(b),
        Scalar::I64(i) => Literal::Int(i.into()),
        Scalar::U64(u) => Literal::Int(u.into()),
        Scalar::F64(f) => Literal::Float(f),
        Scalar::Str(s) => Literal::Str(s),
        Scalar::Null | Scalar::Histogram { .. } => Literal::Null,
    })
}

/// The path of what has the path `relative` in a group.
pub(super) fn within(group: &str, relative: &str) -> String {
    if group.is_empty() { relative.to_string() } else { format!("{group}/{relative}") }
}

/// The full path of an object's array; `None` where the object lacks it.
pub(super) fn array_of(schema: &Schema, group: &str, name: &str) -> Result<Option<String>> {
    let path = within(group, name);
    if schema.array(&path).is_some() || schema.aliases.iter().any(|(alias, _)| *alias == path) {
        return Ok(Some(path));
    }
    // A member of a compound in the group, by its own name alone.
    let of_group = |p: &str| match group {
        "" => !p.contains('/'),
        _ => p.strip_prefix(group).and_then(|r| r.strip_prefix('/')).is_some_and(|r| !r.contains('/')),
    };
    let mut members = schema
        .arrays
        .iter()
        .map(|a| a.path.as_str())
        .filter(|p| of_group(p) && relative(p, name).is_some_and(|r| r != name));
    match (members.next(), members.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => Ok(Some(one.to_string())),
        (Some(one), Some(other)) => Err(Error::new(
            ErrorKind::AmbiguousName,
            format!("'{name}' of the object '{group}' could mean '{one}' and '{other}'"),
        )
        .hint("write the dataset, too: \"table.member\"")),
    }
}

/// The expression with its resolved names replaced; `None` where one has no replacement.
pub(super) fn replaced(
    expr: &Expr,
    replace: &mut dyn FnMut(&Meaning) -> Result<Option<Expr>>,
) -> Result<Option<Expr>> {
    let mut lacks = false;
    let out = inner(expr, replace, &mut lacks)?;
    Ok((!lacks).then_some(out))
}

fn inner(
    expr: &Expr,
    replace: &mut dyn FnMut(&Meaning) -> Result<Option<Expr>>,
    lacks: &mut bool,
) -> Result<Expr> {
    if let Some(meaning) = Meaning::of_expr(expr) {
        return Ok(replace(&meaning)?.unwrap_or_else(|| {
            *lacks = true;
            expr.clone()
        }));
    }
    expr.clone().try_map_children(&mut |child| inner(child, replace, lacks))
}
