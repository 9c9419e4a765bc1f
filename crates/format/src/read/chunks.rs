//! Chunked data: which chunks a box touches, each decoded once and copied to its place.

use std::sync::Arc;

use sieva_types::{Bx, Error, ErrorKind, Result, try_resize, try_zeros};

use super::cache::ChunkKey;
use super::flight::Claim;
use super::strided::{self, Side};
use super::{BlockReader, Workspace, dot};
use crate::layout::ChunkRef;

/// Where a chunk's stored bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A range of the source's one object.
    In(ChunkRef),
    /// The source itself, by the chunk's number; it may turn out never to have been written.
    Object(u64),
}

/// Stored bytes that a chunk may have whatever the limit.
const LEAST: u64 = 1 << 20;
const MORE_MEMORY: &str = "raise the limit with --memory (memory= in Python)";

/// Offsets in an object stay below this; the keys of other chunks in the cache lie above.
const OBJECT_KEYS: u64 = 1 << 63;
/// Bits of a key that count the chunks of an array.
const NUMBER_BITS: u32 = 40;

impl BlockReader {
    pub(super) fn read_chunks(
        &self,
        find: impl Fn(u64) -> Option<Piece>,
        bx: &Bx,
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let layout = &*self.layout;
        let grid = layout.grid();
        let first: Vec<u64> = bx.start.iter().zip(&layout.chunk_shape).map(|(s, c)| s / c).collect();
        let last: Vec<u64> = (0..bx.rank()).map(|d| (bx.end(d) - 1) / layout.chunk_shape[d]).collect();
        let number = |coords: &[u64]| coords.iter().zip(&grid).fold(0, |n, (c, g)| n * g + c);
        if first != last {
            self.announce(&first, &last, |coords| find(number(coords)));
        }
        let mut coords = first.clone();
        loop {
            ws.check()?;
            self.read_chunk(find(number(&coords)), &coords, bx, out, to, ws)
                .map_err(|e| e.at(format!("chunk {coords:?}")))?;
            if !advance(&mut coords, &first, &last) {
                return Ok(());
            }
        }
    }

    /// Tells a storage behind a network which chunks are wanted, so that they come together.
    fn announce(&self, first: &[u64], last: &[u64], find: impl Fn(&[u64]) -> Option<Piece>) {
        if !self.source.store().is_remote() {
            return;
        }
        let (mut ranges, mut numbers) = (Vec::new(), Vec::new());
        let mut coords = first.to_vec();
        loop {
            match find(&coords) {
                Some(piece) if self.is_cached(piece) => {}
                Some(Piece::In(c)) => ranges.push(c.offset..c.offset.saturating_add(c.size)),
                Some(Piece::Object(n)) => numbers.push(n),
                None => {}
            }
            if !advance(&mut coords, first, last) {
                break;
            }
        }
        if !ranges.is_empty() {
            self.source.store().will_need(&ranges);
        }
        if let (false, Some(chunks)) = (numbers.is_empty(), self.source.object_chunks()) {
            chunks.will_need_chunks(self.array, &numbers);
        }
    }

    /// Whether the decoded chunk is held, or being made.
    pub(super) fn is_cached(&self, chunk: Piece) -> bool {
        self.cache.is_at_hand(self.key(chunk))
    }

    /// What its decoded chunk is known by.
    pub(super) fn key(&self, chunk: Piece) -> ChunkKey {
        match chunk {
            Piece::In(chunk) => (self.file, chunk.offset, self.coding ^ u64::from(chunk.filter_mask)),
            Piece::Object(number) => {
                (self.file, OBJECT_KEYS | (self.array as u64) << NUMBER_BITS ^ number, self.coding)
            }
        }
    }

    /// The part of one chunk that lies in `bx`.
    fn read_chunk(
        &self,
        chunk: Option<Piece>,
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
        if let Piece::In(chunk) = chunk
            && layout.pipeline.filters.is_empty()
            && chunk.size == layout.chunk_bytes
        {
            return self.read_direct(chunk.offset, &within, &part.shape, out, to, ws);
        }
        let dense = part.shape == layout.chunk_shape && to.strides == layout.strides && layout.base == 0;
        if dense && layout.chunk_bytes == part.len().saturating_mul(layout.element_size as u64) {
            let end = to.base + layout.chunk_bytes as usize;
            return self.read_whole(chunk, &part.shape, &mut out[to.base..end], Side { base: 0, ..to }, ws);
        }
        let Some(bytes) = self.decoded(chunk, part == chunk_box, ws)? else {
            strided::fill(&part.shape, &layout.fill, out, to);
            return Ok(());
        };
        let from =
            Side { base: (layout.base + dot(&within, &layout.strides)) as usize, strides: &layout.strides };
        strided::copy(&part.shape, layout.element_size, &bytes, from, out, to);
        Ok(())
    }

    /// A chunk of which every element is wanted, dense and in order: decoded where it is to be, and kept where there is
    /// room, as who tests values often wants some of them next.
    fn read_whole(
        &self,
        chunk: Piece,
        shape: &[u64],
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let lease = match self.cache.claim(self.key(chunk), &mut || ws.check())? {
            Claim::Given(bytes) => {
                ws.cached += 1;
                match bytes {
                    Some(bytes) if bytes.len() == out.len() => out.copy_from_slice(&bytes),
                    Some(bytes) => return Err(cut_short(bytes.len(), out.len())),
                    None => strided::fill(shape, &self.layout.fill, out, to),
                }
                return Ok(());
            }
            Claim::Own(lease) => lease,
        };
        match self.decode(chunk, out, ws) {
            Ok(true) => lease.land_passed(out),
            Ok(false) => {
                lease.land(&Ok(None), false);
                strided::fill(shape, &self.layout.fill, out, to);
            }
            Err(e) => {
                lease.land(&Err(e.clone()), false);
                return Err(e);
            }
        }
        Ok(())
    }

    /// The decoded chunk, from the cache or decoded now; kept in the place of others only if more of it may be wanted. `None` where it was
    /// never written.
    fn decoded(&self, chunk: Piece, whole: bool, ws: &mut Workspace) -> Result<Option<Arc<Vec<u8>>>> {
        let lease = match self.cache.claim(self.key(chunk), &mut || ws.check())? {
            Claim::Given(bytes) => {
                ws.cached += 1;
                return Ok(bytes);
            }
            Claim::Own(lease) => lease,
        };
        let mut encoded = std::mem::take(&mut ws.encoded);
        let decoded = self.decode_new(chunk, &mut encoded, ws).map(|bytes| bytes.map(Arc::new));
        ws.encoded = encoded;
        lease.land(&decoded, !whole || self.layout.base != 0 || self.shares_chunks());
        decoded
    }

    /// The same, made now. Memory for it is taken when it is there: of a chunk that was never written none is.
    pub(super) fn decode_new(
        &self,
        chunk: Piece,
        encoded: &mut Vec<u8>,
        ws: &mut Workspace,
    ) -> Result<Option<Vec<u8>>> {
        let Some(mask) = self.stored_bytes(chunk, encoded)? else { return Ok(None) };
        self.decode_stored(mask, encoded, ws).map(Some)
    }

    /// A chunk of these stored bytes, decoded.
    pub(super) fn decode_stored(&self, mask: u32, encoded: &[u8], ws: &mut Workspace) -> Result<Vec<u8>> {
        let (need, pipeline) = (self.layout.chunk_bytes, &self.layout.pipeline);
        if pipeline.filters.is_empty() && encoded.len() as u64 != need {
            return Err(cut_short(encoded.len(), need as usize));
        }
        let Some(size) = usize::try_from(need).ok().filter(|_| need <= self.memory) else {
            let message = format!("one decoded chunk takes {need} bytes, the limit is {}", self.memory);
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint(MORE_MEMORY));
        };
        let mut bytes = try_zeros(size)?;
        self.source.store().counters().add_chunk();
        pipeline.decode(mask, encoded, &mut bytes, &mut ws.scratch)?;
        Ok(bytes)
    }

    /// Whether other arrays (members of the same compound) decode the same chunks.
    fn shares_chunks(&self) -> bool {
        let chunk = Bx::whole(&self.layout.chunk_shape).len();
        let item = chunk.saturating_mul(self.layout.element_size as u64);
        item != self.layout.chunk_bytes
    }

    /// Decodes a chunk into `out`; false where it was never written.
    fn decode(&self, chunk: Piece, out: &mut [u8], ws: &mut Workspace) -> Result<bool> {
        let mut encoded = std::mem::take(&mut ws.encoded);
        let done = self.stored_bytes(chunk, &mut encoded).and_then(|mask| {
            let Some(mask) = mask else { return Ok(false) };
            self.source.store().counters().add_chunk();
            self.layout.pipeline.decode(mask, &encoded, out, &mut ws.scratch).map(|()| true)
        });
        ws.encoded = encoded;
        done
    }

    /// Puts a chunk's stored bytes into `out` and returns its filter mask; `None` where it was never written.
    fn stored_bytes(&self, chunk: Piece, out: &mut Vec<u8>) -> Result<Option<u32>> {
        let most = self.memory.max(LEAST);
        match chunk {
            Piece::In(chunk) => {
                let store = self.source.store();
                if chunk.size > store.len() {
                    let message = format!("{} stored bytes, more than the file has", chunk.size);
                    return Err(Error::corrupt(message));
                }
                if chunk.size > most {
                    let message = format!("{} stored bytes, the limit is {most}", chunk.size);
                    return Err(Error::new(ErrorKind::MemoryLimit, message).hint(MORE_MEMORY));
                }
                out.truncate(chunk.size as usize);
                try_resize(out, chunk.size as usize)?;
                store.read_exact_at(chunk.offset, out)?;
                Ok(Some(chunk.filter_mask))
            }
            Piece::Object(number) => {
                let chunks = self.source.needs_object_chunks(self.array)?;
                Ok(chunks.fetch_chunk(self.array, number, most, out)?.then_some(0))
            }
        }
    }
}

fn cut_short(have: usize, need: usize) -> Error {
    Error::corrupt(format!("decoded to {have} bytes, expected {need}"))
}

/// The next grid position in C order between `first` and `last` (inclusive); false after the last one.
pub(crate) fn advance(coords: &mut [u64], first: &[u64], last: &[u64]) -> bool {
    for d in (0..coords.len()).rev() {
        if coords[d] < last[d] {
            coords[d] += 1;
            return true;
        }
        coords[d] = first[d];
    }
    false
}
