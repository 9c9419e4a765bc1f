//! Results on their way out, by the Arrow PyCapsule interface.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::to_python;
use crate::interrupt::interruptible;

/// What a signal raised while a stream was read: Arrow can hand on no exception of Python's.
#[derive(Clone, Default)]
pub struct Signal(Arc<Mutex<Option<PyErr>>>);

impl Signal {
    /// Raises it; once.
    pub fn raise(&self) -> PyResult<()> {
        self.set(None).map_or(Ok(()), Err)
    }

    fn set(&self, e: Option<PyErr>) -> Option<PyErr> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), e)
    }
}

/// A result on its way out, by the Arrow PyCapsule interface; can be taken once.
#[pyclass(module = "sieva._native", frozen)]
pub struct Stream(Mutex<Option<Box<dyn RecordBatchReader + Send>>>);

impl Stream {
    /// What is read from `reader`, whose work `cancel` ends; a signal that ends it is told to `signal`.
    pub fn of(reader: Box<dyn RecordBatchReader + Send>, cancel: Arc<AtomicBool>, signal: &Signal) -> Self {
        // One of an earlier stream.
        signal.set(None);
        let (signal, made_by) = (signal.clone(), std::thread::current().id());
        Self(Mutex::new(Some(Box::new(Watched { reader, cancel, signal, made_by }))))
    }
}

/// A reader during whose work signals are looked for: a batch may be long in coming.
struct Watched {
    reader: Box<dyn RecordBatchReader + Send>,
    cancel: Arc<AtomicBool>,
    signal: Signal,
    made_by: ThreadId,
}

impl Iterator for Watched {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Another thread may be one of a library, for which the one that holds the interpreter's lock waits. The end takes
        // no time.
        let is_over = self.reader.size_hint().1 == Some(0);
        if is_over || std::thread::current().id() != self.made_by {
            return self.reader.next();
        }
        let (reader, cancel) = (&mut self.reader, &self.cancel);
        match Python::attach(|py| interruptible(py, cancel, || Ok(reader.next()))) {
            Ok(batch) => batch,
            Err(e) => {
                self.signal.set(Some(e));
                Some(Err(ArrowError::ExternalError("interrupted".into())))
            }
        }
    }
}

impl RecordBatchReader for Watched {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
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
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = taken.ok_or_else(|| {
            to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, "this stream has been read already"))
        })?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}
