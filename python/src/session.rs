//! `sieva._native.Session`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;

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
