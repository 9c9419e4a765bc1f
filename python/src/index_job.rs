//! `sieva._native.IndexJob` and `IndexTask`: augmentations that many processes build together.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::whole;
use crate::errors::to_python;
use crate::index::{build_options, report_dict, tell};
use crate::interrupt::interruptible;
use crate::source::Source;
use crate::tasks::Reduced;

/// Gone once it is finished.
#[pyclass(module = "sieva._native", frozen)]
pub struct IndexJob(Mutex<Option<sieva::IndexJob>>);

#[pymethods]
impl IndexJob {
    #[staticmethod]
    #[pyo3(signature = (
        source, arrays, kinds, *, memory=None, precision=2, region_size=None, columns=None, lock_timeout=None
    ))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn of(
        py: Python<'_>,
        source: &Source,
        arrays: Vec<String>,
        kinds: Vec<String>,
        memory: Option<u64>,
        precision: u32,
        region_size: Option<u64>,
        columns: Option<Vec<String>>,
        lock_timeout: Option<Duration>,
    ) -> PyResult<Self> {
        let mut options = build_options(source, None, memory, lock_timeout);
        (options.precision, options.region_size, options.columns) = (precision, region_size, columns);
        let parsed = kinds.iter().map(|k| sieva::IndexKind::parse(k)).collect::<Result<_, _>>();
        options.kinds = parsed.map_err(to_python)?;
        let job = py.detach(|| source.0.index_job(&arrays, &options)).map_err(to_python)?;
        Ok(Self(Mutex::new(Some(job))))
    }

    fn tasks(&self, py: Python<'_>, #[pyo3(from_py_with = whole)] n: usize) -> PyResult<Vec<IndexTask>> {
        let tasks = py.detach(|| self.held().as_mut().map_or_else(|| Err(gone()), |job| job.tasks(n)));
        Ok(tasks.map_err(to_python)?.into_iter().map(IndexTask).collect())
    }

    fn take(&self, py: Python<'_>, done: Vec<Vec<u8>>) -> PyResult<()> {
        let taken = py.detach(|| self.held().as_mut().map_or_else(|| Err(gone()), |job| job.take(&done)));
        taken.map_err(to_python)
    }

    /// What is left to be built takes, by the names of `sieva.BuildPrice`, and `states`, which tell the sources from others.
    fn price<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let price = self.held().as_ref().map(sieva::IndexJob::price).ok_or_else(gone).map_err(to_python)?;
        let out = PyDict::new(py);
        out.set_item("regions", price.regions)?;
        out.set_item("rows", price.rows)?;
        out.set_item("bytes_read", price.bytes)?;
        out.set_item("bytes_sorted", price.sorted_bytes)?;
        out.set_item("memory", price.memory)?;
        out.set_item("states", price.states)?;
        Ok(out)
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let job = self.held().take();
        let report = py.detach(|| job.map_or_else(|| Err(gone()), sieva::IndexJob::finish));
        report_dict(py, report.map_err(to_python)?)
    }
}

impl IndexJob {
    fn held(&self) -> MutexGuard<'_, Option<sieva::IndexJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone() -> sieva::Error {
    sieva::Error::new(sieva::ErrorKind::InvalidValue, "the job is finished")
}

#[pyclass(module = "sieva", frozen)]
pub struct IndexTask(sieva::IndexTask);

#[pymethods]
impl IndexTask {
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        sieva::IndexTask::from_bytes(data).map(Self).map_err(to_python)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[getter]
    fn source(&self) -> &str {
        self.0.source()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        sieva::lookup3(&self.0.to_bytes(), 0).into()
    }

    fn __repr__(&self) -> String {
        format!("<sieva.IndexTask {} of '{}'>", self.0.what(), self.0.source())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().__bytes__(slf.py()),)))
    }
}

#[pyfunction]
#[pyo3(signature = (source, task, *, jobs=None, memory=None, lock_timeout=None, progress=None))]
pub fn run_index_task<'py>(
    source: &Source,
    py: Python<'py>,
    task: &IndexTask,
    jobs: Option<usize>,
    memory: Option<u64>,
    lock_timeout: Option<Duration>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let (teller, told) = tell(progress, &cancel);
    let mut options = build_options(source, jobs, memory, lock_timeout);
    (options.cancel, options.progress) = (Arc::clone(&cancel), Some(told));
    let done = interruptible(py, &cancel, || source.0.run_index_task(&task.0, &options));
    Ok(PyBytes::new(py, &teller.outcome(done)?))
}
