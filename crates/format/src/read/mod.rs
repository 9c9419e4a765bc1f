//! The block reader: from a layout and byte ranges to the elements of a box.
//!
//! It alone knows of edge chunks, never-written chunks, byte order, strides and filters, for every format.
//! Elements come back as stored (no CF decoding), dense, in C order and native byte order.

mod cache;
mod chunks;
mod direct;
mod flight;
mod hits;
mod kept;
mod parts;
pub(crate) mod strided;
mod texts;
mod together;
mod unwritten;
mod wants;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva_types::{Bx, DType, Endian, Error, ErrorKind, Result, try_zeros};

use crate::ArraySource;
use crate::buffer::{Buffer, swap_bytes, widen_f16};
use crate::filters::Scratch;
use crate::layout::{Layout, Placement, c_strides};
pub use cache::{CacheStats, ChunkCache, SharedCache};
use chunks::Piece;
pub(crate) use chunks::advance;
pub(crate) use direct::{MAX_SPAN, MIN_DENSITY};
pub use kept::is_of_one_file;
pub use parts::Part;
use parts::Pieces;
use strided::Side;
pub use together::{Alone, Ask, Crew, Wanted, read_together, takes_positions};
pub use wants::Wants;

/// What one worker reuses from block to block.
#[derive(Default)]
pub struct Workspace {
    /// Set to stop reading.
    cancel: Option<Arc<AtomicBool>>,
    scratch: Scratch,
    encoded: Vec<u8>,
    span: Vec<u8>,
    narrow: Buffer,
    /// Chunks that were found decoded.
    cached: u64,
}

impl Workspace {
    /// How many chunks were found in the cache: a read that found some tells nothing of what reading costs.
    pub fn cached(&self) -> u64 {
        self.cached
    }

    /// One of a reading that is stopped by setting `cancel`.
    pub fn cancelled_by(cancel: &Arc<AtomicBool>) -> Self {
        Self { cancel: Some(Arc::clone(cancel)), ..Self::default() }
    }

    /// Looked at between pieces of a box, of which a file may declare any number.
    fn check(&self) -> Result<()> {
        match &self.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => {
                Err(Error::new(ErrorKind::Cancelled, "the reading was interrupted"))
            }
            _ => Ok(()),
        }
    }
}

/// Reads boxes of one array. Cheap to clone the `Arc` of; used by many threads at once.
pub struct BlockReader {
    source: Arc<dyn ArraySource>,
    array: usize,
    layout: Arc<Layout>,
    cache: Arc<ChunkCache>,
    memory: u64,
    /// Of a flat reader whose outermost dimension does not lie densely (netCDF-3 records): elements of one index
    /// of it, and the bytes from one index to the next.
    records: Option<(u64, u64)>,
    /// Which of many files it reads; 0 where there is one.
    file: u32,
    /// Of an array of many files.
    pieces: Pieces,
    /// What tells ways of decoding chunks apart.
    coding: u64,
}

impl BlockReader {
    /// A reader of array `array`. `memory` is the most that one decoded chunk may take.
    ///
    /// # Errors
    /// What finding the layout says.
    pub fn new(
        source: Arc<dyn ArraySource>,
        array: usize,
        cache: Arc<ChunkCache>,
        memory: u64,
    ) -> Result<Self> {
        let layout = source.layout(array)?;
        let (pieces, coding) = (Pieces::default(), coding_of(&layout));
        Ok(Self { source, array, layout, cache, memory, records: None, file: 0, pieces, coding })
    }

    /// The physical layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The dtype that [`BlockReader::read`] delivers: the stored one, with float16 widened to float32
    /// and bool as bytes 0 and 1.
    pub fn element_dtype(&self) -> DType {
        match self.layout.dtype {
            DType::F16 => DType::F32,
            DType::Bool => DType::U8,
            other => other,
        }
    }

    /// The same elements as one dimension, where they lie densely in C order but for the outermost dimension: a run
    /// of positions is then one range, or one for each record, whatever the rank.
    pub fn flat(&self) -> Option<BlockReader> {
        let layout = &*self.layout;
        let dense = c_strides(&layout.extent, layout.element_size as u64);
        let differs = |d: &usize| layout.extent[*d] > 1 && layout.strides[*d] != dense[*d];
        let direct = matches!(layout.placement, Placement::Direct { .. } | Placement::Inline(_));
        let whole = layout.extent == self.source.schema().arrays[self.array].shape;
        if !(direct && whole && layout.base == 0) || (1..layout.extent.len()).any(|d| differs(&d)) {
            return None;
        }
        let records = (!layout.extent.is_empty() && differs(&0))
            .then(|| (layout.extent[1..].iter().product(), layout.strides[0]));
        let converted = matches!(layout.dtype, DType::F16 | DType::Bool);
        if records.is_some() && (converted || !matches!(layout.placement, Placement::Direct { .. })) {
            return None;
        }
        let n: u64 = layout.extent.iter().product();
        let layout = Layout {
            extent: vec![n],
            chunk_shape: vec![n],
            strides: vec![layout.element_size as u64],
            ..layout.clone()
        };
        let (source, cache) = (Arc::clone(&self.source), Arc::clone(&self.cache));
        let (array, memory) = (self.array, self.memory);
        let (layout, file, pieces) = (Arc::new(layout), self.file, Pieces::default());
        // It has no chunks.
        let coding = 0;
        Some(BlockReader { source, array, layout, cache, memory, records, file, pieces, coding })
    }

    /// Whether [`BlockReader::read`] can be used of a flat reader, not only [`BlockReader::read_run`].
    pub fn is_dense(&self) -> bool {
        self.records.is_none()
    }

    /// Reads `n` elements from `start` on of a reader made by [`BlockReader::flat`], without the overhead of
    /// boxes: scattered positions are fetched by a great many small reads.
    ///
    /// # Errors
    /// As [`BlockReader::read`].
    pub fn read_run(&self, start: u64, n: usize, out: &mut Buffer, ws: &mut Workspace) -> Result<()> {
        let converted = matches!(self.layout.dtype, DType::F16 | DType::Bool);
        let Placement::Direct { offset } = self.layout.placement else {
            return self.read(&Bx::new(vec![start], vec![n as u64]), out, ws);
        };
        if converted {
            return self.read(&Bx::new(vec![start], vec![n as u64]), out, ws);
        }
        let size = self.layout.element_size;
        out.resize(n * size);
        let (inner, stride) = self.records.unwrap_or((u64::MAX, 0));
        let (mut at, mut done) = (start, 0);
        while done < n {
            let (record, within) = (at / inner, at % inner);
            let take = usize::try_from(inner - within).unwrap_or(usize::MAX).min(n - done);
            let place = record.saturating_mul(stride).saturating_add(within.saturating_mul(size as u64));
            let target = &mut out.bytes_mut()[done * size..(done + take) * size];
            let read = self.source.store().read_exact_at(offset.saturating_add(place), target);
            read.map_err(|e| self.locate(e))?;
            (at, done) = (at + take as u64, done + take);
        }
        if self.layout.endian != Endian::NATIVE {
            swap_bytes(out.bytes_mut(), size);
        }
        Ok(())
    }

    /// Reads the numbers of box `bx` into `out`.
    ///
    /// # Errors
    /// `corrupt-file`, `filter-unavailable`, `memory-limit` or `io-error`, naming file, array and chunk.
    pub fn read(&self, bx: &Bx, out: &mut Buffer, ws: &mut Workspace) -> Result<()> {
        let size = self.layout.element_size;
        self.check_stored(bx)?;
        let len = usize::try_from(bx.len()).ok().and_then(|n| n.checked_mul(size.max(4)));
        let len =
            len.filter(|&n| n as u64 <= self.memory.max(1 << 20)).ok_or_else(|| self.too_big(bx.len()))?;
        if self.layout.dtype == DType::F16 {
            let mut narrow = std::mem::take(&mut ws.narrow);
            narrow.try_resize(len / 2)?;
            let read = self.read_native(bx, narrow.bytes_mut(), ws);
            out.try_resize(len)?;
            for (wide, &half) in out.as_mut_slice::<f32>().iter_mut().zip(narrow.as_slice::<u16>()) {
                *wide = widen_f16(half);
            }
            ws.narrow = narrow;
            return read;
        }
        out.try_resize(bx.len() as usize * size)?;
        self.read_native(bx, out.bytes_mut(), ws)?;
        if self.layout.dtype == DType::Bool {
            out.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(())
    }

    /// Whether the file has the bytes of a box of data that lie plainly: asked before memory is taken for them.
    ///
    /// # Errors
    /// `corrupt-file` where it ends before them.
    pub fn check_stored(&self, bx: &Bx) -> Result<()> {
        let layout = &*self.layout;
        let (start, have) = match &layout.placement {
            Placement::Direct { offset } => (*offset, self.source.store().len()),
            Placement::Inline(bytes) => (0, bytes.len() as u64),
            _ => return Ok(()),
        };
        let inside = if bx.is_within(&layout.extent) && !bx.is_empty() {
            Cow::Borrowed(bx)
        } else {
            let Some(inside) = bx.intersect(&Bx::whole(&layout.extent)) else { return Ok(()) };
            Cow::Owned(inside)
        };
        let (first, span) = (
            dot(&inside.start, &layout.strides).saturating_add(start).saturating_add(layout.base),
            span_bytes(&inside.shape, &layout.strides, layout.element_size),
        );
        if first.checked_add(span).is_some_and(|end| end <= have) {
            return Ok(());
        }
        let name = self.source.store().name();
        let e = match &layout.placement {
            Placement::Direct { .. } => {
                format!("'{name}' is cut off: {span} bytes at offset {first} asked for, the file has {have}")
            }
            _ => format!("compact data: {} bytes needed, {have} stored", first.saturating_add(span)),
        };
        Err(self.locate(Error::corrupt(e)))
    }

    fn too_big(&self, elements: u64) -> Error {
        let path = &self.source.schema().arrays[self.array].path;
        Error::new(
            ErrorKind::MemoryLimit,
            format!("a block of {elements} elements of '{path}' does not fit into {} bytes", self.memory),
        )
        .hint("raise the limit with --memory (memory= in Python)")
    }

    /// Reads the stored elements of box `bx`, of the layout's element size and in native byte order, into `out`, which
    /// has just their length.
    ///
    /// # Errors
    /// As [`BlockReader::read`].
    pub fn read_native(&self, bx: &Bx, out: &mut [u8], ws: &mut Workspace) -> Result<()> {
        self.read_stored(bx, out, ws).map_err(|e| self.locate(e))?;
        if !self.is_native() {
            swap_bytes(out, self.layout.element_size);
        }
        Ok(())
    }

    /// Whether elements come in native byte order, however they are stored.
    fn is_native(&self) -> bool {
        let is_made = matches!(
            self.layout.placement,
            Placement::Library(_) | Placement::Foreign(_) | Placement::Parts(_)
        );
        is_made || self.layout.endian == Endian::NATIVE
    }

    /// Native elements of the layout's size as [`BlockReader::read`] delivers them.
    fn widened(&self, mut native: Buffer) -> Result<Buffer> {
        match self.layout.dtype {
            DType::F16 => {
                let halves = native.as_slice::<u16>();
                let mut out = Buffer::default();
                out.try_resize(halves.len() * size_of::<f32>())?;
                for (wide, &half) in out.as_mut_slice::<f32>().iter_mut().zip(halves) {
                    *wide = widen_f16(half);
                }
                Ok(out)
            }
            DType::Bool => {
                native.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
                Ok(native)
            }
            _ => Ok(native),
        }
    }

    fn locate(&self, e: Error) -> Error {
        let path = &self.source.schema().arrays[self.array].path;
        let file = self.source.store().name();
        if matches!(self.layout.placement, Placement::Parts(_)) {
            // The file that holds the piece has been named already.
            return e;
        }
        let e = if e.message().contains(path.as_str()) { e } else { e.at(format!("array '{path}'")) };
        if e.message().contains(file) { e } else { e.at(file) }
    }

    /// Elements as stored, of a box that may reach beyond the stored extent.
    fn read_stored(&self, bx: &Bx, out: &mut [u8], ws: &mut Workspace) -> Result<()> {
        let layout = &*self.layout;
        if bx.is_empty() {
            return Ok(());
        }
        let strides = c_strides(&bx.shape, layout.element_size as u64);
        let inside = bx.intersect(&Bx::whole(&layout.extent));
        if inside.as_ref() != Some(bx) {
            strided::fill(&bx.shape, &layout.fill, out, Side { base: 0, strides: &strides });
        }
        let Some(inside) = inside else { return Ok(()) };
        let base = (0..bx.rank()).map(|d| (inside.start[d] - bx.start[d]) * strides[d]).sum::<u64>() as usize;
        let to = Side { base, strides: &strides };
        match &layout.placement {
            Placement::Unallocated => strided::fill(&inside.shape, &layout.fill, out, to),
            Placement::Direct { offset } if self.is_kept_whole() => {
                self.read_of_whole(*offset, &inside, out, to, ws)?;
            }
            Placement::Direct { offset } => {
                self.read_direct(*offset, &inside.start, &inside.shape, out, to, ws)?
            }
            Placement::Inline(bytes) => self.read_inline(bytes, &inside, out, to)?,
            Placement::Chunks(index) => {
                self.read_chunks(|number| Some(Piece::In(index.get(number)?)), &inside, out, to, ws)?;
            }
            Placement::Objects => self.read_chunks(|n| Some(Piece::Object(n)), &inside, out, to, ws)?,
            Placement::Parts(parts) => self.read_parts(parts, &inside, out, ws)?,
            Placement::Library(_) | Placement::Foreign(_) => self.read_by_library(&inside, out, to)?,
        }
        Ok(())
    }

    fn read_inline(&self, bytes: &[u8], bx: &Bx, out: &mut [u8], to: Side) -> Result<()> {
        let layout = &*self.layout;
        let base = layout.base.saturating_add(dot(&bx.start, &layout.strides));
        let need = base.saturating_add(span_bytes(&bx.shape, &layout.strides, layout.element_size));
        if need > bytes.len() as u64 {
            return Err(Error::corrupt(format!("compact data: {need} bytes needed, {} stored", bytes.len())));
        }
        let from = Side { base: base as usize, strides: &layout.strides };
        strided::copy(&bx.shape, layout.element_size, bytes, from, out, to);
        Ok(())
    }

    fn read_by_library(&self, bx: &Bx, out: &mut [u8], to: Side) -> Result<()> {
        let library = self.source.needs_library(self.array)?;
        let size = self.layout.element_size;
        let bytes = bx.len() as usize * size;
        if bytes == out.len() {
            return library.read_library(self.array, bx, out);
        }
        let mut block = try_zeros(bytes)?;
        library.read_library(self.array, bx, &mut block)?;
        let strides = c_strides(&bx.shape, size as u64);
        strided::copy(&bx.shape, size, &block, Side { base: 0, strides: &strides }, out, to);
        Ok(())
    }
}

/// The same for layouts whose chunks decode to the same bytes.
fn coding_of(layout: &Layout) -> u64 {
    if !layout.is_chunked() {
        return 0;
    }
    let mut hash = DefaultHasher::new();
    format!("{:?}", (layout.chunk_bytes, &layout.pipeline)).hash(&mut hash);
    hash.finish()
}

/// `Σ index·stride`; 2^64 - 1 where it is more.
fn dot(index: &[u64], strides: &[u64]) -> u64 {
    index.iter().zip(strides).fold(0, |sum: u64, (i, s)| sum.saturating_add(i.saturating_mul(*s)))
}

/// Bytes from the first element of a block to the end of its last one; 2^64 - 1 where there are more.
fn span_bytes(shape: &[u64], strides: &[u64], size: usize) -> u64 {
    let last = shape.iter().zip(strides);
    last.fold(size as u64, |sum: u64, (n, s)| sum.saturating_add((n - 1).saturating_mul(*s)))
}
