//! Where augmentations are read from: a local directory, or objects beside a remote source.
//!
//! Builders write to local directories only. What they made may be put beside an object afterwards, by whatever
//! copies files there: nothing in it depends on its place.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use sieva_store::{ObjectTree, RangedRead, Span, Want};
use sieva_types::Error;

use crate::store::Home;

/// A directory of augmentations to read.
#[derive(Clone)]
pub enum Place {
    /// A local one.
    Local(Home),
    /// Objects whose keys begin with a prefix, which is empty or ends in `/`.
    Objects(Arc<dyn ObjectTree>, String),
}

impl From<&Path> for Place {
    fn from(dir: &Path) -> Self {
        Self::Local(dir.into())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(home) => home.path().display().fmt(f),
            Self::Objects(tree, prefix) if prefix.is_empty() => f.write_str(tree.name()),
            Self::Objects(tree, prefix) => write!(f, "{}/{}", tree.name(), prefix.trim_end_matches('/')),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

impl Place {
    /// The directory `name` in it.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        match self {
            Self::Local(home) => Self::Local(home.child(name)),
            Self::Objects(tree, prefix) => Self::Objects(Arc::clone(tree), format!("{prefix}{name}/")),
        }
    }

    /// The local directory that it is, where it is one.
    pub fn local(&self) -> Option<&Home> {
        match self {
            Self::Local(home) => Some(home),
            Self::Objects(..) => None,
        }
    }

    /// Whether a network lies between.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Objects(tree, _) if tree.is_remote())
    }

    /// How messages name the file `name` in it.
    pub(crate) fn name_of(&self, name: &str) -> String {
        match self {
            Self::Local(home) => home.path().join(name).display().to_string(),
            Self::Objects(tree, prefix) => format!("{}/{prefix}{name}", tree.name()),
        }
    }

    /// Opens the file `name`.
    ///
    /// # Errors
    /// Those of the system and of the storage, as [`OpenError`] tells them apart.
    pub(crate) fn open(&self, name: &str) -> std::result::Result<Readable, OpenError> {
        match self {
            Self::Local(home) => {
                let file = home.open_file(name)?;
                let len = file.metadata()?.len();
                Ok(Readable { bytes: Bytes::File(file), len })
            }
            Self::Objects(tree, prefix) => match tree.open(&format!("{prefix}{name}")) {
                Ok(Some(object)) => Ok(Readable { len: object.len(), bytes: Bytes::Object(object) }),
                Ok(None) => Err(OpenError::System(io::ErrorKind::NotFound.into())),
                Err(e) => Err(OpenError::Storage(e)),
            },
        }
    }

    /// Opens the file `name` of `len` bytes, as [`Place::open`] does. Nothing is asked for of an object yet: whether it is
    /// there turns out when it is read.
    pub(crate) fn open_sized(&self, name: &str, len: u64) -> std::result::Result<Readable, OpenError> {
        match self {
            Self::Local(_) => self.open(name),
            Self::Objects(tree, prefix) => {
                let bytes = Bytes::Key(Arc::clone(tree), format!("{prefix}{name}"));
                Ok(Readable { bytes, len })
            }
        }
    }

    /// Says that these ranges of files are about to be read, which objects are fetched together.
    pub(crate) fn announce<'a>(&self, ranges: impl Iterator<Item = (&'a str, Range<u64>)>) {
        if let Self::Objects(tree, prefix) = self {
            let want = |(name, range)| Want { key: format!("{prefix}{name}"), span: Span::Range(range) };
            tree.will_need(&ranges.map(want).collect::<Vec<_>>());
        }
    }
}

/// Why a file could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The system says so; of an object, that there is none.
    System(io::Error),
    /// The storage of an object says so.
    Storage(Error),
}

impl From<io::Error> for OpenError {
    fn from(e: io::Error) -> Self {
        Self::System(e)
    }
}

impl OpenError {
    /// As an error met while `what` was done.
    pub(crate) fn into_error(self, what: String) -> Error {
        match self {
            Self::System(e) => Error::io(what, &e),
            Self::Storage(e) => e.at(what),
        }
    }

    /// Whether there is no such file.
    pub(crate) fn is_absence(&self) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound};
        matches!(self, Self::System(e) if matches!(e.kind(), NotFound | NotADirectory))
    }
}

/// A file open for reading, by many threads at once.
pub(crate) struct Readable {
    bytes: Bytes,
    len: u64,
}

enum Bytes {
    File(File),
    Object(Box<dyn RangedRead>),
    /// An object that nobody asked for yet.
    Key(Arc<dyn ObjectTree>, String),
}

impl fmt::Debug for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readable").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Readable {
    /// Its length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `out` from `offset` on.
    pub(crate) fn read_exact_at(&self, out: &mut [u8], offset: u64) -> std::result::Result<(), OpenError> {
        match &self.bytes {
            Bytes::File(file) => Ok(file.read_exact_at(out, offset)?),
            Bytes::Object(object) => object.read_exact_at(offset, out).map_err(OpenError::Storage),
            Bytes::Key(tree, key) => {
                let mut bytes = Vec::new();
                let range = offset..offset.saturating_add(out.len() as u64);
                match tree.get(key, &Span::Range(range), &mut bytes).map_err(OpenError::Storage)? {
                    true if bytes.len() == out.len() => out.copy_from_slice(&bytes),
                    true => return Err(OpenError::System(io::ErrorKind::UnexpectedEof.into())),
                    false => return Err(OpenError::System(io::ErrorKind::NotFound.into())),
                }
                Ok(())
            }
        }
    }

    /// Says that these ranges are about to be read, which an object fetches together.
    pub(crate) fn will_need(&self, ranges: &[Range<u64>]) {
        match &self.bytes {
            Bytes::File(_) => {}
            Bytes::Object(object) => object.will_need(ranges),
            Bytes::Key(tree, key) => {
                let want = |range: &Range<u64>| Want { key: key.clone(), span: Span::Range(range.clone()) };
                tree.will_need(&ranges.iter().map(want).collect::<Vec<_>>());
            }
        }
    }

    /// When it was last changed, in seconds since 1970, where it is an object whose server says so.
    pub(crate) fn modified(&self) -> Option<u64> {
        match &self.bytes {
            Bytes::Object(object) => object.modified(),
            Bytes::File(_) | Bytes::Key(..) => None,
        }
    }

    /// All of it, if that is at most `longest` bytes; `None` where it is more.
    pub(crate) fn read_all(&self, longest: u64) -> std::result::Result<Option<Vec<u8>>, OpenError> {
        if self.len > longest {
            return Ok(None);
        }
        let mut bytes = vec![0; self.len as usize];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(Some(bytes))
    }
}
