//! Many reads as one: `Source.read_many`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sieva::{Bx, Column, Part, Request};

use crate::convert;
use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::selection::Selection;
use crate::source::Source;

/// What of an array is wanted, as Python says it: start and shape of a box, or a selection.
#[derive(FromPyObject)]
pub enum Asked<'py> {
    Box((Vec<u64>, Vec<u64>)),
    Selection(PyRef<'py, Selection>),
}

/// Reads boxes and selections of arrays together. Of each request an array, or the exception that it would raise by itself;
/// boxes have their shape.
#[pyfunction]
pub fn read_many<'py>(
    source: PyRef<'py, Source>,
    requests: Vec<(String, Asked<'py>)>,
    raw: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (py, cancel) = (source.py(), Arc::new(AtomicBool::new(false)));
    let opened = &source.0;
    let (mut all, mut found) = (Vec::new(), Vec::new());
    for (name, asked) in &requests {
        let array = opened.resolve(name);
        let part = match asked {
            Asked::Box((start, shape)) => Part::Box(Bx { start: start.clone(), shape: shape.clone() }),
            Asked::Selection(selection) => Part::Positions(Arc::clone(&selection.0)),
        };
        if let Ok(array) = array {
            all.push(Request { array, part, raw, cancel: Arc::clone(&cancel) });
        }
        found.push(array);
    }
    let mut read = interruptible(py, &cancel, || opened.read_many(&all))?.into_iter();
    let each = found.into_iter().zip(&requests).map(|(array, (_, asked))| {
        let column = match array {
            Ok(array) => read.next().map(|column| column.map(|column| (array, column))),
            Err(e) => Some(Err(e)),
        };
        match column {
            Some(Ok((array, column))) => values(py, opened, array, column, asked, raw),
            Some(Err(e)) => Ok(to_python(e).into_value(py).into_bound(py).into_any()),
            None => Ok(py.None().into_bound(py)),
        }
    });
    each.collect()
}

fn values<'py>(
    py: Python<'py>,
    source: &sieva::Source,
    array: usize,
    column: Column,
    asked: &Asked<'py>,
    raw: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let info = &source.schema().arrays[array];
    let values = convert::stored_width(convert::column(py, column)?, Some(info), raw)?;
    match asked {
        Asked::Box((_, shape)) => values.call_method1("reshape", (PyTuple::new(py, shape)?,)),
        Asked::Selection(_) => Ok(values),
    }
}
