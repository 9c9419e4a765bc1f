//! Many reads as one: `Source.read_many`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use sieva::{Bx, Column, Error, Part, Request, Result};

use crate::convert;
use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::selection::Selection;
use crate::source::Source;

/// Reads boxes and selections of arrays together. Of each request an array, or the exception that it would raise by itself;
/// boxes have their shape.
#[pyfunction]
pub fn read_many<'py>(
    source: PyRef<'py, Source>,
    requests: Vec<Bound<'py, PyTuple>>,
    raw: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (py, cancel) = (source.py(), Arc::new(AtomicBool::new(false)));
    let opened = &source.0;
    let mut known: HashMap<String, Result<usize>> = HashMap::new();
    // Of each request nothing, or why its name means no array.
    let (mut all, mut unknown) = (Vec::with_capacity(requests.len()), Vec::with_capacity(requests.len()));
    let mut steps = Vec::with_capacity(requests.len());
    for request in &requests {
        let (name, asked): (Bound<'py, PyString>, Bound<'py, PyAny>) = request.extract()?;
        let name = name.to_str()?;
        let array = match known.get(name) {
            Some(array) => array.clone(),
            None => known.entry(name.to_owned()).or_insert(opened.resolve(name)).clone(),
        };
        let (part, apart) = part(&asked)?;
        unknown.push(match array {
            Ok(array) => {
                all.push(Request { array, part, raw, cancel: Arc::clone(&cancel) });
                steps.push(apart);
                None
            }
            Err(e) => Some(e),
        });
    }
    let mut read =
        interruptible(py, &cancel, || opened.read_many(&all))?.into_iter().zip(all.iter().zip(&steps));
    let each = unknown.into_iter().map(|unknown| match unknown {
        Some(e) => Ok(raised(py, e)),
        None => match read.next() {
            Some((Ok(column), (request, apart))) => values(py, opened, column, request, apart.as_deref()),
            Some((Err(e), _)) => Ok(raised(py, e)),
            None => Ok(py.None().into_bound(py)),
        },
    });
    each.collect()
}

/// What of an array is wanted, as Python says it: start, shape and, where one is not 1, steps of a box, or a selection.
fn part(asked: &Bound<'_, PyAny>) -> PyResult<(Part, Option<Vec<u64>>)> {
    if let Ok(selection) = asked.cast::<Selection>() {
        return Ok((Part::Positions(Arc::clone(&selection.borrow().0)), None));
    }
    let (start, shape, steps) = asked.extract()?;
    Ok((Part::Box(Bx { start, shape }), steps))
}

fn raised(py: Python<'_>, e: Error) -> Bound<'_, PyAny> {
    to_python(e).into_value(py).into_bound(py).into_any()
}

fn values<'py>(
    py: Python<'py>,
    source: &sieva::Source,
    column: Column,
    request: &Request,
    steps: Option<&[u64]>,
) -> PyResult<Bound<'py, PyAny>> {
    let info = &source.schema().arrays[request.array];
    let values = match (&request.part, steps) {
        (Part::Box(bx), Some(steps)) => {
            return convert::stepped(py, column, &bx.shape, steps, Some(info), request.raw);
        }
        (Part::Box(bx), None) => convert::shaped(py, column, &bx.shape),
        (Part::Positions(_), _) => convert::column(py, column),
    };
    convert::stored_width(values?, Some(info), request.raw)
}
