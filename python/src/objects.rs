//! `sieva._native.Objects`: objects that are written, in a directory or an object store.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use sieva::guard::{Gate, Purpose};
use sieva::objects::{self, Body};
use sieva::{Error, ErrorKind, RemoteOptions};

use crate::errors::to_python;
use crate::remote::remote_options;

#[pyclass(module = "sieva._native", frozen)]
pub struct Objects(Arc<dyn objects::Objects>);

/// Bytes of Python, which are not copied.
struct Given(PyBackedBytes);

impl Body for Given {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> sieva::Result<()> {
        let bytes: &[u8] = &self.0;
        bytes.read_exact_at(offset, out)
    }
}

#[pymethods]
impl Objects {
    #[new]
    #[pyo3(signature = (root, storage_options=None))]
    fn new(py: Python<'_>, root: &str, storage_options: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let options = storage_options.map_or_else(|| Ok(RemoteOptions::default()), remote_options)?;
        let open = || objects::open_objects_within(root, &options, &Gate::default(), Purpose::Source);
        py.detach(open).map(Self).map_err(to_python)
    }

    fn put(&self, py: Python<'_>, key: &str, data: PyBackedBytes) -> PyResult<()> {
        let body = Given(data);
        py.detach(|| self.0.put(key, &body)).map_err(to_python)
    }

    fn create(&self, py: Python<'_>, key: &str, data: PyBackedBytes) -> PyResult<bool> {
        py.detach(|| self.0.create(key, &data)).map_err(to_python)
    }

    #[pyo3(signature = (key, most=u64::MAX))]
    fn get<'py>(&self, py: Python<'py>, key: &str, most: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = py.detach(|| self.0.get(key, most)).map_err(to_python)?;
        Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn get_range<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        offset: u64,
        n: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let read = || {
            let mut out = Vec::new();
            let refused =
                |_| Error::new(ErrorKind::MemoryLimit, format!("no memory for {n} bytes of '{key}'"));
            out.try_reserve_exact(n).map_err(refused)?;
            out.resize(n, 0);
            self.0.get_range(key, offset, &mut out).map(|is_there| is_there.then_some(out))
        };
        let found = py.detach(read).map_err(to_python)?;
        Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn delete(&self, py: Python<'_>, key: &str) -> PyResult<()> {
        py.detach(|| self.0.delete(key)).map_err(to_python)
    }

    #[pyo3(signature = (prefix=""))]
    fn list(&self, py: Python<'_>, prefix: &str) -> PyResult<Vec<(String, u64)>> {
        let listed = py.detach(|| self.0.list(prefix)).map_err(to_python)?;
        Ok(listed.into_iter().map(|entry| (entry.key, entry.size)).collect())
    }

    #[pyo3(signature = (prefix=""))]
    fn tidy(&self, py: Python<'_>, prefix: &str) -> PyResult<()> {
        py.detach(|| self.0.tidy(prefix)).map_err(to_python)
    }

    fn location(&self, key: &str) -> String {
        self.0.location(key)
    }

    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }
}
