//! A local file that is looked at, and opened when it is first read.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sieva_store::{Counters, FileStore, RangedRead};
use sieva_types::{Error, ErrorKind, Result};

use super::place;

/// A file of which only size and time of modification were looked at.
pub(super) struct LazyFile {
    path: PathBuf,
    name: String,
    len: u64,
    version: String,
    file: OnceLock<Result<FileStore>>,
    counters: Counters,
}

impl LazyFile {
    /// The file at `path`.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied`, `io-error`; `unknown-format` for what is no regular file.
    pub(super) fn look(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let meta = std::fs::metadata(path).map_err(|e| Error::io(format!("cannot look at '{name}'"), &e))?;
        if !meta.is_file() {
            return Err(Error::new(ErrorKind::UnknownFormat, format!("'{name}' is not a regular file")));
        }
        let (len, version) = place::state(&meta);
        let (file, counters) = (OnceLock::new(), Counters::default());
        Ok(Self { path: path.to_path_buf(), name, len, version, file, counters })
    }

    fn file(&self) -> Result<&FileStore> {
        self.file.get_or_init(|| FileStore::open(&self.path)).as_ref().map_err(Clone::clone)
    }

    fn is_same(&self, len: u64, version: &str) -> Result<()> {
        if (len, version) == (self.len, self.version.as_str()) {
            return Ok(());
        }
        let message = format!("'{}' was changed since it was opened", self.name);
        Err(Error::new(ErrorKind::StaleSource, message).hint("open it again"))
    }
}

impl RangedRead for LazyFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let file = self.file()?;
        self.is_same(file.len(), &file.version())?;
        file.read_exact_at(offset, out)?;
        self.counters.add_request(out.len() as u64);
        Ok(())
    }

    fn check_unchanged(&self) -> Result<()> {
        if let Some(Ok(file)) = self.file.get() {
            self.is_same(file.len(), &file.version())?;
            return file.check_unchanged();
        }
        let now = Self::look(&self.path)?;
        self.is_same(now.len, &now.version)
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
