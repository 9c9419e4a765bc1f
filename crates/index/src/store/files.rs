//! Files of a store: whole locks that are waited for no longer than stated, and errors that say what to do.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use sieva_store::local::{self, Dir, Mode, OFlags};
use sieva_types::{Error, ErrorKind};

use super::Home;

const HINT: &str =
    "have augmentations kept elsewhere: set SIEVA_STORE (or the option of that name) to a directory";
/// How often a lock is tried.
const PAUSE: Duration = Duration::from_millis(20);
/// How often the kernel's list of locks is read for a holder.
const LISTINGS: usize = 5;

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
        io::ErrorKind::TimedOut => Error::io(what, e).hint(
            "wait for the other build, or end the process that holds the lock; a longer time to wait may be given",
        ),
        _ => Error::io(what, e),
    }
}

/// Makes sure that what was done to the names in `dir` survives a crash of the machine.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Whether `name` still names `file`.
fn names(dir: &Dir, name: &str, file: &File) -> io::Result<bool> {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match fs::symlink_metadata(dir.through().join(name)) {
        Ok(named) => Ok(id(named) == id(file.metadata()?)),
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

/// Takes the lock of a file; `TimedOut`, naming the holder, where somebody else does not give it back in time.
fn lock(file: &File, patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let who = holder(file).unwrap_or_else(|| "another process".into());
                let seconds = patience.as_secs_f64();
                let message = format!("its lock is held by {who}, and was waited for {seconds} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
        }
    }
}

/// Who holds the lock of a file, as the kernel lists it: `None` where it does not, as on some network and layered
/// file systems, whose numbers in the list are not those of `stat`.
fn holder(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let (dev, ino) = (meta.dev(), meta.ino());
    let (major, minor) = ((dev >> 8) & 0xfff | (dev >> 32) & !0xfff, dev & 0xff | (dev >> 12) & !0xff);
    let id = format!("{major:02x}:{minor:02x}:{ino}");
    // The list is walked by position: a lock given back meanwhile makes it leave one out.
    let pid = (0..LISTINGS).find_map(|_| listed(&id))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(match name.trim() {
        "" => format!("process {pid}"),
        name => format!("process {pid} ('{name}')"),
    })
}

/// The process that `/proc/locks` names for the file of this id.
fn listed(id: &str) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    let fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(|f| f.get(1) == Some(&"FLOCK") && f.get(5) == Some(&id)).find_map(|f| {
        let pid: u32 = f.get(4)?.parse().ok()?;
        (pid > 0).then_some(pid)
    })
}

/// The lock of the file `name`, which is made if there is none: for its owner alone, as whoever can open a file can
/// hold its lock. Waits for whoever holds it.
pub(super) fn lock_shared_file(dir: &Dir, home: &Home, name: &str) -> io::Result<Locked> {
    loop {
        let file = dir.open_file(Path::new(name), OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)?;
        let meta = local::regular(&file)?;
        home.trust().check(&meta)?;
        if meta.mode() & 0o077 != 0 {
            // Of an earlier version.
            let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
        }
        lock(&file, home.patience())?;
        let locked = Locked(file);
        if names(dir, name, &locked.0)? {
            return Ok(locked);
        }
    }
}

/// A new file, locked; `None` where one is there, or where a sweep took it for litter before it was locked.
pub(super) fn lock_new_file(dir: &Dir, name: &str, patience: Duration) -> io::Result<Option<Locked>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let made = match dir.open_file(Path::new(name), flags, Mode::RUSR | Mode::WUSR) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        made => made?,
    };
    let locked = lock(&made, patience).map(|()| Locked(made)).and_then(|locked| {
        let is_there = names(dir, name, &locked.0)?;
        Ok(is_there.then_some(locked))
    });
    if locked.is_err() {
        // It is there and not to be locked.
        let _ = dir.remove_file(Path::new(name));
    }
    locked
}

/// The lock of an existing file if nobody holds it; `None` if somebody does, or if that cannot be told.
pub(super) fn try_lock_existing(dir: &Dir, name: &str) -> Option<Locked> {
    let file = dir.open_file(Path::new(name), OFlags::RDWR, Mode::empty()).ok()?;
    local::regular(&file).ok()?;
    match file.try_lock() {
        Ok(()) => Some(Locked(file)),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
    }
}
