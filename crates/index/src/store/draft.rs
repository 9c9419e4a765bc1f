//! What is being built and not yet published, and the lock that protects it from being swept away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sieva_store::local::{Dir, Readers};
use sieva_types::{Error, ErrorKind, Result};

use super::Home;
use super::files::{Locked, lock_new_file, write_error};
use super::manifest::SortedEntry;
use super::names;

/// A file or directory that nobody else removes while this lives. Unless it was published, it is removed when
/// this is dropped. Until it is complete, it is for the user of the process alone.
#[derive(Debug)]
pub(super) struct Draft {
    home: Home,
    dir: Dir,
    name: String,
    /// The file that is locked: the draft itself, or one beside a directory (network file systems lock no
    /// directories).
    lock: String,
    pub(super) locked: Locked,
    kept: AtomicBool,
}

impl Draft {
    /// A new file in `home`.
    pub(super) fn file(home: &Home) -> Result<Self> {
        Self::create(home, names::SEGMENT, |_, lock| Ok(lock.to_string()))
    }

    /// A new directory in `home`.
    fn directory(home: &Home) -> Result<Self> {
        Self::create(home, names::SORTED_LOCK, |dir, lock| {
            let name = lock.replace(names::SORTED_LOCK, names::SORTED);
            dir.make_dir(Path::new(&name)).map(|()| name)
        })
    }

    fn create(home: &Home, suffix: &str, make: impl Fn(&Dir, &str) -> io::Result<String>) -> Result<Self> {
        let dir = home.create()?;
        let failed = |e: &io::Error| write_error(&home.path(), e);
        loop {
            let lock = names::random() + suffix;
            let Some(locked) = lock_new_file(&dir, &lock, home.patience()).map_err(|e| failed(&e))? else {
                continue;
            };
            let name = make(&dir, &lock).map_err(|e| {
                let _ = dir.remove_file(Path::new(&lock));
                failed(&e)
            })?;
            return Ok(Self { home: home.clone(), dir, name, lock, locked, kept: AtomicBool::new(false) });
        }
    }

    /// Where it is, for people.
    pub(super) fn path(&self) -> PathBuf {
        self.home.path().join(&self.name)
    }

    /// Its name within the store.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Gives what is complete to those who may read the source.
    pub(super) fn give(&self) -> io::Result<()> {
        if self.name == self.lock {
            return self.home.readers().give_file(&self.locked.0);
        }
        give_all(&self.home.readers(), &self.dir.open_dir(Path::new(&self.name))?)
    }

    /// Makes sure that its name survives a crash of the machine.
    pub(super) fn sync_dir(&self) -> io::Result<()> {
        self.dir.sync()
    }

    /// It is no longer removed when this is dropped. Called before the manifest that lists it is in place: should
    /// that fail, it stays as litter, which is better than a manifest that lists what is gone.
    pub(super) fn keep(&self) {
        self.kept.store(true, Relaxed);
    }

    /// The manifest lists it: it needs no lock any more.
    pub(super) fn release(&self) {
        let _ = self.locked.0.unlock();
        if self.name != self.lock {
            let _ = self.dir.remove_file(Path::new(&self.lock));
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.kept.load(Relaxed) {
            return;
        }
        // Failures leave litter, which the next publisher removes.
        if self.name != self.lock {
            let _ = fs::remove_dir_all(self.dir.through().join(&self.name));
        }
        let _ = self.dir.remove_file(Path::new(&self.lock));
    }
}

/// Gives all files under `dir` to the readers of the store, and then itself.
fn give_all(readers: &Readers, dir: &Dir) -> io::Result<()> {
    for entry in fs::read_dir(dir.through())? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        if entry.file_type()?.is_dir() {
            give_all(readers, &dir.open_dir(&name)?)?;
        } else {
            readers.give_file(dir.open_regular(&name)?)?;
        }
    }
    readers.give_dir(dir)
}

/// A directory in which a sorted replica is built; removed when this is dropped, unless it was published.
#[derive(Debug)]
pub struct SortedDraft(Draft);

impl SortedDraft {
    /// A new, empty directory in the store `home`, which is made if there is none.
    ///
    /// # Errors
    /// `permission-denied` where the place is read-only, with a hint; `unsupported` where the file system has no
    /// locks; `io-error`.
    pub fn create(home: impl Into<Home>) -> Result<Self> {
        Draft::directory(&home.into()).map(Self)
    }

    /// The directory to build in: a path that leads to it whatever is renamed meanwhile.
    pub fn path(&self) -> PathBuf {
        self.0.dir.through().join(&self.0.name)
    }

    /// Its name within the store, by which other processes find it ([`SharedDraft`]).
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// What to list: the replica of `columns`, sorted by the array `key`. Its files are complete, and synced
    /// where that is wanted.
    ///
    /// # Errors
    /// `io-error` where its size cannot be told.
    pub fn finish(self, key: impl Into<String>, columns: Vec<String>, seal: u64) -> Result<SortedEntry> {
        let dir = self.0.path();
        let done = self.0.give().and_then(|()| size(&self.path()));
        let bytes = done.map_err(|e| write_error(&dir, &e))?;
        let draft = Some(Arc::new(self.0));
        Ok(SortedEntry { key: key.into(), dir, columns, bytes, seal: Some(seal), draft })
    }
}

/// A directory that another process has made to have a sorted replica built in it; it stays that one's.
#[derive(Debug)]
pub struct SharedDraft {
    dir: Dir,
    name: String,
}

impl SharedDraft {
    /// The directory of this name in the store `home`.
    ///
    /// # Errors
    /// `invalid-value` for a name that no build gives; `file-not-found` where it is not there, as where the build was
    /// given up, or its store lies elsewhere for this process.
    pub fn open(home: &Home, name: &str) -> Result<Self> {
        let place = home.path().join(name);
        if !names::is_ours(name, names::SORTED) {
            let message = format!("'{}' is no directory of a build", place.display());
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let dir = home.open()?.filter(|dir| {
            let meta = fs::symlink_metadata(dir.through().join(name));
            meta.is_ok_and(|m| m.is_dir())
        });
        match dir {
            Some(dir) => Ok(Self { dir, name: name.to_string() }),
            None => Err(Error::new(
                ErrorKind::FileNotFound,
                format!("there is no '{}', where the parts of a sorted replica are put", place.display()),
            )
            .hint(
                "the build was given up, or this process sees another store: store= on a shared file system",
            )),
        }
    }

    /// The directory to build in: a path that leads to it whatever is renamed meanwhile.
    pub fn path(&self) -> PathBuf {
        self.dir.through().join(&self.name)
    }
}

/// Bytes of all files under `dir`.
fn size(dir: &Path) -> io::Result<u64> {
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
