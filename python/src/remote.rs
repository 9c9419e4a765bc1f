//! The options of remote storage.

use pyo3::prelude::*;
use pyo3::types::PyMapping;
use sieva::RemoteOptions;

use crate::errors::to_python;

/// The limits of remote storage by their names, seconds as numbers.
pub fn remote_options(given: &Bound<'_, PyAny>) -> PyResult<RemoteOptions> {
    let mut options = RemoteOptions::default();
    for item in given.cast::<PyMapping>()?.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
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
