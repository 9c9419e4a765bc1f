//! Blosc2 contiguous frames, HDF5 filter 32026.
//!
//! The fixed part of a frame's header is msgpack with every field at its own place; integers are big-endian:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 2 | 8 | `b2frame\0` |
//! | 11 | 4 | bytes of the header |
//! | 30 | 8 | decoded bytes |
//! | 39 | 8 | stored bytes of the chunks |
//! | 48 | 4 | bytes of an element |
//! | 58 | 4 | decoded bytes of a chunk |
//! | 87 | | metalayers: sizes, then a map of names to offsets |
//!
//! The chunks follow the header, then one more chunk with their offsets (64 bits, little-endian, from the end of
//! the header). A negative offset is no offset but special content. The metalayer `b2nd` says that a chunk's
//! elements are in the order of n-dimensional blocks.

use super::blosc;
use super::bytes::{at_least, be_u32, be_u64, length_within, slice};
use super::pipeline::Tools;
use sieva_types::{Error, Result};

const NAME: &str = "blosc2";
const MAGIC: &[u8] = b"b2frame\0";
const METALAYERS: usize = 87;

/// Dimensions that b2nd arrays may have.
const MAX_RANK: usize = 16;

/// How much longer than its content a chunk padded to whole blocks may be.
const MAX_PADDING: usize = 16;

/// Room for the offsets of the chunks of a small frame.
const MIN_OFFSETS_LEN: usize = 64 * 1024;

/// Decodes a frame, or a chunk without one, into the start of `out` and returns the length.
pub(super) fn decode(input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<usize> {
    if input.get(2..10) != Some(MAGIC) {
        return blosc::decode(input, out, tools);
    }
    let frame = Frame::parse(input)?;
    let Some(grid) = BlockGrid::find(input, frame.header_len)? else {
        let len = length_within(NAME, "content", frame.len, out.len())?;
        frame.decode_chunks(&mut out[..len], tools)?;
        return Ok(len);
    };
    let room = out.len().saturating_mul(MAX_PADDING).saturating_add(MIN_OFFSETS_LEN);
    let len = length_within(NAME, "padded content", frame.len, room)?;
    let mut whole = std::mem::take(&mut tools.whole);
    let blocked = at_least(&mut whole, len);
    let result =
        frame.decode_chunks(blocked, tools).and_then(|()| grid.unblock(frame.element_size, blocked, out));
    tools.whole = whole;
    result
}

/// The header of a frame, and what follows it.
struct Frame<'a> {
    header_len: usize,
    element_size: usize,
    len: u64,
    chunk_len: usize,
    chunks: &'a [u8],
    offsets: &'a [u8],
}

impl<'a> Frame<'a> {
    fn parse(input: &'a [u8]) -> Result<Self> {
        let header_len = be_u32(NAME, input, 11)? as usize;
        let after = slice(NAME, input, header_len, input.len().saturating_sub(header_len))?;
        let chunks_len = length_within(NAME, "chunks", be_u64(NAME, input, 39)?, after.len())?;
        let (chunks, offsets) = after.split_at(chunks_len);
        let (len, chunk_len) = (be_u64(NAME, input, 30)?, be_u32(NAME, input, 58)? as usize);
        if chunk_len == 0 && len > 0 {
            return Err(Error::corrupt(format!("{NAME}: frame without a fixed length of chunks")));
        }
        Ok(Self {
            header_len,
            element_size: be_u32(NAME, input, 48)? as usize,
            len,
            chunk_len,
            chunks,
            offsets,
        })
    }

    /// Decodes all chunks into `out`, which is as long as the content.
    fn decode_chunks(&self, out: &mut [u8], tools: &mut Tools) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let count = out.len().div_ceil(self.chunk_len);
        let room = out.len().max(MIN_OFFSETS_LEN) as u64;
        let len = length_within(NAME, "offsets", (count as u64).saturating_mul(8), room as usize)?;
        let mut offsets = vec![0; len];
        let decoded = blosc::decode(self.offsets, &mut offsets, tools)?;
        if decoded != len {
            return Err(Error::corrupt(format!("{NAME}: offsets of {decoded} bytes, expected {len}")));
        }
        for (chunk, offset) in out.chunks_mut(self.chunk_len).zip(offsets.chunks_exact(8)) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(offset);
            self.decode_chunk(bytes, chunk, tools)?;
        }
        Ok(())
    }

    fn decode_chunk(&self, offset: [u8; 8], out: &mut [u8], tools: &mut Tools) -> Result<()> {
        if offset[7] & 0x80 != 0 {
            return blosc::fill(offset[7] & 7, self.element_size, out);
        }
        let at = length_within(NAME, "offset", u64::from_le_bytes(offset), self.chunks.len())?;
        let (len, expected) = (blosc::decode(&self.chunks[at..], out, tools)?, out.len());
        if len != expected {
            return Err(Error::corrupt(format!("{NAME}: chunk of {len} bytes, expected {expected}")));
        }
        Ok(())
    }
}

/// The n-dimensional layout of a frame that holds one chunk.
struct BlockGrid {
    shape: Vec<usize>,
    /// What is stored: at least the shape, and padded to whole blocks.
    chunk_shape: Vec<usize>,
    block_shape: Vec<usize>,
}

impl BlockGrid {
    /// The metalayer `b2nd`, where the header has one.
    fn find(input: &[u8], header_len: usize) -> Result<Option<Self>> {
        let header = slice(NAME, input, 0, header_len)?;
        let Some(metalayers) = header.get(METALAYERS..).filter(|rest| rest.len() >= 7) else {
            return Ok(None);
        };
        let count = u16::from_be_bytes([metalayers[5], metalayers[6]]);
        let mut at = METALAYERS + 7;
        for _ in 0..count {
            let name_len = usize::from(slice(NAME, header, at, 1)?[0] & 0x1f);
            let name = slice(NAME, header, at + 1, name_len)?;
            at += 1 + name_len;
            if name == b"b2nd" {
                let offset = be_u32(NAME, header, at + 1)? as usize;
                // The content is a msgpack bin32: a type byte and a length come first.
                return Self::parse(header.get(offset.saturating_add(5)..).unwrap_or_default()).map(Some);
            }
            at += 5;
        }
        Ok(None)
    }

    fn parse(content: &[u8]) -> Result<Self> {
        let rank = usize::from(slice(NAME, content, 0, 3)?[2]);
        if rank == 0 || rank > MAX_RANK {
            return Err(Error::corrupt(format!("{NAME}: {rank} dimensions, expected 1 to {MAX_RANK}")));
        }
        // Each of the three shapes is a byte for its rank and then, per extent, a type byte and the integer.
        let chunk_at = 5 + 9 * rank;
        let block_at = chunk_at + 5 * rank + 1;
        let length = |at| Ok(be_u32(NAME, content, at)? as usize);
        let mut grid = Self { shape: Vec::new(), chunk_shape: Vec::new(), block_shape: Vec::new() };
        for d in 0..rank {
            let chunk = length(chunk_at + 5 * d + 1)?;
            let extent = usize::try_from(be_u64(NAME, content, 5 + 9 * d)?).unwrap_or(usize::MAX);
            let block = length(block_at + 5 * d + 1)?;
            if extent == 0 || extent > chunk || block == 0 {
                let what =
                    format!("{NAME}: b2nd extent {extent} in one chunk of {chunk} and blocks of {block}");
                return Err(Error::corrupt(what));
            }
            grid.shape.push(extent);
            grid.chunk_shape.push(chunk);
            grid.block_shape.push(block);
        }
        Ok(grid)
    }

    /// Copies elements from the order of blocks into C order and returns the length.
    fn unblock(&self, element_size: usize, blocked: &[u8], out: &mut [u8]) -> Result<usize> {
        let blocks: Vec<usize> =
            self.chunk_shape.iter().zip(&self.block_shape).map(|(n, b)| n.div_ceil(*b)).collect();
        let product = |lengths: &[usize]| lengths.iter().try_fold(element_size, |len, n| len.checked_mul(*n));
        let (len, block_len) = (product(&self.shape), product(&self.block_shape));
        let (Some(len), Some(block_len)) = (len, block_len.filter(|len| *len > 0)) else {
            return Err(Error::corrupt(format!("{NAME}: b2nd shape {:?} is too large", self.shape)));
        };
        length_within(NAME, "b2nd content", len as u64, out.len())?;
        let count = blocks.iter().try_fold(1_usize, |count, n| count.checked_mul(*n));
        if count.and_then(|count| count.checked_mul(block_len)).is_none_or(|padded| padded > blocked.len()) {
            let given = blocked.len();
            return Err(Error::corrupt(format!("{NAME}: {given} bytes for b2nd shape {:?}", self.shape)));
        }
        let mut index = vec![0; blocks.len()];
        for block in blocked.chunks_exact(block_len).take(count.unwrap_or(0)) {
            self.copy_block(element_size, &index, block, out);
            advance(&mut index, &blocks);
        }
        Ok(len)
    }

    /// Copies the rows of one block that are inside of the shape.
    fn copy_block(&self, element_size: usize, index: &[usize], block: &[u8], out: &mut [u8]) {
        let last = self.shape.len() - 1;
        let start: Vec<usize> = index.iter().zip(&self.block_shape).map(|(i, b)| i * b).collect();
        let row_elements = self.block_shape[last].min(self.shape[last].saturating_sub(start[last]));
        let mut row = vec![0; last];
        for stored in block.chunks_exact(self.block_shape[last] * element_size) {
            // The row's number in C order; None where the row is padding.
            let outer = row
                .iter()
                .zip(&start)
                .zip(&self.shape)
                .try_fold(0, |at, ((r, s), n)| (r + s < *n).then(|| at * n + r + s));
            if let Some(outer) = outer.filter(|_| row_elements > 0) {
                let at = (outer * self.shape[last] + start[last]) * element_size;
                let len = row_elements * element_size;
                out[at..at + len].copy_from_slice(&stored[..len]);
            }
            advance(&mut row, &self.block_shape[..last]);
        }
    }
}

/// The next index in C order.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (i, n) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < *n {
            return;
        }
        *i = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_padding_come_out_in_c_order() {
        // A 3 x 4 array in a chunk of 3 x 6 with blocks of 2 x 3: two rows of two blocks.
        let grid = BlockGrid { shape: vec![3, 4], chunk_shape: vec![3, 6], block_shape: vec![2, 3] };
        let mut blocked = Vec::new();
        for (top, left) in [(0, 0), (0, 3), (2, 0), (2, 3)] {
            for (row, column) in (0..6).map(|i| (top + i / 3, left + i % 3)) {
                blocked.push(if row < 3 && column < 4 { 10 * row + column } else { 99 });
            }
        }
        let mut out = [0; 12];
        assert_eq!(grid.unblock(1, &blocked, &mut out).unwrap(), 12);
        assert_eq!(out, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
        assert!(grid.unblock(1, &blocked[1..], &mut out).is_err());
        assert!(grid.unblock(2, &blocked, &mut out).is_err());
    }

    #[test]
    fn a_shape_beyond_its_chunk_is_an_error() {
        let mut content = vec![0x97, 0, 1, 0x91, 0xd3];
        content.extend(5_u64.to_be_bytes());
        content.extend([0x91, 0xd2, 0, 0, 0, 4, 0x91, 0xd2, 0, 0, 0, 2]);
        let e = BlockGrid::parse(&content).err().unwrap();
        assert_eq!(e.to_string(), "blosc2: b2nd extent 5 in one chunk of 4 and blocks of 2");
    }
}
