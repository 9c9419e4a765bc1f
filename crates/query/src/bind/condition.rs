//! Conditions as they were asked, and the constants that stand in them.

use sieva_format::decoding::Number;
use sieva_format::schema::{AttrValue, Schema, attr};
use sieva_types::{Error, ErrorKind, Result};

use super::value::{constant, constant_number};
use super::{Binder, Value, names};
use crate::ast::{Expr, Literal};
use crate::values::ValueType;

impl Binder<'_> {
    /// A condition as a value.
    pub(super) fn asked(&mut self, expr: &Expr) -> Result<Value> {
        let value = self.value(expr)?;
        match self.type_of(&value)? {
            None | Some(ValueType::Bool) => Ok(value),
            Some(_) => Err(no_condition(expr)),
        }
    }
}

fn no_condition(expr: &Expr) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("{expr} is a value, not a condition"))
        .hint("compare it with something: name > 5")
}

/// The number that a constant is. A literal beyond 64 bits, which no value has, is taken as written.
pub(super) fn exact_number(expr: &Expr, value: &Value) -> Option<Number> {
    match expr {
        Expr::Literal(Literal::Int(i)) => Some(Number::Int(*i)),
        _ => constant_number(value),
    }
}

/// The value of an attribute as a constant.
pub(crate) fn attribute(schema: &Schema, of: Option<&str>, wanted: &str) -> Result<Value> {
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
