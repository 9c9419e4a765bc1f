//! An isolated source: parsed elsewhere, read here.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::manifest::{Manifest, ManifestSource};
use sieva_store::guard::{Gate, Purpose};
use sieva_store::{FileStore, RangedRead};
use sieva_types::Result;

use crate::limits::WorkerLimits;
use crate::message::OpenRequest;
use crate::remote::{Remote, RemoteSource};

/// How a file is opened in a worker.
#[derive(Clone, Debug, Default)]
pub struct IsolateOptions {
    /// Names of arrays' dimensions: array path and names, outermost first.
    pub dims: Vec<(String, Vec<String>)>,
    /// Directories that links out of the file may lead to.
    pub external_roots: Vec<std::path::PathBuf>,
    /// Whether the layouts of all arrays are found at once; the worker then ends, until a library is needed. Otherwise
    /// each is found when it is wanted, and the worker lives as long as the source.
    pub all_layouts: bool,
    /// Who is asked before the file is opened. The worker cannot ask: where there is somebody to be asked, it opens nothing that
    /// the file leads to.
    pub gate: Gate,
    /// Variables that a worker has besides those that tell where programs and libraries are: where a library of the format is.
    pub environment: Vec<(OsString, OsString)>,
}

/// Sources that are parsed in a process of their own.
#[derive(Debug)]
pub struct IsolatedSource;

impl IsolatedSource {
    /// Opens the file at `path` in the process that `command` starts (its main loop is [`crate::serve`]).
    ///
    /// # Errors
    /// Those of the worker's reader; `file-not-found` and the like of this process; `corrupt-file` where the worker
    /// crashed, ran over a limit or answered nonsense; `io-error` where it could not be started.
    pub fn open(
        command: &[OsString],
        path: &Path,
        options: &IsolateOptions,
        limits: WorkerLimits,
    ) -> Result<Arc<dyn ArraySource>> {
        let source = Self::open_source(command, path, options, limits)?;
        Ok(Arc::new(source))
    }

    /// As [`IsolatedSource::open`], of a source of several files, which are behind `store`. Who calls it has asked the gate
    /// for each of them.
    ///
    /// # Errors
    /// As [`IsolatedSource::open`].
    pub fn open_stored(
        command: &[OsString],
        path: &Path,
        store: Arc<dyn RangedRead>,
        options: &IsolateOptions,
        limits: WorkerLimits,
    ) -> Result<Arc<dyn ArraySource>> {
        Ok(Arc::new(Self::open_with(command, path, store, None, options, limits)?))
    }

    /// The manifest alone, with all layouts: what a catalog keeps of a file that nobody trusts. No worker stays.
    ///
    /// # Errors
    /// As [`IsolatedSource::open`].
    pub fn manifest(
        command: &[OsString],
        path: &Path,
        options: &IsolateOptions,
        limits: WorkerLimits,
    ) -> Result<Manifest> {
        let options = IsolateOptions { all_layouts: true, ..options.clone() };
        Self::open_source(command, path, &options, limits).map(|source| source.manifest().clone())
    }

    fn open_source(
        command: &[OsString],
        path: &Path,
        options: &IsolateOptions,
        limits: WorkerLimits,
    ) -> Result<ManifestSource> {
        // Before the worker opens it: a file that is replaced meanwhile is noticed by what the manifest says of it.
        let file = FileStore::open_within(path, &options.gate, Purpose::Source)?;
        let identity = file.id();
        let alone = (!options.gate.is_open()).then_some(identity);
        Self::open_with(command, path, Arc::new(file), alone, options, limits)
    }

    fn open_with(
        command: &[OsString],
        path: &Path,
        store: Arc<dyn RangedRead>,
        alone: Option<(u64, u64)>,
        options: &IsolateOptions,
        limits: WorkerLimits,
    ) -> Result<ManifestSource> {
        let request = OpenRequest {
            path: path.to_path_buf(),
            dims: options.dims.clone(),
            external_roots: options.external_roots.clone(),
            alone,
        };
        let remote = Arc::new(Remote::new(command, &options.environment, request, limits));
        let manifest = remote.open(options.all_layouts)?;
        if options.all_layouts {
            remote.rest();
        }
        let (known, object) = (manifest.clone(), Arc::clone(&store));
        let reopen = move || -> Result<Arc<dyn ArraySource>> {
            Ok(Arc::new(RemoteSource::new(Arc::clone(&remote), known.clone(), Arc::clone(&object))))
        };
        Ok(ManifestSource::new(manifest, store)?.with_fallback(Box::new(reopen)))
    }
}
