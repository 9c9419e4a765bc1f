//! `sieva._native.Query` and its stream of record batches.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::convert;
use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::selection::Selection;

const BATCH_ROWS: usize = 65_536;

#[pyclass(module = "sieva._native", frozen)]
pub struct Query(pub Arc<sieva::Query>);

impl Query {
    /// One that Python owns.
    pub fn of(query: sieva::Query) -> Self {
        Self(Arc::new(query))
    }
}

#[pymethods]
impl Query {
    #[getter]
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        py.detach(|| self.0.columns()).map_err(to_python)
    }

    #[getter]
    fn rows(&self) -> Vec<(String, u64)> {
        self.0.rows()
    }

    #[getter]
    fn grouped(&self) -> bool {
        self.0.is_grouped()
    }

    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        interruptible(py, &self.0.cancel_flag(), || self.0.count())
    }

    fn estimate(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        interruptible(py, &self.0.cancel_flag(), || self.0.estimate())
    }

    fn selection(&self, py: Python<'_>) -> PyResult<Selection> {
        interruptible(py, &self.0.cancel_flag(), || self.0.selection()).map(Selection)
    }

    #[pyo3(signature = (name=None))]
    fn read<'py>(&self, py: Python<'py>, name: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let name = match (name, self.0.outputs()) {
            (Some(name), _) => name.to_string(),
            (None, [only]) => format!("\"{}\"", only.name.replace('"', "\"\"")),
            (None, all) => {
                let names: Vec<&str> = all.iter().map(|o| o.name.as_str()).collect();
                let message = format!("read() needs a name: the query has {}", names.join(", "));
                return Err(to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, message)));
            }
        };
        let column = interruptible(py, &self.0.cancel_flag(), || self.0.read(&name))?;
        let array = self.0.source().resolve(name.trim_matches('"')).ok();
        let info = array.map(|i| &self.0.source().schema().arrays[i]);
        convert::stored_width(convert::column(py, column)?, info, false)
    }

    fn histogram<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        bins: usize,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (counts, edges) = interruptible(py, &self.0.cancel_flag(), || self.0.histogram(name, bins))?;
        let counts: Vec<i64> = counts.into_iter().map(|c| c as i64).collect();
        Ok((counts.into_pyarray(py).into_any(), edges.into_pyarray(py).into_any()))
    }

    #[pyo3(signature = (analyze=false))]
    fn explain(&self, py: Python<'_>, analyze: bool) -> PyResult<String> {
        interruptible(py, &self.0.cancel_flag(), || self.0.explain(analyze))
    }

    #[pyo3(signature = (analyze=false))]
    fn explain_json(&self, py: Python<'_>, analyze: bool) -> PyResult<String> {
        interruptible(py, &self.0.cancel_flag(), || self.0.explain_json(analyze))
    }

    #[pyo3(signature = (batch_size=BATCH_ROWS))]
    fn stream(&self, py: Python<'_>, batch_size: usize) -> PyResult<Stream> {
        let batches = interruptible(py, &self.0.cancel_flag(), || self.0.batches(batch_size))?;
        Ok(Stream(Mutex::new(Some(batches.into()))))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.stream(py, BATCH_ROWS)?.__arrow_c_stream__(py, requested_schema)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = self.0.stats();
        let out = PyDict::new(py);
        out.set_item("hits", s.hits)?;
        out.set_item("tiles_scanned", s.exec.tiles_scanned)?;
        out.set_item("tiles_taken", s.exec.tiles_taken)?;
        out.set_item("by_bitmap", s.exec.by_bitmap)?;
        out.set_item("by_points", s.exec.by_points)?;
        out.set_item("by_scan", s.exec.by_scan)?;
        out.set_item("by_replica", s.exec.by_replica)?;
        out.set_item("index_bytes_read", s.index.0)?;
        out.set_item("index_requests", s.index.1)?;
        out.set_item("tiles_skipped", s.exec.tiles_skipped)?;
        out.set_item("bytes_read", s.io.bytes_read)?;
        out.set_item("requests", s.io.requests)?;
        out.set_item("chunks_decoded", s.io.chunks_decoded)?;
        out.set_item("library_reads", s.io.library_reads)?;
        let seconds = PyDict::new(py);
        seconds.set_item("open", s.open_seconds)?;
        seconds.set_item("bind", s.bind_seconds)?;
        seconds.set_item("select", s.select_seconds)?;
        seconds.set_item("fetch", s.fetch_seconds)?;
        out.set_item("seconds", seconds)?;
        Ok(out)
    }

    /// Raises the error that ended a stream of this query, if one did.
    fn raise_failure(&self) -> PyResult<()> {
        self.0.take_failure().map_or(Ok(()), |e| Err(to_python(e)))
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

/// A result on its way out, by the Arrow PyCapsule interface; can be taken once.
#[pyclass(module = "sieva._native", frozen)]
pub struct Stream(Mutex<Option<Box<dyn RecordBatchReader + Send>>>);

impl Stream {
    /// What is read from `reader`.
    pub fn of(reader: Box<dyn RecordBatchReader + Send>) -> Self {
        Self(Mutex::new(Some(reader)))
    }
}

#[pymethods]
impl Stream {
    #[pyo3(signature = (requested_schema=None))]
    pub fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the schema that a consumer would like.
        drop(requested_schema);
        let taken = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let reader = taken.ok_or_else(|| {
            to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, "this stream has been read already"))
        })?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}
