//! The object that stands for a whole tree: its bytes are the metadata documents, its version that of all objects.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sieva_store::{Counters, Entry, ObjectTree, RangedRead};
use sieva_types::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::documents::{Documents, SPAN};

/// The most documents that are read again to see whether they were changed.
const MAX_CHECKED: usize = 256;

/// A directory is listed again before a query where that takes at most so long; a larger one at most once in so many times
/// as long as it takes.
const QUICK: Duration = Duration::from_millis(20);
const SHARE: u32 = 20;

/// Metadata documents in a row.
pub(crate) struct MetadataStore {
    tree: Arc<dyn ObjectTree>,
    documents: Documents,
    version: String,
    /// The last listing of the tree's directory; `None`: it is none.
    listed: Option<Mutex<Listed>>,
}

/// What a listing told.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Changes when an object does.
    pub(crate) version: String,
    /// When it was done.
    pub(crate) at: Instant,
    /// How long it took.
    pub(crate) took: Duration,
}

impl MetadataStore {
    /// The store of what was read of `tree`; `listed`: what its listing told, where it was listed.
    pub(crate) fn new(tree: Arc<dyn ObjectTree>, documents: Documents, listed: Option<Listed>) -> Self {
        let version = match &listed {
            Some(listed) => listed.version.clone(),
            None => format!("{} documents {:032x}", documents.keys.len(), of_documents(&documents)),
        };
        let listed = listed.filter(|_| tree.local_path().is_some()).map(Mutex::new);
        Self { tree, documents, version, listed }
    }

    /// Whether the objects of a directory are those that they were, as far as their names, lengths and times tell.
    fn check_listing(&self) -> Result<()> {
        let Some(listed) = &self.listed else { return Ok(()) };
        let last = || listed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |last: &Listed| last.took > QUICK && last.at.elapsed() < last.took * SHARE;
        if is_recent(&last()) {
            return Ok(());
        }
        let started = Instant::now();
        let entries = self.tree.list("")?.unwrap_or_default();
        if version_of(&entries) != self.version {
            let message =
                format!("objects in '{}' were changed, added or removed since it was opened", self.name());
            return Err(Error::new(ErrorKind::StaleSource, message).hint("open the source again"));
        }
        let version = self.version.clone();
        *last() = Listed { version, at: Instant::now(), took: started.elapsed() };
        Ok(())
    }
}

/// The version of a tree with these objects; stores of augmentations, which lie beside the arrays of a group that were
/// indexed alone, are none of it.
pub(crate) fn version_of(entries: &[Entry]) -> String {
    let is_own = |e: &&Entry| !e.key.split('/').rev().skip(1).any(|part| part.ends_with(".sieva"));
    let own: Vec<&Entry> = entries.iter().filter(is_own).collect();
    format!("{} objects {:032x}", own.len(), of_listing(&own))
}

/// Changes when an object is added, removed, resized or written again.
fn of_listing(entries: &[&Entry]) -> u128 {
    let mut hash = Xxh3::new();
    for entry in entries {
        for text in [&entry.key, &entry.version] {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.update(&entry.size.to_le_bytes());
    }
    hash.digest128()
}

fn of_documents(documents: &Documents) -> u128 {
    let mut hash = Xxh3::new();
    for (key, start) in &documents.keys {
        hash.update(key.as_bytes());
        hash.update(&start.to_le_bytes());
    }
    hash.update(&documents.bytes);
    hash.digest128()
}

impl RangedRead for MetadataStore {
    fn len(&self) -> u64 {
        self.documents.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).ok();
        let bytes = start.and_then(|start| self.documents.bytes.get(start..start.checked_add(out.len())?));
        let Some(bytes) = bytes else {
            let (name, len) = (self.name(), self.len());
            let message = format!("'{name}': {} bytes at offset {offset} of {len} of metadata", out.len());
            return Err(Error::corrupt(message));
        };
        out.copy_from_slice(bytes);
        Ok(())
    }

    /// Reads metadata documents again; of very many an even choice. A directory is listed.
    fn check_unchanged(&self) -> Result<()> {
        self.tree.check_unchanged()?;
        self.check_listing()?;
        let count = self.documents.keys.len();
        let mut now = Vec::new();
        for i in (0..count).step_by(count.div_ceil(MAX_CHECKED).max(1)) {
            let Some((key, then)) = self.documents.get(i) else { continue };
            if !self.tree.get(key, &SPAN, &mut now)? || now != then {
                let message = format!("'{key}' in '{}' was changed since it was opened", self.name());
                return Err(Error::new(ErrorKind::StaleSource, message).hint("open the source again"));
            }
        }
        Ok(())
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn is_remote(&self) -> bool {
        self.tree.is_remote()
    }

    fn local_path(&self) -> Option<&Path> {
        self.tree.local_path()
    }

    fn name(&self) -> &str {
        self.tree.name()
    }

    fn counters(&self) -> &Counters {
        self.tree.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_of_the_listing_is_another_version() {
        let entry = |key: &str, size, version: &str| Entry { key: key.into(), size, version: version.into() };
        let first = version_of(&[entry("a", 1, "x"), entry("b", 2, "")]);
        for other in [
            vec![entry("a", 1, "x")],
            vec![entry("a", 1, "y"), entry("b", 2, "")],
            vec![entry("a", 1, "x"), entry("b", 3, "")],
            vec![entry("ax", 1, ""), entry("b", 2, "")],
        ] {
            assert_ne!(version_of(&other), first);
        }
        let indexed = [entry("a", 1, "x"), entry("a.sieva/manifest", 9, "z"), entry("b", 2, "")];
        assert_eq!(version_of(&indexed), first);
    }
}
