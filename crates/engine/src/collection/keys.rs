//! The keys of a collection's objects as constants: of one type in all objects, or an error.

use sieva_catalog::Value;
use sieva_query::lower::Answer;
use sieva_query::values::{Scalar, ValueType};
use sieva_types::{Error, ErrorKind, Result};

use super::objects::SourceObjects;

/// The type of a key's values in all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Int,
    Float,
    Text,
    Bool,
}

/// The type that holds all values of key number `number`; none where no object has one.
pub(super) fn class_of(sources: &[SourceObjects], number: usize, key: &str) -> Result<Option<Class>> {
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
    Ok(class)
}

impl Class {
    /// All of them, in the order of their codes in bytes.
    pub(super) const ALL: &[Self] = &[Self::Int, Self::Float, Self::Text, Self::Bool];

    /// Whether values of keys of this type may be such.
    pub(super) fn takes(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (Self::Int, Value::Int(_))
                | (Self::Float, Value::Float(_) | Value::Int(_) | Value::UInt(_))
                | (Self::Text, Value::Text(_))
                | (Self::Bool, Value::Bool(_))
        )
    }

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

    /// What a constant of this type is known by before its value is.
    pub(super) fn unknown(self) -> Answer {
        Answer::Unknown(Some(self.value_type()))
    }

    /// What is known of a constant of this type with a value, or without one.
    pub(super) fn known(self, value: Option<&Value>) -> Result<Answer> {
        Ok(Answer::Known(self.scalar(value)?, Some(self.value_type())))
    }

    fn value_type(self) -> ValueType {
        match self {
            Self::Int => ValueType::I64,
            Self::Float => ValueType::F64,
            Self::Text => ValueType::Str,
            Self::Bool => ValueType::Bool,
        }
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
