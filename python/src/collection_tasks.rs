//! `sieva._native.CollectionTask` and `CollectionPartial`: parts of the work of a query of a collection.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sieva::{QueryOptions, TaskKind};

use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::options::size;
use crate::plan::Plan;

type Reduced<'py> = PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))>;

#[pyclass(module = "sieva", frozen)]
pub struct CollectionTask(pub sieva::CollectionTask);

#[pymethods]
impl CollectionTask {
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| sieva::CollectionTask::from_bytes(data)).map(Self).map_err(to_python)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.to_bytes()).map_err(to_python)?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    #[getter]
    fn plan(&self) -> Plan {
        Plan(self.0.plan().clone())
    }

    #[getter]
    fn sources(&self) -> Vec<&str> {
        self.0.sources().collect()
    }

    /// The number of its first object, and how many it has.
    #[getter]
    fn objects(&self) -> (u64, u64) {
        let own = self.0.objects();
        (own.start, own.end - own.start)
    }

    #[getter]
    fn object_count(&self) -> u64 {
        self.0.object_count()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let own = self.0.objects();
        own.start.wrapping_mul(31).wrapping_add(own.end)
    }

    fn __repr__(&self) -> String {
        let (own, all) = (self.0.objects(), self.0.object_count());
        let sources = self.0.sources().count();
        format!(
            "<sieva.CollectionTask {} of objects {} to below {} of {all}, in {sources} sources>",
            self.kind(),
            own.start,
            own.end
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().__bytes__(slf.py())?,)))
    }
}

/// Empty where merging failed.
#[pyclass(module = "sieva", frozen)]
pub struct CollectionPartial(Mutex<Option<sieva::CollectionPartial>>);

impl CollectionPartial {
    fn of(partial: sieva::CollectionPartial) -> Self {
        Self(Mutex::new(Some(partial)))
    }

    fn with<R>(&self, f: impl FnOnce(&sieva::CollectionPartial) -> sieva::Result<R>) -> PyResult<R> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().ok_or_else(gone).and_then(f).map_err(to_python)
    }

    fn copy(&self) -> PyResult<sieva::CollectionPartial> {
        self.with(sieva::CollectionPartial::copy)
    }
}

fn gone() -> sieva::Error {
    let message = "what the partial result held was lost when merging failed";
    sieva::Error::new(sieva::ErrorKind::InvalidValue, message)
}

#[pymethods]
impl CollectionPartial {
    #[staticmethod]
    #[pyo3(signature = (data, memory=None))]
    fn from_bytes(py: Python<'_>, data: &[u8], memory: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let memory = memory.map(|memory| size(&memory, false)).transpose()?;
        let read = || match memory {
            Some(memory) => sieva::CollectionPartial::from_bytes_within(data, memory),
            None => sieva::CollectionPartial::from_bytes(data),
        };
        py.detach(read).map(Self::of).map_err(to_python)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.with(sieva::CollectionPartial::to_bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn kind(&self) -> PyResult<&'static str> {
        self.with(|own| Ok(own.kind().name()))
    }

    /// How many objects were looked at, and of how many.
    #[getter]
    fn looked_at(&self) -> PyResult<(u64, u64)> {
        self.with(|own| Ok(own.looked_at()))
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
        Ok(format!("<sieva.CollectionPartial {} of {seen} objects of {all}>", self.kind()?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().__bytes__(slf.py())?,)))
    }
}

/// The tasks of a query: at most `n`, or those of ranges of objects, each a first one and a number.
pub fn tasks_of(
    py: Python<'_>,
    query: &sieva::CollectionQuery,
    n: usize,
    kind: Option<&str>,
    objects: Option<Vec<(u64, u64)>>,
) -> PyResult<Vec<CollectionTask>> {
    let made = interruptible(py, &query.cancel_flag(), || {
        let kind = kind.map_or(Ok(query.usual_kind()), TaskKind::named)?;
        let Some(ranges) = objects else { return query.tasks_of(kind, n) };
        let range = |(first, len): (u64, u64)| query.task(kind, first..first.saturating_add(len));
        ranges.into_iter().map(range).collect()
    })?;
    Ok(made.into_iter().map(CollectionTask).collect())
}

/// Runs a task of a collection.
pub fn run(
    py: Python<'_>,
    collection: &sieva::Collection,
    task: &CollectionTask,
    options: &QueryOptions,
) -> PyResult<CollectionPartial> {
    let work = py.detach(|| collection.start_task(&task.0, options)).map_err(to_python)?;
    interruptible(py, &work.query().cancel_flag(), || work.run()).map(CollectionPartial::of)
}

/// The query that knows its answer by all partial results.
pub fn finish(
    py: Python<'_>,
    query: &sieva::CollectionQuery,
    parts: Vec<PyRef<'_, CollectionPartial>>,
) -> PyResult<sieva::CollectionQuery> {
    let copies = parts.iter().map(|part| part.copy()).collect::<PyResult<Vec<_>>>()?;
    interruptible(py, &query.cancel_flag(), || {
        let mut all = copies.into_iter();
        let none = || {
            sieva::Error::new(sieva::ErrorKind::InvalidValue, "no partial results were given")
                .hint("run the tasks of the query first")
        };
        let mut whole = all.next().ok_or_else(none)?;
        whole.limit(query.memory());
        all.try_for_each(|part| whole.merge(part))?;
        query.finish(whole)
    })
}
