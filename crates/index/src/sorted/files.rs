//! Files of a replica: created and synchronised whole, read with their size known beforehand.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sieva_types::{Error, ErrorKind, Result};

/// The bytes of a regular file of at most `longest` bytes.
pub(super) fn read_small(path: &Path, longest: u64) -> Result<Vec<u8>> {
    let (file, len) = open(path)?;
    if len > longest {
        return Err(corrupt(path, format!("{len} bytes are more than any such file has")));
    }
    let mut bytes = vec![0; len as usize];
    read_at(&file, path, 0, &mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file; also its length in bytes. A missing file is a damaged replica.
pub(super) fn open(path: &Path) -> Result<(File, u64)> {
    // Looked at first: opening a pipe would wait for a writer.
    let meta = fs::metadata(path).map_err(|e| damaged(path, &e))?;
    if !meta.is_file() {
        return Err(corrupt(path, "not a regular file"));
    }
    let file = File::open(path).map_err(|e| damaged(path, &e))?;
    Ok((file, meta.len()))
}

/// Fills `out` from `offset` on; a file that ends before is a damaged one.
pub(super) fn read_at(file: &File, path: &Path, offset: u64, out: &mut [u8]) -> Result<()> {
    file.read_exact_at(out, offset).map_err(|e| damaged(path, &e))
}

/// A file of a replica that is missing or ends early is damage; all else is the system's failure.
fn damaged(path: &Path, e: &std::io::Error) -> Error {
    use std::io::ErrorKind::{NotADirectory, NotFound, UnexpectedEof};
    if matches!(e.kind(), NotFound | UnexpectedEof | NotADirectory) {
        return corrupt(path, e);
    }
    Error::io(format!("cannot read '{}'", path.display()), e)
}

/// An error of kind `corrupt-index` about `path`.
pub(super) fn corrupt(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::CorruptIndex, format!("'{}': {what}", path.display()))
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

/// An error of the system met while writing `path`.
pub(super) fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::io(format!("cannot write '{}'", path.display()), e)
}
