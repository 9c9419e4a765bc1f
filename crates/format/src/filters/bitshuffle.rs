//! Bitshuffle, HDF5 filter 32008: bit-shuffled blocks, each compressed on its own or not at all.
//!
//! Without a codec the stored bytes are the blocks alone. With one:
//!
//! | offset | size | meaning (big-endian) |
//! |---|---|---|
//! | 0 | 8 | decoded bytes |
//! | 8 | 4 | decoded bytes of a block |
//! | 12 | | per block: 4 bytes of stored length, then an LZ4 block or a Zstandard frame |
//!
//! The last block holds what is left in whole groups of eight elements; the elements after it (at most seven)
//! are stored as they are.

use super::bits::bit_unshuffle;
use super::bytes::{at_least, be_u32, be_u64, length_within, slice};
use super::pipeline::Tools;
use super::{lz4, zstd};
use sieva_types::{Error, ErrorKind, Result};

const NAME: &str = "bitshuffle";

/// Bytes at which the writer aims for a block when none is asked for.
const TARGET_BLOCK_BYTES: usize = 8192;

/// Elements that a block of the writer's own choice has at the least.
const MIN_DEFAULT_BLOCK: usize = 128;

/// How the blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitshuffleCodec {
    /// Not at all, and without framing.
    None,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

/// The parameters of a Bitshuffle stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitshuffle {
    /// Bytes of an element, at least 1.
    pub element_size: usize,
    /// Elements of a block, a multiple of 8; 0 is the writer's default. Compressed data carry their own.
    pub block_size: usize,
    /// Compression of the blocks.
    pub codec: BitshuffleCodec,
}

impl Bitshuffle {
    /// From the client data of the HDF5 filter: version (2), element size, block size, codec, level.
    pub(super) fn from_hdf5(client_data: &[u32]) -> Option<Self> {
        let element_size = usize::try_from(*client_data.get(2)?).ok().filter(|size| *size > 0)?;
        let block_size = usize::try_from(client_data.get(3).copied().unwrap_or(0)).ok()?;
        let codec = match client_data.get(4).copied().unwrap_or(0) {
            0 => BitshuffleCodec::None,
            2 => BitshuffleCodec::Lz4,
            3 => BitshuffleCodec::Zstd,
            _ => return None,
        };
        block_size.is_multiple_of(8).then_some(Self { element_size, block_size, codec })
    }

    fn default_block_size(&self) -> usize {
        let elements = TARGET_BLOCK_BYTES / self.element_size;
        (elements / 8 * 8).max(MIN_DEFAULT_BLOCK)
    }

    /// Decodes `input` into the start of `out` and returns the length.
    pub(super) fn decode(&self, input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<usize> {
        let group_len = self.group_len()?;
        if self.codec == BitshuffleCodec::None {
            let len = length_within(NAME, "content", input.len() as u64, out.len())?;
            self.decode_bare(group_len, input, &mut out[..len], tools);
            return Ok(len);
        }
        let len = length_within(NAME, "content", be_u64(NAME, input, 0)?, out.len())?;
        let block_len = be_u32(NAME, input, 8)? as usize;
        if len > 0 && (block_len == 0 || !block_len.is_multiple_of(group_len)) {
            return Err(Error::corrupt(format!(
                "{NAME}: blocks of {block_len} bytes, expected a multiple of {group_len}"
            )));
        }
        self.decode_packed(block_len, &input[12..], &mut out[..len], tools)?;
        Ok(len)
    }

    /// Bytes of eight elements.
    fn group_len(&self) -> Result<usize> {
        let Self { element_size, block_size, .. } = *self;
        match element_size.checked_mul(8) {
            Some(len) if len > 0 && block_size.is_multiple_of(8) => Ok(len),
            _ => Err(Error::new(
                ErrorKind::InvalidValue,
                format!("{NAME}: elements of {element_size} bytes in blocks of {block_size} elements"),
            )),
        }
    }

    fn decode_bare(&self, group_len: usize, input: &[u8], out: &mut [u8], tools: &mut Tools) {
        let whole = out.len() - out.len() % group_len;
        let block_size = if self.block_size == 0 { self.default_block_size() } else { self.block_size };
        let block_len = block_size.saturating_mul(self.element_size);
        for (stored, block) in input[..whole].chunks(block_len).zip(out[..whole].chunks_mut(block_len)) {
            bit_unshuffle(self.element_size, stored, block, &mut tools.planes);
        }
        out[whole..].copy_from_slice(&input[whole..]);
    }

    fn decode_packed(&self, block_len: usize, input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<()> {
        let whole = out.len() - out.len() % self.group_len()?;
        let (grouped, rest) = out.split_at_mut(whole);
        let mut at = 0;
        for block in grouped.chunks_mut(block_len.max(1)) {
            let stored_len = be_u32(NAME, input, at)? as usize;
            let stored = slice(NAME, input, at + 4, stored_len)?;
            at += 4 + stored_len;
            self.decode_block(stored, block, tools)?;
        }
        rest.copy_from_slice(slice(NAME, input, at, rest.len())?);
        Ok(())
    }

    fn decode_block(&self, stored: &[u8], block: &mut [u8], tools: &mut Tools) -> Result<()> {
        let mut buffer = std::mem::take(&mut tools.block);
        let shuffled = at_least(&mut buffer, block.len());
        let result = self.unpack(stored, shuffled, tools);
        if result.is_ok() {
            bit_unshuffle(self.element_size, shuffled, block, &mut tools.planes);
        }
        tools.block = buffer;
        result
    }

    fn unpack(&self, stored: &[u8], shuffled: &mut [u8], tools: &mut Tools) -> Result<()> {
        if self.codec == BitshuffleCodec::Lz4 {
            return lz4::decode_block(NAME, stored, shuffled);
        }
        let (len, expected) = (zstd::decode(tools.zstd()?, stored, shuffled)?, shuffled.len());
        if len != expected {
            return Err(Error::corrupt(format!("{NAME}: block of {len} bytes, expected {expected}")));
        }
        Ok(())
    }
}
