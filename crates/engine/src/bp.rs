//! BP files of ADIOS2, in this process or in a worker.

use std::path::Path;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format_bp::library;
use sieva_isolate::{IsolateOptions, IsolatedSource};
use sieva_types::{Error, ErrorKind, Result};

use crate::open::OpenOptions;

/// Opens the BP file or directory at `path`.
///
/// # Errors
/// As [`sieva_format_bp::open`]; isolated, as [`IsolatedSource::open`].
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    if options.isolated.is_empty() {
        return Ok(Arc::new(sieva_format_bp::open(path, &options.dims, &options.gate)?));
    }
    let store = sieva_format_bp::store(path, &options.gate)?;
    // Without a home the library ends the process. That of the user has nothing that a worker needs.
    let mut environment = vec![("HOME".into(), "/nonexistent".into())];
    environment.extend(library::told_place().map(|place| (library::VARIABLE.into(), place)));
    let how = IsolateOptions { dims: options.dims.clone(), environment, ..IsolateOptions::default() };
    IsolatedSource::open_stored(&options.isolated, path, Arc::new(store), &how, options.limits)
}

/// The error of a BP file that is an object of a server.
pub(crate) fn not_remote(name: &str) -> Error {
    let message = format!("'{name}' is a BP file: the library of ADIOS2 reads local files only");
    Error::new(ErrorKind::Unsupported, message).hint("copy it here first")
}
