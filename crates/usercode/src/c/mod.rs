//! The C subset: a text, for columns of known types, to a WebAssembly module.

mod ast;
mod builtin;
mod check;
mod emit;
mod expression;
pub(crate) mod lex;
mod parse;
mod stream;
mod tree;
mod types;

pub use check::Input;
pub(crate) use emit::{Emitted, ROW_REACHED, ROWS_TOGETHER, Why, place};
pub(crate) use tree::Form;

use sieva_types::Result;

/// A text that was compiled.
pub(crate) struct Compiled {
    pub emitted: Emitted,
    pub form: Form,
}

/// Looks whether a text is one of the language, as far as that is known without columns; and whether it is a reduction.
pub(crate) fn look(text: &str) -> Result<bool> {
    check::look(text)
}

/// Compiles a text for columns.
pub(crate) fn compile(text: &str, inputs: &[Input]) -> Result<Compiled> {
    let program = stream::streamed(check::check(text, inputs)?);
    Ok(Compiled { emitted: emit::emit(&program), form: program.form })
}
