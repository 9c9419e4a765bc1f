//! Zone maps that a file carries: made of it here, for a copy of it that is put elsewhere.
//!
//! They are a store as [`Source::build_index`] makes one, in a directory that nobody else sees, but for the manifest, which has
//! the fingerprint of the copy: so whoever opens the copy takes them for what they are.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sieva_index::store::{Fingerprint, Store};
use sieva_store::FileStore;
use sieva_types::{Error, Result};

use super::{BuildOptions, BuildReport, IndexKind, Learn, schema_hash};
use crate::formats::is_one_file;
use crate::open::{OpenOptions, Source};

/// Zone maps of a file, in a directory that is removed with this.
pub struct CarriedZoneMaps {
    source: Source,
    dir: PathBuf,
    segments: Vec<String>,
    // Last: the directory is removed when nothing reads it any more.
    _scratch: Scratch,
}

impl CarriedZoneMaps {
    /// Zone maps of all numeric arrays of a file that is open, in a new directory of `scratch`. `None` of what has no such array, and
    /// of what is no HDF5, netCDF or FITS file. The kinds of the options do not matter; more than one job makes more than one
    /// segment.
    ///
    /// # Errors
    /// Those of opening the file and of reading it; `io-error` of the directory; `cancelled`.
    pub fn of(file: &File, scratch: &Path, options: &BuildOptions) -> Result<Option<Self>> {
        // What is open has this path, whether it has a name or not.
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        if !is_one_file(&FileStore::open(&path)?) {
            return Ok(None);
        }
        let scratch = Scratch::new(scratch)?;
        let learn = Learn { share: 0.0, ..Learn::default() };
        let open = OpenOptions {
            store: Some(scratch.0.clone()),
            learn,
            memory: Some(options.memory),
            cancel: options.cancel.clone(),
            ..OpenOptions::default()
        };
        let source = Source::open(&path, &open)?;
        let options = BuildOptions { kinds: vec![IndexKind::ZoneMap], ..options.clone() };
        // As `build_index` does, but that no catalog is told of a place that is gone in a moment.
        let built = source.build(&source.indexable(&[])?, &options, false, &mut BuildReport::default());
        source.augmented().forget();
        built?;
        let loaded = source.loaded()?;
        let Some((home, store)) = loaded.store.as_ref().and_then(|s| Some((s.place().local()?, s))) else {
            return Ok(None);
        };
        let segments: Vec<String> = store.listing().segments.iter().map(|s| s.name().to_owned()).collect();
        let dir = home.path();
        Ok((!segments.is_empty()).then_some(Self { source, dir, segments, _scratch: scratch }))
    }

    /// The name that the manifest has among the files of a store.
    pub const MANIFEST: &'static str = Store::MANIFEST;

    /// The files that a copy of the store has besides its manifest: names in it, and where they are now.
    pub fn segments(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.segments.iter().map(|name| (name.as_str(), self.dir.join(name)))
    }

    /// The manifest for a copy of the file that is of this version, behind a network or not.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn manifest(&self, version: &str, is_remote: bool) -> Result<Vec<u8>> {
        let (loaded, reader) = (self.source.loaded()?, self.source.reader());
        let store = loaded.store.as_ref();
        let store =
            store.ok_or_else(|| super::corrupt("zone maps that were made are there no longer".into()))?;
        // Of the very bytes that they were made of.
        reader.store().check_unchanged()?;
        let (bytes, version) = (reader.store(), version.to_owned());
        let copy = Fingerprint::take_of_copy(bytes.as_ref(), version, schema_hash(reader), is_remote)?;
        store.manifest_of_copy(copy)
    }
}

/// A directory of this user alone, removed with this.
struct Scratch(PathBuf);

impl Scratch {
    fn new(within: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let dir = within.join(format!("sieva-zone-maps-{}-{count}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::io(format!("cannot make '{}'", dir.display()), &e)),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
