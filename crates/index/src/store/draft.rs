//! What is being built and not yet published, and the lock that protects it from being swept away.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sieva_types::Result;

use super::files::{Locked, lock_new_file, write_error};
use super::manifest::SortedEntry;
use super::names;

/// A file or directory that nobody else removes while this lives. Unless it was published, it is removed when
/// this is dropped.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    /// The file that is locked: the draft itself, or one beside a directory (network file systems lock no
    /// directories).
    lock: PathBuf,
    pub(super) locked: Locked,
    kept: AtomicBool,
}

impl Draft {
    /// A new file in `dir`.
    pub(super) fn file(dir: &Path) -> Result<Self> {
        Self::create(dir, names::SEGMENT, |path| Ok(path.to_path_buf()))
    }

    /// A new directory in `dir`.
    fn directory(dir: &Path) -> Result<Self> {
        Self::create(dir, names::SORTED_LOCK, |lock| {
            let path = lock.with_extension(&names::SORTED[1..]);
            fs::create_dir(&path).map(|()| path)
        })
    }

    fn create(dir: &Path, suffix: &str, make: impl Fn(&Path) -> std::io::Result<PathBuf>) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|e| write_error(dir, &e))?;
        loop {
            let lock = dir.join(names::random() + suffix);
            let Some(locked) = lock_new_file(&lock).map_err(|e| write_error(&lock, &e))? else { continue };
            let path = make(&lock).map_err(|e| {
                let _ = fs::remove_file(&lock);
                write_error(dir, &e)
            })?;
            return Ok(Self { path, lock, locked, kept: AtomicBool::new(false) });
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name within the store.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// It is no longer removed when this is dropped. Called before the manifest that lists it is in place: should
    /// that fail, it stays as litter, which is better than a manifest that lists what is gone.
    pub(super) fn keep(&self) {
        self.kept.store(true, Relaxed);
    }

    /// The manifest lists it: it needs no lock any more.
    pub(super) fn release(&self) {
        let _ = self.locked.0.unlock();
        if self.path != self.lock {
            let _ = fs::remove_file(&self.lock);
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.kept.load(Relaxed) {
            return;
        }
        // Failures leave litter, which the next publisher removes.
        if self.path != self.lock {
            let _ = fs::remove_dir_all(&self.path);
        }
        let _ = fs::remove_file(&self.lock);
    }
}

/// A directory in which a sorted replica is built; removed when this is dropped, unless it was published.
#[derive(Debug)]
pub struct SortedDraft(Draft);

impl SortedDraft {
    /// A new, empty directory in the store `dir`, which is made if there is none.
    ///
    /// # Errors
    /// `permission-denied` where the place is read-only, with a hint; `unsupported` where the file system has no
    /// locks; `io-error`.
    pub fn create(dir: &Path) -> Result<Self> {
        Draft::directory(dir).map(Self)
    }

    /// The directory to build in.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What to list: the replica of `columns`, sorted by the array `key`. Its files are complete, and synced
    /// where that is wanted.
    ///
    /// # Errors
    /// `io-error` where its size cannot be told.
    pub fn finish(self, key: impl Into<String>, columns: Vec<String>) -> Result<SortedEntry> {
        let dir = self.path().to_path_buf();
        let bytes = size(&dir).map_err(|e| write_error(&dir, &e))?;
        Ok(SortedEntry { key: key.into(), dir, columns, bytes, draft: Some(Arc::new(self.0)) })
    }
}

/// Bytes of all files under `dir`.
fn size(dir: &Path) -> std::io::Result<u64> {
    let (mut bytes, mut left) = (0, vec![dir.to_path_buf()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() {
                left.push(entry.path());
            } else {
                bytes += meta.len();
            }
        }
    }
    Ok(bytes)
}
