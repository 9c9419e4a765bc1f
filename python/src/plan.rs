//! `sieva._native.Plan`: a logical plan.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::to_python;

#[pyclass(module = "sieva", frozen)]
pub struct Plan(pub sieva::Plan);

#[pymethods]
impl Plan {
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        sieva::Plan::from_bytes(data).map(Self).map_err(to_python)
    }

    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        sieva::Plan::from_json(text).map(|p| Self(p.canonical())).map_err(to_python)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(to_python)?))
    }

    /// The path of the source, where the plan names one.
    #[getter]
    fn source(&self) -> Option<String> {
        match &self.0.scan.source {
            sieva::PlanSource::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    /// The same of whatever source it is asked of.
    fn unnamed(&self) -> Self {
        let mut plan = self.0.clone();
        plan.scan.source = sieva::PlanSource::Given;
        Self(plan)
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn sql(&self) -> PyResult<String> {
        sieva::plan_text(&self.0).map_err(to_python)
    }

    #[getter]
    fn id(&self) -> PyResult<String> {
        self.0.id().map_err(to_python)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> PyResult<String> {
        let text = if self.0.outputs().is_empty() { "without columns".into() } else { self.sql()? };
        Ok(format!("<sieva.Plan {} {text}>", self.id()?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = slf.get_type().getattr("from_bytes")?;
        Ok((make, (slf.get().__bytes__(slf.py())?,)))
    }
}
