//! Where the chunks of an array lie in the grid of a Zarr array.

use std::sync::Arc;

use sieva_types::DType;

use super::Reference;
use crate::layout::{ChunkIndex, Layout, Placement, c_strides};
use crate::schema::ArrayInfo;

/// More chunks than this are not listed one by one.
const MAX_CHUNKS: u64 = 10_000_000;

/// An array's elements and chunks, as a Zarr array has them: the characters of texts are no dimension there.
pub struct Grid<'a> {
    layout: &'a Layout,
    /// Bytes of an element, whole texts.
    pub size: u64,
    /// Shape of the array.
    pub shape: Vec<u64>,
    /// Shape of a chunk.
    pub chunks: Vec<u64>,
}

/// Something, or why an array cannot be in a reference set.
pub type Fit<T> = Result<T, String>;

impl<'a> Grid<'a> {
    /// The grid of `array`, or why it has none.
    pub fn new(array: &ArrayInfo, layout: &'a Layout) -> Fit<Self> {
        let rank = array.shape.len();
        let (mut size, extent) = (layout.element_size as u64, &layout.extent[..rank]);
        if layout.char_dim {
            size = layout.extent[rank];
            if layout.chunk_shape[rank] != size || layout.strides[rank] != 1 {
                return Err("its texts are cut into chunks".into());
            }
        }
        if size == 0 {
            return Err("its texts are of any length".into());
        }
        let mut chunks: Vec<u64> = layout.chunk_shape[..rank].to_vec();
        if let Placement::Direct { .. } = layout.placement {
            // What does not lie densely from one index to the next is a chunk for each index: records.
            let dense = c_strides(extent, size);
            let loose = (0..rank).rev().find(|&d| extent[d] > 1 && layout.strides[d] != dense[d]);
            if loose.is_some() && array.storage.layout != "record" {
                // Each element would be a chunk.
                return Err("it is a member of a compound".into());
            }
            loose.into_iter().for_each(|d| chunks[..=d].fill(1));
        }
        let grid = Self { layout, size, shape: array.shape.clone(), chunks };
        grid.check(extent)?;
        Ok(grid)
    }

    fn check(&self, extent: &[u64]) -> Fit<()> {
        let layout = self.layout;
        let items = self.chunks.iter().product::<u64>() * self.size;
        match &layout.placement {
            Placement::Library(why) => return Err(format!("it is read by a library: {why}")),
            Placement::Direct { .. } | Placement::Inline(_) | Placement::Unallocated => {
                let dense = c_strides(&self.chunks, self.size);
                let apart = (0..dense.len()).any(|d| self.chunks[d] > 1 && layout.strides[d] != dense[d]);
                if apart || layout.base != 0 && matches!(layout.placement, Placement::Inline(_)) {
                    return Err("it is a member of a compound".into());
                }
            }
            _ => {
                if layout.base != 0 || items != layout.chunk_bytes {
                    return Err("it is a member of a compound".into());
                }
            }
        }
        // A chunk that reaches past the stored extent holds what the file does not call data.
        let cut = |d: usize| extent[d] < self.shape[d] && !extent[d].is_multiple_of(self.chunks[d].max(1));
        if (0..extent.len()).any(cut) {
            return Err("its stored part ends within a chunk".into());
        }
        Ok(())
    }

    /// Chunk shape as Zarr has it, without zeros.
    pub fn zarr_chunks(&self) -> Vec<u64> {
        self.chunks.iter().map(|&c| c.max(1)).collect()
    }

    fn lengths(&self) -> Vec<u64> {
        let extent = &self.layout.extent;
        self.chunks.iter().zip(extent).map(|(&c, &n)| n.div_ceil(c.max(1))).collect()
    }

    /// The chunks that are stored, by their part of a key, and whether some are not.
    pub fn references(&self, url: &Arc<str>) -> Fit<(Vec<(String, Reference)>, bool)> {
        let lengths = self.lengths();
        let total = lengths.iter().try_fold(1_u64, |n, &g| n.checked_mul(g)).unwrap_or(u64::MAX);
        let short = self.layout.extent.iter().zip(&self.shape).any(|(e, s)| e < s);
        let range = |offset, len| Reference::Range { url: Arc::clone(url), offset, len };
        let too_many = || format!("it has more than {MAX_CHUNKS} chunks");
        let mut found = Vec::new();
        match &self.layout.placement {
            Placement::Chunks(index) => {
                let mut stored: Vec<_> = match index {
                    ChunkIndex::Dense(_) if total > MAX_CHUNKS => return Err(too_many()),
                    ChunkIndex::Dense(_) => (0..total).filter_map(|n| Some((n, index.get(n)?))).collect(),
                    ChunkIndex::Sparse(m) => m.iter().map(|(&n, &c)| (n, c)).collect(),
                };
                stored.sort_unstable_by_key(|&(n, _)| n);
                let used = (0..32.min(self.layout.pipeline.filters.len())).fold(0_u32, |m, i| m | 1 << i);
                if stored.iter().any(|(_, c)| c.filter_mask & used != 0) {
                    return Err("some of its chunks were written without all filters".into());
                }
                let absent = short || (stored.len() as u64) < total;
                found.extend(stored.into_iter().map(|(n, c)| (key(n, &lengths), range(c.offset, c.size))));
                Ok((found, absent))
            }
            Placement::Direct { offset } if total <= MAX_CHUNKS => {
                let bytes = self.chunks.iter().product::<u64>() * self.size;
                for number in 0..total {
                    let coords = unravel(number, &lengths);
                    let steps = coords.iter().zip(&self.chunks).zip(&self.layout.strides);
                    let place = steps.map(|((i, c), s)| i * c * s).sum::<u64>();
                    found.push((key(number, &lengths), range(offset + self.layout.base + place, bytes)));
                }
                Ok((found, short))
            }
            Placement::Inline(bytes) if total > 0 => {
                found.push((key(0, &lengths), Reference::Inline(bytes.to_vec())));
                Ok((found, short))
            }
            Placement::Direct { .. } => Err(too_many()),
            _ => Ok((found, true)),
        }
    }

    /// Whether an element can be left unwritten: whether a fill value can say what it is.
    pub fn has_fill(&self) -> bool {
        !(self.layout.dtype == DType::Str && self.layout.space_padded)
    }
}

fn unravel(mut number: u64, lengths: &[u64]) -> Vec<u64> {
    let mut coords = vec![0; lengths.len()];
    for (c, &n) in coords.iter_mut().zip(lengths).rev() {
        (*c, number) = (number % n.max(1), number / n.max(1));
    }
    coords
}

/// A chunk's part of its key: `2.0.7`; `0` of a scalar.
fn key(number: u64, lengths: &[u64]) -> String {
    if lengths.is_empty() {
        return "0".into();
    }
    let parts: Vec<String> = unravel(number, lengths).iter().map(u64::to_string).collect();
    parts.join(".")
}
