//! The bytes of a segment. All numbers are little-endian.
//!
//! ```text
//! 0        64  magic "SIEVASEG", version u32, zeros
//! 64 ...       bodies and blocks as they came, each on a multiple of 64
//!              block = table (an entry of fixed width for each record), then the payload
//! ...          directory, on a multiple of 64: arrays, then blocks
//! end-32   32  trailer: offset u64, length u64 and xxh3-64 of the directory, magic "SIEVAEND"
//! ```

use sieva_types::Result;

use super::super::ArrayHeader;
use super::super::bytes::{Cursor, corrupt};

/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Blocks and bodies begin on multiples of this.
pub(super) const ALIGN: u64 = 64;
/// Bytes of the trailer.
pub(super) const TRAILER: u64 = 32;
/// The last bytes of a segment.
const END: [u8; 8] = *b"SIEVAEND";
/// Largest statistics or head of one record, in bytes.
pub(super) const MAX_RECORD: usize = 16 << 20;
/// Largest block, in bytes.
const MAX_BLOCK: u64 = 64 << 20;
/// Largest directory, in bytes.
const MAX_DIRECTORY: u64 = 256 << 20;

/// The first bytes of a segment.
pub(super) fn file_header() -> [u8; ALIGN as usize] {
    let mut out = [0; ALIGN as usize];
    out[..8].copy_from_slice(b"SIEVASEG");
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out
}

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Statistics, each with the checksum of its region's elements.
    Stats = 1,
    /// Heads of bitmaps, and where their bodies are.
    Heads = 2,
}

/// A block, as the directory tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of its array in the directory.
    pub array: u32,
    /// What it holds.
    pub kind: Kind,
    /// Where it begins in the file.
    pub offset: u64,
    /// Number of records.
    pub records: u32,
    /// Bytes of the payload.
    pub payload: u64,
    /// xxh3-64 of the table.
    pub table_hash: u64,
    /// xxh3-64 of the payload.
    pub payload_hash: u64,
}

impl Block {
    const LEN: usize = 48;

    /// Bytes of the table.
    pub fn table(&self) -> u64 {
        let entry = if self.kind == Kind::Stats { StatsEntry::LEN } else { HeadEntry::LEN };
        u64::from(self.records) * entry as u64
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.array.to_le_bytes());
        out.extend_from_slice(&(self.kind as u32).to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&0_u32.to_le_bytes());
        for n in [self.payload, self.table_hash, self.payload_hash] {
            out.extend_from_slice(&n.to_le_bytes());
        }
    }

    fn decode(from: &mut Cursor<'_>) -> Result<Self> {
        let array = from.u32()?;
        let kind = match from.u32()? {
            1 => Kind::Stats,
            2 => Kind::Heads,
            other => return Err(corrupt(format!("block kind {other} is not known"))),
        };
        let (offset, records, _) = (from.u64()?, from.u32()?, from.u32()?);
        let (payload, table_hash, payload_hash) = (from.u64()?, from.u64()?, from.u64()?);
        Ok(Self { array, kind, offset, records, payload, table_hash, payload_hash })
    }
}

/// A record of a block of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsEntry {
    /// Number of the region.
    pub region: u64,
    /// xxh3-64 of its elements, if that was given.
    pub content: Option<u64>,
    /// Bytes of its statistics, which follow in the payload those of the record before.
    pub len: u32,
}

impl StatsEntry {
    pub(super) const LEN: usize = 24;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.region.to_le_bytes());
        out.extend_from_slice(&self.content.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&u32::from(self.content.is_some()).to_le_bytes());
    }

    /// Reads a whole table.
    pub(super) fn decode_all(table: &[u8]) -> Result<Vec<Self>> {
        let mut from = Cursor(table);
        let entry = |_| {
            let (region, content, len, flags) = (from.u64()?, from.u64()?, from.u32()?, from.u32()?);
            Ok(Self { region, content: (flags & 1 != 0).then_some(content), len })
        };
        (0..table.len() / Self::LEN).map(entry).collect()
    }
}

/// A record of a block of heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadEntry {
    /// Number of the region.
    pub region: u64,
    /// Where the body begins in the file.
    pub body: u64,
    /// Bytes of the body.
    pub body_len: u64,
    /// Bytes of the head, which follows in the payload that of the record before.
    pub len: u32,
}

impl HeadEntry {
    pub(super) const LEN: usize = 32;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        [self.region, self.body, self.body_len].iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&0_u32.to_le_bytes());
    }

    /// Reads a whole table.
    pub(super) fn decode_all(table: &[u8]) -> Result<Vec<Self>> {
        let mut from = Cursor(table);
        let entry = |_| {
            let (region, body, body_len) = (from.u64()?, from.u64()?, from.u64()?);
            let (len, _) = (from.u32()?, from.u32()?);
            Ok(Self { region, body, body_len, len })
        };
        (0..table.len() / Self::LEN).map(entry).collect()
    }
}

/// Where the directory is, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    pub offset: u64,
    pub len: u64,
    pub hash: u64,
}

impl Trailer {
    pub(super) fn encode(&self) -> [u8; TRAILER as usize] {
        let mut out = [0; TRAILER as usize];
        for (at, n) in [self.offset, self.len, self.hash].iter().enumerate() {
            out[at * 8..at * 8 + 8].copy_from_slice(&n.to_le_bytes());
        }
        out[24..].copy_from_slice(&END);
        out
    }

    /// Reads the trailer of a file of `file_len` bytes, which the directory must end with it.
    pub(super) fn decode(bytes: &[u8], file_len: u64) -> Result<Self> {
        let mut from = Cursor(bytes);
        let trailer = Self { offset: from.u64()?, len: from.u64()?, hash: from.u64()? };
        let end = trailer.offset.checked_add(trailer.len).and_then(|n| n.checked_add(TRAILER));
        if from.take(END.len())? != END || trailer.offset < ALIGN || end != Some(file_len) {
            return Err(corrupt("it is cut off, or no segment"));
        }
        if trailer.len > MAX_DIRECTORY {
            return Err(corrupt(format!("its directory of {} bytes is too large", trailer.len)));
        }
        Ok(trailer)
    }
}

/// What a segment holds.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Arrays, with their numbers of regions.
    pub arrays: Vec<(ArrayHeader, u64)>,
    /// Blocks by ascending offset.
    pub blocks: Vec<Block>,
}

impl Directory {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.blocks.len() * Block::LEN + 256 * self.arrays.len());
        out.extend_from_slice(&(self.arrays.len() as u32).to_le_bytes());
        self.arrays.iter().for_each(|(header, _)| header.encode(&mut out));
        out.extend_from_slice(&(self.blocks.len() as u32).to_le_bytes());
        self.blocks.iter().for_each(|block| block.encode(&mut out));
        out
    }

    /// Reads the verified bytes of a directory that begins at `end` in its file.
    pub(super) fn decode(bytes: &[u8], end: u64) -> Result<Self> {
        let mut from = Cursor(bytes);
        let arrays = (0..from.u32()?).map(|_| ArrayHeader::decode(&mut from)).collect::<Result<_>>()?;
        let blocks = (0..from.u32()?).map(|_| Block::decode(&mut from)).collect::<Result<_>>()?;
        from.finish()?;
        let directory = Self { arrays, blocks };
        directory.check(end)?;
        Ok(directory)
    }

    /// Blocks that overlap could make a small file claim any amount of memory.
    fn check(&self, end: u64) -> Result<()> {
        let mut free = ALIGN;
        for block in &self.blocks {
            let len = block.table().saturating_add(block.payload);
            let fits =
                len <= MAX_BLOCK && free <= block.offset && block.offset <= end && len <= end - block.offset;
            if !fits || block.array as usize >= self.arrays.len() {
                return Err(corrupt(format!("its block at {} cannot be", block.offset)));
            }
            free = block.offset + len;
        }
        Ok(())
    }
}
