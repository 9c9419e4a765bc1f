//! What a worker has opened, and what it reads of it for the process that asks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::filters::Pipeline;
use sieva_format::layout::{Layout, Placement, c_strides};
use sieva_format::manifest::encode_layout;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_types::{Bx, DType, Endian, Error, ErrorKind, Result, Texts};

use crate::limits::WorkerLimits;

/// Decoded chunks that a worker keeps: a share of the memory that it may take.
const CACHE_SHARE: u64 = 16;

/// An open source with the readers of the arrays that were asked for.
pub struct Opened {
    pub source: Arc<dyn ArraySource>,
    limits: WorkerLimits,
    cache: Arc<ChunkCache>,
    /// `None` of arrays that the format's own reader gives.
    readers: HashMap<usize, Option<BlockReader>>,
    workspace: Workspace,
}

impl Opened {
    /// Of a source that was opened just now.
    pub fn new(source: Arc<dyn ArraySource>, limits: &WorkerLimits) -> Self {
        let cache = Arc::new(ChunkCache::new((limits.memory / CACHE_SHARE) as usize));
        Self { source, limits: *limits, cache, readers: HashMap::new(), workspace: Workspace::default() }
    }

    /// The layout of an array, encoded. Where only the reader of the format knows how to fetch the bytes, it says that
    /// boxes are to be asked for here.
    pub fn layout(&self, array: usize) -> Result<Vec<u8>> {
        let layout = self.source.layout(self.known(array)?)?;
        let none = || Error::new(ErrorKind::Internal, "a layout that cannot be handed over");
        encode_layout(&layout).or_else(|| encode_layout(&self.by_boxes(array, &layout))).ok_or_else(none)
    }

    /// How an array lies whose boxes are read here: elements in native byte order, texts of any length.
    fn by_boxes(&self, array: usize, layout: &Layout) -> Layout {
        let shape = &self.source.schema().arrays[array].shape;
        let is_text = layout.dtype == DType::Str;
        let element_size = if is_text { 0 } else { layout.element_size };
        Layout {
            endian: Endian::NATIVE,
            element_size,
            extent: shape.clone(),
            chunk_shape: layout.chunk_shape[..shape.len()].to_vec(),
            strides: c_strides(shape, element_size as u64),
            base: 0,
            pipeline: Pipeline::default(),
            placement: Placement::Library("the process that parses the file reads it".into()),
            fill: vec![0; element_size],
            char_dim: false,
            space_padded: false,
            ..layout.clone()
        }
    }

    /// The stored numbers of a box, in native byte order.
    pub fn numbers(&mut self, array: usize, bx: &Bx) -> Result<Vec<u8>> {
        self.check(array, bx)?;
        let (layout, limit) = (self.source.layout(array)?, self.limits.answer as u64);
        let size = layout.element_size as u64;
        let bytes = bx.shape.iter().try_fold(size, |n, &s| n.checked_mul(s));
        let bytes = bytes.filter(|&n| n < limit).ok_or_else(|| too_long(bx, limit))?;
        let mut out = vec![0; bytes as usize];
        let source = Arc::clone(&self.source);
        match self.reader(array, &layout)? {
            Some((reader, workspace)) => reader.read_native(bx, &mut out, workspace)?,
            None => source.needs_library(array)?.read_library(array, bx, &mut out)?,
        }
        Ok(out)
    }

    /// The texts of a box.
    pub fn texts(&mut self, array: usize, bx: &Bx) -> Result<Texts> {
        self.check(array, bx)?;
        let (layout, limit) = (self.source.layout(array)?, self.limits.answer as u64);
        let texts = bx.shape.iter().try_fold(1_u64, |n, &s| n.checked_mul(s));
        texts.filter(|&n| n < limit).ok_or_else(|| too_long(bx, limit))?;
        let source = Arc::clone(&self.source);
        match self.reader(array, &layout)? {
            Some((reader, workspace)) => reader.read_texts(bx, workspace),
            None => source.needs_library(array)?.read_library_strings(array, bx),
        }
    }

    /// Whether nothing of a box was ever written. Layouts that were made here have no fill value.
    pub fn is_unwritten(&self, array: usize, bx: &Bx) -> Result<bool> {
        self.check(array, bx)?;
        let layout = self.source.layout(array)?;
        let library = self.source.library().filter(|_| matches!(layout.placement, Placement::Library(_)));
        Ok(library.is_some_and(|library| library.is_unwritten(array, bx)))
    }

    /// The reader of an array whose boxes are read here; `None` of one that the format's own reader gives.
    fn reader(&mut self, array: usize, layout: &Layout) -> Result<Option<(&BlockReader, &mut Workspace)>> {
        let reader = match self.readers.entry(array) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(match encode_layout(layout) {
                Some(_) => None,
                None => Some(BlockReader::new(
                    Arc::clone(&self.source),
                    array,
                    Arc::clone(&self.cache),
                    self.limits.memory,
                )?),
            }),
        };
        Ok(reader.as_ref().map(|reader| (reader, &mut self.workspace)))
    }

    /// Whether a box lies in an array.
    fn check(&self, array: usize, bx: &Bx) -> Result<()> {
        let shape = &self.source.schema().arrays[self.known(array)?].shape;
        // Texts of character arrays lack their last dimension; a box of numbers may have it.
        let inside = bx.rank() >= shape.len()
            && (0..shape.len())
                .all(|d| bx.start[d].checked_add(bx.shape[d]).is_some_and(|end| end <= shape[d]));
        let message = || format!("box {bx:?} does not lie in an array of shape {shape:?}");
        if inside { Ok(()) } else { Err(Error::new(ErrorKind::InvalidValue, message())) }
    }

    fn known(&self, array: usize) -> Result<usize> {
        let none = || Error::new(ErrorKind::Internal, format!("no array number {array}"));
        (array < self.source.schema().arrays.len()).then_some(array).ok_or_else(none)
    }
}

fn too_long(bx: &Bx, limit: u64) -> Error {
    let message = format!("a box of shape {:?} is more than the {limit} bytes of an answer", bx.shape);
    Error::new(ErrorKind::MemoryLimit, message)
}
