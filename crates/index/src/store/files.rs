//! Files of a store: opening without following links, whole locks, and errors that say what to do.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sieva_types::{Error, ErrorKind};

const HINT: &str =
    "have augmentations kept elsewhere: set SIEVA_STORE (or the option of that name) to a directory";

/// An error met in writing `path`; where the place does not allow it, the hint names SIEVA_STORE.
pub(super) fn write_error(path: &Path, e: &io::Error) -> Error {
    let what = format!("cannot write '{}'", path.display());
    match e.kind() {
        io::ErrorKind::PermissionDenied => Error::io(what, e).hint(HINT),
        io::ErrorKind::ReadOnlyFilesystem => {
            Error::new(ErrorKind::PermissionDenied, format!("{what}: read-only file system")).hint(HINT)
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::io(what, e).hint(HINT),
        io::ErrorKind::Unsupported => {
            Error::new(ErrorKind::Unsupported, format!("{what}: the file system has no file locks"))
                .hint(HINT)
        }
        _ => Error::io(what, e),
    }
}

/// Opens a regular file that is no link: neither a link out of the store nor a pipe that blocks for ever.
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    for _ in 0..100 {
        let named = fs::symlink_metadata(path)?;
        if !named.is_file() {
            break;
        }
        let file = File::open(path)?;
        if is_same(&named, &file.metadata()?) {
            return Ok(file);
        }
        // Another was put in its place meanwhile: a manifest that was just published, or a link.
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"))
}

/// Makes sure that what was done to the names in `dir` survives a crash of the machine.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn is_same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether `path` still names `file`.
fn names(path: &Path, file: &File) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(named) => Ok(is_same(&named, &file.metadata()?)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// A file and the lock on it, given back when dropped.
///
/// Unlocked by hand: a forked child has the descriptor too, and closing ours alone would leave the lock to it.
#[derive(Debug)]
pub(super) struct Locked(pub File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Nothing can be done about a failure; the lock ends with the last descriptor then.
        let _ = self.0.unlock();
    }
}

/// Opens `path` as `options` say and waits for its lock; `None` where it was removed meanwhile, by one who held it.
fn lock_once(path: &Path, options: &OpenOptions) -> io::Result<Option<Locked>> {
    let file = options.open(path)?;
    loop {
        match file.lock() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    }
    let locked = Locked(file);
    Ok(names(path, &locked.0)?.then_some(locked))
}

/// The lock of the file at `path`, which is made if there is none. Waits for whoever holds it.
pub(super) fn lock_shared_file(path: &Path) -> io::Result<Locked> {
    loop {
        if let Some(locked) = lock_once(path, OpenOptions::new().write(true).create(true).truncate(false))? {
            return Ok(locked);
        }
    }
}

/// A new file at `path`, locked; `None` where one is there, or where a sweep took it for litter before it was locked.
pub(super) fn lock_new_file(path: &Path) -> io::Result<Option<Locked>> {
    match lock_once(path, OpenOptions::new().read(true).write(true).create_new(true)) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(e) => {
            // It may be there and not to be locked.
            let _ = fs::remove_file(path);
            Err(e)
        }
        locked => locked,
    }
}

/// The lock of an existing file if nobody holds it; `None` if somebody does, or if that cannot be told.
pub(super) fn try_lock_existing(path: &Path) -> Option<Locked> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let file = OpenOptions::new().write(true).open(path).ok()?;
    match file.try_lock() {
        Ok(()) => Some(Locked(file)),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
    }
}
