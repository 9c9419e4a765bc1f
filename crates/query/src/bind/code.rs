//! Calls of functions that came as code: in which types they see their arguments.

use std::sync::Arc;

use sieva_format::decoding::Number;
use sieva_plan::written_name;
use sieva_types::{DType, Error, ErrorKind, Result};
use sieva_usercode::Element;

use super::{BoundArray, Value, constant_number};
use crate::code::Functions;
use crate::values::ValueType;

/// A call of a function that came as code; none where there is none of the name.
pub(crate) fn call_of_code(
    functions: &Functions,
    function: &str,
    args: Vec<Value>,
    arrays: &[BoundArray],
    type_of: &dyn Fn(&Value) -> Result<Option<ValueType>>,
) -> Result<Option<Value>> {
    let elements = || elements(&args, arrays, type_of, function);
    Ok(functions.called(function, elements)?.map(|called| Value::Code(Arc::new(called), args)))
}

/// A call of a reduction that came as code, as what is aggregated; none where there is none of the name.
pub(crate) fn reduction_of_code(
    functions: &Functions,
    function: &str,
    args: Vec<Value>,
    arrays: &[BoundArray],
    type_of: &dyn Fn(&Value) -> Result<Option<ValueType>>,
) -> Result<Option<Value>> {
    let elements = || elements(&args, arrays, type_of, function);
    Ok(functions.reducer(function, elements)?.map(|reducer| Value::Reduced(Arc::new(reducer), args)))
}

/// The types in which code sees its arguments.
fn elements(
    args: &[Value],
    arrays: &[BoundArray],
    type_of: &dyn Fn(&Value) -> Result<Option<ValueType>>,
    function: &str,
) -> Result<Vec<Element>> {
    args.iter().enumerate().map(|(i, v)| element(v, arrays, type_of(v)?, function, i)).collect()
}

/// The type in which code sees an argument: that of what is stored, where it is an array as it stands.
fn element(
    value: &Value,
    arrays: &[BoundArray],
    value_type: Option<ValueType>,
    function: &str,
    number: usize,
) -> Result<Element> {
    if let Value::Array { array, raw } = value {
        let domain = if *raw { &arrays[*array].raw_domain } else { &arrays[*array].domain };
        let stored = if domain.packing().is_some() { DType::F64 } else { domain.dtype() };
        let known = match stored {
            DType::Bool | DType::U8 => Some(Element::U8),
            DType::I8 => Some(Element::I8),
            DType::I16 => Some(Element::I16),
            DType::U16 => Some(Element::U16),
            DType::I32 => Some(Element::I32),
            DType::U32 => Some(Element::U32),
            DType::F16 | DType::F32 => Some(Element::F32),
            _ => None,
        };
        if let Some(element) = known {
            return Ok(element);
        }
    }
    Ok(match value_type {
        // All types hold it.
        None => Element::I8,
        Some(ValueType::Bool) => Element::U8,
        Some(ValueType::F64) => Element::F64,
        Some(ValueType::U64) => Element::U64,
        // As in C: a small literal is an int.
        Some(ValueType::I64) => match constant_number(value) {
            Some(Number::Int(i)) if i32::try_from(i).is_ok() => Element::I32,
            _ => Element::I64,
        },
        Some(ValueType::Str) => {
            let message = format!("argument {} of '{}' is text", number + 1, written_name(function));
            return Err(Error::new(ErrorKind::TypeMismatch, message).hint("code sees numbers"));
        }
    })
}
