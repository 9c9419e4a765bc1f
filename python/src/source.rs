//! `sieva._native.Source`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sieva::guard::{AllowList, Gate, Purpose};
use sieva::{Access, Bx, FetchWay, Learn, OpenOptions, QueryOptions, RemoteOptions, WorkerLimits, parse};

use crate::catalog::Catalog;
use crate::convert;
use crate::errors::to_python;
use crate::expr::Asked;
use crate::foreign::{self, Description};
use crate::interrupt::interruptible;
use crate::plan::Plan;
use crate::query::Query;
use crate::session::Session;
use crate::tasks::{self, Partial, Task};

#[pyclass(module = "sieva._native", frozen)]
pub struct Source(pub sieva::Source);

#[pymethods]
impl Source {
    #[staticmethod]
    #[pyo3(signature = (paths, *, dims=None, external_roots=Vec::new(), valid_range=false, store=None, learn=None, join=None, remote=None, isolated=Vec::new(), limits=None, catalog=None, allow=None, memory=None, session=None))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn open(
        py: Python<'_>,
        paths: Vec<String>,
        dims: Option<BTreeMap<String, Vec<String>>>,
        external_roots: Vec<PathBuf>,
        valid_range: bool,
        store: Option<PathBuf>,
        learn: Option<(f64, u64)>,
        join: Option<String>,
        remote: Option<BTreeMap<String, Bound<'_, PyAny>>>,
        isolated: Vec<std::ffi::OsString>,
        limits: Option<(u64, u64)>,
        catalog: Option<&Catalog>,
        allow: Option<Vec<String>>,
        memory: Option<u64>,
        session: Option<&Session>,
    ) -> PyResult<Self> {
        let learn = learn.map_or_else(Learn::default, |(share, from)| Learn { share, from });
        let dims = dims.unwrap_or_default().into_iter().collect();
        let remote = remote_options(remote.unwrap_or_default())?;
        let limits = limits.map_or_else(WorkerLimits::default, |(memory, seconds)| {
            let wall = std::time::Duration::from_secs(seconds);
            WorkerLimits { memory, cpu_seconds: seconds, wall, ..WorkerLimits::default() }
        });
        let options = OpenOptions {
            dims,
            external_roots,
            valid_range,
            store,
            learn,
            join,
            remote,
            isolated,
            limits,
            catalog: catalog.map(|c| Arc::clone(&c.0)),
            gate: gate(allow)?,
            memory,
            session: session.map_or_else(sieva::Session::default, |s| s.0.clone()),
            ..OpenOptions::default()
        };
        let cancel = Arc::clone(&options.cancel);
        interruptible(py, &cancel, || sieva::Source::open_many(&paths, &options)).map(Self)
    }

    #[staticmethod]
    #[pyo3(signature = (path, description, reader, *, dims=None, valid_range=false, store=None, learn=None, memory=None))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn of_foreign(
        path: &str,
        description: Description<'_>,
        reader: Py<PyAny>,
        dims: Option<BTreeMap<String, Vec<String>>>,
        valid_range: bool,
        store: Option<PathBuf>,
        learn: Option<(f64, u64)>,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let learn = learn.map_or_else(Learn::default, |(share, from)| Learn { share, from });
        let dims = dims.unwrap_or_default().into_iter().collect();
        let options = OpenOptions { dims, valid_range, store, learn, memory, ..OpenOptions::default() };
        foreign::open(path, &description, reader, &options).map(Self)
    }

    #[getter]
    fn path(&self) -> String {
        self.0.path().display().to_string()
    }

    fn files(&self) -> Vec<String> {
        self.0.files()
    }

    #[getter]
    fn format(&self) -> &str {
        &self.0.schema().format
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.schema().warnings.clone()
    }

    fn arrays(&self) -> Vec<&str> {
        self.0.schema().arrays.iter().map(|a| a.path.as_str()).collect()
    }

    fn groups(&self) -> Vec<&str> {
        self.0.schema().groups.iter().map(|g| g.path.as_str()).collect()
    }

    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let schema = self.0.schema();
        let each = schema.dims.iter().map(|d| {
            let out = PyDict::new(py);
            out.set_item("name", &d.name)?;
            out.set_item("path", &d.path)?;
            out.set_item("length", d.len)?;
            out.set_item("unlimited", d.unlimited)?;
            out.set_item("named", d.is_named())?;
            out.set_item("coordinate", d.coordinate.map(|c| &schema.arrays[c].path))?;
            Ok(out)
        });
        each.collect()
    }

    #[pyo3(signature = (group=""))]
    fn attrs<'py>(&self, py: Python<'py>, group: &str) -> PyResult<Bound<'py, PyDict>> {
        let wanted = group.trim_matches('/');
        match self.0.schema().groups.iter().find(|g| g.path == wanted) {
            Some(g) => convert::attributes(py, &g.attrs),
            None => {
                let message = format!("no group '{group}' in '{}'", self.0.path().display());
                Err(to_python(sieva::Error::new(sieva::ErrorKind::UnknownArray, message)))
            }
        }
    }

    fn resolve(&self, name: &str) -> PyResult<&str> {
        let i = self.0.resolve(name).map_err(to_python)?;
        Ok(&self.0.schema().arrays[i].path)
    }

    fn info<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let schema = self.0.schema();
        let a = &schema.arrays[self.0.resolve(path).map_err(to_python)?];
        let out = PyDict::new(py);
        let dims = || a.dims.iter().map(|&d| &schema.dims[d]);
        out.set_item("path", &a.path)?;
        out.set_item("dtype", a.dtype.name())?;
        out.set_item("decoded_dtype", a.decoding.decoded().name())?;
        out.set_item("dims", dims().map(|d| &d.name).collect::<Vec<_>>())?;
        out.set_item("dim_paths", dims().map(|d| &d.path).collect::<Vec<_>>())?;
        out.set_item("shape", PyTuple::new(py, &a.shape)?)?;
        out.set_item("attrs", convert::attributes(py, &a.attrs)?)?;
        out.set_item(
            "chunk_shape",
            a.storage.chunk_shape.as_ref().map(|c| PyTuple::new(py, c)).transpose()?,
        )?;
        out.set_item("filters", &a.storage.filters)?;
        out.set_item("layout", a.storage.layout)?;
        out.set_item("stored_type", &a.storage.stored_type)?;
        out.set_item("stored_bytes", a.storage.stored_bytes)?;
        out.set_item("offset", a.storage.offset)?;
        out.set_item(
            "coordinates",
            a.coordinates.iter().map(|&c| &schema.arrays[c].path).collect::<Vec<_>>(),
        )?;
        let names = PyDict::new(py);
        for (value, name) in &a.enum_names {
            names.set_item(name, value)?;
        }
        out.set_item("enum", names)?;
        out.set_item("missing", convert::numbers(py, &a.decoding.missing)?)?;
        out.set_item("time", sieva::is_time(a))?;
        Ok(out)
    }

    #[pyo3(signature = (path, start, shape, raw=true))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: Vec<u64>,
        shape: Vec<u64>,
        raw: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.0.resolve(path).map_err(to_python)?;
        let cancel = Arc::new(AtomicBool::new(false));
        let extent = PyTuple::new(py, &shape)?;
        if start.len() != shape.len() {
            let message = format!("a box needs as many starts as lengths, got {start:?} and {shape:?}");
            return Err(to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, message)));
        }
        let bx = Bx::new(start, shape);
        let column =
            interruptible(py, &cancel, || self.0.read_box_with(array, &bx, raw, self.0.memory(), &cancel))?;
        let info = &self.0.schema().arrays[array];
        convert::stored_width(convert::column(py, column)?, Some(info), raw)?
            .call_method1("reshape", (extent,))
    }

    fn schema(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.schema_json()).map_err(to_python)
    }

    #[pyo3(signature = (condition=None, select=None, *, access="auto", fetch="auto", memory=None, spill=None, threads=None, cross=false))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn query(
        &self,
        py: Python<'_>,
        condition: Option<Asked<'_>>,
        select: Option<Vec<Asked<'_>>>,
        access: &str,
        fetch: &str,
        memory: Option<u64>,
        spill: Option<u64>,
        threads: Option<usize>,
        cross: bool,
    ) -> PyResult<Query> {
        let options = options(access, fetch, memory, spill, threads, cross)?;
        let tree = |asked: Asked<'_>| asked.tree(&self.0);
        let condition = condition.map(|asked| asked.condition(&self.0)).transpose().map_err(to_python)?;
        let select =
            select.map(|list| list.into_iter().map(tree).collect()).transpose().map_err(to_python)?;
        py.detach(|| self.0.query_tree(condition, select, &options)).map(Query::of).map_err(to_python)
    }

    #[pyo3(signature = (text, *, access="auto", fetch="auto", memory=None, spill=None, threads=None, cross=false))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn sql(
        &self,
        py: Python<'_>,
        text: &str,
        access: &str,
        fetch: &str,
        memory: Option<u64>,
        spill: Option<u64>,
        threads: Option<usize>,
        cross: bool,
    ) -> PyResult<Query> {
        let options = options(access, fetch, memory, spill, threads, cross)?;
        py.detach(|| self.0.sql(text, &options)).map(Query::of).map_err(to_python)
    }

    #[pyo3(signature = (plan, *, access="auto", fetch="auto", memory=None, spill=None, threads=None, cross=false))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn query_plan(
        &self,
        py: Python<'_>,
        plan: &Plan,
        access: &str,
        fetch: &str,
        memory: Option<u64>,
        spill: Option<u64>,
        threads: Option<usize>,
        cross: bool,
    ) -> PyResult<Query> {
        let options = options(access, fetch, memory, spill, threads, cross)?;
        py.detach(|| self.0.query_plan(&plan.0, &options)).map(Query::of).map_err(to_python)
    }

    #[pyo3(signature = (task, *, access="auto", fetch="auto", memory=None, spill=None, threads=None))]
    #[allow(clippy::too_many_arguments)] // the options of one call, by name
    fn run_task(
        &self,
        py: Python<'_>,
        task: &Task,
        access: &str,
        fetch: &str,
        memory: Option<u64>,
        spill: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Partial> {
        tasks::run(py, &self.0, task, &options(access, fetch, memory, spill, threads, false)?)
    }
}

pub(crate) fn options(
    access: &str,
    fetch: &str,
    memory: Option<u64>,
    spill: Option<u64>,
    threads: Option<usize>,
    cross: bool,
) -> PyResult<QueryOptions> {
    let access = Access::parse(access).map_err(to_python)?;
    let fetch = FetchWay::parse(fetch).map_err(to_python)?;
    Ok(QueryOptions { access, fetch, memory, spill, threads, cross, cancel: None })
}

/// The gate that lets what lies below these places; none: what the system allows.
pub(crate) fn gate(allow: Option<Vec<String>>) -> PyResult<Gate> {
    let Some(places) = allow else { return Ok(Gate::default()) };
    let list = AllowList::new(places).map_err(to_python)?;
    Ok(Gate::of(Arc::new(
        list.with_hint("name its directory or address in allow= (--allow) if it may be opened"),
    )))
}

/// Refuses a path that lies below none of these places, in the same words whether there is something or not.
#[pyfunction]
pub fn check_allowed(path: &str, allow: Vec<String>) -> PyResult<()> {
    gate(Some(allow))?.check_url(path, Purpose::Source).map_err(to_python)
}

/// An address without user, password and query; a path as it is.
#[pyfunction]
pub fn redacted(location: &str) -> String {
    sieva::redacted(location)
}

/// The address or path of a catalog as it may be shown.
#[pyfunction]
pub fn redacted_database(address: &str) -> String {
    sieva::redacted_database(address)
}

/// An address as it may be kept; a path as it is.
#[pyfunction]
pub fn without_secrets(location: &str) -> String {
    sieva::without_secrets(location)
}

/// Refuses an empty name and one with a NUL; `what` is what it should name.
#[pyfunction]
pub fn check_name(name: &str, what: &str) -> PyResult<()> {
    sieva::check_name(name.as_ref(), what).map_err(to_python)
}

/// The text of a SELECT's FROM.
#[pyfunction]
pub fn from_clause(sql: &str) -> PyResult<Option<String>> {
    parse::parse_select(sql).map(|s| s.from).map_err(to_python)
}

/// The limits of remote storage by their names, seconds as numbers.
pub(crate) fn remote_options(given: BTreeMap<String, Bound<'_, PyAny>>) -> PyResult<RemoteOptions> {
    let mut options = RemoteOptions::default();
    for (name, value) in given {
        let seconds = || -> PyResult<std::time::Duration> {
            let seconds: f64 = value.extract()?;
            std::time::Duration::try_from_secs_f64(seconds).map_err(|_| {
                let message = format!("{name} is a number of seconds, got {seconds}");
                to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, message))
            })
        };
        // Python says of numbers that are too large or too small that they overflow.
        let wrong = |_| {
            let message = format!("{name} is a whole number, not negative and not too large, got {value}");
            to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, message))
        };
        match name.as_str() {
            "connect_timeout" => options.connect_timeout = seconds()?,
            "read_timeout" => options.read_timeout = seconds()?,
            "deadline" => options.deadline = seconds()?,
            "retries" => options.retries = value.extract().map_err(wrong)?,
            "parallel" => options.parallel = value.extract().map_err(wrong)?,
            "cache_bytes" => options.cache_bytes = value.extract().map_err(wrong)?,
            "cache_dir" => options.cache_dir = Some(value.extract()?),
            "public_only" => options.public_only = value.extract()?,
            "disk_bytes" => options.disk_bytes = value.extract().map_err(wrong)?,
            other => {
                let known = "connect_timeout, read_timeout, deadline, retries, parallel, cache_bytes, cache_dir, disk_bytes, public_only";
                let message = format!("'{other}' is no option of remote storage");
                let e = sieva::Error::new(sieva::ErrorKind::InvalidValue, message);
                return Err(to_python(e.hint(format!("there are {known}"))));
            }
        }
    }
    Ok(options)
}

/// The main loop of a worker process that parses files for another.
#[pyfunction]
pub fn serve_worker(py: Python<'_>) -> PyResult<()> {
    py.detach(sieva::serve_isolated).map_err(to_python)
}
