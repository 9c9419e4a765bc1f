//! Advice from use, for Python: JSON out, as the command line prints it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use sieva::{Advice, AdviseOptions, BuildOptions, Catalog, Item};

use crate::errors::to_python;
use crate::interrupt::interruptible;

/// Advice that can be shown and done.
#[pyclass(module = "sieva._native", frozen)]
pub struct Advised {
    advice: Advice,
    catalog: String,
    options: AdviseOptions,
}

fn options(
    prefix: String,
    budget: Option<u64>,
    store: Option<PathBuf>,
    jobs: Option<usize>,
) -> AdviseOptions {
    let default = AdviseOptions::default();
    AdviseOptions { prefix, budget, store, jobs: jobs.unwrap_or(default.jobs).max(1), ..default }
}

#[pyfunction]
#[pyo3(signature = (prefix="", *, catalog=None, budget=None, store=None, jobs=None))]
pub fn advise(
    py: Python<'_>,
    prefix: &str,
    catalog: Option<&str>,
    budget: Option<u64>,
    store: Option<PathBuf>,
    jobs: Option<usize>,
) -> PyResult<Advised> {
    let options = options(prefix.to_string(), budget, store, jobs);
    let catalog = sieva::catalog::existing_url(catalog).map_err(to_python)?;
    let cancel = Arc::clone(&options.cancel);
    let advice = interruptible(py, &cancel, || {
        // What this process asked counts as well.
        sieva::flush_usage(Duration::from_secs(1));
        sieva::advise(&Catalog::open_read_only(&catalog)?, &options)
    })?;
    Ok(Advised { advice, catalog, options })
}

#[pymethods]
impl Advised {
    fn to_json(&self) -> String {
        self.advice.to_json()
    }

    #[getter]
    fn empty(&self) -> bool {
        self.advice.is_empty()
    }

    /// Does what is advised; `told` is called with source, array, kind and verdict before each step.
    #[pyo3(signature = (*, memory=None, told=None))]
    fn apply(&self, py: Python<'_>, memory: Option<u64>, told: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
        let cancel = Arc::new(AtomicBool::new(false));
        let options = AdviseOptions { cancel: Arc::clone(&cancel), ..self.options.clone() };
        let mut build = BuildOptions { jobs: options.jobs, ..BuildOptions::default() };
        build.memory = memory.unwrap_or(build.memory);
        let raised = Mutex::new(None);
        let tell = |item: &Item| {
            let Some(told) = &told else { return };
            let kind = sieva::IndexKind::NAMED.iter().find(|(_, k)| *k == item.kind).map_or("", |(n, _)| n);
            let args = (&item.location, &item.path, kind, item.verdict.name());
            if let Err(e) = Python::attach(|py| told.call1(py, args).map(|_| ())) {
                cancel.store(true, Ordering::Relaxed);
                raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            }
        };
        let done = interruptible(py, &cancel, || {
            let catalog = Catalog::open(&self.catalog)?;
            sieva::apply_advice(&catalog, &self.advice, &options, &build, &tell)
        });
        match raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(e) => Err(e),
            None => Ok(done?.iter().map(sieva::Done::to_json).collect()),
        }
    }
}

type Rule = (String, String, String, bool);

/// Pins (`True`), forbids (`False`) or frees (`None`) `SOURCE:ARRAY=KIND`.
#[pyfunction]
#[pyo3(signature = (rule, pinned, *, catalog=None, store=None))]
pub fn advise_rule(
    py: Python<'_>,
    rule: &str,
    pinned: Option<bool>,
    catalog: Option<&str>,
    store: Option<PathBuf>,
) -> PyResult<Rule> {
    let url = sieva::catalog::existing_url(catalog).map_err(to_python)?;
    let options = options(String::new(), None, store, None);
    let set = py.detach(|| sieva::set_rule(&Catalog::open(&url)?, rule, pinned, &options));
    set.map(|r| (r.location, r.path, r.kind, r.pinned)).map_err(to_python)
}

#[pyfunction]
#[pyo3(signature = (prefix="", *, catalog=None))]
pub fn advise_rules(py: Python<'_>, prefix: &str, catalog: Option<&str>) -> PyResult<Vec<Rule>> {
    let url = sieva::catalog::existing_url(catalog).map_err(to_python)?;
    let all = py.detach(|| sieva::rules(&Catalog::open_read_only(&url)?, prefix)).map_err(to_python)?;
    Ok(all.into_iter().map(|r| (r.location, r.path, r.kind, r.pinned)).collect())
}

/// Waits until what queries asked is in the catalog; whether that came in time.
#[pyfunction]
#[pyo3(signature = (timeout=1.0))]
pub fn flush_usage(py: Python<'_>, timeout: f64) -> bool {
    let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::ZERO);
    py.detach(|| sieva::flush_usage(timeout))
}
