//! Opening the source of an object: by its manifest in the catalog where that still holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sieva_format::ArraySource;
use sieva_format::manifest::{Excerpt, ManifestSource};
use sieva_store::guard::Purpose;
use sieva_store::{FileStore, is_url};
use sieva_types::{Error, ErrorKind, Result};

use super::manifests::{self, Hint};
use super::objects::SourceObjects;
use crate::augment::Learn;
use crate::formats;
use crate::open::{OpenOptions, Source};

/// Opens the source of some objects. With a manifest of its present state nothing is parsed, and the schema has the
/// arrays of these objects alone.
///
/// # Errors
/// Those of opening, told with the location.
pub(super) fn open(of: &SourceObjects, hint: Hint, options: &OpenOptions) -> Result<Source> {
    let (started, location) = (Instant::now(), of.location.as_str());
    // What is learnt of small arrays is not worth a store for each file.
    let learn = Learn { share: 0.0, from: 0 };
    let options = OpenOptions { learn, beside: false, ..options.clone() };
    let path = Path::new(location);
    let inner = match by_manifest(of, hint, &options) {
        Some(known) => known,
        None => formats::open(path, &options).map_err(|e| said_how(e, location))?,
    };
    Ok(Source::from_parts(inner, path.to_path_buf(), &options, None, started))
}

/// An error with the location; where a server refuses, why it may and what to do: the catalog keeps no secrets.
fn said_how(e: Error, location: &str) -> Error {
    let is_refused = e.kind() == ErrorKind::PermissionDenied && is_url(location);
    let e = e.at(format!("'{location}'"));
    match is_refused {
        true => e.hint(
            "the catalog keeps addresses without user, password and signature: open the source itself by its whole address",
        ),
        false => e,
    }
}

/// The source as its manifest tells it; `None` where that does not hold.
fn by_manifest(of: &SourceObjects, hint: Hint, options: &OpenOptions) -> Option<Arc<dyn ArraySource>> {
    if matches!(hint, Hint::None) {
        return None;
    }
    let path = Path::new(&of.location);
    // Names of dimensions that a user gives are not in it; remote objects keep manifests of their own.
    if !options.dims.is_empty() || is_url(&of.location) {
        return None;
    }
    // A directory is no regular file, which says so.
    let store = Arc::new(FileStore::open_within(path, &options.gate, Purpose::Source).ok()?);
    let excerpt = manifests::decoded(of, hint)?;
    let Ok(source) = ManifestSource::of_excerpt(Excerpt::clone(&excerpt), store) else {
        manifests::forget(&of.location);
        return None;
    };
    let (path, options): (PathBuf, OpenOptions) = (path.to_path_buf(), options.clone());
    Some(Arc::new(source.with_fallback(Box::new(move || formats::open(&path, &options)))))
}
