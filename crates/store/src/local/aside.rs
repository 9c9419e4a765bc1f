//! A new file written beside its final name, and put there when it is complete.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::Dir;

/// Characters of the final name that a name aside begins with: one is at most 255 bytes long.
const SHOWN: usize = 40;
/// Hexadecimal digits behind them.
const DIGITS: usize = 16;

/// What a name aside has of the final one.
fn shown(target: &Path) -> String {
    target.to_string_lossy().chars().take(SHOWN).collect()
}

/// Whether `name` is one under which `target` was written aside, by this crate or by the Python package. Where nobody writes it
/// now, a process that was killed has left it.
pub fn is_aside_of(name: &str, target: &Path) -> bool {
    let inner = name.strip_prefix('.').and_then(|n| n.strip_suffix(".part"));
    inner.and_then(|inner| inner.rsplit_once('.')).is_some_and(|(of, digits)| {
        let is_number = digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_number && of == shown(target)
    })
}

/// A file under a name that nobody could foresee, in the directory of its final name. Dropped without
/// [`Aside::publish`], it is removed.
#[derive(Debug)]
pub struct Aside {
    dir: Dir,
    file: Option<File>,
    name: PathBuf,
    target: PathBuf,
}

impl Aside {
    /// A new file that will be `path`, with these permissions (less those that the process' umask takes).
    ///
    /// # Errors
    /// Those of the system; `InvalidInput` where `path` names no file.
    pub fn new(path: &Path, mode: u32) -> io::Result<Self> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let target =
            path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
        Self::within(Dir::open(folder)?, target.as_ref(), mode)
    }

    /// A new file that will be `target` in `dir`, as [`Aside::new`].
    ///
    /// # Errors
    /// Those of the system.
    pub fn within(dir: Dir, target: &Path, mode: u32) -> io::Result<Self> {
        let shown = shown(target);
        for _ in 0..100 {
            let name = PathBuf::from(format!(".{shown}.{:0DIGITS$x}.part", random()));
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            match dir.open_file(&name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => return Ok(Self { dir, file: Some(file), name, target: target.into() }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name that was drawn is taken"))
    }

    /// The file to write to.
    ///
    /// # Errors
    /// Never, before [`Aside::publish`].
    pub fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The path that it has meanwhile, for writers that want one.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// Puts it under its final name, in place of what is there; `durable` waits for the disk first.
    ///
    /// # Errors
    /// Those of the system; it is removed then.
    pub fn publish(mut self, durable: bool) -> io::Result<()> {
        let Some(mut file) = self.file.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let moved = (|| {
            file.flush()?;
            if durable {
                file.sync_all()?;
            }
            self.dir.rename(&self.name, &self.target)?;
            if durable {
                self.dir.sync()?;
            }
            Ok(())
        })();
        if moved.is_err() {
            let _ = self.dir.remove_file(&self.name);
        }
        moved
    }
}

impl Aside {
    /// Puts it under its final name, in place of what is there, when its bytes are on the disk. The name may come later: with
    /// the next [`Aside::publish`] that is durable, of another file in the same directory.
    ///
    /// # Errors
    /// Those of the system; it is removed then.
    pub fn publish_bytes(mut self) -> io::Result<()> {
        let file = self.file()?;
        file.flush()?;
        file.sync_all()?;
        self.publish(false)
    }

    /// Puts it under its final name if nothing has that; false where something does. `durable` waits for the disk first.
    ///
    /// # Errors
    /// Those of the system; it is removed then.
    pub fn publish_new(mut self, durable: bool) -> io::Result<bool> {
        let Some(mut file) = self.file.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let moved = (|| {
            file.flush()?;
            if durable {
                file.sync_all()?;
            }
            let is_new = self.dir.rename_new(&self.name, &self.target)?;
            if durable {
                self.dir.sync()?;
            }
            Ok(is_new)
        })();
        if !matches!(moved, Ok(true)) {
            let _ = self.dir.remove_file(&self.name);
        }
        moved
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// A number that others cannot foresee: the hasher's keys are drawn by the operating system.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_nanos() as u64));
    hasher.finish()
}
