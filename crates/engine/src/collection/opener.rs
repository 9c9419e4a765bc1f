//! Opening the source of an object: by its manifest in the catalog where that still holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sieva_format::ArraySource;
use sieva_format::manifest::{Excerpt, ManifestSource};
use sieva_index::content_hash;
use sieva_store::guard::Purpose;
use sieva_store::{FileStore, is_url};
use sieva_types::{Error, ErrorKind, Result};

use super::manifests::{self, Hint};
use super::objects::{Pinned, SourceObjects};
use crate::augment::{Learn, state_of_bytes};
use crate::formats;
use crate::open::{OpenOptions, Source};

/// Opens the source of some objects. With a manifest of its present state nothing is parsed, and the schema has the
/// arrays of these objects alone.
///
/// # Errors
/// Those of opening, told with the location; `stale-source` where it is not in the state that it is pinned to.
pub(super) fn open(of: &SourceObjects, hint: Hint, options: &OpenOptions) -> Result<Source> {
    let (started, location) = (Instant::now(), of.location.as_str());
    // What is learnt of small arrays is not worth a store for each file.
    let learn = Learn { share: 0.0, from: 0 };
    let options = OpenOptions { learn, beside: false, ..options.clone() };
    let path = Path::new(location);
    let came_along = of.pinned.as_ref().is_some_and(|p| p.manifest.is_some());
    let known = by_manifest(of, hint, &options);
    // Its length and version were compared, and who looked at its content is believed as its manifest is.
    let is_told = came_along && known.is_some();
    let inner = match known {
        Some(known) => known,
        None => formats::open(path, &options).map_err(|e| said_how(e, location))?,
    };
    let source = Source::from_parts(inner, path.to_path_buf(), &options, None, started);
    if let Some(pinned) = &of.pinned {
        check_state(&source, pinned, is_told, location)?;
    }
    Ok(source)
}

/// That a source is in the state that it is pinned to.
fn check_state(source: &Source, pinned: &Pinned, is_told: bool, location: &str) -> Result<()> {
    let is_same = match pinned.content {
        Some(content) if !is_told => {
            let [len, version] = pinned.state;
            state_of_bytes(source)? == [len, version, content]
        }
        _ => state_unread(source)? == pinned.state,
    };
    if is_same {
        return Ok(());
    }
    let message = format!("'{location}' is not in the state that the task is of");
    Err(Error::new(ErrorKind::StaleSource, message)
        .hint("make the tasks anew, of the same files, copied with their times of modification if at all"))
}

/// What tells the state of a source as far as nothing is read for it.
///
/// # Errors
/// `stale-source` where it was changed since it was opened.
pub(super) fn state_unread(source: &Source) -> Result<[u64; 2]> {
    let store = source.reader().store();
    store.check_unchanged()?;
    Ok([store.len(), content_hash(store.version().as_bytes())])
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
