//! `sieva._native.Query` and its stream of record batches.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use sieva::ast::Expr;

use crate::convert::{self, whole};
use crate::errors::to_python;
use crate::expr::Asked;
use crate::interrupt::interruptible;
use crate::plan::Plan;
use crate::selection::Selection;
use crate::stream::{Signal, Stream};
use crate::tasks::{self, Partial, Task};

const BATCH_ROWS: usize = 65_536;

#[pyclass(module = "sieva._native", frozen)]
pub struct Query(pub Arc<sieva::Query>, Signal);

impl Query {
    /// One that Python owns.
    pub fn of(query: sieva::Query) -> Self {
        Self(Arc::new(query), Signal::default())
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

    fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        py.detach(|| self.0.logical_plan()).map(Plan).map_err(to_python)
    }

    #[pyo3(signature = (n, kind=None, boxes=None))]
    fn tasks(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] n: usize,
        kind: Option<&str>,
        boxes: Option<Vec<(Vec<u64>, Vec<u64>)>>,
    ) -> PyResult<Vec<Task>> {
        tasks::tasks_of(py, &self.0, n, kind, boxes)
    }

    /// The same query at positions that were found elsewhere; none: at no position.
    fn at(&self, py: Python<'_>, selection: Option<&Selection>) -> PyResult<Self> {
        let made = || {
            let selection = match selection {
                Some(found) => found.0.as_ref().clone(),
                None => {
                    let (names, shape) = self.0.rows().into_iter().unzip();
                    sieva::Selection::empty(names, shape)?
                }
            };
            self.0.at(selection)
        };
        py.detach(made).map(Self::of).map_err(to_python)
    }

    #[pyo3(signature = (n, kind=None))]
    fn shares(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] n: usize,
        kind: Option<&str>,
    ) -> PyResult<Vec<Task>> {
        tasks::shares_of(py, &self.0, n, kind)
    }

    #[pyo3(signature = (kind=None))]
    fn effort(&self, py: Python<'_>, kind: Option<&str>) -> PyResult<f64> {
        tasks::effort(py, &self.0, kind)
    }

    fn finish_bytes(&self, py: Python<'_>, parts: Vec<Bound<'_, PyBytes>>) -> PyResult<Self> {
        tasks::finish_bytes(py, &self.0, &parts)
    }

    fn finish(&self, py: Python<'_>, parts: Vec<PyRef<'_, Partial>>) -> PyResult<Self> {
        tasks::finish(py, &self.0, parts)
    }

    fn estimate(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        interruptible(py, &self.0.cancel_flag(), || self.0.estimate())
    }

    /// For each quantity its least, expected and greatest value; None where there is no greatest.
    fn price<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let price = interruptible(py, &self.0.cancel_flag(), || self.0.price())?;
        price_dict(py, &price)
    }

    fn selection(&self, py: Python<'_>) -> PyResult<Selection> {
        interruptible(py, &self.0.cancel_flag(), || self.0.selection()).map(Selection)
    }

    #[pyo3(signature = (name=None))]
    fn read<'py>(&self, py: Python<'py>, name: Option<Asked<'_>>) -> PyResult<Bound<'py, PyAny>> {
        let value = match (name, self.0.outputs()) {
            (Some(name), _) => name.tree(self.0.source()).map_err(to_python)?,
            (None, [only]) => Expr::name(only.name.as_str()),
            (None, all) => {
                let names: Vec<&str> = all.iter().map(|o| o.name.as_str()).collect();
                let message = format!("read() needs a name: the query has {}", names.join(", "));
                return Err(to_python(sieva::Error::new(sieva::ErrorKind::InvalidValue, message)));
            }
        };
        let column = interruptible(py, &self.0.cancel_flag(), || self.0.read_value(&value))?;
        let array = match &value {
            Expr::Name(name) => self.0.source().resolve(&name.text).ok(),
            _ => None,
        };
        let info = array.map(|i| &self.0.source().schema().arrays[i]);
        convert::stored_width(convert::column(py, column)?, info, false)
    }

    /// The same query with more columns behind its own; none where they would change its rows.
    fn with_columns(&self, py: Python<'_>, more: Vec<Asked<'_>>) -> PyResult<Option<Self>> {
        let more = more.iter().map(|m| m.tree(self.0.source())).collect::<sieva::Result<_>>();
        let more = more.map_err(to_python)?;
        py.detach(|| self.0.with_columns(more)).map(|found| found.map(Self::of)).map_err(to_python)
    }

    /// A query of the same condition for other expressions, aggregates among them.
    fn of_its_rows(&self, py: Python<'_>, values: Vec<Asked<'_>>) -> PyResult<Self> {
        let values = values.iter().map(|m| m.tree(self.0.source())).collect::<sieva::Result<_>>();
        let values = values.map_err(to_python)?;
        py.detach(|| self.0.of_its_rows(values)).map(Self::of).map_err(to_python)
    }

    fn histogram<'py>(
        &self,
        py: Python<'py>,
        name: Asked<'_>,
        #[pyo3(from_py_with = whole)] bins: usize,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let value = name.tree(self.0.source()).map_err(to_python)?;
        let (counts, edges) = interruptible(py, &self.0.cancel_flag(), || self.0.histogram_of(value, bins))?;
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

    fn explain_layout(&self, py: Python<'_>) -> PyResult<String> {
        interruptible(py, &self.0.cancel_flag(), || self.0.explain_layout())
    }

    fn explain_layout_json(&self, py: Python<'_>) -> PyResult<String> {
        interruptible(py, &self.0.cancel_flag(), || self.0.explain_layout_json())
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
        out.set_item("evaluations", s.evaluations)?;
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

    /// Raises the error that ended a stream of this query, if one did, or what a signal raised meanwhile.
    fn raise_failure(&self) -> PyResult<()> {
        self.1.raise()?;
        self.0.take_failure().map_or(Ok(()), |e| Err(to_python(e)))
    }

    fn cancel(&self) {
        self.0.cancel();
    }

    /// The same query, to be cancelled by itself.
    fn again(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| self.0.again(None)).map(Self::of).map_err(to_python)
    }
}

/// A price as Python is told it.
pub(crate) fn price_dict<'py>(py: Python<'py>, price: &sieva::Price) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let counts = [
        ("rows", price.rows),
        ("bytes_read", price.bytes_read),
        ("bytes_returned", price.bytes_returned),
        ("requests", price.requests),
    ];
    for (name, n) in counts {
        let high = (n.high != sieva::UNBOUNDED).then_some(n.high);
        out.set_item(name, (n.low, n.expected, high))?;
    }
    let s = price.seconds;
    out.set_item("seconds", (s.low, s.expected, s.high.is_finite().then_some(s.high)))?;
    Ok(out)
}
