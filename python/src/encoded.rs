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
    #[pyo3(signature = (query, kind, *, spool=None, spool_limit=None, deflate=0))]
    fn new(
        py: Python<'_>,
        query: &Query,
        kind: &str,
        spool: Option<PathBuf>,
        spool_limit: Option<u64>,
        deflate: u32,
    ) -> PyResult<Self> {
        let format = Format::named(kind).map_err(to_python)?;
        let default = EncodeOptions::default();
        let spool_limit = spool_limit.unwrap_or(default.spool_limit);
        let options = EncodeOptions { spool, spool_limit, deflate };
        let query = Arc::clone(&query.0);
        interruptible(py, &query.cancel_flag(), || {
            sieva_encode::Encoded::new(Arc::clone(&query), format, &options)
        })
        .map(Self)
    }

    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.size(py)
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
        let n = n.min(usize::try_from(self.size(py)?.saturating_sub(offset)).unwrap_or(usize::MAX));
        PyBytes::new_with(py, n, |to| {
            interruptible(py, &self.0.cancel_flag(), || self.0.read_at(offset, to)).map(|_| ())
        })
    }

    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        interruptible(py, &self.0.cancel_flag(), || self.0.write(&path))
    }

    #[pyo3(signature = (start, stop, block=0))]
    fn blocks(&self, py: Python<'_>, start: u64, stop: u64, block: usize) -> PyResult<Blocks> {
        // Of a deflated result this writes it.
        self.size(py)?;
        self.0.stream(start..stop, block).map(|stream| Blocks { stream, block }).map_err(to_python)
    }

    #[pyo3(signature = (block=0))]
    fn blocks_any_order(&self, block: usize) -> PyResult<Blocks> {
        self.0.stream_any_order(block).map(|stream| Blocks { stream, block }).map_err(to_python)
    }

    fn split(&self, py: Python<'_>, n: usize) -> PyResult<Vec<(u64, u64)>> {
        self.size(py)?;
        let parts = self.0.split(n).map_err(to_python)?;
        Ok(parts.into_iter().map(|r| (r.start, r.end)).collect())
    }
}

impl Encoded {
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        interruptible(py, &self.0.cancel_flag(), || self.0.size())
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
