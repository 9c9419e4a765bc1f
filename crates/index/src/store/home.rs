//! The directory of a store on this machine: whose word is taken of it, and who may read it.
//!
//! A store tells a query what it need not read. So it is believed only where nobody else could have written it than who
//! is trusted with the source anyway: its directory, the directories in it and each of its files, looked at when
//! they are open. What is made there is for the readers of the source alone.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sieva_store::local::{self, Dir, Mode, OFlags, Readers, Trust};
use sieva_types::{Error, ErrorKind, Result};

use super::files::write_error;
use super::names;
use crate::place::OpenError;

/// How long somebody else's lock is waited for, if nothing else is said.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory for a store, or one within it. Nothing need be there.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
    /// The directory within it that is meant; empty for itself.
    below: PathBuf,
    trust: Trust,
    source: Audience,
    is_private: bool,
    patience: Duration,
}

/// Whose readers may read what is made. They are asked for when something is made: many stores are only read.
#[derive(Clone, Debug)]
enum Audience {
    /// The user of the process alone.
    Maker,
    /// Those of a file.
    Of(PathBuf),
    /// Those of a file who come to it where it is.
    Reaching(PathBuf),
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Home {
    /// Believed of the user of this process and root, and for this user alone.
    fn from(dir: &P) -> Self {
        Self::new(dir.as_ref().to_path_buf(), Trust::default())
    }
}

impl From<&Home> for Home {
    fn from(home: &Home) -> Self {
        home.clone()
    }
}

impl Home {
    /// The directory `path`, which is believed of those whom `trust` names, and made for this user alone.
    pub fn new(path: PathBuf, trust: Trust) -> Self {
        let source = Audience::Maker;
        Self { root: path, below: PathBuf::new(), trust, source, is_private: false, patience: PATIENCE }
    }

    /// The same, beside `source`: what is made is for those who may read that.
    #[must_use]
    pub fn beside(self, source: &Path) -> Self {
        Self { source: Audience::Of(source.to_path_buf()), ..self }
    }

    /// The same, somewhere else: what is made is for those who may read `source` and come to it where it is.
    #[must_use]
    pub fn apart_from(self, source: &Path) -> Self {
        Self { source: Audience::Reaching(source.to_path_buf()), ..self }
    }

    /// The same; directories above it that are not there are made for the user of this process alone.
    #[must_use]
    pub fn private(self) -> Self {
        Self { is_private: true, ..self }
    }

    /// The same; whoever holds its lock is waited for no longer than this.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() { self.root.clone() } else { self.root.join(&self.below) }
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    pub(super) fn trust(&self) -> &Trust {
        &self.trust
    }

    pub(super) fn readers(&self) -> Readers {
        match &self.source {
            Audience::Maker => Readers::default(),
            Audience::Of(source) => Readers::of(source),
            Audience::Reaching(source) => Readers::of(source).who_reach(source),
        }
    }

    /// The directory `name` in it.
    #[must_use]
    pub(crate) fn child(&self, name: &str) -> Self {
        Self { below: self.below.join(name), ..self.clone() }
    }

    /// Whether nothing speaks against using what is there; also where nothing is.
    ///
    /// # Errors
    /// `permission-denied` where others could have written it, with the reason; `io-error`.
    pub fn check(&self) -> Result<()> {
        self.open().map(|_| ())
    }

    /// Opens the directory; `None` if there is none.
    pub(crate) fn open(&self) -> Result<Option<Dir>> {
        let failed = |e: io::Error| Error::io(format!("store '{}'", self.root.display()), &e).hint(HINT);
        match Dir::open_no_link(&self.root) {
            Ok(dir) => {
                self.trust.check(&dir.metadata().map_err(failed)?).map_err(failed)?;
                Ok(Some(dir))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(_) if self.root.is_symlink() => {
                let message = format!("store '{}': it is a link", self.root.display());
                Err(Error::new(ErrorKind::PermissionDenied, message).hint(HINT))
            }
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(e) => Err(Error::io(format!("cannot open store '{}'", self.root.display()), &e)),
        }
    }

    /// Opens the directory to write to it; it is made where there is none, and is its readers' then.
    pub(super) fn create(&self) -> Result<Dir> {
        for _ in 0..100 {
            if let Some(dir) = self.open()? {
                // What was made by another version, or for other readers. Not ours to change, where that fails.
                let _ = self.readers().give_dir(&dir);
                return Ok(dir);
            }
            let mut builder = DirBuilder::new();
            if let Some(above) = self.root.parent().filter(|above| !above.as_os_str().is_empty()) {
                let mode = if self.is_private { 0o700 } else { 0o777 };
                builder.recursive(true).mode(mode).create(above).map_err(|e| write_error(&self.root, &e))?;
            }
            match builder.recursive(false).mode(0o700).create(&self.root) {
                // Somebody else made it, or something that is none.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && self.root.is_dir() => {}
                made => made.map_err(|e| write_error(&self.root, &e))?,
            }
        }
        Err(write_error(&self.root, &io::ErrorKind::AlreadyExists.into()))
    }

    /// Opens a file of it for reading.
    pub(crate) fn open_file(&self, name: &str) -> std::result::Result<File, OpenError> {
        let place = self.below.join(name);
        let root = self.open().map_err(OpenError::Storage)?;
        let mut dir = root.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let mut parts = place.iter().peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                let file = dir.open_regular(Path::new(part)).map_err(no_link)?;
                self.trust.check(&file.metadata()?)?;
                return Ok(file);
            }
            dir = dir.open_dir(Path::new(part)).map_err(no_link)?;
            self.trust.check(&dir.metadata()?)?;
        }
        Err(io::Error::from(io::ErrorKind::NotFound).into())
    }

    /// All bytes of a file of it, of which there may be `most`.
    ///
    /// # Errors
    /// Those of the system; `PermissionDenied` where it is not believed.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(name).map_err(|e| match e {
            OpenError::System(e) => e,
            OpenError::Storage(e) => io::Error::new(io::ErrorKind::PermissionDenied, e.message()),
        })?;
        local::read_file(&file, most)
    }

    /// Writes a file of it: aside, then in place of the one of this name. The directory must be there.
    ///
    /// # Errors
    /// `permission-denied`, `file-not-found`, `io-error`.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let dir = self.open()?.ok_or_else(|| write_error(&self.root, &io::ErrorKind::NotFound.into()))?;
        self.put(&dir, name, bytes, false, || ()).map_err(|e| write_error(&self.path().join(name), &e))
    }

    /// The same, making the directory where there is none.
    ///
    /// # Errors
    /// As [`Home::write`].
    pub fn write_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let dir = self.create()?;
        self.put(&dir, name, bytes, false, || ()).map_err(|e| write_error(&self.path().join(name), &e))
    }

    /// Removes those of its files whose names are so. What cannot be removed stays.
    pub fn remove(&self, which: impl Fn(&str) -> bool) {
        let Ok(Some(dir)) = self.open() else { return };
        for entry in std::fs::read_dir(dir.through()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(&which) {
                let _ = dir.remove_file(Path::new(&name));
            }
        }
    }

    /// Writes a file aside, calls `before_rename`, and gives it its name.
    pub(super) fn put(
        &self,
        dir: &Dir,
        name: &str,
        bytes: &[u8],
        durable: bool,
        before_rename: impl FnOnce(),
    ) -> io::Result<()> {
        let aside = PathBuf::from(names::random() + names::ASIDE);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = dir.open_file(&aside, flags, Mode::RUSR | Mode::WUSR)?;
        let put = (|| {
            file.write_all(bytes)?;
            self.readers().give_file(&file)?;
            if durable {
                file.sync_all()?;
            }
            before_rename();
            dir.rename(&aside, Path::new(name))
        })();
        if put.is_err() {
            let _ = dir.remove_file(&aside);
        }
        put
    }
}

const HINT: &str =
    "remove it, or have yours kept elsewhere: set SIEVA_STORE (or the option of that name) to a directory";

/// A link is no file of ours.
fn no_link(e: io::Error) -> io::Error {
    if local::is_link(&e) { io::Error::new(io::ErrorKind::InvalidData, "not a regular file") } else { e }
}
