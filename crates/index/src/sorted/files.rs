//! Files of a replica: created and synchronised whole, read with their size known beforehand.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sieva_types::{Error, ErrorKind, Result};

use crate::place::{OpenError, Place, Readable};

/// The bytes of the file `name`, which has at most `longest`.
pub(super) fn read_small(place: &Place, name: &str, longest: u64) -> Result<Vec<u8>> {
    let file = open(place, name)?;
    let path = place.name_of(name);
    let bytes = file.read_all(longest).map_err(|e| damaged(&path, e))?;
    bytes.ok_or_else(|| corrupt(&path, format!("{} bytes are more than any such file has", file.len())))
}

/// Opens a regular file. A missing one is a damaged replica.
pub(super) fn open(place: &Place, name: &str) -> Result<Readable> {
    place.open(name).map_err(|e| damaged(&place.name_of(name), e))
}

/// Fills `out` from `offset` on; a file that ends before is a damaged one.
pub(super) fn read_at(file: &Readable, path: &str, offset: u64, out: &mut [u8]) -> Result<()> {
    file.read_exact_at(out, offset).map_err(|e| damaged(path, e))
}

/// A file of a replica that is missing, none, or ends early is damage; all else is the system's failure.
pub(super) fn damaged(path: &str, e: OpenError) -> Error {
    use std::io::ErrorKind::{InvalidData, NotADirectory, NotFound, UnexpectedEof};
    match e {
        OpenError::System(e)
            if matches!(e.kind(), NotFound | UnexpectedEof | NotADirectory | InvalidData) =>
        {
            corrupt(path, e)
        }
        OpenError::Storage(e) if e.kind() == ErrorKind::Cancelled => e,
        // Of what lies beside an object nothing depends on: the data are read.
        OpenError::Storage(e) => corrupt(path, e.message()),
        e => e.into_error(format!("cannot read '{path}'")),
    }
}

/// An error of kind `corrupt-index` about `path`.
pub(super) fn corrupt(path: &str, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::CorruptIndex, format!("'{path}': {what}"))
}

/// Opens a file to be written to at any place, creating it where it is not there.
pub(super) fn open_to_write(path: &Path) -> Result<File> {
    (OpenOptions::new().write(true).create(true).truncate(false).open(path)).map_err(|e| unwritten(path, &e))
}

/// Writes `bytes` at `offset`.
pub(super) fn write_at(file: &File, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    file.write_all_at(bytes, offset).map_err(|e| unwritten(path, &e))
}

/// Writes a whole file and makes it durable.
pub(super) fn write_small(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|e| unwritten(path, &e))
}

/// Makes what is in a file, or the entries of a directory, durable.
pub(super) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|f| f.sync_all()).map_err(|e| unwritten(path, &e))
}

/// Creates a directory and those above it.
pub(super) fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| unwritten(path, &e))
}

/// An error of the system met while reading `path`, which another process of the build has written.
pub(super) fn unread(path: &Path, e: &std::io::Error) -> Error {
    Error::io(format!("cannot read '{}'", path.display()), e)
}

/// An error of the system met while writing `path`.
pub(super) fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    // The build may be led to it by a descriptor, which says nothing to people.
    let parent = path.parent().and_then(|above| above.canonicalize().ok());
    let shown = parent.zip(path.file_name()).map_or_else(|| path.to_path_buf(), |(dir, name)| dir.join(name));
    Error::io(format!("cannot write '{}'", shown.display()), e)
}
