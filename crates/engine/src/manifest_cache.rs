//! What was found of remote objects, kept from one opening to the next: none is parsed twice.
//!
//! A manifest (schema, and the layouts that queries have asked for) is kept for each URL in the cache directory. It
//! is used as long as the object's length and tag are those that it was taken of.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_format::layout::{Layout, Placement};
use sieva_format::manifest::{Layouts, Manifest, ManifestSource};
use sieva_format::{ArraySource, Wrapped};
use sieva_store::RangedRead;
use sieva_store::local::{self, Aside, Trust};
use sieva_types::Result;

use crate::open::OpenOptions;

/// Bytes beyond which a file is no manifest of ours.
const LONGEST: u64 = 1 << 30;

/// Opens a remote object by what is remembered of it, or by parsing it, and remembers it.
///
/// # Errors
/// Those of parsing.
pub(crate) fn open(
    url: &str,
    store: Arc<dyn RangedRead>,
    options: &OpenOptions,
) -> Result<Arc<dyn ArraySource>> {
    // Names of dimensions that a user gives are not the object's; without a tag nothing tells it from another.
    let file = cache_dir().filter(|_| options.dims.is_empty() && !store.version().is_empty());
    let Some(file) = file.map(|dir| place(&dir, url)) else { return crate::formats::parse(&store, options) };
    let known = recall(&file, LONGEST).and_then(|bytes| Manifest::decode(&bytes).ok());
    let source: Arc<dyn ArraySource> = match known.map(|m| ManifestSource::new(m, Arc::clone(&store))) {
        Some(Ok(known)) => {
            // Not through this function again: it would come back to the manifest that lacks what is looked for.
            let (store, options) = (Arc::clone(&store), options.clone());
            let fallback = move || crate::formats::parse(&store, &options);
            Arc::new(known.with_fallback(Box::new(fallback)))
        }
        _ => crate::formats::parse(&store, options)?,
    };
    if !options.remember {
        return Ok(source);
    }
    Ok(Arc::new(Remembered { source, file, found: Mutex::default() }))
}

/// Whether something is remembered of a remote object, of this state or an earlier one.
pub(crate) fn is_known(url: &str) -> bool {
    cache_dir().is_some_and(|dir| place(&dir, url).exists())
}

/// Where manifests are kept: `SIEVA_CACHE`, else `sieva` in the user's cache directory.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("SIEVA_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("sieva")))
        .or_else(|| set("HOME").map(|dir| dir.join(".cache/sieva")))
}

/// The bytes of a file in the cache directory, if nobody but this user or root could have put it there.
pub(crate) fn recall(file: &Path, most: u64) -> Option<Vec<u8>> {
    let opened = local::open_regular(file).ok()?;
    Trust::default().check(&opened.metadata().ok()?).ok()?;
    local::read_file(&opened, most).ok()
}

/// Writes a file of the cache directory, for this user alone.
pub(crate) fn keep(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut aside = Aside::new(file, 0o600)?;
    aside.file()?.write_all(bytes)?;
    aside.publish(false)
}

fn place(dir: &Path, url: &str) -> PathBuf {
    // The name of an object may be a secret: that of the file is not.
    dir.join("manifests").join(format!("{}.manifest", sieva_store::name_of(url.as_bytes())))
}

/// A source whose layouts are written down when it is closed, if there are new ones.
struct Remembered {
    source: Arc<dyn ArraySource>,
    file: PathBuf,
    /// Arrays whose layouts were asked for.
    found: Mutex<BTreeSet<usize>>,
}

impl Remembered {
    /// Writes down what is known now. Failing to is no error: nothing depends on it.
    fn save(&self) -> Option<()> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: BTreeSet<usize> = found.clone();
        let before = recall(&self.file, LONGEST).and_then(|bytes| Manifest::decode(&bytes).ok());
        if let Some(before) = &before
            && before.check_object(&**self.source.store()).is_ok()
        {
            let had: BTreeSet<usize> = (0..before.schema().arrays.len())
                .filter(|&a| !matches!(before.layout(a), Ok(None)))
                .collect();
            if known.is_subset(&had) {
                return Some(());
            }
            known.extend(had);
        }
        let known: Vec<usize> = known.into_iter().collect();
        // No word to the server: this may run where a language's lock is held, or the server is gone.
        let manifest = Manifest::take_pinned(&*self.source, Layouts::Some(&known)).ok()?;
        keep(&self.file, &manifest.encode()).ok()
    }
}

impl Drop for Remembered {
    fn drop(&mut self) {
        let _ = self.save();
    }
}

impl Wrapped for Remembered {
    fn inner(&self) -> &dyn ArraySource {
        &*self.source
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        let layout = self.source.layout(array)?;
        if !matches!(layout.placement, Placement::Library(_) | Placement::Objects) {
            self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(array);
        }
        Ok(layout)
    }
}
