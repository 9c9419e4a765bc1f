//! Opening the source of an object: by its manifest in the catalog where that still holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sieva_format::ArraySource;
use sieva_format::manifest::ManifestSource;
use sieva_store::{FileStore, is_url};
use sieva_types::Result;

use super::manifests::{self, Hint};
use crate::augment::Learn;
use crate::formats;
use crate::open::{OpenOptions, Source};

/// Opens what is at `location`. With a manifest of its present state nothing is parsed.
pub(super) fn open(location: &str, hint: Hint, options: &OpenOptions) -> Result<Source> {
    let started = Instant::now();
    // What is learnt of small arrays is not worth a store for each file.
    let options = OpenOptions { learn: Learn { share: 0.0, from: 0 }, ..options.clone() };
    let path = Path::new(location);
    let inner = match by_manifest(location, hint, &options) {
        Some(known) => known,
        None => formats::open(path, &options)?,
    };
    Ok(Source::from_parts(inner, path.to_path_buf(), &options, None, started))
}

/// The source as its manifest tells it; `None` where that does not hold.
fn by_manifest(location: &str, hint: Hint, options: &OpenOptions) -> Option<Arc<dyn ArraySource>> {
    let path = Path::new(location);
    // Names of dimensions that a user gives are not in it; remote objects keep manifests of their own.
    if !options.dims.is_empty() || is_url(location) || path.is_dir() {
        return None;
    }
    let manifest = manifests::decoded(location, hint)?;
    let source = ManifestSource::new(manifest, Arc::new(FileStore::open(path).ok()?)).ok()?;
    let (path, options): (PathBuf, OpenOptions) = (path.to_path_buf(), options.clone());
    Some(Arc::new(source.with_fallback(Box::new(move || formats::open(&path, &options)))))
}
