//! A source that was parsed before: all from a manifest, but for what only the format's own reader can give.

use std::sync::{Arc, Mutex, PoisonError};

use sieva_store::{RangedRead, Striping};
use sieva_types::{Bx, Error, ErrorKind, Result, Texts};

use super::{Excerpt, Manifest};
use crate::layout::Layout;
use crate::read::Part;
use crate::schema::Schema;
use crate::{ArraySource, LibraryReader, ObjectChunks, PartOpener};

/// Opens the source itself.
pub type Fallback = Box<dyn Fn() -> Result<Arc<dyn ArraySource>> + Send + Sync>;

/// An [`ArraySource`] made of a manifest and the object that it tells of. Nothing is parsed.
pub struct ManifestSource {
    manifest: Manifest,
    /// The numbers of the manifest's arrays in the source; `None`: they are the same.
    numbers: Option<Arc<[usize]>>,
    store: Arc<dyn RangedRead>,
    fallback: Option<Fallback>,
    opened: Mutex<Option<Arc<dyn ArraySource>>>,
}

impl ManifestSource {
    /// A source whose bytes are in `store`.
    ///
    /// # Errors
    /// `stale-source` where that is not the object, or no longer in the state, that the manifest was taken of.
    pub fn new(manifest: Manifest, store: Arc<dyn RangedRead>) -> Result<Self> {
        manifest.check_object(&*store)?;
        Ok(Self { manifest, numbers: None, store, fallback: None, opened: Mutex::new(None) })
    }

    /// A source of some arrays.
    ///
    /// # Errors
    /// As [`ManifestSource::new`].
    pub fn of_excerpt(excerpt: Excerpt, store: Arc<dyn RangedRead>) -> Result<Self> {
        Ok(Self { numbers: Some(excerpt.numbers), ..Self::new(excerpt.manifest, store)? })
    }

    /// Adds a way to open the source itself, which is used once something is asked that the manifest does not have.
    #[must_use]
    pub fn with_fallback(mut self, open: Fallback) -> Self {
        self.fallback = Some(open);
        self
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The source itself, opened at the first call, and the number of an array there.
    fn itself(&self, array: usize) -> Result<(Arc<dyn ArraySource>, usize)> {
        let number = self.numbers.as_ref().map_or(Some(array), |n| n.get(array).copied());
        let number = number.unwrap_or(usize::MAX);
        let path = || self.schema().arrays.get(array).map_or("?", |a| &a.path);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let source = match &*opened {
            Some(source) => Arc::clone(source),
            None => {
                let name = self.store.name();
                let none = || {
                    let message = format!("'{name}': the manifest does not tell where '{}' lies", path());
                    Error::new(ErrorKind::Unsupported, message).hint("open the file itself")
                };
                let source = self.fallback.as_ref().ok_or_else(none)?()?;
                Arc::clone(opened.insert(source))
            }
        };
        // Numbers of arrays mean the same only while the source says the same of itself.
        let (theirs, ours) = (source.schema().arrays.get(number), self.schema().arrays.get(array));
        let same = theirs
            .zip(ours)
            .is_some_and(|(a, b)| (&a.path, a.dtype, &a.shape) == (&b.path, b.dtype, &b.shape));
        if same {
            return Ok((source, number));
        }
        *opened = None;
        let message = format!("'{}': '{}' is not what its manifest says", self.store.name(), path());
        Err(Error::new(ErrorKind::StaleSource, message).hint("take the manifest again"))
    }
}

impl ArraySource for ManifestSource {
    fn schema(&self) -> &Schema {
        self.manifest.schema()
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        match self.manifest.layout(array)? {
            Some(layout) => Ok(layout),
            None => {
                let (source, array) = self.itself(array)?;
                source.layout(array)
            }
        }
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn striping(&self) -> Option<&Striping> {
        self.manifest.striping()
    }

    fn will_need_layouts(&self, arrays: &[usize]) {
        let is_unknown = |&&array: &&usize| matches!(self.manifest.layout(array), Ok(None));
        let found: Vec<_> =
            arrays.iter().filter(is_unknown).filter_map(|&array| self.itself(array).ok()).collect();
        if let Some((source, _)) = found.first() {
            let numbers: Vec<usize> = found.iter().map(|(_, number)| *number).collect();
            source.will_need_layouts(&numbers);
        }
    }

    fn object_chunks(&self) -> Option<&dyn ObjectChunks> {
        Some(self)
    }

    fn parts(&self) -> Option<&dyn PartOpener> {
        Some(self)
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl ObjectChunks for ManifestSource {
    fn fetch_chunk(&self, array: usize, number: u64, most: u64, out: &mut Vec<u8>) -> Result<bool> {
        let (source, array) = self.itself(array)?;
        source.needs_object_chunks(array)?.fetch_chunk(array, number, most, out)
    }

    fn will_need_chunks(&self, array: usize, numbers: &[u64]) {
        if let Ok((source, array)) = self.itself(array)
            && let Some(chunks) = source.object_chunks()
        {
            chunks.will_need_chunks(array, numbers);
        }
    }
}

impl PartOpener for ManifestSource {
    fn part(&self, array: usize, piece: usize) -> Result<Part> {
        let (source, array) = self.itself(array)?;
        source.needs_parts(array)?.part(array, piece)
    }
}

impl LibraryReader for ManifestSource {
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        let (source, array) = self.itself(array)?;
        source.needs_library(array)?.read_library(array, bx, out)
    }

    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Texts> {
        let (source, array) = self.itself(array)?;
        source.needs_library(array)?.read_library_strings(array, bx)
    }

    fn is_unwritten(&self, array: usize, bx: &Bx) -> bool {
        let Ok((source, array)) = self.itself(array) else { return false };
        source.library().is_some_and(|library| library.is_unwritten(array, bx))
    }
}
