//! Which format a file is of, and its reader.

use std::path::Path;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source, is_hdf5};
use sieva_format_netcdf3::{Netcdf3Source, is_netcdf3};
use sieva_store::{FileStore, RangedRead};
use sieva_types::{Error, ErrorKind, Result};

use crate::open::OpenOptions;

/// Opens the file at `path`; its format is told by its first bytes, not by its name.
///
/// # Errors
/// `file-not-found`, `permission-denied`, `unknown-format` naming what can be read, `corrupt-file`.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    if path.is_dir() {
        return Err(unknown_format(path, "is a directory"));
    }
    let store = FileStore::open(path)?;
    if is_netcdf3(&store) {
        let mut source = Netcdf3Source::open(Arc::new(store))?;
        if !options.dims.is_empty() {
            source.name_dims(&options.dims)?;
        }
        return Ok(Arc::new(source));
    }
    if is_hdf5(&store) {
        let hdf5 = Hdf5Options { external_roots: options.external_roots.clone(), dims: options.dims.clone() };
        return Ok(Arc::new(Hdf5Source::open(path, &hdf5)?));
    }
    Err(unknown_format(path, if store.is_empty() { "is empty" } else { "is none of them" }))
}

fn unknown_format(path: &Path, why: &str) -> Error {
    Error::new(
        ErrorKind::UnknownFormat,
        format!("'{}' {why}: not a file that can be read here", path.display()),
    )
    .hint("HDF5, netCDF-4 and netCDF-3 (classic, 64-bit offset, CDF-5) files can")
}
