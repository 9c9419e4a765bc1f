//! The trait that every file format implements, and the ways of reading that only some of them have.

use std::sync::Arc;

use sieva_store::{RangedRead, Striping};
use sieva_types::{Bx, Error, ErrorKind, Result, Texts};

use crate::layout::Layout;
use crate::read::Part;
use crate::schema::Schema;

/// Blocks of an array, with keys that those of all their stored values but NaN lie within, both included
/// ([`sieva_types::keys`]); `None` where none are known. Together they cover the array, or say nothing of the rest.
pub type BlockBounds = Vec<(Bx, Option<(i128, i128)>)>;

/// An open source: its schema, the layout of its arrays, and its bytes.
///
/// Where an array's placement is byte ranges of [`ArraySource::store`], this is all that reading it takes. Other placements
/// take a way of their own, which a source has or has not: [`ArraySource::object_chunks`], [`ArraySource::parts`],
/// [`ArraySource::library`].
///
/// All methods may be called from many threads at once.
pub trait ArraySource: Send + Sync {
    /// What the source says of itself.
    fn schema(&self) -> &Schema;

    /// The physical layout of array `array` (index into [`Schema::arrays`]); found on first use, kept after.
    ///
    /// # Errors
    /// `corrupt-file` where the file contradicts itself, `link-refused` for raw data in other files.
    fn layout(&self, array: usize) -> Result<Arc<Layout>>;

    /// The object that layouts' offsets refer to.
    fn store(&self) -> &Arc<dyn RangedRead>;

    /// Where the bytes of that object lie, where that is known without asking its storage.
    fn striping(&self) -> Option<&Striping> {
        None
    }

    /// Says that the layouts of these arrays are about to be asked for: a source behind a network fetches what tells them
    /// all at once.
    fn will_need_layouts(&self, arrays: &[usize]) {
        let _ = arrays;
    }

    /// What the format itself tells of the values of an array: least and greatest of each block, as its writer found
    /// them. Only what holds for every value, whatever its neighbours, may be told: a minimum that passes over infinities
    /// or depends on where NaNs stand is none.
    fn limits(&self, array: usize) -> BlockBounds {
        let _ = array;
        BlockBounds::new()
    }

    /// What fetches chunks of arrays whose placement is [`crate::layout::Placement::Objects`].
    fn object_chunks(&self) -> Option<&dyn ObjectChunks> {
        None
    }

    /// What opens the pieces of arrays whose placement is [`crate::layout::Placement::Parts`].
    fn parts(&self) -> Option<&dyn PartOpener> {
        None
    }

    /// What reads arrays whose placement is [`crate::layout::Placement::Library`] or
    /// [`crate::layout::Placement::Foreign`].
    fn library(&self) -> Option<&dyn LibraryReader> {
        None
    }
}

/// Arrays of which each chunk is an object of its own, or has to be found before it can be fetched.
pub trait ObjectChunks: Send + Sync {
    /// Puts the stored bytes of a chunk, of which there may be `most`, into `out` (cleared first); false where the chunk was
    /// never written. `number` is the chunk's C-order number in the grid.
    ///
    /// # Errors
    /// `io-error` and the like of the storage, `corrupt-file`; `memory-limit` of a chunk of more bytes.
    fn fetch_chunk(&self, array: usize, number: u64, most: u64, out: &mut Vec<u8>) -> Result<bool>;

    /// Says that these chunks are about to be fetched: see [`RangedRead::will_need`].
    fn will_need_chunks(&self, array: usize, numbers: &[u64]) {
        let _ = (array, numbers);
    }
}

/// Arrays that are put together out of arrays of other sources.
pub trait PartOpener: Send + Sync {
    /// One piece of an array.
    ///
    /// # Errors
    /// Those of opening the file; `stale-source` where it is not what it was when its pieces were put together.
    fn part(&self, array: usize, piece: usize) -> Result<Part>;
}

/// Arrays that a library reads, or another program.
pub trait LibraryReader: Send + Sync {
    /// Fills `out` with the box `bx` (of the layout's rank), in C order and native byte order.
    ///
    /// # Errors
    /// What the library says, as `filter-unavailable`, `corrupt-file` or `unsupported`.
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()>;

    /// The texts of box `bx` of a variable-length string array (`element_size` 0).
    ///
    /// # Errors
    /// As [`LibraryReader::read_library`].
    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Texts>;

    /// Whether it is known without reading that nothing of box `bx` of such an array was ever written. That it is not known
    /// says nothing.
    fn is_unwritten(&self, array: usize, bx: &Bx) -> bool {
        let _ = (array, bx);
        false
    }
}

/// The ways of reading of a source that must have them, as its layouts say that it has.
impl dyn ArraySource + '_ {
    /// [`ArraySource::object_chunks`] of a source with an array of such a placement.
    ///
    /// # Errors
    /// `internal-error` where it has none.
    pub fn needs_object_chunks(&self, array: usize) -> Result<&dyn ObjectChunks> {
        self.object_chunks().ok_or_else(|| self.lacks(array, "nothing that fetches chunks"))
    }

    /// [`ArraySource::parts`], likewise.
    ///
    /// # Errors
    /// `internal-error` where it has none.
    pub fn needs_parts(&self, array: usize) -> Result<&dyn PartOpener> {
        self.parts().ok_or_else(|| self.lacks(array, "no pieces in other files"))
    }

    /// [`ArraySource::library`], likewise.
    ///
    /// # Errors
    /// `internal-error` where it has none.
    pub fn needs_library(&self, array: usize) -> Result<&dyn LibraryReader> {
        self.library().ok_or_else(|| self.lacks(array, "no library that reads it"))
    }

    fn lacks(&self, array: usize, what: &str) -> Error {
        let path = self.schema().arrays.get(array).map_or("?", |info| &info.path);
        Error::new(ErrorKind::Internal, format!("'{}': array '{path}' has {what}", self.store().name()))
    }
}

/// A source that is another one in everything that it does not say itself. What a source can do besides reading
/// ranges is never lost by being wrapped.
pub trait Wrapped: Send + Sync {
    /// The other one.
    fn inner(&self) -> &dyn ArraySource;

    /// As [`ArraySource::layout`].
    ///
    /// # Errors
    /// Those of the source.
    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        self.inner().layout(array)
    }

    /// As [`ArraySource::library`].
    fn library(&self) -> Option<&dyn LibraryReader> {
        self.inner().library()
    }
}

impl<W: Wrapped> ArraySource for W {
    fn schema(&self) -> &Schema {
        self.inner().schema()
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        Wrapped::layout(self, array)
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        self.inner().store()
    }

    fn will_need_layouts(&self, arrays: &[usize]) {
        self.inner().will_need_layouts(arrays);
    }

    fn limits(&self, array: usize) -> BlockBounds {
        self.inner().limits(array)
    }

    fn object_chunks(&self) -> Option<&dyn ObjectChunks> {
        self.inner().object_chunks()
    }

    fn parts(&self) -> Option<&dyn PartOpener> {
        self.inner().parts()
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Wrapped::library(self)
    }
}
