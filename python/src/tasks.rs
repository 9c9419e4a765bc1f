//! `sieva._native.Task` and `Partial`: parts of the work of a query, and what they found.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sieva::{Bx, QueryOptions, TaskKind};

use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::options::size;
use crate::plan::Plan;
use crate::query::Query;

pub type Reduced<'py> = PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))>;
type Corners = (Vec<u64>, Vec<u64>);

#[pyclass(module = "sieva", frozen)]
pub struct Task(pub sieva::Task);

#[pymethods]
impl Task {
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        sieva::Task::from_bytes(data).map(Self).map_err(to_python)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(to_python)?))
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    #[getter]
    fn source(&self) -> Option<&str> {
        self.0.source()
    }

    #[getter]
    fn plan(&self) -> Plan {
        Plan(self.0.plan().clone())
    }

    #[getter]
    fn start(&self) -> Vec<u64> {
        self.0.rows().start
    }

    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.rows().shape
    }

    #[getter]
    fn number(&self) -> Option<(u64, u64)> {
        self.0.number()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let (bx, number) = (self.0.rows(), self.0.number().map_or(0, |(number, _)| number));
        bx.start.iter().chain(&bx.shape).chain([&number]).fold(0, |h, n| h.wrapping_mul(31).wrapping_add(*n))
    }

    fn __repr__(&self) -> String {
        if let Some((number, of)) = self.0.number() {
            return format!("<sieva.Task {} {number} of {of} by values>", self.kind());
        }
        let bx = self.0.rows();
        format!(
            "<sieva.Task {} of rows {:?} + {:?} of {:?}>",
            self.kind(),
            bx.start,
            bx.shape,
            self.0.shape()
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().__bytes__(slf.py())?,)))
    }
}

/// Empty once it was merged into another.
#[pyclass(module = "sieva", frozen)]
pub struct Partial(Mutex<Option<sieva::Partial>>);

impl Partial {
    fn of(partial: sieva::Partial) -> Self {
        Self(Mutex::new(Some(partial)))
    }

    fn with<R>(&self, f: impl FnOnce(&sieva::Partial) -> sieva::Result<R>) -> PyResult<R> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().ok_or_else(gone).and_then(f).map_err(to_python)
    }

    fn copy(&self) -> PyResult<sieva::Partial> {
        self.with(sieva::Partial::copy)
    }
}

fn gone() -> sieva::Error {
    let message = "what the partial result held was lost when merging failed";
    sieva::Error::new(sieva::ErrorKind::InvalidValue, message)
}

#[pymethods]
impl Partial {
    #[staticmethod]
    #[pyo3(signature = (data, memory=None))]
    fn from_bytes(py: Python<'_>, data: &[u8], memory: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let memory = memory.map(|memory| size(&memory, false)).transpose()?;
        let read = || match memory {
            Some(memory) => sieva::Partial::from_bytes_within(data, memory),
            None => sieva::Partial::from_bytes(data),
        };
        py.detach(read).map(Self::of).map_err(to_python)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.with(sieva::Partial::to_bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn kind(&self) -> PyResult<&'static str> {
        self.with(|own| Ok(own.kind().name()))
    }

    /// How many rows were looked at, and of how many.
    #[getter]
    fn looked_at(&self) -> PyResult<(u64, u64)> {
        self.with(|own| Ok(own.looked_at()))
    }

    /// What several found, of their bytes.
    #[staticmethod]
    fn merged(py: Python<'_>, parts: Vec<Bound<'_, PyBytes>>) -> PyResult<Self> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        py.detach(|| merged(&parts, None)).map(Self::of).map_err(to_python)
    }

    /// What both found; neither is changed.
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let merged = || {
            let (mut own, more) = (self.copy()?, other.copy()?);
            own.merge(more).map_err(to_python)?;
            Ok(Self::of(own))
        };
        py.detach(merged)
    }

    fn __repr__(&self) -> PyResult<String> {
        let (seen, all) = self.looked_at()?;
        Ok(format!("<sieva.Partial {} of {seen} rows of {all}>", self.kind()?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().__bytes__(slf.py())?,)))
    }
}

fn no_parts() -> sieva::Error {
    sieva::Error::new(sieva::ErrorKind::InvalidValue, "no partial results were given")
        .hint("run the tasks of the query first")
}

/// What several partial results found, one after the other: no more than one of them is held besides what they come to.
fn merged(parts: &[&[u8]], memory: Option<u64>) -> sieva::Result<sieva::Partial> {
    let read = |data: &&[u8]| match memory {
        Some(memory) => sieva::Partial::from_bytes_within(data, memory),
        None => sieva::Partial::from_bytes(data),
    };
    let (first, rest) = parts.split_first().ok_or_else(no_parts)?;
    let mut whole = read(first)?;
    rest.iter().try_for_each(|part| whole.merge(read(part)?))?;
    Ok(whole)
}

/// The work of a query in about `n` parts, cut by values where that spares work.
pub fn shares_of(py: Python<'_>, query: &sieva::Query, n: usize, kind: Option<&str>) -> PyResult<Vec<Task>> {
    let made = || {
        let kind = kind.map_or_else(|| Ok(query.usual_kind()), TaskKind::named)?;
        query.shares_of(kind, n)
    };
    let made: sieva::Result<Vec<sieva::Task>> = py.detach(made);
    made.map(|all| all.into_iter().map(Task).collect()).map_err(to_python)
}

/// Seconds of one thread that finding what a kind gives takes, about.
pub fn effort(py: Python<'_>, query: &sieva::Query, kind: Option<&str>) -> PyResult<f64> {
    let told = || query.effort(kind.map_or_else(|| Ok(query.usual_kind()), TaskKind::named)?);
    py.detach(told).map_err(to_python)
}

/// The tasks of a query: at most `n`, or those of boxes, each a start and a shape.
pub fn tasks_of(
    py: Python<'_>,
    query: &sieva::Query,
    n: usize,
    kind: Option<&str>,
    boxes: Option<Vec<Corners>>,
) -> PyResult<Vec<Task>> {
    let made = || {
        let kind = kind.map_or_else(|| Ok(query.usual_kind()), TaskKind::named)?;
        let Some(boxes) = boxes else { return query.tasks_of(kind, n) };
        boxes.into_iter().map(|(start, shape)| query.task(kind, bx(start, shape)?)).collect()
    };
    let made: sieva::Result<Vec<sieva::Task>> = py.detach(made);
    made.map(|all| all.into_iter().map(Task).collect()).map_err(to_python)
}

fn bx(start: Vec<u64>, shape: Vec<u64>) -> sieva::Result<Bx> {
    if start.len() == shape.len() {
        return Ok(Bx::new(start, shape));
    }
    let message = format!("a box that starts at {start:?} and has the shape {shape:?}");
    Err(sieva::Error::new(sieva::ErrorKind::InvalidValue, message))
}

/// Runs a task of a source.
pub fn run(py: Python<'_>, source: &sieva::Source, task: &Task, options: &QueryOptions) -> PyResult<Partial> {
    let work = py.detach(|| source.start_task(&task.0, options)).map_err(to_python)?;
    interruptible(py, &work.query().cancel_flag(), || work.run()).map(Partial::of)
}

/// The query that a task is a part of, or that of the task's rows alone.
pub fn query_of(
    py: Python<'_>,
    source: &sieva::Source,
    task: &Task,
    alone: bool,
    options: &QueryOptions,
) -> PyResult<Query> {
    let made = || match alone {
        true => source.part_of(&task.0, options),
        false => source.query_of(&task.0, options),
    };
    py.detach(made).map(Query::of).map_err(to_python)
}

/// The query that knows its answer by all partial results.
pub fn finish(py: Python<'_>, query: &sieva::Query, parts: Vec<PyRef<'_, Partial>>) -> PyResult<Query> {
    let copies = parts.iter().map(|part| part.copy()).collect::<PyResult<Vec<_>>>()?;
    let finished = interruptible(py, &query.cancel_flag(), || {
        let mut all = copies.into_iter();
        let mut whole = all.next().ok_or_else(no_parts)?;
        whole.limit(query.memory());
        all.try_for_each(|part| whole.merge(part))?;
        query.finish(whole)
    })?;
    Ok(Query::of(finished))
}

/// The same of their bytes, which are read one after the other.
pub fn finish_bytes(py: Python<'_>, query: &sieva::Query, parts: &[Bound<'_, PyBytes>]) -> PyResult<Query> {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let finished =
        interruptible(py, &query.cancel_flag(), || query.finish(merged(&parts, Some(query.memory()))?))?;
    Ok(Query::of(finished))
}
