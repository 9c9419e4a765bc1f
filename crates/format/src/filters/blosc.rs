//! Chunks of Blosc 1 and 2, HDF5 filters 32001 and (inside of frames) 32026.
//!
//! | offset | size | meaning (little-endian) |
//! |---|---|---|
//! | 0 | 1 | version of the format: 2 for Blosc 1, 3 and up for Blosc 2 |
//! | 1 | 1 | version of the codec's format |
//! | 2 | 1 | flags: 1 shuffle, 2 stored raw, 4 bit shuffle, 8 delta, 16 blocks are not split, upper three bits codec |
//! | 3 | 1 | bytes of an element |
//! | 4 | 4 | decoded bytes |
//! | 8 | 4 | decoded bytes of a block |
//! | 12 | 4 | stored bytes with this header |
//! | 16 | 6 | filters in the order of writing; here to 31 only where flags 1 and 4 are both set |
//! | 22 | 9 | parameters of codec and filters |
//! | 31 | 1 | flags: 1 dictionary, 8 lazy, bits 4 to 6 special content, 128 instrumented |
//!
//! Then the offset of every block (4 bytes each) and the blocks: one stream, or one per byte of an element, each
//! after its length (4 bytes). In Blosc 2 the length 0 is a run of zeros and -b a run of the byte b.

use super::bytes::{at_least, le_u32, length_within, slice};
use super::pipeline::Tools;
use super::{bits, blosclz, deflate, lz4, shuffle, zstd};
use sieva_types::{Error, ErrorKind, Result};

const NAME: &str = "blosc";
const HEADER_LEN: usize = 16;
const EXTENDED_HEADER_LEN: usize = 32;

/// First version whose streams may be runs and whose last bit-shuffled elements may be fewer than eight.
const FIRST_BLOSC2_VERSION: u8 = 3;

/// Blosc 1 splits blocks of elements up to this many bytes...
const MAX_SPLITS: usize = 16;
/// ... and with at least this many elements.
const MIN_SPLIT_LEN: usize = 128;

/// A filter inside of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Shuffle,
    BitShuffle,
    /// Exclusive or with the first block of the chunk, and within that with the element before.
    Delta,
}

/// A chunk's header and its bytes.
struct Chunk<'a> {
    stored: &'a [u8],
    version: u8,
    flags: u8,
    element_size: usize,
    len: usize,
    block_len: usize,
    header_len: usize,
    filters: [u8; 6],
    special: u8,
}

/// Decodes one chunk into the start of `out` and returns the length.
pub(super) fn decode(input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<usize> {
    let chunk = Chunk::parse(input, out.len())?;
    let out = &mut out[..chunk.len];
    if chunk.special != 0 {
        chunk.fill_special(out)?;
    } else if chunk.flags & 2 != 0 {
        out.copy_from_slice(slice(NAME, chunk.stored, chunk.header_len, chunk.len)?);
    } else if chunk.len > 0 {
        chunk.decode_blocks(out, tools)?;
    }
    Ok(chunk.len)
}

/// The special content `kind` over elements of `out`: 1 zeros, 2 NaN, 4 whatever the writer left unset.
pub(super) fn fill(kind: u8, element_size: usize, out: &mut [u8]) -> Result<()> {
    match (kind, element_size) {
        (1 | 4, _) => out.fill(0),
        (2, 4) => repeat(&f32::NAN.to_le_bytes(), out),
        (2, 8) => repeat(&f64::NAN.to_le_bytes(), out),
        _ => {
            let what = format!("{NAME}: special content {kind} for elements of {element_size} bytes");
            return Err(Error::corrupt(what));
        }
    }
    Ok(())
}

fn repeat(value: &[u8], out: &mut [u8]) {
    for element in out.chunks_mut(value.len()) {
        element.copy_from_slice(&value[..element.len()]);
    }
}

impl<'a> Chunk<'a> {
    fn parse(input: &'a [u8], room: usize) -> Result<Self> {
        let header = slice(NAME, input, 0, HEADER_LEN)?;
        let stored_len = length_within(NAME, "chunk", le_u32(NAME, input, 12)?.into(), input.len())?;
        let mut chunk = Self {
            stored: &input[..stored_len],
            version: header[0],
            flags: header[2],
            element_size: usize::from(header[3]),
            len: length_within(NAME, "content", le_u32(NAME, input, 4)?.into(), room)?,
            block_len: 0,
            header_len: HEADER_LEN,
            filters: [0; 6],
            special: 0,
        };
        chunk.block_len = length_within(NAME, "block", le_u32(NAME, input, 8)?.into(), chunk.len)?;
        if chunk.element_size == 0 || (chunk.block_len == 0 && chunk.len > 0) {
            return Err(Error::corrupt(format!("{NAME}: elements or blocks of 0 bytes")));
        }
        if chunk.version >= FIRST_BLOSC2_VERSION && chunk.flags & 5 == 5 {
            chunk.parse_extension()?;
        } else {
            chunk.filters_of_flags();
        }
        Ok(chunk)
    }

    fn parse_extension(&mut self) -> Result<()> {
        let header = slice(NAME, self.stored, 0, EXTENDED_HEADER_LEN)?;
        self.header_len = EXTENDED_HEADER_LEN;
        self.filters.copy_from_slice(&header[16..22]);
        self.special = header[31] >> 4 & 7;
        match header[31] {
            flags if flags & 0x08 != 0 => Err(Error::corrupt(format!("{NAME}: lazy chunk without its data"))),
            flags if flags & 0x81 != 0 => Err(unsupported("dictionary or instrumented codec")),
            _ => Ok(()),
        }
    }

    fn filters_of_flags(&mut self) {
        self.filters[0] = if self.flags & 8 != 0 { 3 } else { 0 };
        self.filters[1] = match self.flags & 5 {
            0 => 0,
            4 => 2,
            _ => 1,
        };
    }

    fn fill_special(&self, out: &mut [u8]) -> Result<()> {
        if self.special != 3 {
            return fill(self.special, self.element_size, out);
        }
        repeat(slice(NAME, self.stored, self.header_len, self.element_size)?, out);
        Ok(())
    }

    /// The filters that change anything, in the order of writing.
    fn stages(&self) -> Result<([Stage; 6], usize)> {
        let (mut stages, mut count) = ([Stage::Shuffle; 6], 0);
        for code in self.filters {
            stages[count] = match code {
                // Truncated precision stays truncated.
                0 | 4 => continue,
                1 => Stage::Shuffle,
                2 => Stage::BitShuffle,
                3 if count == 0 => Stage::Delta,
                3 => return Err(unsupported("delta filter after another")),
                _ => return Err(unsupported(format!("filter {code}"))),
            };
            count += 1;
        }
        Ok((stages, count))
    }

    fn decode_blocks(&self, out: &mut [u8], tools: &mut Tools) -> Result<()> {
        let (stages, count) = self.stages()?;
        let is_delta = count > 0 && stages[0] == Stage::Delta;
        let transpositions = &stages[usize::from(is_delta)..count];
        for (i, block) in out.chunks_mut(self.block_len).enumerate() {
            let start = le_u32(NAME, self.stored, self.header_len + 4 * i)? as usize;
            let mut buffers = (std::mem::take(&mut tools.block), std::mem::take(&mut tools.other_block));
            let result = self.decode_block(start, transpositions, block, &mut buffers, tools);
            (tools.block, tools.other_block) = buffers;
            result?;
        }
        if is_delta {
            self.undo_delta(out);
        }
        Ok(())
    }

    fn decode_block(
        &self,
        start: usize,
        transpositions: &[Stage],
        block: &mut [u8],
        (data, other): &mut (Vec<u8>, Vec<u8>),
        tools: &mut Tools,
    ) -> Result<()> {
        let Some((last, before)) = transpositions.split_first() else {
            return self.decode_streams(start, block, tools);
        };
        self.decode_streams(start, at_least(data, block.len()), tools)?;
        for stage in before.iter().rev() {
            self.transpose(*stage, &data[..block.len()], at_least(other, block.len()), tools);
            std::mem::swap(data, other);
        }
        self.transpose(*last, &data[..block.len()], block, tools);
        Ok(())
    }

    fn transpose(&self, stage: Stage, src: &[u8], dst: &mut [u8], tools: &mut Tools) {
        if stage == Stage::Shuffle {
            return shuffle::unshuffle(self.element_size, src, dst);
        }
        let count = src.len() / self.element_size;
        let groups = match count % 8 {
            0 => count,
            // Blosc 1 leaves such a block as it is, Blosc 2 the last elements only.
            _ if self.version < FIRST_BLOSC2_VERSION => 0,
            rest => count - rest,
        };
        let ((shuffled, plain), (front, back)) =
            (src.split_at(groups * self.element_size), dst.split_at_mut(groups * self.element_size));
        bits::bit_unshuffle(self.element_size, shuffled, front, &mut tools.planes);
        back.copy_from_slice(plain);
    }

    fn decode_streams(&self, start: usize, block: &mut [u8], tools: &mut Tools) -> Result<()> {
        let streams = if self.is_split(block.len()) { self.element_size } else { 1 };
        if !block.len().is_multiple_of(streams) {
            let len = block.len();
            return Err(Error::corrupt(format!("{NAME}: block of {len} bytes split into {streams} streams")));
        }
        let stream_len = block.len() / streams;
        let mut at = start;
        for stream in block.chunks_exact_mut(stream_len) {
            at = self.decode_stream(at, stream, tools)?;
        }
        Ok(())
    }

    /// Whether a block of that length is stored as one stream per byte of an element.
    fn is_split(&self, block_len: usize) -> bool {
        // Blosc 1 before 1.14 did not record its choice: these conditions are how it chose.
        let as_blosc1 = self.element_size <= MAX_SPLITS && block_len / self.element_size >= MIN_SPLIT_LEN;
        self.flags & 16 == 0
            && block_len == self.block_len
            && (self.version >= FIRST_BLOSC2_VERSION || as_blosc1)
    }

    /// Decodes the stream at `at` and returns where the next one starts.
    fn decode_stream(&self, at: usize, out: &mut [u8], tools: &mut Tools) -> Result<usize> {
        let given = le_u32(NAME, self.stored, at)?.cast_signed();
        let at = at + 4;
        if given <= 0 && self.version >= FIRST_BLOSC2_VERSION {
            return self.decode_run(given, at, out);
        }
        let len = length_within(NAME, "stream", u64::from(given.cast_unsigned()), self.stored.len())?;
        let stored = slice(NAME, self.stored, at, len)?;
        if len == out.len() {
            out.copy_from_slice(stored);
        } else {
            self.decompress(stored, out, tools)?;
        }
        Ok(at + len)
    }

    fn decode_run(&self, given: i32, at: usize, out: &mut [u8]) -> Result<usize> {
        if given == 0 {
            out.fill(0);
            return Ok(at);
        }
        let token = slice(NAME, self.stored, at, 1)?[0];
        match u8::try_from(given.unsigned_abs()) {
            Ok(byte) if token & 1 == 1 => out.fill(byte),
            _ => return Err(Error::corrupt(format!("{NAME}: stream of length {given}, token {token}"))),
        }
        Ok(at + 1)
    }

    fn decompress(&self, stored: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<()> {
        let expected = out.len();
        let damaged = || Error::corrupt(format!("{NAME}: damaged stream of {} bytes", stored.len()));
        let len = match self.flags >> 5 {
            0 => blosclz::decode(stored, out).ok_or_else(damaged)?,
            1 => return lz4::decode_block(NAME, stored, out),
            2 => snap::raw::Decoder::new()
                .decompress(stored, out)
                .map_err(|e| Error::corrupt(format!("{NAME}: {e}")))?,
            3 => deflate::decode(tools.inflate(), stored, out)?,
            4 => zstd::decode(tools.zstd()?, stored, out)?,
            codec => return Err(unsupported(format!("codec {codec}"))),
        };
        if len != expected {
            return Err(Error::corrupt(format!("{NAME}: stream of {len} bytes, expected {expected}")));
        }
        Ok(())
    }

    fn undo_delta(&self, out: &mut [u8]) {
        let width = match self.element_size {
            size @ (1 | 2 | 4) => size,
            size if size % 8 == 0 => 8,
            _ => 1,
        };
        let (reference, others) = out.split_at_mut(self.block_len.min(out.len()));
        for i in width..reference.len() / width * width {
            reference[i] ^= reference[i - width];
        }
        for block in others.chunks_mut(self.block_len) {
            let whole = block.len() / width * width;
            for (byte, base) in block[..whole].iter_mut().zip(&*reference) {
                *byte ^= base;
            }
        }
    }
}

fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::FilterUnavailable, format!("{NAME}: no decoder for {what}"))
}
