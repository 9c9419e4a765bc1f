//! A local file that is looked at, and opened when it is first read.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sieva_store::guard::{Gate, Purpose};
use sieva_store::{Counters, FileStore, RangedRead, file_id};
use sieva_types::{Error, ErrorKind, Result};

use super::place;

/// A file of which only size and time of modification were looked at.
pub(crate) struct LazyFile {
    path: PathBuf,
    name: String,
    len: u64,
    version: String,
    id: (u64, u64),
    gate: Gate,
    file: OnceLock<Result<FileStore>>,
    counters: Counters,
}

impl LazyFile {
    /// The file at `path`.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied`, `io-error`; `unknown-format` for what is no regular file.
    pub(crate) fn look(path: &Path, gate: &Gate) -> Result<Self> {
        let name = path.display().to_string();
        gate.look(path, Purpose::Source)?;
        let meta = std::fs::metadata(path).map_err(|e| Error::io(format!("cannot look at '{name}'"), &e))?;
        if !meta.is_file() {
            return Err(Error::new(ErrorKind::UnknownFormat, format!("'{name}' is not a regular file")));
        }
        let (len, version) = place::state(&meta);
        let (file, counters) = (OnceLock::new(), Counters::default());
        let (path, id) = (std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()), file_id(&meta));
        Ok(Self { path, name, len, version, id, gate: gate.clone(), file, counters })
    }

    fn file(&self) -> Result<&FileStore> {
        let open = || FileStore::open_within(&self.path, &self.gate, Purpose::Source);
        self.file.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    fn is_same(&self, len: u64, version: &str, id: (u64, u64)) -> Result<()> {
        if (len, version, id) == (self.len, self.version.as_str(), self.id) {
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
        self.is_same(file.len(), &file.version(), file.id())?;
        file.read_exact_at(offset, out)?;
        self.counters.add_request(out.len() as u64);
        Ok(())
    }

    fn check_unchanged(&self) -> Result<()> {
        if let Some(Ok(file)) = self.file.get() {
            self.is_same(file.len(), &file.version(), file.id())?;
            return file.check_unchanged();
        }
        let now = Self::look(&self.path, &self.gate)?;
        self.is_same(now.len, &now.version, now.id)
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file().ok()?.descriptor()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
