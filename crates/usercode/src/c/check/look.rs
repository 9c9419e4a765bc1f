//! A text before its columns are known: what is wrong whatever they are.

use std::collections::BTreeSet;

use sieva_types::{Error, ErrorKind, Result};

use super::form::Asked;
use super::{Input, check, mismatch};
use crate::c::ast;
use crate::c::parse::parse;
use crate::c::types::Ty;
use crate::code::MOST_COLUMNS;
use crate::element::Element;

/// Checks what no column could change, and tells whether it is a reduction.
pub(crate) fn look(text: &str) -> Result<bool> {
    let program = parse(text)?;
    let names: Vec<&str> = program.functions.iter().map(|function| &*function.name).collect();
    let asked = Asked::of(&program.functions, &names)?;
    let of_rows = asked.of_rows().and_then(|name| program.functions.iter().find(|f| f.name == name));
    match of_rows {
        Some(function) => of_parameters(text, function)?,
        None => of_any(text)?,
    }
    Ok(asked.is_reduce())
}

/// A function of rows sees its parameters alone: columns of just these types fit best.
fn of_parameters(text: &str, function: &ast::Function) -> Result<()> {
    let column = |param: &ast::Param| match param.ty {
        Ty::Of(element) => Some(Input { name: param.name.clone(), element }),
        Ty::Void => None,
    };
    let inputs: Vec<Input> = function.params.iter().filter_map(column).collect();
    if inputs.is_empty() || inputs.len() > MOST_COLUMNS {
        let (name, n) = (&function.name, inputs.len());
        let message = format!("'{name}' has {n} parameters: one for each column, 1 to {MOST_COLUMNS}");
        return Err(mismatch(function.pos, message));
    }
    check(text, &inputs).map(drop)
}

/// A function of all rows sees columns by names: whatever it calls so is one. What is wrong at the same place for columns of
/// every type is wrong.
fn of_any(text: &str) -> Result<()> {
    let words: BTreeSet<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .collect();
    let mut first: Option<Error> = None;
    for element in Element::ALL {
        let column = |name: &&str| Input { name: (*name).to_owned(), element };
        let inputs: Vec<Input> = words.iter().map(column).collect();
        let Err(e) = check(text, &inputs) else { return Ok(()) };
        match &first {
            None => first = Some(e),
            Some(other) if other.kind() == e.kind() && other.message() == e.message() => {}
            Some(_) => return Ok(()),
        }
    }
    Err(first.unwrap_or_else(|| Error::new(ErrorKind::Internal, "there are no types of columns")))
}
