//! Where an array's elements lie: the physical layout that every format is reduced to.
//!
//! A reader of a format produces a [`Layout`]; the block reader ([`crate::read`]) does the rest, so
//! that byte order, edge chunks, never-written chunks and filters are handled in one place.

use std::collections::BTreeMap;
use std::sync::Arc;

use sieva_types::{Bx, DType, Endian};

use crate::filters::Pipeline;

/// One stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// Offset of its first byte in the object.
    pub offset: u64,
    /// Bytes it takes there.
    pub size: u64,
    /// Bit i set: filter stage i was not applied to it.
    pub filter_mask: u32,
}

/// Which chunks of the grid are stored, by the chunk's C-order number in the grid.
#[derive(Clone, Debug)]
pub enum ChunkIndex {
    /// One entry per chunk of the grid; `size == u64::MAX` marks a chunk never written.
    Dense(Vec<ChunkRef>),
    /// Only the stored chunks.
    Sparse(BTreeMap<u64, ChunkRef>),
}

impl ChunkIndex {
    const ABSENT: ChunkRef = ChunkRef { offset: 0, size: u64::MAX, filter_mask: 0 };

    /// An index from the stored chunks of a grid of `grid_len` chunks; dense unless mostly empty.
    pub fn new(grid_len: u64, stored: Vec<(u64, ChunkRef)>) -> Self {
        if grid_len <= 1024 || grid_len / 4 <= stored.len() as u64 {
            let mut dense = vec![Self::ABSENT; grid_len as usize];
            for (number, chunk) in stored {
                if let Some(slot) = dense.get_mut(number as usize) {
                    *slot = chunk;
                }
            }
            Self::Dense(dense)
        } else {
            Self::Sparse(stored.into_iter().collect())
        }
    }

    /// The chunk of this number, `None` where it was never written.
    pub fn get(&self, number: u64) -> Option<ChunkRef> {
        match self {
            Self::Dense(v) => v.get(number as usize).copied().filter(|c| c.size != u64::MAX),
            Self::Sparse(m) => m.get(&number).copied(),
        }
    }

    /// Whether any chunk of these numbers is stored.
    pub fn any_in(&self, first: u64, last: u64) -> bool {
        match self {
            Self::Dense(v) => {
                let end = usize::try_from(last.saturating_add(1)).unwrap_or(usize::MAX).min(v.len());
                v.get(first as usize..end).is_some_and(|part| part.iter().any(|c| c.size != u64::MAX))
            }
            Self::Sparse(m) => m.range(first..=last).next().is_some(),
        }
    }

    /// The stored chunks.
    pub fn chunks(&self) -> impl Iterator<Item = &ChunkRef> {
        let (dense, sparse) = match self {
            Self::Dense(v) => (Some(v), None),
            Self::Sparse(m) => (None, Some(m)),
        };
        let dense = dense.into_iter().flatten().filter(|c| c.size != u64::MAX);
        dense.chain(sparse.into_iter().flat_map(BTreeMap::values))
    }

    /// The stored chunks with their numbers, ascending.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, ChunkRef)> {
        let (dense, sparse) = match self {
            Self::Dense(v) => (Some(v), None),
            Self::Sparse(m) => (None, Some(m)),
        };
        let dense = dense.into_iter().flat_map(|v| v.iter().zip(0_u64..)).filter(|(c, _)| c.size != u64::MAX);
        let sparse = sparse.into_iter().flat_map(|m| m.iter().map(|(&number, chunk)| (number, *chunk)));
        dense.map(|(chunk, number)| (number, *chunk)).chain(sparse)
    }

    /// The number of stored chunks.
    pub fn stored(&self) -> usize {
        match self {
            Self::Dense(v) => v.iter().filter(|c| c.size != u64::MAX).count(),
            Self::Sparse(m) => m.len(),
        }
    }
}

/// Where the bytes are.
#[derive(Clone, Debug)]
pub enum Placement {
    /// Not encoded: an element lies at `offset + base + Σ index·stride` of the object.
    Direct {
        /// Offset of the array's first item.
        offset: u64,
    },
    /// The same, in memory (HDF5 compact).
    Inline(Arc<[u8]>),
    /// Chunks that are decoded as a whole.
    Chunks(ChunkIndex),
    /// Chunks that are decoded as a whole and fetched by the source itself, by their C-order number in the grid
    /// ([`crate::ArraySource::fetch_chunk`]): objects of their own, or ranges of several objects.
    Objects,
    /// In other files, piece by piece along one dimension; elements are in native byte order.
    Parts(Arc<Parts>),
    /// Never written: all fill value.
    Unallocated,
    /// Read box by box by the format's own reader, with the reason: a library, or code that makes elements of other items.
    Library(String),
    /// Read box by box by code that is not ours ([`crate::foreign`]), which is said here; boxes along
    /// [`Layout::chunk_shape`] are the cheapest.
    Foreign(String),
}

/// How an array is put together from pieces in other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The dimension along which pieces follow one another; 0 where there is one piece only.
    pub axis: usize,
    /// Where each piece begins along it, and at the end its length.
    pub starts: Vec<u64>,
    /// Whether the files' arrays lack that dimension: each piece is one position of it.
    pub is_new: bool,
    /// Whether the files keep it in chunks that are decoded as a whole.
    pub chunked: bool,
}

impl Parts {
    /// The pieces that a box touches: their numbers, and the box's part in each.
    pub fn cut(&self, bx: &Bx) -> Vec<(usize, Bx)> {
        if bx.is_empty() {
            return Vec::new();
        }
        if bx.rank() == 0 || self.starts.len() <= 2 {
            return vec![(0, bx.clone())];
        }
        let first = self.starts.partition_point(|&s| s <= bx.start[self.axis]).saturating_sub(1);
        let mut found = Vec::new();
        for piece in first..self.starts.len() - 1 {
            let start = self.starts[piece].max(bx.start[self.axis]);
            let end = self.starts[piece + 1].min(bx.end(self.axis));
            if self.starts[piece] >= bx.end(self.axis) {
                break;
            }
            if start < end {
                let mut part = bx.clone();
                (part.start[self.axis], part.shape[self.axis]) = (start, end - start);
                found.push((piece, part));
            }
        }
        found
    }

    /// A box within one piece, as a box of the array in the piece's file.
    pub fn within(&self, piece: usize, part: &Bx) -> Bx {
        let mut own = part.clone();
        if self.is_new {
            own.start.remove(self.axis);
            own.shape.remove(self.axis);
        } else if own.rank() > 0 {
            own.start[self.axis] -= self.starts[piece];
        }
        own
    }
}

/// The physical layout of one array. All shapes are of the layout's rank: the array's dimensions, then,
/// for a char array, the dimension of its characters.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Stored element type; [`DType::Str`] elements are `element_size` bytes each.
    pub dtype: DType,
    /// Byte order of the stored elements.
    pub endian: Endian,
    /// Bytes of one element.
    pub element_size: usize,
    /// Stored extent. Positions of the array beyond it read as fill (a netCDF-4 unlimited dimension
    /// that another array made longer).
    pub extent: Vec<u64>,
    /// Chunk shape; the extent itself where there are no chunks.
    pub chunk_shape: Vec<u64>,
    /// Byte strides within a decoded chunk (or within the object for direct placement), descending.
    pub strides: Vec<u64>,
    /// Byte offset of the first element in a decoded chunk (a compound's member).
    pub base: u64,
    /// Bytes of one decoded chunk.
    pub chunk_bytes: u64,
    /// How chunks are encoded.
    pub pipeline: Pipeline,
    /// Where the bytes are.
    pub placement: Placement,
    /// The fill value's `element_size` bytes in stored byte order; zeros where the file has none. Of texts of variable
    /// length the text.
    pub fill: Vec<u8>,
    /// Whether the last dimension of the layout is that of the characters of texts.
    pub char_dim: bool,
    /// Whether texts are padded with spaces, which are then not part of them.
    pub space_padded: bool,
}

impl Layout {
    /// Number of chunks along each dimension.
    pub fn grid(&self) -> Vec<u64> {
        self.extent.iter().zip(&self.chunk_shape).map(|(&n, &c)| n.div_ceil(c.max(1))).collect()
    }

    /// The box of chunk `coords`, cut at the extent.
    pub fn chunk_box(&self, coords: &[u64]) -> Bx {
        let start: Vec<u64> = coords.iter().zip(&self.chunk_shape).map(|(&i, &c)| i * c).collect();
        let shape = start
            .iter()
            .zip(&self.chunk_shape)
            .zip(&self.extent)
            .map(|((&s, &c), &n)| c.min(n - s))
            .collect();
        Bx::new(start, shape)
    }

    /// Whether data lie in chunks that must be decoded as a whole.
    pub fn is_chunked(&self) -> bool {
        match &self.placement {
            Placement::Chunks(_) | Placement::Objects => true,
            Placement::Parts(parts) => parts.chunked,
            Placement::Library(_) | Placement::Foreign(_) => self.chunk_shape != self.extent,
            _ => false,
        }
    }
}

/// C-order byte strides of a dense block of `shape` whose elements take `item` bytes.
pub fn c_strides(shape: &[u64], item: u64) -> Vec<u64> {
    let mut strides = vec![item; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1].saturating_mul(shape[d + 1]);
    }
    strides
}
