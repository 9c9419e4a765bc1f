//! `sieva._native.Encoded`: a result as the bytes of a file.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sieva_encode::{EncodeOptions, EncodedStream, Format};

use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::query::Query;

#[pyclass(module = "sieva._native", frozen)]
pub struct Encoded(sieva_encode::Encoded);

#[pymethods]
impl Encoded {
    #[new]
    #[pyo3(signature = (query, kind, *, spool=None, spool_limit=None))]
    fn new(
        py: Python<'_>,
        query: &Query,
        kind: &str,
        spool: Option<PathBuf>,
        spool_limit: Option<u64>,
    ) -> PyResult<Self> {
        let format = Format::named(kind).map_err(to_python)?;
        let default = EncodeOptions::default();
        let options = EncodeOptions { spool, spool_limit: spool_limit.unwrap_or(default.spool_limit) };
        let query = Arc::clone(&query.0);
        interruptible(py, &query.cancel_flag(), || {
            sieva_encode::Encoded::new(Arc::clone(&query), format, &options)
        })
        .map(Self)
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.len()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    fn read<'py>(&self, py: Python<'py>, offset: u64, n: usize) -> PyResult<Bound<'py, PyBytes>> {
        let n = n.min(usize::try_from(self.0.len().saturating_sub(offset)).unwrap_or(usize::MAX));
        PyBytes::new_with(py, n, |to| {
            interruptible(py, &self.0.query().cancel_flag(), || self.0.read_at(offset, to)).map(|_| ())
        })
    }

    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        interruptible(py, &self.0.query().cancel_flag(), || self.0.write(&path))
    }

    #[pyo3(signature = (start, stop, block=0))]
    fn blocks(&self, start: u64, stop: u64, block: usize) -> PyResult<Blocks> {
        self.0.stream(start..stop, block).map(|stream| Blocks { stream, block }).map_err(to_python)
    }

    fn split(&self, n: usize) -> Vec<(u64, u64)> {
        self.0.split(n).into_iter().map(|r| (r.start, r.end)).collect()
    }
}

/// The blocks of a byte range, as they are made.
#[pyclass(module = "sieva._native", frozen)]
pub struct Blocks {
    stream: EncodedStream,
    block: usize,
}

#[pymethods]
impl Blocks {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyBytes>)>> {
        let mut to = vec![0; if self.block == 0 { sieva_encode::BLOCK } else { self.block }];
        let (offset, n) = py.detach(|| self.stream.next_block(&mut to)).map_err(to_python)?;
        Ok((n > 0).then(|| (offset, PyBytes::new(py, &to[..n]))))
    }
}
