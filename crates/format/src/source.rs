//! The trait that every file format implements.

use std::sync::Arc;

use sieva_store::RangedRead;
use sieva_types::{Bx, Error, ErrorKind, Result};

use crate::layout::Layout;
use crate::read::Part;
use crate::schema::Schema;

/// Blocks of an array, with keys that those of all their stored values but NaN lie within, both included
/// ([`sieva_types::keys`]); `None` where none are known. Together they cover the array, or say nothing of the rest.
pub type Limits = Vec<(Bx, Option<(i128, i128)>)>;

/// An open source: its schema, the layout of its arrays, and its bytes.
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

    /// Puts the stored bytes of a chunk, of which there may be `most`, into `out` (cleared first); false where the chunk was
    /// never written. Of arrays whose placement is [`crate::layout::Placement::Objects`]; `number` is the chunk's C-order
    /// number in the grid.
    ///
    /// # Errors
    /// `io-error` and the like of the storage, `corrupt-file`; `memory-limit` of a chunk of more bytes.
    fn fetch_chunk(&self, array: usize, number: u64, most: u64, out: &mut Vec<u8>) -> Result<bool> {
        let _ = (number, most, out);
        let path = &self.schema().arrays[array].path;
        Err(Error::new(ErrorKind::Internal, format!("'{path}' has no chunks that are objects")))
    }

    /// Says that the layouts of these arrays are about to be asked for: a source behind a network fetches what tells them
    /// all at once.
    fn will_need_layouts(&self, arrays: &[usize]) {
        let _ = arrays;
    }

    /// One piece of an array whose placement is [`crate::layout::Placement::Parts`].
    ///
    /// # Errors
    /// Those of opening the file; `stale-source` where it is not what it was when its pieces were put together.
    fn part(&self, array: usize, piece: usize) -> Result<Part> {
        let path = &self.schema().arrays[array].path;
        Err(Error::new(ErrorKind::Internal, format!("'{path}' has no piece {piece}")))
    }

    /// Says that these chunks of such an array are about to be fetched: see [`RangedRead::will_need`].
    fn will_need_chunks(&self, array: usize, numbers: &[u64]) {
        let _ = (array, numbers);
    }

    /// Fills `out` with the box `bx` (of the layout's rank) of an array whose placement is
    /// [`crate::layout::Placement::Library`] or [`crate::layout::Placement::Foreign`], in C order and native byte order.
    ///
    /// # Errors
    /// What the library says, as `filter-unavailable`, `corrupt-file` or `unsupported`.
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()>;

    /// The texts of box `bx` of a variable-length string array (library placement, `element_size` 0).
    ///
    /// # Errors
    /// As [`ArraySource::read_library`].
    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Vec<String>>;

    /// Whether it is known without reading that nothing of box `bx` of such an array was ever written. That it is not known
    /// says nothing.
    fn is_unwritten(&self, array: usize, bx: &Bx) -> bool {
        let _ = (array, bx);
        false
    }

    /// What the format itself tells of the values of an array: least and greatest of each block, as its writer found
    /// them. Only what holds for every value, whatever its neighbours, may be told: a minimum that passes over infinities
    /// or depends on where NaNs stand is none.
    fn limits(&self, array: usize) -> Limits {
        let _ = array;
        Limits::new()
    }
}
