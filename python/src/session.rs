//! `sieva._native.Session`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;
use crate::interrupt::interruptible_all;
use crate::query::Query;

/// Of each query the error, if it has one, and what was done for all.
type RanTogether<'py> = (Vec<Option<Py<PyAny>>>, Bound<'py, PyDict>);

#[pyclass(module = "sieva._native", frozen)]
pub struct Session(pub sieva::Session);

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (*, memory=None, cache=None, threads=None, queries=None))]
    fn new(
        memory: Option<u64>,
        cache: Option<u64>,
        threads: Option<usize>,
        queries: Option<usize>,
    ) -> PyResult<Self> {
        let options = sieva::SessionOptions { memory, cache, threads, queries };
        sieva::Session::new(&options).map(Self).map_err(to_python)
    }

    /// The session of the process.
    #[staticmethod]
    fn shared() -> Self {
        Self(sieva::Session::default())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = self.0.stats();
        let out = PyDict::new(py);
        let all = [
            ("memory", s.memory),
            ("reserved", s.reserved),
            ("peak_reserved", s.peak_reserved),
            ("running", s.running),
            ("waiting", s.waiting),
            ("queries", s.queries),
            ("admitted", s.admitted),
            ("refused", s.refused),
            ("evaluations", s.evaluations),
            ("selections_reused", s.selections_reused),
            ("selections", s.selections.0),
            ("selections_bytes", s.selections.1),
            ("cache_entries", s.cache.entries),
            ("cache_bytes", s.cache.bytes),
            ("cache_hits", s.cache.hits),
            ("cache_misses", s.cache.misses),
        ];
        for (name, value) in all {
            out.set_item(name, value)?;
        }
        Ok(out)
    }

    /// Evaluates queries together; gives what each failed with, and what was done.
    #[pyo3(signature = (queries, *, memory=None, threads=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        queries: Vec<PyRef<'py, Query>>,
        memory: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<RanTogether<'py>> {
        let cancel = Arc::default();
        let options = sieva::RunOptions { memory, threads, cancel: Some(Arc::clone(&cancel)) };
        let all: Vec<Arc<sieva::Query>> = queries.iter().map(|query| Arc::clone(&query.0)).collect();
        let mut flags = vec![cancel];
        flags.extend(all.iter().map(|query| query.cancel_flag()));
        let ran = interruptible_all(py, &flags, || {
            let all: Vec<&sieva::Query> = all.iter().map(|query| &**query).collect();
            self.0.run(&all, &options)
        })?;
        let failed = |result: sieva::Result<()>| result.err().map(|e| to_python(e).into_value(py).into_any());
        let s = ran.stats;
        let out = PyDict::new(py);
        let numbers = [
            ("queries", s.queries),
            ("together", s.together),
            ("alone", s.alone),
            ("scans", s.scans),
            ("tiles", s.tiles),
            ("asked", s.shared.asked),
            ("asked_bytes", s.shared.asked_bytes),
            ("read", s.shared.read),
            ("read_bytes", s.shared.read_bytes),
            ("bytes_read", s.io.bytes_read),
            ("requests", s.io.requests),
            ("chunks_decoded", s.io.chunks_decoded),
            ("library_reads", s.io.library_reads),
        ];
        for (name, value) in numbers {
            out.set_item(name, value)?;
        }
        Ok((ran.results.into_iter().map(failed).collect(), out))
    }

    fn cancel(&self) {
        self.0.cancel();
    }

    fn forget(&self) {
        self.0.forget();
    }

    fn close(&self) {
        self.0.close();
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }
}
