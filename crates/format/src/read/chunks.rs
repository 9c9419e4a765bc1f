//! Chunked data: which chunks a box touches, each decoded once and copied to its place.

use std::sync::Arc;

use sieva_types::{Bx, Error, ErrorKind, Result};

use super::strided::{self, Side};
use super::{BlockReader, Workspace, dot};
use crate::layout::{ChunkIndex, ChunkRef};

impl BlockReader {
    pub(super) fn read_chunks(
        &self,
        index: &ChunkIndex,
        bx: &Bx,
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let layout = &*self.layout;
        let grid = layout.grid();
        let first: Vec<u64> = bx.start.iter().zip(&layout.chunk_shape).map(|(s, c)| s / c).collect();
        let last: Vec<u64> = (0..bx.rank()).map(|d| (bx.end(d) - 1) / layout.chunk_shape[d]).collect();
        let mut coords = first.clone();
        loop {
            let number = coords.iter().zip(&grid).fold(0, |n, (c, g)| n * g + c);
            self.read_chunk(index.get(number), &coords, bx, out, to, ws)
                .map_err(|e| e.at(format!("chunk {coords:?}")))?;
            if !advance(&mut coords, &first, &last) {
                return Ok(());
            }
        }
    }

    /// The part of one chunk that lies in `bx`.
    fn read_chunk(
        &self,
        chunk: Option<ChunkRef>,
        coords: &[u64],
        bx: &Bx,
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let layout = &*self.layout;
        let chunk_box = layout.chunk_box(coords);
        let Some(part) = chunk_box.intersect(bx) else { return Ok(()) };
        let offset_of =
            |from: &Bx| (0..bx.rank()).map(|d| (part.start[d] - from.start[d]) * to.strides[d]).sum::<u64>();
        let to = Side { base: to.base + offset_of(bx) as usize, strides: to.strides };
        let Some(chunk) = chunk else {
            strided::fill(&part.shape, &layout.fill, out, to);
            return Ok(());
        };
        let within: Vec<u64> = part.start.iter().zip(&chunk_box.start).map(|(p, c)| p - c).collect();
        if layout.pipeline.filters.is_empty() && chunk.size == layout.chunk_bytes {
            return self.read_direct(chunk.offset, &within, &part.shape, out, to, ws);
        }
        let dense = part.shape == layout.chunk_shape && to.strides == layout.strides && layout.base == 0;
        if dense && layout.chunk_bytes == part.len() * layout.element_size as u64 {
            let end = to.base + layout.chunk_bytes as usize;
            return self.decode(chunk, &mut out[to.base..end], ws);
        }
        let whole = part == chunk_box;
        let bytes = self.decoded(chunk, whole, ws)?;
        let from =
            Side { base: (layout.base + dot(&within, &layout.strides)) as usize, strides: &layout.strides };
        strided::copy(&part.shape, layout.element_size, &bytes, from, out, to);
        Ok(())
    }

    /// The decoded chunk, from the cache or decoded now; kept only if more of it may be wanted.
    fn decoded(&self, chunk: ChunkRef, whole: bool, ws: &mut Workspace) -> Result<Arc<Vec<u8>>> {
        if let Some(bytes) = self.cache.get(chunk.offset) {
            return Ok(bytes);
        }
        let size =
            usize::try_from(self.layout.chunk_bytes).ok().filter(|_| self.layout.chunk_bytes <= self.memory);
        let Some(size) = size else {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "one decoded chunk takes {} bytes, the limit is {}",
                    self.layout.chunk_bytes, self.memory
                ),
            )
            .hint("raise the limit with --memory (memory= in Python)"));
        };
        let mut bytes = vec![0; size];
        self.decode(chunk, &mut bytes, ws)?;
        let bytes = Arc::new(bytes);
        if !whole || self.layout.base != 0 || self.shares_chunks() {
            self.cache.put(chunk.offset, Arc::clone(&bytes));
        }
        Ok(bytes)
    }

    /// Whether other arrays (members of the same compound) decode the same chunks.
    fn shares_chunks(&self) -> bool {
        let item = self.layout.chunk_shape.iter().product::<u64>() * self.layout.element_size as u64;
        item != self.layout.chunk_bytes
    }

    fn decode(&self, chunk: ChunkRef, out: &mut [u8], ws: &mut Workspace) -> Result<()> {
        let store = self.source.store();
        if chunk.size > store.len() {
            return Err(Error::corrupt(format!("{} stored bytes, more than the file has", chunk.size)));
        }
        let mut encoded = std::mem::take(&mut ws.encoded);
        encoded.resize(chunk.size as usize, 0);
        let done = store
            .read_exact_at(chunk.offset, &mut encoded)
            .and_then(|()| self.layout.pipeline.decode(chunk.filter_mask, &encoded, out, &mut ws.scratch));
        ws.encoded = encoded;
        store.counters().add_chunk();
        done
    }
}

/// The next grid position in C order between `first` and `last` (inclusive); false after the last one.
fn advance(coords: &mut [u64], first: &[u64], last: &[u64]) -> bool {
    for d in (0..coords.len()).rev() {
        if coords[d] < last[d] {
            coords[d] += 1;
            return true;
        }
        coords[d] = first[d];
    }
    false
}
