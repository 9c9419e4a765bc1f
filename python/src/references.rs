//! Reference sets of kerchunk, as JSON and as the columns of their Parquet tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sieva::kerchunk::{Columns, References, Tables};
use sieva::options::Call;

use crate::errors::to_python;
use crate::options::open_options;
use crate::source::Source;

/// What is left out, with the reasons, and what readers see otherwise.
type Notes = (Vec<(String, String)>, Vec<String>);
/// Path, offset, size and bytes of the chunks of one array.
type Table<'py> = (Vec<Option<String>>, Vec<i64>, Vec<i64>, Vec<Option<Bound<'py, PyBytes>>>);
/// Metadata by key, and tables by array.
type AllTables<'py> = (BTreeMap<String, String>, BTreeMap<String, Table<'py>>);

/// The reference set of a source as JSON.
#[pyfunction]
pub fn references_json(py: Python<'_>, source: &Source, url: &str) -> PyResult<(String, Notes)> {
    let out = py.detach(|| source.0.references(url)).map_err(to_python)?;
    Ok((out.references.to_json(), (out.left_out, out.warnings)))
}

/// The reference set of a source as metadata and columns.
#[pyfunction]
pub fn references_tables<'py>(
    py: Python<'py>,
    source: &Source,
    url: &str,
) -> PyResult<(AllTables<'py>, Notes)> {
    let out = py.detach(|| source.0.references(url)).map_err(to_python)?;
    let tables = out.references.to_tables().map_err(to_python)?;
    let each = tables.arrays.into_iter().map(|(array, c)| {
        let path = c.path.iter().map(|p| p.as_ref().map(ToString::to_string)).collect();
        let raw = c.raw.iter().map(|r| r.as_ref().map(|bytes| PyBytes::new(py, bytes))).collect();
        (array, (path, c.offset, c.size, raw))
    });
    Ok(((tables.metadata, each.collect()), (out.left_out, out.warnings)))
}

/// A source made of the metadata and columns of a reference set.
#[pyfunction]
#[pyo3(signature = (name, metadata, arrays, options=None))]
#[allow(clippy::needless_pass_by_value)] // as Python hands them over
pub fn open_tables(
    py: Python<'_>,
    name: String,
    metadata: BTreeMap<String, String>,
    arrays: BTreeMap<String, Table<'_>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Source> {
    let options = open_options(options, Call::OpenTables)?;
    let arrays = arrays.into_iter().map(|(array, (path, offset, size, raw))| {
        let path = path.into_iter().map(|p| p.map(Arc::from)).collect();
        let raw = raw.into_iter().map(|r| r.map(|bytes| bytes.as_bytes().to_vec())).collect();
        (array, Columns { path, offset, size, raw })
    });
    let tables = Tables { metadata, arrays: arrays.collect() };
    py.detach(|| {
        let references = References::from_tables(&tables)?;
        sieva::Source::of_references(&name, references, &options)
    })
    .map(Source)
    .map_err(to_python)
}
