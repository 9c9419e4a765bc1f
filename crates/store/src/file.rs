//! A local file, read by `pread` so that threads share one descriptor and no position.

use std::fs::{File, Metadata};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sieva_types::{Error, ErrorKind, Result};
use url::Url;

use crate::guard::{Gate, Purpose};
use crate::location::{Location, invalid};
use crate::looks::Looks;
use crate::stores::Store;
use crate::{Counters, RangedRead};

/// The store of `file://`; a place without a scheme is a path, too.
pub(crate) const STORE: Store = Store {
    schemes: &["file"],
    form: "file:///directory/file",
    variables: &[],
    locate: |location, _| {
        let url = Url::parse(location).map_err(|e| invalid(location, &e.to_string()))?;
        let path = url.to_file_path().map_err(|()| {
            invalid(location, "a file URL names no host and a whole path")
                .hint("write file:///directory/file")
        })?;
        Ok(Location::Local(path))
    },
};

/// A local file open for reading.
///
/// What is read of it once it was changed is refused: its structure, and what is known of its values, are those of before.
#[derive(Debug)]
pub struct FileStore {
    file: File,
    len: u64,
    modified: Option<SystemTime>,
    path: PathBuf,
    /// The path from the root on, wherever the process works meanwhile.
    whole: PathBuf,
    id: (u64, u64),
    name: String,
    counters: Counters,
    looks: Looks,
}

impl FileStore {
    /// Opens `path` for reading.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied` or `io-error`; a directory is `unknown-format`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_within(path, &Gate::default(), Purpose::Source)
    }

    /// Opens `path` for reading if `gate` lets it.
    ///
    /// # Errors
    /// As [`FileStore::open`]; the gate's refusal.
    pub fn open_within(path: &Path, gate: &Gate, purpose: Purpose) -> Result<Self> {
        Self::of(Self::told(gate.open_regular(path, purpose)?, path)?, path)
    }

    /// The file that was opened at `path`, or why it was not, in words.
    pub(crate) fn told(file: std::io::Result<File>, path: &Path) -> Result<File> {
        file.map_err(|e| {
            let name = crate::redacted(&path.display().to_string());
            match e.kind() {
                std::io::ErrorKind::InvalidData => {
                    Error::new(ErrorKind::UnknownFormat, format!("'{name}' is not a regular file"))
                }
                _ => Error::io(format!("cannot open '{name}'"), &e),
            }
        })
    }

    /// The open regular file, which was found at `path`.
    ///
    /// # Errors
    /// `io-error`.
    pub fn of(file: File, path: &Path) -> Result<Self> {
        let name = crate::redacted(&path.display().to_string());
        let meta = file.metadata().map_err(|e| Error::io(format!("cannot look at '{name}'"), &e))?;
        let modified = meta.modified().ok();
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        Ok(Self {
            file,
            len: meta.len(),
            modified,
            path: path.to_path_buf(),
            whole,
            id: id(&meta),
            name,
            counters: Counters::default(),
            looks: Looks::new(),
        })
    }

    /// The state of the file that is open, or that it was changed.
    fn still(&self) -> Result<()> {
        let meta = self.looks.look(|| self.file.metadata());
        let meta = meta.map_err(|e| Error::io(format!("cannot look at '{}'", self.name), &e))?;
        let is_same = meta.len() == self.len && meta.modified().ok() == self.modified;
        if is_same { Ok(()) } else { Err(self.stale()) }
    }

    fn stale(&self) -> Error {
        Error::new(ErrorKind::StaleSource, format!("'{}' was changed since it was opened", self.name))
            .hint("open it again")
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The numbers of its file system and of itself in there: another file has others, whatever its name.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }
}

/// What tells a file from all others: the numbers of its file system and of itself in there.
pub fn id(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl RangedRead for FileStore {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|&end| end <= self.len);
        if end.is_none() {
            return Err(Error::corrupt(format!(
                "'{}' is cut off: {} bytes at offset {offset} asked for, the file has {}",
                self.name,
                out.len(),
                self.len
            )));
        }
        if let Err(e) = self.file.read_exact_at(out, offset) {
            // It may have been cut off meanwhile.
            self.still()?;
            let n = out.len();
            return Err(Error::io(
                format!("cannot read {n} bytes at offset {offset} of '{}'", self.name),
                &e,
            ));
        }
        // After, not before: a change in between is seen, as the system notes it before the bytes change.
        if self.looks.are_due() {
            self.still()?;
        }
        self.counters.add_request(out.len() as u64);
        Ok(())
    }

    fn check_unchanged(&self) -> Result<()> {
        self.still()?;
        // Another file may have taken its name. Where there is none now, this one is what was asked for.
        let named = std::fs::metadata(&self.whole).map_or(self.id, |named| id(&named));
        if named == self.id { Ok(()) } else { Err(self.stale()) }
    }

    fn version(&self) -> String {
        version_at(self.modified)
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// What tells the state of a file from others, by what the system says of it; empty where that says nothing.
pub(crate) fn version(meta: &std::fs::Metadata) -> String {
    version_at(meta.modified().ok())
}

fn version_at(modified: Option<SystemTime>) -> String {
    let since = modified.and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or_else(String::new, |t| format!("{} ns", t.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_past_the_end_names_file_and_range() {
        let path = std::env::temp_dir().join(format!("sieva-store-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let store = FileStore::open(&path).unwrap();
        let mut out = [0; 4];
        store.read_exact_at(3, &mut out).unwrap();
        assert_eq!(&out, b"3456");
        let e = store.read_exact_at(8, &mut out).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        assert!(e.message().contains("4 bytes at offset 8"), "{e}");
        assert!(store.read_exact_at(u64::MAX, &mut out).is_err());
        assert_eq!(store.counters().snapshot().bytes_read, 4);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_changed_file_is_noticed() {
        let path = std::env::temp_dir().join(format!("sieva-store-changed-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let store = FileStore::open(&path).unwrap();
        store.check_unchanged().unwrap();
        std::fs::write(&path, b"01234").unwrap();
        let e = store.check_unchanged().unwrap_err();
        assert_eq!((e.kind(), e.hint_text()), (ErrorKind::StaleSource, Some("open it again")));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_read_of_a_changed_file_is_refused() {
        let path = std::env::temp_dir().join(format!("sieva-store-read-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let of_before = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        File::options().write(true).open(&path).unwrap().set_modified(of_before).unwrap();
        let store = FileStore::open(&path).unwrap();
        let mut out = [0; 4];
        store.read_exact_at(3, &mut out).unwrap();
        // The same length, another time; then shorter than what is asked for.
        for contents in ["9876543210", "98"] {
            std::fs::write(&path, contents).unwrap();
            assert_eq!(store.read_exact_at(3, &mut out).unwrap_err().kind(), ErrorKind::StaleSource);
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_took_the_name_is_noticed() {
        let dir = std::env::temp_dir().join(format!("sieva-store-renamed-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (path, other) = (dir.join("a"), dir.join("b"));
        std::fs::write(&path, b"01234").unwrap();
        let store = FileStore::open(&path).unwrap();
        std::fs::write(&other, b"56789").unwrap();
        // Of the same length and time.
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let e = store.check_unchanged().unwrap_err();
        assert_eq!((e.kind(), e.hint_text()), (ErrorKind::StaleSource, Some("open it again")));
        // One that lost its name is what was opened.
        std::fs::remove_file(&path).unwrap();
        store.check_unchanged().unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_missing_file_and_a_directory_are_told_apart() {
        assert_eq!(
            FileStore::open(Path::new("/nonexistent/x.nc")).unwrap_err().kind(),
            ErrorKind::FileNotFound
        );
        assert_eq!(FileStore::open(&std::env::temp_dir()).unwrap_err().kind(), ErrorKind::UnknownFormat);
    }
}
