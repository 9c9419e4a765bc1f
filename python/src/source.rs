//! `sieva._native.Source`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use sieva::guard::Purpose;
use sieva::options::Call;
use sieva::{Bx, Column, WorkerLimits, parse};

use crate::convert;
use crate::errors::to_python;
use crate::expr::Asked;
use crate::foreign::{self, Description};
use crate::interrupt::interruptible;
use crate::options;
use crate::plan::Plan;
use crate::query::Query;
use crate::session::Session;
use crate::tasks::{self, Partial, Task};

#[pyclass(module = "sieva._native", frozen)]
pub struct Source(pub sieva::Source);

impl Source {
    /// The number of an array, and elements of it that follow one another; see `sieva::Source::read_run`.
    fn run(&self, py: Python<'_>, path: &str, of: (u64, u64)) -> PyResult<(usize, Option<Column>)> {
        let array = self.0.resolve(path).map_err(to_python)?;
        let cancel = Arc::new(AtomicBool::new(false));
        Ok((array, interruptible(py, &cancel, || self.0.read_run(array, of, &cancel))?))
    }
}

#[pymethods]
impl Source {
    #[staticmethod]
    #[pyo3(signature = (paths, options=None, *, limits=None, session=None))]
    fn open(
        py: Python<'_>,
        paths: Vec<String>,
        options: Option<&Bound<'_, PyDict>>,
        limits: Option<(u64, u64)>,
        session: Option<&Session>,
    ) -> PyResult<Self> {
        let mut options = options::open_options(options, Call::Open)?;
        if let Some((memory, seconds)) = limits {
            let wall = std::time::Duration::from_secs(seconds);
            options.limits = WorkerLimits { memory, cpu_seconds: seconds, wall, ..WorkerLimits::default() };
        }
        if let Some(session) = session {
            options.session = session.0.clone();
        }
        let cancel = Arc::clone(&options.cancel);
        interruptible(py, &cancel, || sieva::Source::open_many(&paths, &options)).map(Self)
    }

    #[staticmethod]
    #[pyo3(signature = (path, description, reader, options=None))]
    fn of_foreign(
        path: &str,
        description: Description<'_>,
        reader: Py<PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = options::open_options(options, Call::OpenForeign)?;
        foreign::open(path, &description, reader, &options).map(Self)
    }

    /// What was read since it was opened, metadata included.
    fn traffic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let io = self.0.reader().store().counters().snapshot();
        let out = PyDict::new(py);
        out.set_item("bytes_read", io.bytes_read)?;
        out.set_item("requests", io.requests)?;
        out.set_item("chunks_decoded", io.chunks_decoded)?;
        out.set_item("library_reads", io.library_reads)?;
        out.set_item("plan_nanoseconds", io.plan_nanoseconds)?;
        Ok(out)
    }

    /// The source as it is now; none where that is what it was.
    fn refreshed(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        let cancel = Arc::new(AtomicBool::new(false));
        Ok(interruptible(py, &cancel, || self.0.refreshed())?.map(Self))
    }

    fn manifest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.manifest()).map_err(to_python)?;
        Ok(PyBytes::new(py, &bytes))
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

    /// The paths of the arrays that a name means where it may mean several.
    fn meant(&self, name: &str) -> PyResult<Vec<&str>> {
        let arrays = self.0.meant(name).map_err(to_python)?;
        Ok(arrays.into_iter().map(|a| self.0.schema().arrays[a].path.as_str()).collect())
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

    /// The values of a box; of every so manieth element along each dimension where `steps` are given.
    #[pyo3(signature = (path, start, shape, raw=true, steps=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: Vec<u64>,
        shape: Vec<u64>,
        raw: bool,
        steps: Option<Vec<u64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.0.resolve(path).map_err(to_python)?;
        let cancel = Arc::new(AtomicBool::new(false));
        let steps = steps.unwrap_or_else(|| vec![1; shape.len()]);
        if start.len() != shape.len() || steps.len() != shape.len() {
            let message = format!("a box needs as many starts as lengths, got {start:?} and {shape:?}");
            return Err(to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, message)));
        }
        let bx = Bx::new(start, shape);
        let column =
            interruptible(py, &cancel, || self.0.read_box_with(array, &bx, raw, self.0.memory(), &cancel))?;
        let info = &self.0.schema().arrays[array];
        convert::stepped(py, column, &bx.shape, &steps, Some(info), raw)
    }

    /// The values of a box in their own type, and where they are missing.
    fn read_masked<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: Vec<u64>,
        shape: Vec<u64>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let array = self.0.resolve(path).map_err(to_python)?;
        let cancel = Arc::new(AtomicBool::new(false));
        let bx = Bx::new(start, shape);
        let column =
            interruptible(py, &cancel, || self.0.read_box_with(array, &bx, false, self.0.memory(), &cancel))?;
        convert::masked(py, column, &bx.shape)
    }

    /// As `read_run`, with where they are missing.
    fn read_run_masked<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: u64,
        n: u64,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let (_, read) = self.run(py, path, (start, n))?;
        read.map(|column| convert::masked(py, column, &[n])).transpose()
    }

    /// Elements that follow one another in C order, as one dimension; None where they do not lie so.
    fn read_run<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: u64,
        n: u64,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (array, read) = self.run(py, path, (start, n))?;
        let info = &self.0.schema().arrays[array];
        read.map(|column| convert::stepped(py, column, &[n], &[1], Some(info), false)).transpose()
    }

    fn schema(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.schema_json()).map_err(to_python)
    }

    #[pyo3(signature = (condition=None, select=None, options=None))]
    fn query(
        &self,
        py: Python<'_>,
        condition: Option<Asked<'_>>,
        select: Option<Vec<Asked<'_>>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Query> {
        let options = options::query_options(options, Call::Query)?;
        let tree = |asked: Asked<'_>| asked.tree(&self.0);
        let condition = condition.map(|asked| asked.condition(&self.0)).transpose().map_err(to_python)?;
        let select =
            select.map(|list| list.into_iter().map(tree).collect()).transpose().map_err(to_python)?;
        py.detach(|| self.0.query_tree(condition, select, &options)).map(Query::of).map_err(to_python)
    }

    #[pyo3(signature = (text, options=None))]
    fn sql(&self, py: Python<'_>, text: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Query> {
        let options = options::query_options(options, Call::Query)?;
        py.detach(|| self.0.sql(text, &options)).map(Query::of).map_err(to_python)
    }

    #[pyo3(signature = (plan, options=None))]
    fn query_plan(
        &self,
        py: Python<'_>,
        plan: &Plan,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Query> {
        let options = options::query_options(options, Call::Query)?;
        py.detach(|| self.0.query_plan(&plan.0, &options)).map(Query::of).map_err(to_python)
    }

    #[pyo3(signature = (task, options=None))]
    fn run_task(
        &self,
        py: Python<'_>,
        task: &Task,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Partial> {
        tasks::run(py, &self.0, task, &options::query_options(options, Call::RunTask)?)
    }

    /// The query that a task is a part of, or that of the task's rows alone.
    #[pyo3(signature = (task, options=None, *, alone=false))]
    fn query_of(
        &self,
        py: Python<'_>,
        task: &Task,
        options: Option<&Bound<'_, PyDict>>,
        alone: bool,
    ) -> PyResult<Query> {
        tasks::query_of(py, &self.0, task, alone, &options::query_options(options, Call::RunTask)?)
    }

    /// What tells its state from others: length, and hashes of its version and content.
    fn state(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let [len, version, content] = py.detach(|| self.0.state()).map_err(to_python)?;
        Ok((len, version, content))
    }
}

/// Refuses a path that lies below none of these places, in the same words whether there is something or not.
#[pyfunction]
pub fn check_allowed(path: &str, allow: Vec<PathBuf>) -> PyResult<()> {
    options::gate(allow)?.check_url(path, Purpose::Source).map_err(to_python)
}

/// Whether a file is a database that this process has open, or one beside it.
#[pyfunction]
pub fn is_open_database(path: PathBuf) -> bool {
    sieva::local::is_open_database(&path)
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

/// The main loop of a worker process that parses files for another.
#[pyfunction]
pub fn serve_worker(py: Python<'_>) -> PyResult<()> {
    py.detach(sieva::serve_isolated).map_err(to_python)
}
