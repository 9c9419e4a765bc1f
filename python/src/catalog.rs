//! `sieva._native.Catalog`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sieva::catalog::{
    self, AddOptions, ArrayStats, Filter, Find, ObjectInfo, ObjectKind, Origin, Value, parse_filter,
};
use sieva::{Error, ErrorKind, OpenOptions};

use crate::errors::to_python;
use crate::interrupt::interruptible;

#[pyclass(module = "sieva._native", frozen)]
pub struct Catalog(pub Arc<catalog::Catalog>);

/// The catalog that is meant where none was named.
#[pyfunction]
pub fn default_catalog() -> PyResult<String> {
    catalog::default_url().map_err(to_python)
}

/// The name of a path in the catalog.
#[pyfunction]
pub fn catalog_location(py: Python<'_>, path: &str) -> PyResult<String> {
    py.detach(|| catalog::location(path)).map_err(to_python)
}

#[pymethods]
impl Catalog {
    #[staticmethod]
    #[pyo3(signature = (url, read_only=false))]
    fn open(py: Python<'_>, url: &str, read_only: bool) -> PyResult<Self> {
        let open = || match read_only {
            true => catalog::Catalog::open_read_only(url),
            false => catalog::Catalog::open(url),
        };
        asked(py, open).map(|c| Self(Arc::new(c)))
    }

    #[getter]
    fn read_only(&self) -> bool {
        self.0.is_read_only()
    }

    #[pyo3(signature = (names, *, collections=Vec::new(), jobs=None, statistics=false, store=None, isolated=Vec::new(), progress=None))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn add<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        collections: Vec<String>,
        jobs: Option<usize>,
        statistics: bool,
        store: Option<std::path::PathBuf>,
        isolated: Vec<std::ffi::OsString>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let cancel = Arc::new(AtomicBool::new(false));
        let raised = Arc::new(std::sync::Mutex::new(None));
        let mut options = AddOptions {
            collections,
            statistics,
            open: OpenOptions { store, isolated, ..OpenOptions::default() },
            cancel: Arc::clone(&cancel),
            ..AddOptions::default()
        };
        options.jobs = jobs.unwrap_or(options.jobs);
        if let Some(call) = progress {
            let (cancel, raised) = (Arc::clone(&cancel), Arc::clone(&raised));
            options.progress = Some(Arc::new(move |done, found| {
                Python::attach(|py| {
                    if let Err(e) = call.call1(py, (done, found)) {
                        cancel.store(true, Ordering::Relaxed);
                        raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(e);
                    }
                });
            }));
        }
        let report = interruptible(py, &cancel, || catalog::add(&self.0, &names, &options));
        if let Some(e) = raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take() {
            return Err(e);
        }
        let report = report?;
        let out = PyDict::new(py);
        out.set_item("added", report.added)?;
        out.set_item("replaced", report.replaced)?;
        out.set_item("unchanged", report.unchanged)?;
        out.set_item("objects", report.objects)?;
        out.set_item("others", report.others)?;
        out.set_item("left_out", report.left_out)?;
        out.set_item("described", report.described)?;
        out.set_item("damaged", report.damaged)?;
        out.set_item("unreadable", report.unreadable)?;
        Ok(out)
    }

    fn vanished(&self, py: Python<'_>, directory: &str) -> PyResult<Vec<String>> {
        asked(py, || catalog::vanished(&self.0, directory))
    }

    #[pyo3(signature = (prefix="", limit=1000, after=None))]
    fn list<'py>(
        &self,
        py: Python<'py>,
        prefix: &str,
        limit: usize,
        after: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = asked(py, || self.0.list(prefix, limit, after))?;
        let infos: PyResult<Vec<_>> = found.iter().map(|info| source_info(py, info)).collect();
        PyList::new(py, infos?)
    }

    fn show<'py>(
        &self,
        py: Python<'py>,
        location: &str,
    ) -> PyResult<Option<(Bound<'py, PyDict>, Bound<'py, PyList>)>> {
        let Some((info, objects)) = asked(py, || self.0.show(location))? else {
            return Ok(None);
        };
        let objects: PyResult<Vec<_>> = objects.iter().map(|o| object_info(py, o)).collect();
        Ok(Some((source_info(py, &info)?, PyList::new(py, objects?)?)))
    }

    fn set_tags(
        &self,
        py: Python<'_>,
        location: &str,
        path: &str,
        tags: Vec<(String, Option<Bound<'_, PyAny>>)>,
    ) -> PyResult<u64> {
        let values: PyResult<Vec<_>> = tags
            .iter()
            .map(|(key, v)| Ok((key, v.as_ref().map(|v| value_of(v, key)).transpose()?)))
            .collect();
        let values = values?;
        let tags: Vec<_> = values.iter().map(|(key, value)| (path, key.as_str(), value.clone())).collect();
        asked(py, || self.0.tag_many(location, &tags))
    }

    #[pyo3(signature = (text, *, kind=None, name=None, collection=None, limit=None, after=None))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn find(
        &self,
        py: Python<'_>,
        text: &str,
        kind: Option<&str>,
        name: Option<&str>,
        collection: Option<&str>,
        limit: Option<usize>,
        after: Option<i64>,
    ) -> PyResult<Vec<(String, String, &'static str, i64)>> {
        let find = question(text, kind, name, collection).map_err(to_python)?;
        let find = find.limit(limit.unwrap_or(usize::MAX)).after(after);
        let found = asked(py, || self.0.find(&find))?;
        Ok(found.into_iter().map(|o| (o.location, o.path, kind_name(o.kind), o.id)).collect())
    }

    #[pyo3(signature = (text, *, kind=None, name=None, collection=None))]
    fn count(
        &self,
        py: Python<'_>,
        text: &str,
        kind: Option<&str>,
        name: Option<&str>,
        collection: Option<&str>,
    ) -> PyResult<u64> {
        let find = question(text, kind, name, collection).map_err(to_python)?;
        asked(py, || self.0.count(&find))
    }

    fn forget(&self, py: Python<'_>, location: &str) -> PyResult<bool> {
        asked(py, || self.0.forget(location))
    }

    fn forget_prefix(&self, py: Python<'_>, prefix: &str) -> PyResult<u64> {
        asked(py, || self.0.forget_prefix(prefix))
    }

    fn collections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let found = asked(py, || self.0.collections())?;
        let all: PyResult<Vec<_>> = found
            .iter()
            .map(|c| {
                let out = PyDict::new(py);
                out.set_item("name", &c.name)?;
                out.set_item("description", &c.description)?;
                out.set_item("prefixes", &c.prefixes)?;
                out.set_item("sources", c.sources)?;
                Ok(out)
            })
            .collect();
        PyList::new(py, all?)
    }

    fn create_collection(&self, py: Python<'_>, name: &str, description: &str) -> PyResult<()> {
        asked(py, || self.0.create_collection(name, description))
    }

    fn remove_collection(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        asked(py, || self.0.remove_collection(name))
    }

    fn collect(&self, py: Python<'_>, name: &str, locations: Vec<String>) -> PyResult<u64> {
        let locations: Vec<&str> = locations.iter().map(String::as_str).collect();
        asked(py, || self.0.collect(name, &locations))
    }

    fn collect_prefix(&self, py: Python<'_>, name: &str, prefix: &str) -> PyResult<u64> {
        asked(py, || self.0.collect_prefix(name, prefix))
    }

    #[pyo3(signature = (prefix="", look=false, store=None))]
    fn augmentations<'py>(
        &self,
        py: Python<'py>,
        prefix: &str,
        look: bool,
        store: Option<std::path::PathBuf>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = OpenOptions { store, ..OpenOptions::default() };
        let found = asked(py, || sieva::augmentations(&self.0, prefix, look, &options))?;
        let all: PyResult<Vec<_>> = found.iter().map(|one| augmentation(py, one)).collect();
        PyList::new(py, all?)
    }

    #[pyo3(signature = (name, lower=None, upper=None, collection=None))]
    fn could_contain(
        &self,
        py: Python<'_>,
        name: &str,
        lower: Option<Bound<'_, PyAny>>,
        upper: Option<Bound<'_, PyAny>>,
        collection: Option<&str>,
    ) -> PyResult<Vec<String>> {
        let lower = lower.map(|v| value_of(&v, "the lower bound")).transpose()?;
        let upper = upper.map(|v| value_of(&v, "the upper bound")).transpose()?;
        asked(py, || self.0.could_contain(name, lower.as_ref(), upper.as_ref(), collection))
    }
}

/// What is asked of a catalog, which Ctrl-C ends.
fn asked<R: Send>(py: Python<'_>, work: impl FnOnce() -> sieva::Result<R> + Send) -> PyResult<R> {
    interruptible(py, &Arc::default(), work)
}

fn question(
    text: &str,
    kind: Option<&str>,
    name: Option<&str>,
    collection: Option<&str>,
) -> sieva::Result<Find> {
    let filter = if text.trim().is_empty() { Filter::All } else { parse_filter(text)? };
    let kind = match kind {
        None => None,
        Some("array") => Some(ObjectKind::Array),
        Some("group") => Some(ObjectKind::Group),
        Some(other) => {
            let message = format!("kind '{other}' is not one of array, group");
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
    };
    let mut find = Find::new(filter).kind(kind);
    (find.name, find.collection) = (name.map(str::to_owned), collection.map(str::to_owned));
    Ok(find)
}

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Group => "group",
        ObjectKind::Array => "array",
    }
}

/// A value that Python gives.
fn value_of(given: &Bound<'_, PyAny>, key: &str) -> PyResult<Value> {
    // A bool is an int, too, and numpy's scalars are their own.
    if given.is_instance_of::<PyBool>() {
        return given.extract().map(Value::Bool);
    }
    if given.is_instance_of::<PyInt>() {
        if let Ok(int) = given.extract::<i64>() {
            return Ok(Value::Int(int));
        }
        return given.extract::<u64>().map(Value::UInt).map_err(|_| {
            let message = format!("{key}: {given} is not between -2^63 and 2^64 - 1");
            to_python(Error::new(ErrorKind::Overflow, message))
        });
    }
    if given.is_instance_of::<PyFloat>() {
        return given.extract().map(Value::Float);
    }
    if given.is_instance_of::<PyString>() {
        return given.extract().map(Value::Text);
    }
    if given.hasattr("item")? {
        return value_of(&given.call_method0("item")?, key);
    }
    Err(PyTypeError::new_err(format!(
        "{key}: a value is an int, a float, a str or a bool, got {}",
        given.get_type().name()?
    )))
}

fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Int(v) => v.into_pyobject(py)?.into_any(),
        Value::UInt(v) => v.into_pyobject(py)?.into_any(),
        Value::Float(v) => v.into_pyobject(py)?.into_any(),
        Value::Text(v) => v.into_pyobject(py)?.into_any(),
        Value::Bool(v) => v.into_pyobject(py)?.to_owned().into_any(),
    })
}

fn source_info<'py>(py: Python<'py>, info: &catalog::SourceInfo) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("location", &info.location)?;
    out.set_item("format", &info.format)?;
    out.set_item("size", info.size)?;
    out.set_item("version", &info.version)?;
    out.set_item("registered", info.registered)?;
    out.set_item("error", &info.error)?;
    out.set_item("objects", info.objects)?;
    out.set_item("collections", &info.collections)?;
    Ok(out)
}

fn augmentation<'py>(py: Python<'py>, one: &sieva::KnownAugmentation) -> PyResult<Bound<'py, PyDict>> {
    let (known, out) = (&one.known, PyDict::new(py));
    out.set_item("source", &known.location)?;
    out.set_item("array", &known.path)?;
    out.set_item("kind", &known.kind)?;
    out.set_item("state", known.state.name())?;
    out.set_item("bytes", known.bytes)?;
    out.set_item("data_bytes", known.data_bytes)?;
    out.set_item("at", known.at)?;
    out.set_item("build_seconds", known.seconds)?;
    out.set_item("host", &known.host)?;
    out.set_item("store", &known.store)?;
    out.set_item("version", &known.version)?;
    out.set_item("fingerprint", &known.fingerprint)?;
    out.set_item("unseen", &one.unseen)?;
    Ok(out)
}

fn object_info<'py>(py: Python<'py>, object: &ObjectInfo) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("path", &object.path)?;
    out.set_item("kind", kind_name(object.kind))?;
    out.set_item("dtype", &object.dtype)?;
    out.set_item("shape", PyTuple::new(py, &object.shape)?)?;
    out.set_item("stored_bytes", object.stored_bytes)?;
    let (attributes, tags) = (PyDict::new(py), PyDict::new(py));
    for (key, v, origin) in &object.attributes {
        let of = if *origin == Origin::Tag { &tags } else { &attributes };
        of.set_item(key, value(py, v)?)?;
    }
    out.set_item("attributes", attributes)?;
    out.set_item("tags", tags)?;
    out.set_item("statistics", object.stats.as_ref().map(|s| statistics(py, s)).transpose()?)?;
    Ok(out)
}

fn statistics<'py>(py: Python<'py>, stats: &ArrayStats) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let range = stats.range.as_ref();
    out.set_item("min", range.map(|(low, _)| value(py, low)).transpose()?)?;
    out.set_item("max", range.map(|(_, high)| value(py, high)).transpose()?)?;
    out.set_item("missing", stats.missing)?;
    out.set_item("count", stats.count)?;
    Ok(out)
}
