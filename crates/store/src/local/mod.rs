//! Local files that somebody else may have named or put there: one policy for opening, reading and writing them.
//!
//! A name may lead to a pipe that blocks for ever, to a device, through a link to another place, or to a file of any
//! length. So what is opened is looked at by its descriptor, never by its name; what is read has a limit; and what is
//! written is a new file under a name that nobody could foresee, moved to its final one when it is complete.

mod aside;
mod beneath;
mod databases;
mod network;
mod readers;
mod trust;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

pub use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sieva_types::{Error, ErrorKind, Result};

pub use aside::{Aside, is_aside_of};
pub use beneath::Dir;
pub use databases::{OpenDatabase, is_open_database};
pub use network::{is_on_network, network_name};
pub use readers::Readers;
pub use trust::{Trust, user};

/// Opens the regular file at `path` for reading, links followed, without waiting for anybody: a pipe, a socket or a device
/// is refused, and so is a database that this process has open ([`OpenDatabase`]).
///
/// # Errors
/// Those of the system; `InvalidData` where it is no regular file; `ResourceBusy` of a database.
///
/// ```
/// let e = sieva_store::local::open_regular(std::path::Path::new("/dev/null")).unwrap_err();
/// assert_eq!(e.to_string(), "not a regular file");
/// ```
pub fn open_regular(path: &Path) -> io::Result<File> {
    // O_NONBLOCK: opening a pipe without it waits for a writer. It changes nothing for regular files.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    databases::refuse(path)?;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(opening)?);
    regular(&file)?;
    Ok(file)
}

/// The error of the system for what cannot be opened: a socket, and a device that is not there, are no regular files.
fn opening(e: Errno) -> io::Error {
    match e {
        Errno::NXIO => io::Error::new(io::ErrorKind::InvalidData, NOT_REGULAR),
        e => e.into(),
    }
}

const NOT_REGULAR: &str = "not a regular file";

/// What the system says of an open file, if it is a regular one.
///
/// # Errors
/// Those of the system; `InvalidData` where it is no regular file.
pub fn regular(file: &File) -> io::Result<Metadata> {
    let meta = file.metadata()?;
    match meta.is_file() {
        true => Ok(meta),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, NOT_REGULAR)),
    }
}

/// All bytes of the regular file at `path`, of which there may be `most`.
///
/// # Errors
/// As [`open_regular`]; `FileTooLarge` where there are more bytes, before any is read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_file(&open_regular(path)?, most)
}

/// All bytes of an open file, of which there may be `most`.
///
/// # Errors
/// Those of the system; `FileTooLarge` where there are more bytes, before any is read.
pub fn read_file(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    let too_large = |len: u64| {
        let message = format!("{len} bytes, at most {most} are read");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if len > most {
        return Err(too_large(len));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // One byte more, to notice a file that grows.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Whether something was refused because it is a link.
pub fn is_link(e: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(e) == Some(rustix::io::Errno::LOOP)
}

/// The path that an open file has now, its links resolved: what a name led to when it was opened.
///
/// # Errors
/// Those of the system, where /proc is not there.
pub fn real_path(file: impl std::os::fd::AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

/// The error for what [`open_regular`], [`read`] and the like refuse, by the place that it is about.
pub fn error(what: &str, path: &Path, e: &io::Error) -> Error {
    let message = format!("{what} '{}'", path.display());
    match e.kind() {
        io::ErrorKind::InvalidData => Error::new(ErrorKind::UnknownFormat, format!("{message}: {e}")),
        io::ErrorKind::FileTooLarge => Error::new(ErrorKind::MemoryLimit, format!("{message}: {e}")),
        _ => Error::io(message, e),
    }
}

/// Refuses a path where something else than a file would be replaced by one: a directory, a device, a pipe or a socket, and
/// links to these. Other links are replaced themselves: what they lead to stays.
///
/// # Errors
/// `invalid-value`.
pub fn replaceable(path: &Path) -> Result<()> {
    let what = match std::fs::metadata(path) {
        // Nothing is there, or a link to nothing; what cannot be looked at is told by who writes.
        Err(_) => return Ok(()),
        Ok(found) if found.is_file() => return Ok(()),
        Ok(found) if found.is_dir() => "it is a directory",
        Ok(_) => "it is a device, a pipe or a socket",
    };
    let message = format!("cannot write '{}': {NOT_REGULAR}: {what}, and is never replaced", path.display());
    Err(Error::new(ErrorKind::InvalidValue, message).hint("name a file, or one that is not there yet"))
}

/// The error for what cannot be opened or read, as a `Result`.
///
/// # Errors
/// Always the one that [`error`] makes of an `Err`.
pub fn told<T>(what: &str, path: &Path, found: io::Result<T>) -> Result<T> {
    found.map_err(|e| error(what, path, &e))
}

#[cfg(test)]
mod tests;
