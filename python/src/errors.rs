//! The engine's errors as the exceptions of `sieva.errors`.

use pyo3::prelude::*;

/// The exception for an error; made by `sieva.errors.make`, so that classes are plain Python.
pub fn to_python(e: sieva::Error) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("sieva.errors")
            .and_then(|m| m.getattr("make"))
            .and_then(|make| make.call1((e.kind().code(), e.message(), e.hint_text())));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(failure) => failure,
        }
    })
}

/// A text as it is shown to people, with what commands a terminal escaped; `lines` keeps line feeds and tabs.
#[pyfunction]
pub fn printable(text: &str, lines: bool) -> String {
    let shown = if lines { sieva::printable_lines(text) } else { sieva::printable(text) };
    shown.into_owned()
}
