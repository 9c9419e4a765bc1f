//! What tests give to code, and take from it.

use sieva_types::Result;
use sieva_usercode::{Code, Element, Function, Input, Limits, Slice, Values};

/// A column of doubles by the name `x`.
pub fn doubles() -> Vec<Input> {
    vec![input("x", Element::F64)]
}

pub fn input(name: &str, element: Element) -> Input {
    Input { name: name.to_owned(), element }
}

pub fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn of_bytes(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Runs code on columns, of as many rows each.
pub fn run(code: Code<'_>, inputs: &[Input], columns: &[Slice<'_>], limits: &Limits) -> Result<Vec<Values>> {
    let function = Function::compile(code, inputs)?;
    let rows = columns[0].data.len() / inputs[0].element.size();
    let mut run = function.start(rows as u64, limits)?;
    run.push(columns)?;
    run.finish(0)
}

/// Runs a text on a column of doubles.
pub fn of_doubles(text: &str, values: &[f64]) -> Result<Vec<Values>> {
    let data = bytes(values);
    run(Code::C(text), &doubles(), &[Slice { data: &data, valid: None }], &Limits::default())
}

/// The doubles that come of it.
pub fn doubles_of(text: &str, values: &[f64]) -> Vec<f64> {
    let out = of_doubles(text, values).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(out[0].element, Element::F64, "{text}");
    of_bytes(&out[0].data)
}

/// The value of a body of statements.
pub fn value(body: &str) -> f64 {
    doubles_of(&format!("double proc() {{ {body} }}"), &[3.0, -1.5, 8.0])[0]
}

/// The message of a text that fails.
pub fn error(text: &str) -> String {
    match of_doubles(text, &[3.0, -1.5, 8.0]) {
        Ok(out) => panic!("{text} gave {out:?}"),
        Err(e) => format!("{}: {e}", e.kind().code()),
    }
}
