//! `sieva._native.RowWriter`: batches of rows into a stream of Python's, in a format that is written row by row.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, from_ffi};
use arrow_array::{RecordBatch, StructArray};
use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use sieva_encode::{Format, Out, RowSink};

use crate::errors::to_python;

/// Bytes that are handed to Python at once.
const WRITE: usize = 1 << 20;

/// The formats of results, in the order in which they are listed.
#[pyfunction]
pub fn formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |format: Format| {
        let row = PyDict::new(py);
        row.set_item("name", format.name())?;
        row.set_item("suffixes", format.suffixes().to_vec())?;
        row.set_item("laid_out", format.is_laid_out())?;
        row.set_item("deflatable", format.is_deflatable())?;
        row.set_item("for_pipes", format.is_for_pipes())?;
        Ok(row)
    };
    Format::all().map(row).collect()
}

/// The rows of a batch as texts.
#[pyfunction]
pub fn row_texts(batch: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<String>>> {
    sieva_encode::row_texts(&taken_batch(batch)?).map_err(to_python)
}

#[pyclass(module = "sieva._native", frozen)]
pub struct RowWriter {
    sink: Mutex<Option<Box<dyn RowSink>>>,
    failure: Failure,
}

#[pymethods]
impl RowWriter {
    #[new]
    #[pyo3(signature = (kind, schema, out, *, is_pipe=false))]
    fn new(kind: &str, schema: &Bound<'_, PyAny>, out: Py<PyAny>, is_pipe: bool) -> PyResult<Self> {
        let capsule = schema.call_method0("__arrow_c_schema__")?;
        let schema = Schema::try_from(&taken_schema(&capsule)?).map_err(of_arrow)?;
        let failure = Failure::default();
        let stream = PythonStream { out, failure: failure.clone() };
        let out = Out { to: Box::new(BufWriter::with_capacity(WRITE, stream)), is_pipe };
        let sink = Format::named(kind).and_then(|format| format.begin(&schema, out));
        let sink = Mutex::new(Some(sink.map_err(|e| failure.told(e))?));
        Ok(Self { sink, failure })
    }

    fn write(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let batch = taken_batch(batch)?;
        py.detach(|| match self.sink().as_mut() {
            Some(sink) => sink.batch(&batch).map_err(|e| self.failure.told(e)),
            None => Err(finished()),
        })
    }

    #[pyo3(signature = (stats=None))]
    fn finish(&self, py: Python<'_>, stats: Option<&str>) -> PyResult<()> {
        py.detach(|| match self.sink().take() {
            Some(sink) => sink.finish(stats).map_err(|e| self.failure.told(e)),
            None => Err(finished()),
        })
    }
}

impl RowWriter {
    fn sink(&self) -> MutexGuard<'_, Option<Box<dyn RowSink>>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn finished() -> PyErr {
    to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, "the rows have been finished already"))
}

/// What writing to Python's stream raised; the format's library can hand on no exception.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// The exception of the stream, else the error.
    fn told(&self, e: sieva::Error) -> PyErr {
        self.lock().take().unwrap_or_else(|| to_python(e))
    }

    fn lock(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A binary stream of Python's.
struct PythonStream {
    out: Py<PyAny>,
    failure: Failure,
}

impl PythonStream {
    fn call(&self, work: impl FnOnce(Python<'_>) -> PyResult<()>) -> io::Result<()> {
        Python::attach(work).map_err(|e| {
            *self.failure.lock() = Some(e);
            io::Error::other("writing raised an exception")
        })
    }
}

impl Write for PythonStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(|py| {
            py.check_signals()?;
            self.out.call_method1(py, "write", (PyBytes::new(py, bytes),)).map(|_| ())
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call(|py| self.out.call_method0(py, "flush").map(|_| ()))
    }
}

fn of_arrow(e: arrow_schema::ArrowError) -> PyErr {
    to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, format!("this is no data of Arrow: {e}")))
}

/// The schema of a capsule.
fn taken_schema(capsule: &Bound<'_, PyAny>) -> PyResult<FFI_ArrowSchema> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_schema"))?;
    // SAFETY: by its name the capsule holds such a structure (the Arrow PyCapsule interface), which is moved out of it.
    Ok(unsafe { FFI_ArrowSchema::from_raw(pointer.as_ptr().cast()) })
}

/// The rows of what has `__arrow_c_array__`.
fn taken_batch(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        batch.call_method0("__arrow_c_array__")?.extract()?;
    let schema = taken_schema(&schema)?;
    let pointer = array.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_array"))?;
    // SAFETY: as for the schema.
    let array = unsafe { FFI_ArrowArray::from_raw(pointer.as_ptr().cast()) };
    // SAFETY: both come from one call, by whose contract they belong together.
    let data = unsafe { from_ffi(array, &schema) }.map_err(of_arrow)?;
    Ok(RecordBatch::from(StructArray::from(data)))
}
