//! One process at a time: a lock of the system, which ends with whoever has it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sieva::{Error, ErrorKind, Result, local};
use sieva_store::name_of;

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a file, which is made; `busy` says who has it then.
    ///
    /// # Errors
    /// `invalid-value` with that message where another process has it.
    pub fn take(path: &Path, busy: impl FnOnce() -> Error) -> Result<Self> {
        let file = made(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
            Ok(()) => Ok(Self { _file: file }),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(busy()),
            Err(e) => Err(local::error("locking", path, &e)),
        }
    }

    /// Takes the lock of a file, which is made, and waits for whoever has it: a few requests long.
    ///
    /// # Errors
    /// `io-error`.
    pub fn wait(path: &Path) -> Result<Self> {
        let file = made(path)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive).map_err(io::Error::from) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(local::error("locking", path, &e)),
            }
        }
    }
}

fn made(path: &Path) -> Result<File> {
    if let Some(parent) = path.parent() {
        local::told("making", parent, fs::create_dir_all(parent))?;
    }
    let opened = File::options().create(true).truncate(false).write(true).open(path);
    local::told("locking", path, opened)
}

/// The lock of something that has these names, on this machine.
pub(crate) fn path_of(names: &[&str]) -> Result<PathBuf> {
    Ok(directory()?.join(format!("{}.lock", name_of(names.join("\0").as_bytes()))))
}

/// Where this machine keeps what runs, and what is known of stores.
pub(crate) fn directory() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| {
        Error::new(ErrorKind::InvalidValue, "neither XDG_STATE_HOME nor HOME says where locks are kept")
    })?;
    Ok(state.join("sieva/share"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_until_it_is_dropped() {
        let path = std::env::temp_dir().join(format!("sieva-lock-{}/a", std::process::id()));
        let busy = || Error::new(ErrorKind::InvalidValue, "busy");
        let first = Lock::take(&path, busy).unwrap();
        assert_eq!(Lock::take(&path, busy).unwrap_err().message(), "busy");
        let waits = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::wait(&path).map(drop));
            drop(first);
            waiting.join().unwrap()
        });
        waits.unwrap();
        Lock::take(&path, busy).unwrap();
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
