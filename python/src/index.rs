//! Augmentations of a source, for Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use sieva::{BuildOptions, IndexKind, Progress};

use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::source::Source;

/// What a Python function is told of progress; an exception that it raises stops the work.
#[derive(Clone)]
pub(crate) struct Teller {
    call: Option<Arc<Py<PyAny>>>,
    cancel: Arc<AtomicBool>,
    raised: Arc<std::sync::Mutex<Option<PyErr>>>,
}

impl Teller {
    fn new(call: Option<Py<PyAny>>, cancel: &Arc<AtomicBool>) -> Self {
        Self { call: call.map(Arc::new), cancel: Arc::clone(cancel), raised: Arc::default() }
    }

    fn tell(&self, progress: Progress) {
        let Some(call) = &self.call else { return };
        Python::attach(|py| {
            if let Err(e) = call.call1(py, (progress.done, progress.total)) {
                self.cancel.store(true, Ordering::Relaxed);
                self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(e);
            }
        });
    }

    /// The result, or what the function raised.
    pub(crate) fn outcome<T>(&self, result: PyResult<T>) -> PyResult<T> {
        match self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take() {
            Some(e) => Err(e),
            None => result,
        }
    }
}

/// Who tells of progress, and how a build calls it.
pub(crate) fn tell(
    progress: Option<Py<PyAny>>,
    cancel: &Arc<AtomicBool>,
) -> (Teller, Arc<dyn Fn(Progress) + Send + Sync>) {
    let teller = Teller::new(progress, cancel);
    let told = teller.clone();
    (teller, Arc::new(move |p| told.tell(p)))
}

/// Options of a build, those that are not given as they are in the session of the source.
pub(crate) fn build_options(
    source: &Source,
    jobs: Option<usize>,
    memory: Option<u64>,
    lock_timeout: Option<Duration>,
) -> BuildOptions {
    let mut options = BuildOptions::within(source.0.session());
    options.jobs = jobs.unwrap_or(options.jobs);
    options.memory = memory.unwrap_or(options.memory);
    options.lock_timeout = lock_timeout.unwrap_or(options.lock_timeout);
    options
}

/// What a build did, by the names of `sieva.BuildReport`.
pub(crate) fn report_dict(py: Python<'_>, report: sieva::BuildReport) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("regions_built", report.built)?;
    out.set_item("regions_kept", report.kept)?;
    out.set_item("regions_renewed", report.renewed)?;
    out.set_item("bytes_read", report.bytes)?;
    out.set_item("replicas_built", report.replicas)?;
    out.set_item("unreadable", report.unreadable)?;
    out.set_item("notes", report.notes)?;
    Ok(out)
}

#[pyfunction]
#[pyo3(signature = (
    source, arrays, kinds, *, jobs=None, memory=None, precision=2, region_size=None, columns=None, lock_timeout=None,
    progress=None
))]
#[allow(clippy::too_many_arguments)] // the options of one call, by name
pub fn build_index<'py>(
    source: &Source,
    py: Python<'py>,
    arrays: Vec<String>,
    kinds: Vec<String>,
    jobs: Option<usize>,
    memory: Option<u64>,
    precision: u32,
    region_size: Option<u64>,
    columns: Option<Vec<String>>,
    lock_timeout: Option<Duration>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let (teller, told) = tell(progress, &cancel);
    let mut options = BuildOptions {
        precision,
        region_size,
        columns,
        cancel: Arc::clone(&cancel),
        progress: Some(told),
        ..build_options(source, jobs, memory, lock_timeout)
    };
    options.kinds = kinds.iter().map(|k| IndexKind::parse(k)).collect::<Result<_, _>>().map_err(to_python)?;
    let report = interruptible(py, &cancel, || source.0.build_index(&arrays, &options));
    report_dict(py, teller.outcome(report)?)
}

#[pyfunction]
pub fn index_status<'py>(source: &Source, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let status = py.detach(|| source.0.index_status()).map_err(to_python)?;
    let out = PyDict::new(py);
    out.set_item("store", status.store.display().to_string())?;
    out.set_item("exists", status.exists)?;
    out.set_item("stale", status.stale)?;
    let arrays = PyList::empty(py);
    for a in &status.arrays {
        let one = PyDict::new(py);
        one.set_item("path", &a.path)?;
        one.set_item("regions", a.regions)?;
        one.set_item("region", PyTuple::new(py, &a.region)?)?;
        one.set_item("region_bytes", a.region_bytes)?;
        one.set_item("with_zonemap", a.with_stats)?;
        one.set_item("with_bitmap", a.with_bitmap)?;
        one.set_item("zonemap_bytes", a.stats_bytes)?;
        one.set_item("bitmap_bytes", a.bitmap_bytes)?;
        one.set_item("data_bytes", a.data_bytes)?;
        arrays.append(one)?;
    }
    out.set_item("arrays", arrays)?;
    let replicas = PyList::empty(py);
    for r in &status.replicas {
        let one = PyDict::new(py);
        one.set_item("key", &r.key)?;
        one.set_item("columns", &r.columns)?;
        one.set_item("path", r.path.display().to_string())?;
        one.set_item("bytes", r.bytes)?;
        replicas.append(one)?;
    }
    out.set_item("replicas", replicas)?;
    out.set_item("notes", status.notes)?;
    Ok(out)
}

#[pyfunction]
#[pyo3(signature = (source, all=false, progress=None))]
pub fn verify_index<'py>(
    source: &Source,
    py: Python<'py>,
    all: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let teller = Teller::new(progress, &cancel);
    let report = interruptible(py, &cancel, || source.0.verify_index(all, &cancel, &|p| teller.tell(p)));
    let report = teller.outcome(report)?;
    let out = PyDict::new(py);
    out.set_item("regions", report.regions)?;
    out.set_item("rows", report.rows)?;
    out.set_item("differences", report.differences)?;
    Ok(out)
}

#[pyfunction]
pub fn drop_index(source: &Source, py: Python<'_>) -> PyResult<bool> {
    py.detach(|| source.0.drop_index()).map_err(to_python)
}

#[pyfunction]
pub fn drop_replicas(source: &Source, py: Python<'_>, arrays: Vec<String>) -> PyResult<usize> {
    py.detach(|| source.0.drop_replicas(&arrays)).map_err(to_python)
}

/// A cost's name, nanoseconds, and number of observations.
type Cost = (String, f64, u64);

#[pyfunction]
pub fn calibrate(source: &Source, py: Python<'_>) -> PyResult<(Vec<Cost>, PathBuf)> {
    let found = {
        let cancel = Arc::default();
        interruptible(py, &cancel, || source.0.calibrate_until(&cancel))?
    };
    Ok((found.costs, found.kept_in))
}

#[pyfunction]
pub fn save_learnt(source: &Source, py: Python<'_>) {
    py.detach(|| source.0.save_learnt());
}

#[pyfunction]
pub fn index_notes(source: &Source, py: Python<'_>) -> Vec<String> {
    py.detach(|| source.0.index_notes())
}

/// The histogram of an array, from its augmentations.
#[pyclass(module = "sieva._native", frozen)]
pub struct Histogram(sieva::GlobalHistogram);

#[pymethods]
impl Histogram {
    #[staticmethod]
    fn of(py: Python<'_>, source: &Source, array: &str) -> PyResult<Self> {
        py.detach(|| source.0.global_histogram(array)).map(Self).map_err(to_python)
    }

    fn merged(&self, other: &Self) -> PyResult<Self> {
        self.0.merged(&other.0).map(Self).map_err(to_python)
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let counts: Vec<i64> = self.0.counts().into_iter().map(|c| c as i64).collect();
        counts.into_pyarray(py).into_any()
    }

    #[getter]
    fn edges<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.0.edges().into_pyarray(py).into_any()
    }

    /// Exactly, of integers that are not packed.
    #[getter]
    fn whole_edges(&self) -> Option<Vec<i128>> {
        self.0.whole_edges()
    }

    #[getter]
    fn infinities(&self) -> (u64, u64) {
        self.0.infinities()
    }

    #[getter]
    fn missing(&self) -> u64 {
        self.0.missing()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    #[getter]
    fn range(&self) -> Option<(f64, f64)> {
        self.0.range()
    }

    /// Exactly, of integers that are not packed.
    #[getter]
    fn whole_range(&self) -> Option<(i128, i128)> {
        self.0.whole_range()
    }
}
