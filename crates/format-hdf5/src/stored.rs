//! Items as they are stored, by their place in the file, for arrays whose elements have to be made of them: numbers
//! that no machine computes with, texts of variable length, and all data behind external links.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::layout::Layout;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format::schema::{ArrayInfo, Schema};
use sieva_store::RangedRead;
use sieva_types::{Bx, Error, ErrorKind, Result, Texts};

use crate::bytes::FileBytes;
use crate::heaps::Sizes;
use crate::kept::Kept;
use crate::leaves::Leaf;
use crate::numbers::OddNumber;
use crate::slabs::{BUFFER_LIMIT, slabs};
use crate::texts::HeapTexts;
use crate::types::Kind;

/// Most texts that are fetched at once.
const TEXTS_AT_ONCE: usize = 8192;
/// Bytes of decoded chunks that are kept of a file, for boxes that cut them.
const CACHE: usize = 64 << 20;

/// One file that data are read of, apart from libhdf5.
pub(crate) struct StoredFile {
    store: Arc<dyn RangedRead>,
    cache: Arc<ChunkCache>,
    /// Most bytes of a decoded chunk.
    chunk_limit: u64,
    texts: Kept<HeapTexts>,
}

impl StoredFile {
    /// The file in `store`, of which a decoded chunk may take `chunk_limit` bytes.
    pub(crate) fn new(store: Arc<dyn RangedRead>, chunk_limit: u64) -> Self {
        Self { store, cache: Arc::new(ChunkCache::new(CACHE)), chunk_limit, texts: Kept::default() }
    }

    /// Whether it still is what was opened.
    ///
    /// # Errors
    /// `stale-source` where it was changed.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.store.check_unchanged()
    }
}

/// What elements are made of.
enum Elements {
    /// They lie in the file as they are.
    Plain,
    Odd(OddNumber),
    Texts(Arc<HeapTexts>),
}

/// The items behind one array.
pub(crate) struct StoredItems {
    reader: BlockReader,
    elements: Elements,
    chunk_limit: u64,
}

impl StoredItems {
    /// The items of `leaf`, the array `info`, that lie as `layout` says in `file`, whose metadata are in `bytes`.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn new(
        file: &StoredFile,
        bytes: &FileBytes,
        info: &ArrayInfo,
        leaf: &Leaf,
        layout: Layout,
    ) -> Result<Self> {
        let elements = match &leaf.element.kind {
            Kind::Odd(number) => Elements::Odd(number.clone()),
            Kind::VlenText => Elements::Texts(file.texts.get_or_find(|| {
                let store = Arc::clone(&file.store);
                Ok(HeapTexts::new(store, Sizes::of(bytes)?))
            })?),
            _ => Elements::Plain,
        };
        let schema = Schema { arrays: vec![info.clone()], ..Schema::default() };
        let source = Items { store: Arc::clone(&file.store), schema, layout: Arc::new(layout) };
        let reader = BlockReader::new(Arc::new(source), 0, Arc::clone(&file.cache), file.chunk_limit)?;
        Ok(Self { reader, elements, chunk_limit: file.chunk_limit })
    }

    /// Whether nothing of box `bx` was ever written.
    pub(crate) fn is_unwritten(&self, bx: &Bx) -> bool {
        self.reader.is_unwritten(bx)
    }

    /// Fills `out` with the numbers or texts of fixed size of box `bx`, in native byte order.
    ///
    /// # Errors
    /// As [`BlockReader::read`], and of items that are no number.
    pub(crate) fn read(&self, bx: &Bx, out: &mut [u8]) -> Result<()> {
        let element = match &self.elements {
            Elements::Odd(number) => number.dtype().size(),
            _ => self.reader.layout().element_size,
        };
        self.check_box(bx, element, out.len())?;
        let mut ws = Workspace::default();
        match &self.elements {
            Elements::Odd(number) => {
                number.convert_box(bx, out, |slab, items| self.reader.read_native(slab, items, &mut ws))
            }
            _ => self.reader.read_native(bx, out, &mut ws),
        }
    }

    /// The texts of variable length of box `bx`.
    ///
    /// # Errors
    /// As [`HeapTexts::read`].
    pub(crate) fn read_texts(&self, bx: &Bx) -> Result<Texts> {
        let Elements::Texts(texts) = &self.elements else {
            return Err(Error::new(ErrorKind::Internal, "numbers were asked for as texts"));
        };
        self.check_box(bx, 0, 0)?;
        let size = self.reader.layout().element_size;
        let (mut items, mut out, mut ws) = (Vec::new(), Texts::new(), Workspace::default());
        for slab in slabs(bx, (BUFFER_LIMIT / size.max(1) as u64).max(1)) {
            items.resize(slab.len() as usize * size, 0);
            self.reader.read_native(&slab, &mut items, &mut ws)?;
            items.chunks(TEXTS_AT_ONCE * size).try_for_each(|some| texts.read(some, &mut out))?;
        }
        Ok(out)
    }

    fn check_box(&self, bx: &Bx, element: usize, bytes: usize) -> Result<()> {
        let (layout, limit) = (self.reader.layout(), self.chunk_limit);
        if layout.is_chunked() && layout.chunk_bytes > limit {
            let size = layout.chunk_bytes;
            let message = format!("its chunks have {size} bytes, at most {limit} are decoded of such items");
            return Err(Error::new(ErrorKind::MemoryLimit, message));
        }
        check_box(bx, &self.reader.layout().extent, element, bytes)
    }
}

/// Refuses a box outside of an extent, or one that takes another number of bytes.
pub(crate) fn check_box(bx: &Bx, extent: &[u64], element: usize, bytes: usize) -> Result<()> {
    let is_inside = bx.rank() == extent.len()
        && (0..extent.len())
            .all(|k| bx.start[k].checked_add(bx.shape[k]).is_some_and(|end| end <= extent[k]));
    let wanted = bx.shape.iter().try_fold(element as u64, |n, &s| n.checked_mul(s));
    if !is_inside || wanted != Some(bytes as u64) {
        let what = format!("box {bx:?} into {bytes} bytes, of an array of shape {extent:?}");
        return Err(Error::new(ErrorKind::Internal, what));
    }
    Ok(())
}

/// A source of one array, for the block reader.
struct Items {
    store: Arc<dyn RangedRead>,
    schema: Schema,
    layout: Arc<Layout>,
}

impl ArraySource for Items {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, _array: usize) -> Result<Arc<Layout>> {
        Ok(Arc::clone(&self.layout))
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }
}
