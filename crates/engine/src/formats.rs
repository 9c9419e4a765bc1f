//! Which format a file, a directory or a remote object is of, and its reader.

use std::path::Path;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format_bp::{is_bp, is_bp_directory};
use sieva_format_fits::{FitsSource, is_fits};
use sieva_format_hdf5::{Hdf5Options, Hdf5Source, is_hdf5};
use sieva_format_netcdf3::{Netcdf3Source, is_netcdf3};
use sieva_format_zarr::{ZarrOptions, ZarrSource, is_zarr};
use sieva_isolate::{IsolateOptions, IsolatedSource};
use sieva_store::guard::{Gate, Purpose};
use sieva_store::{DirTree, FileStore, ObjectTree, RangedRead, RemoteOptions, is_url};
use sieva_types::{Error, ErrorKind, Result};

use crate::open::OpenOptions;
use crate::{bp, manifest_cache, memory, references};

/// Whether a local file or directory is a BP file, whose library may crash or wait for ever where it is damaged: so that it
/// is opened [isolated](OpenOptions::isolated).
///
/// # Errors
/// As of opening what is not there, or what `gate` refuses.
pub fn is_bp_file(path: &Path, gate: &Gate) -> Result<bool> {
    match gate.look(path, Purpose::Source)? {
        Some(found) if found.is_dir() => Ok(is_bp_directory(path)),
        _ => Ok(is_bp(&FileStore::open_within(path, gate, Purpose::Source)?)),
    }
}

/// Opens what is at `path`, which may be a URL; its format is told by its first bytes, not by its name.
///
/// # Errors
/// `file-not-found`, `permission-denied`, `unknown-format` naming what can be read, `corrupt-file`; `io-error` of a
/// network.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    if let Some(url) = path.to_str().filter(|p| is_url(p)) {
        return open_url(url, options);
    }
    let is_dir = options.gate.look(path, Purpose::Source)?.is_some_and(|found| found.is_dir());
    let store = || FileStore::open_within(path, &options.gate, Purpose::Source);
    if is_dir && is_bp_directory(path) {
        return bp::open(path, options);
    }
    if !options.isolated.is_empty() && !is_dir {
        // A reference set is a Zarr hierarchy, which this process reads itself; a worker could not read what it leads to.
        let store = store()?;
        if !is_hdf5(&store) {
            if references::is_references(&store) {
                return references::read(&store, options);
            }
            if is_bp(&store) {
                return bp::open(path, options);
            }
        }
        let how = IsolateOptions {
            dims: options.dims.clone(),
            external_roots: options.external_roots.clone(),
            all_layouts: false,
            gate: options.gate.clone(),
            environment: Vec::new(),
        };
        return IsolatedSource::open(&options.isolated, path, &how, options.limits);
    }
    if is_dir {
        let tree =
            DirTree::open_within(path, &options.gate, Purpose::Source)?.linking_to(&options.external_roots);
        return match is_zarr(&tree)? {
            true => open_zarr(Arc::new(tree), options),
            false => {
                Err(unknown_format(path, "is a directory, and neither a Zarr group nor a BP file of ADIOS2"))
            }
        };
    }
    let store: Arc<dyn RangedRead> = Arc::new(store()?);
    match open_object(&store, Some(path), options)? {
        Some(source) => Ok(source),
        None if store.is_empty() => Err(unknown_format(path, "is empty")),
        None => Err(unknown_format(path, "is of no format that is known")),
    }
}

fn open_url(url: &str, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    options.gate.check_url(url, Purpose::Source)?;
    if !options.isolated.is_empty() {
        let shown = sieva_store::redacted(url);
        let message = format!("'{shown}' cannot be opened isolated: a worker process reads local files only");
        return Err(Error::new(ErrorKind::Unsupported, message)
            .hint("copy the object here first, or open it without isolation if you trust it"));
    }
    let name = url.split(['?', '#']).next().unwrap_or(url);
    if !name.ends_with('/') && !name.ends_with(".zarr") {
        let remote = remote_options(name, url, options);
        match sieva_store::open_within(url, &remote, &options.gate, Purpose::Source) {
            Ok(store) => {
                return manifest_cache::open(url, store, options);
            }
            // It may stand for many objects.
            Err(e) if e.kind() == ErrorKind::FileNotFound => {
                let tree = open_tree(url, options)?;
                return if is_zarr(&*tree)? { open_zarr(tree, options) } else { Err(e) };
            }
            Err(e) => return Err(e),
        }
    }
    let tree = open_tree(url, options)?;
    if is_zarr(&*tree)? {
        return open_zarr(tree, options);
    }
    Err(unknown_format(Path::new(&sieva_store::redacted(name)), "is no Zarr group"))
}

fn open_tree(url: &str, options: &OpenOptions) -> Result<Arc<dyn ObjectTree>> {
    sieva_store::open_tree_within(url, &options.remote, &options.gate, Purpose::Source)
}

/// How an object is opened. Of one that is HDF5 by its name and has to be parsed more of the beginning is fetched: what
/// opening reads next, a request and a wait less.
fn remote_options(name: &str, url: &str, options: &OpenOptions) -> RemoteOptions {
    const HDF5_NAMES: [&str; 7] = [".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4", ".cdf"];
    let mut remote = options.remote.clone();
    if HDF5_NAMES.iter().any(|end| name.ends_with(end)) && !manifest_cache::is_known(url) {
        remote.first_bytes = remote.first_bytes.max(sieva_format_hdf5::HEAD_BYTES);
    }
    remote
}

/// Whether it is a file of a format that needs no other one, told by its first bytes.
pub(crate) fn is_one_file(store: &dyn RangedRead) -> bool {
    is_netcdf3(store) || is_fits(store) || is_hdf5(store)
}

/// Opens an object by parsing it.
///
/// # Errors
/// As [`open`].
pub(crate) fn parse(store: &Arc<dyn RangedRead>, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    let name = Path::new(store.name());
    open_object(store, None, options)?.ok_or_else(|| unknown_format(name, "is of no format that is known"))
}

/// The reader of an object's format; `None` where it is none of ours.
fn open_object(
    store: &Arc<dyn RangedRead>,
    path: Option<&Path>,
    options: &OpenOptions,
) -> Result<Option<Arc<dyn ArraySource>>> {
    if is_netcdf3(&**store) {
        let mut source = Netcdf3Source::open(Arc::clone(store))?;
        if !options.dims.is_empty() {
            source.name_dims(&options.dims)?;
        }
        return Ok(Some(Arc::new(source)));
    }
    if is_fits(&**store) {
        return Ok(Some(Arc::new(FitsSource::open(Arc::clone(store), &options.dims)?)));
    }
    if is_hdf5(&**store) {
        let hdf5 = Hdf5Options {
            external_roots: options.external_roots.clone(),
            dims: options.dims.clone(),
            gate: options.gate.clone(),
            memory: Some(options.memory.unwrap_or_else(memory::default_limit)),
            cancel: Arc::clone(&options.cancel),
            ..Hdf5Options::default()
        };
        return Ok(Some(match path {
            Some(path) => Arc::new(Hdf5Source::open(path, &hdf5)?),
            None => Arc::new(Hdf5Source::open_store(Arc::clone(store), &hdf5)?),
        }));
    }
    if references::is_references(&**store) {
        return references::read(&**store, options).map(Some);
    }
    if is_bp(&**store) {
        return match path {
            Some(path) => bp::open(path, options).map(Some),
            None => Err(bp::not_remote(store.name())),
        };
    }
    Ok(None)
}

fn open_zarr(tree: Arc<dyn ObjectTree>, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    Ok(Arc::new(ZarrSource::open(tree, &zarr_options(options))?))
}

/// How a Zarr hierarchy is opened.
pub(crate) fn zarr_options(options: &OpenOptions) -> ZarrOptions {
    let memory = Some(options.memory.unwrap_or_else(memory::default_limit));
    ZarrOptions { dims: options.dims.clone(), memory }
}

fn unknown_format(path: &Path, why: &str) -> Error {
    Error::new(
        ErrorKind::UnknownFormat,
        format!("'{}' {why}: not a file that can be read here", path.display()),
    )
    .hint(
        "HDF5, netCDF-4, netCDF-3 (classic, 64-bit offset, CDF-5), Zarr, FITS, ADIOS2 BP and kerchunk's references can",
    )
}
