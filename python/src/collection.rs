//! `sieva._native.Collection` and its queries.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use sieva::options::Call;
use sieva::parse;

use crate::collection_tasks::{self, CollectionPartial, CollectionTask};
use crate::convert::whole;
use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::options;
use crate::plan::Plan;
use crate::query::price_dict;
use crate::stream::{Signal, Stream};

const BATCH_ROWS: usize = 65_536;

#[pyclass(module = "sieva._native", frozen)]
pub struct Collection(sieva::Collection);

#[pymethods]
impl Collection {
    #[staticmethod]
    #[pyo3(signature = (url, name, options=None))]
    fn open(py: Python<'_>, url: &str, name: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = options::open_options(options, Call::OpenCollection)?;
        interruptible(py, &Arc::default(), || sieva::Collection::open(url, name, &options)).map(Self)
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// What its queries did so far.
    fn traffic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (sources_opened, bytes_read, requests) = self.0.traffic();
        let out = PyDict::new(py);
        out.set_item("sources_opened", sources_opened)?;
        out.set_item("bytes_read", bytes_read)?;
        out.set_item("requests", requests)?;
        Ok(out)
    }

    #[pyo3(signature = (text, options=None))]
    fn sql(
        &self,
        py: Python<'_>,
        text: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<CollectionQuery> {
        let options = options::query_options(options, Call::QueryCollection)?;
        let query = py.detach(|| self.0.sql(text, &options)).map_err(to_python)?;
        Ok(CollectionQuery(query, Signal::default()))
    }

    #[pyo3(signature = (plan, options=None))]
    fn query_plan(
        &self,
        py: Python<'_>,
        plan: &Plan,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<CollectionQuery> {
        let options = options::query_options(options, Call::QueryCollection)?;
        let query = py.detach(|| self.0.query_plan(&plan.0, &options)).map_err(to_python)?;
        Ok(CollectionQuery(query, Signal::default()))
    }

    #[pyo3(signature = (task, options=None))]
    fn run_task(
        &self,
        py: Python<'_>,
        task: &CollectionTask,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<CollectionPartial> {
        collection_tasks::run(py, &self.0, task, &options::query_options(options, Call::RunTask)?)
    }
}

/// The name in FROM collection('name'); `None` for another FROM, or none.
#[pyfunction]
pub fn collection_clause(sql: &str) -> PyResult<Option<String>> {
    parse::parse_select(sql).map(|s| s.collection).map_err(to_python)
}

#[pyclass(module = "sieva._native", frozen)]
pub struct CollectionQuery(sieva::CollectionQuery, Signal);

#[pymethods]
impl CollectionQuery {
    fn plan(&self) -> PyResult<Plan> {
        self.0.logical_plan().map(Plan).map_err(to_python)
    }

    #[pyo3(signature = (n=1, kind=None, objects=None))]
    fn tasks(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] n: usize,
        kind: Option<&str>,
        objects: Option<Vec<(u64, u64)>>,
    ) -> PyResult<Vec<CollectionTask>> {
        collection_tasks::tasks_of(py, &self.0, n, kind, objects)
    }

    fn finish(&self, py: Python<'_>, parts: Vec<PyRef<'_, CollectionPartial>>) -> PyResult<Self> {
        Ok(Self(collection_tasks::finish(py, &self.0, parts)?, Signal::default()))
    }

    fn listing<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let bytes = interruptible(py, &self.0.cancel_flag(), || self.0.listing_bytes())?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn take_listing(&self, py: Python<'_>, listing: &[u8]) -> PyResult<()> {
        py.detach(|| self.0.take_listing(listing)).map_err(to_python)
    }

    #[getter]
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        py.detach(|| self.0.columns()).map_err(to_python)
    }

    #[getter]
    fn grouped(&self) -> bool {
        self.0.is_grouped()
    }

    fn sources(&self) -> Vec<&str> {
        self.0.sources()
    }

    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        interruptible(py, &self.0.cancel_flag(), || self.0.count())
    }

    fn price<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let price = interruptible(py, &self.0.cancel_flag(), || self.0.price())?;
        price_dict(py, &price)
    }

    #[pyo3(signature = (analyze=false))]
    fn explain(&self, py: Python<'_>, analyze: bool) -> PyResult<String> {
        interruptible(py, &self.0.cancel_flag(), || self.0.explain(analyze))
    }

    #[pyo3(signature = (batch_size=BATCH_ROWS))]
    fn stream(&self, py: Python<'_>, batch_size: usize) -> PyResult<Stream> {
        let batches = interruptible(py, &self.0.cancel_flag(), || self.0.batches(batch_size))?;
        Ok(Stream::of(batches.into(), self.0.cancel_flag(), &self.1))
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
        out.set_item("objects", s.objects)?;
        out.set_item("sources", s.sources)?;
        out.set_item("evaluated", s.evaluated)?;
        out.set_item("lacking", s.lacking)?;
        out.set_item("sources_opened", s.sources_opened)?;
        out.set_item("bytes_read", s.bytes_read)?;
        out.set_item("requests", s.requests)?;
        let seconds = PyDict::new(py);
        seconds.set_item("catalog", s.catalog_seconds)?;
        seconds.set_item("run", s.run_seconds)?;
        out.set_item("seconds", seconds)?;
        Ok(out)
    }

    /// Raises the error that ended a stream of this query, if one did.
    fn raise_failure(&self) -> PyResult<()> {
        self.1.raise()?;
        self.0.take_failure().map_or(Ok(()), |e| Err(to_python(e)))
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}
