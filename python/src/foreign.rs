//! `sieva._native.Source.of_foreign`: sources that Python code describes and reads.
//!
//! The reader is called with the interpreter's lock from whatever thread wants a box; nothing of ours is locked
//! meanwhile, and queries run without that lock, so that neither waits for the other.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use sieva::{
    ArrayInfo, BlockBounds, Bx, DType, Decoding, Dimension, Error, ErrorKind, ForeignArray, ForeignReader,
    ForeignSource, ForeignStore, GroupInfo, Naming, OpenOptions, Schema, StorageInfo, Texts,
};

use crate::foreign_values::{attributes, dtype_named, limits_keys};
use crate::interrupt::INTERRUPTED;

/// A source as plain data; `sieva._foreign.Description` says what its entries are.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Description<'py> {
    format: String,
    how: String,
    files: Vec<PathBuf>,
    version: String,
    groups: Vec<Group<'py>>,
    dims: Vec<Dim>,
    arrays: Vec<Array<'py>>,
    left_out: Vec<(String, String)>,
    warnings: Vec<String>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Group<'py> {
    path: String,
    attrs: Bound<'py, PyDict>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Dim {
    path: String,
    length: u64,
    unlimited: bool,
    named: bool,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Array<'py> {
    path: String,
    dtype: String,
    dims: Vec<String>,
    attrs: Bound<'py, PyDict>,
    block: Option<Vec<u64>>,
}

/// The source at `path` that is described so, read by `reader.read(path, start, shape)` and `reader.limits(path)`.
pub fn open(
    path: &str,
    description: &Description<'_>,
    reader: Py<PyAny>,
    options: &OpenOptions,
) -> PyResult<sieva::Source> {
    let (schema, arrays) = schema_of(description)?;
    let dtypes = schema.arrays.iter().map(|a| (a.path.clone(), a.dtype)).collect();
    let native = |e| crate::errors::to_python(e);
    let store = ForeignStore::new(path, &description.files, &description.version).map_err(native)?;
    let reader = Box::new(PyReader { reader, dtypes });
    let made = ForeignSource::new(schema, &arrays, &description.how, store, reader);
    let mut source = made.map_err(|e| native(e.at(format!("'{path}'"))))?;
    source.name_dims(&options.dims).map_err(native)?;
    Ok(sieva::Source::from_reader(Arc::new(source), path, options))
}

fn schema_of(description: &Description<'_>) -> PyResult<(Schema, Vec<ForeignArray>)> {
    let mut schema = Schema {
        format: description.format.clone(),
        warnings: description.warnings.clone(),
        left_out: description
            .left_out
            .iter()
            .map(|(path, why)| (path.clone(), Error::new(ErrorKind::Unsupported, format!("'{path}' {why}"))))
            .collect(),
        ..Schema::default()
    };
    for group in &description.groups {
        schema.groups.push(GroupInfo { path: group.path.clone(), attrs: attributes(&group.attrs)? });
    }
    let mut places = HashMap::new();
    for dim in &description.dims {
        places.insert(dim.path.as_str(), schema.dims.len());
        schema.dims.push(Dimension {
            name: dim.path.rsplit('/').next().unwrap_or_default().to_string(),
            path: dim.path.clone(),
            len: dim.length,
            unlimited: dim.unlimited,
            naming: if dim.named { Naming::File } else { Naming::Length },
            coordinate: None,
        });
    }
    let mut arrays = Vec::with_capacity(description.arrays.len());
    for array in &description.arrays {
        schema.arrays.push(array_info(array, &places, &schema.dims)?);
        arrays.push(ForeignArray { block: array.block.clone() });
    }
    Ok((schema, arrays))
}

fn array_info(array: &Array<'_>, places: &HashMap<&str, usize>, dims: &[Dimension]) -> PyResult<ArrayInfo> {
    let invalid = |what: String| {
        let message = format!("'{}' {what}", array.path);
        crate::errors::to_python(Error::new(ErrorKind::InvalidValue, message))
    };
    let dtype = dtype_named(&array.dtype)
        .ok_or_else(|| invalid(format!("is of type '{}', expected one of numpy's or 'str'", array.dtype)))?;
    let mut own = Vec::with_capacity(array.dims.len());
    for name in &array.dims {
        let place = places.get(name.as_str()).copied();
        own.push(place.ok_or_else(|| invalid(format!("has a dimension '{name}' that is not described")))?);
    }
    let shape: Vec<u64> = own.iter().map(|&d| dims[d].len).collect();
    Ok(ArrayInfo {
        path: array.path.clone(),
        dtype,
        dims: own,
        shape,
        attrs: attributes(&array.attrs)?,
        enum_names: Vec::new(),
        decoding: Decoding::none(dtype),
        storage: StorageInfo { stored_type: array.dtype.clone(), ..StorageInfo::default() },
        coordinates: Vec::new(),
    })
}

/// Calls Python for boxes.
struct PyReader {
    reader: Py<PyAny>,
    dtypes: BTreeMap<String, DType>,
}

impl PyReader {
    fn call<'py>(&self, py: Python<'py>, path: &str, bx: &Bx) -> PyResult<Bound<'py, PyAny>> {
        let (start, shape) = (PyTuple::new(py, &bx.start)?, PyTuple::new(py, &bx.shape)?);
        self.reader.bind(py).call_method1("read", (path, start, shape))
    }

    fn fill(&self, py: Python<'_>, path: &str, bx: &Bx, out: &mut [u8]) -> PyResult<()> {
        let found = self.call(py, path, bx)?;
        if let Ok(bytes) = found.cast::<PyBytes>() {
            return copy(path, bytes.as_bytes(), out);
        }
        let numpy = py.import("numpy")?;
        let name = self.dtypes.get(path).map_or("uint8", |d| d.name());
        let wanted = numpy.call_method1("dtype", (name,))?;
        let shape = PyTuple::new(py, &bx.shape)?;
        let has = found.getattr("dtype")?;
        if !has.call_method1("newbyteorder", ("=",))?.eq(&wanted)? || !found.getattr("shape")?.eq(&shape)? {
            let message = format!(
                "'{path}': the reader gave {has} of shape {}, expected {name} of shape {shape}",
                found.getattr("shape")?
            );
            return Err(crate::errors::to_python(Error::new(ErrorKind::InvalidValue, message)));
        }
        let flat = numpy.call_method1("ascontiguousarray", (found, wanted))?;
        let bytes = flat.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
        let bytes: PyReadonlyArray1<'_, u8> = bytes.extract()?;
        copy(path, bytes.as_slice()?, out)
    }
}

fn copy(path: &str, bytes: &[u8], out: &mut [u8]) -> PyResult<()> {
    if bytes.len() != out.len() {
        let message = format!("'{path}': the reader gave {} bytes, expected {}", bytes.len(), out.len());
        return Err(crate::errors::to_python(Error::new(ErrorKind::InvalidValue, message)));
    }
    out.copy_from_slice(bytes);
    Ok(())
}

impl ForeignReader for PyReader {
    fn read(&self, path: &str, bx: &Bx, out: &mut [u8]) -> sieva::Result<()> {
        Python::attach(|py| self.fill(py, path, bx, out).map_err(|e| native_error(py, &e)))
    }

    fn read_texts(&self, path: &str, bx: &Bx) -> sieva::Result<Texts> {
        let texts = |py: Python<'_>| -> PyResult<Texts> {
            let found = self.call(py, path, bx)?;
            let flat = py.import("numpy")?.call_method1("ravel", (found,))?;
            let mut out = Texts::new();
            for text in flat.call_method0("tolist")?.cast::<PyList>()?.iter() {
                out.push(text.cast::<PyString>()?.to_str()?);
            }
            Ok(out)
        };
        Python::attach(|py| texts(py).map_err(|e| native_error(py, &e)))
    }

    fn limits(&self, path: &str) -> BlockBounds {
        let dtype = self.dtypes.get(path).copied().unwrap_or(DType::Str);
        Python::attach(|py| {
            let found = self.reader.bind(py).call_method1("limits", (path,));
            let keys = found.and_then(|f| limits_keys(&f, dtype));
            // Without them the data are scanned: what is wrong with the source is told when they are read.
            keys.unwrap_or_else(|e| {
                interrupt_again(py, &e);
                BlockBounds::new()
            })
        })
    }
}

/// What a reader raised, as an error of ours: with its own kind and hint where it is one of `sieva.errors`.
pub(crate) fn native_error(py: Python<'_>, e: &PyErr) -> Error {
    if interrupt_again(py, e) {
        return Error::new(ErrorKind::Cancelled, "interrupted");
    }
    let value = e.value(py);
    let text = |name: &str| value.getattr(name).ok().and_then(|v| v.extract::<String>().ok());
    let said = value.to_string();
    let kind = text("kind").and_then(|code| ErrorKind::ALL.into_iter().find(|k| k.code() == code));
    if let Some(kind) = kind {
        let error = Error::new(kind, text("message").unwrap_or(said));
        return text("hint").map_or(error.clone(), |hint| error.hint(hint));
    }
    let kind = if e.is_instance_of::<PyMemoryError>(py) {
        ErrorKind::MemoryLimit
    } else if e.is_instance_of::<PyOSError>(py) {
        ErrorKind::Io
    } else {
        ErrorKind::CorruptFile
    };
    let name = e.get_type(py).name().map_or_else(|_| String::from("error"), |n| n.to_string());
    Error::new(kind, if said.is_empty() { name } else { format!("{said} ({name})") })
}

/// Whether it is Ctrl-C, which an error of ours cannot carry: it is then asked for anew, to be raised by Python itself.
fn interrupt_again(py: Python<'_>, e: &PyErr) -> bool {
    let is_interrupt = e.is_instance_of::<PyKeyboardInterrupt>(py);
    if is_interrupt {
        INTERRUPTED.store(true, Ordering::Relaxed);
        // SAFETY: it sets a flag, and may be called with or without the interpreter's lock.
        unsafe { pyo3::ffi::PyErr_SetInterrupt() };
    }
    is_interrupt
}
