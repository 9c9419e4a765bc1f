//! Stores and the options of remote storage.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use sieva::{Error, ErrorKind, RemoteOption, RemoteOptions, RemoteValue, Store};

use crate::errors::to_python;

/// The limits of remote storage by their names, seconds as numbers.
pub fn remote_options(given: &Bound<'_, PyAny>) -> PyResult<RemoteOptions> {
    let mut options = RemoteOptions::default();
    for item in given.cast::<PyMapping>()?.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let option = RemoteOption::named(&name).map_err(to_python)?;
        let value = match option.kind() {
            "seconds" => RemoteValue::Seconds(value.extract()?),
            "directory" => RemoteValue::Directory(value.extract()?),
            "flag" => RemoteValue::Flag(value.extract()?),
            // Python says of numbers that are too large or too small that they overflow.
            _ => RemoteValue::Whole(value.extract().map_err(|_| {
                let message =
                    format!("{name} is a whole number, not negative and not too large, got {value}");
                to_python(Error::new(ErrorKind::InvalidValue, message))
            })?),
        };
        option.set(&mut options, value).map_err(to_python)?;
    }
    Ok(options)
}

/// The options of remote storage, a dict for each.
#[pyfunction]
pub fn remote_option_rows(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |option: &RemoteOption| {
        let row = PyDict::new(py);
        row.set_item("name", option.name)?;
        row.set_item("kind", option.kind())?;
        row.set_item("default", option.default)?;
        row.set_item("means", option.means)?;
        Ok(row)
    };
    RemoteOption::ALL.iter().map(row).collect()
}

/// The stores, a dict for each.
#[pyfunction]
pub fn stores(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |store: &Store| {
        let row = PyDict::new(py);
        row.set_item("schemes", store.schemes)?;
        row.set_item("form", store.form)?;
        row.set_item("variables", store.variables)?;
        Ok(row)
    };
    Store::all().map(row).collect()
}
