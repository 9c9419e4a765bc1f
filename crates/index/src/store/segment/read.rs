//! Reading a segment: its directory when it is opened, blocks and bodies when they are asked for.

use std::io;
use std::ops::Range;

use sieva_store::Counters;
use sieva_types::{Error, Result};

use super::super::bytes::{corrupt, verify};
use super::super::{ArrayHeader, SegmentName};
use crate::place::{OpenError, Place, Readable};

use super::layout::{ALIGN, Block, Directory, HeadEntry, Kind, StatsEntry, TRAILER, Trailer, file_header};

/// Bytes at the end of a segment that are fetched at once from behind a network: few directories are longer.
const DIRECTORY: u64 = 64 << 10;

/// An open segment, whose directory is verified.
#[derive(Debug)]
pub struct Segment {
    name: String,
    durable: bool,
    file: Readable,
    /// Where the directory begins: blocks and bodies end before.
    end: u64,
    directory: Directory,
}

impl Segment {
    /// Opens a segment that the manifest lists; an error in opening the file comes as it is.
    pub fn open(
        place: &Place,
        listed: &SegmentName,
        counters: &Counters,
    ) -> std::result::Result<Result<Self>, OpenError> {
        let file = place.open_sized(&listed.name, listed.bytes)?;
        let len = file.len();
        let (name, durable) = (listed.name.clone(), listed.durable);
        let mut segment = Self { name, durable, file, end: 0, directory: Directory::default() };
        let read = segment.read_directory(listed, len, counters);
        Ok(read.map_err(|e| segment.place(e)).map(|()| segment))
    }

    /// What opening a segment of `len` bytes reads.
    pub fn ends(len: u64) -> [Range<u64>; 2] {
        [0..ALIGN.min(len), len.saturating_sub(DIRECTORY).max(ALIGN.min(len))..len]
    }

    fn read_directory(&mut self, listed: &SegmentName, len: u64, counters: &Counters) -> Result<()> {
        if len != listed.bytes || len < ALIGN + TRAILER {
            return Err(corrupt(format!("it has {len} bytes, {} were written", listed.bytes)));
        }
        let mut header = [0; ALIGN as usize];
        self.read(0, &mut header, counters)?;
        if header != file_header() {
            return Err(corrupt("it is no segment of this version"));
        }
        let mut trailer = [0; TRAILER as usize];
        self.read(len - TRAILER, &mut trailer, counters)?;
        let trailer = Trailer::decode(&trailer, len)?;
        if trailer.hash != listed.directory {
            return Err(corrupt("it is not the one that was published"));
        }
        let bytes =
            self.read_verified(trailer.offset, trailer.len, trailer.hash, "its directory", counters)?;
        self.directory = Directory::decode(&bytes, trailer.offset)?;
        self.end = trailer.offset;
        Ok(())
    }

    /// Its file name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a build made it, and not a scan in passing.
    pub fn durable(&self) -> bool {
        self.durable
    }

    /// Its arrays.
    pub fn arrays(&self) -> impl Iterator<Item = &ArrayHeader> {
        self.directory.arrays.iter().map(|(header, _)| header)
    }

    /// Number and header of the array at `path`.
    pub fn array(&self, path: &str) -> Option<(u32, &ArrayHeader)> {
        let at = self.arrays().position(|header| header.path == path)?;
        Some((at as u32, &self.directory.arrays[at].0))
    }

    /// Its blocks of one kind of an array.
    pub fn blocks(&self, array: u32, kind: Kind) -> impl Iterator<Item = &Block> {
        self.directory.blocks.iter().filter(move |block| block.array == array && block.kind == kind)
    }

    /// The verified table of a block of statistics.
    pub fn stats_table(&self, block: &Block, counters: &Counters) -> Result<Vec<StatsEntry>> {
        let entries = StatsEntry::decode_all(&self.table(block, counters)?)?;
        self.check(block, entries.iter().map(|e| (e.region, e.len)))?;
        Ok(entries)
    }

    /// The verified table of a block of heads; bodies lie within the file.
    pub fn head_table(&self, block: &Block, counters: &Counters) -> Result<Vec<HeadEntry>> {
        let entries = HeadEntry::decode_all(&self.table(block, counters)?)?;
        self.check(block, entries.iter().map(|e| (e.region, e.len)))?;
        let inside = |e: &HeadEntry| e.body.checked_add(e.body_len).is_some_and(|end| end <= self.end);
        if !entries.iter().all(inside) {
            return Err(self.place(corrupt("a body lies beyond its end")));
        }
        Ok(entries)
    }

    /// The verified payload of a block.
    pub fn payload(&self, block: &Block, counters: &Counters) -> Result<Vec<u8>> {
        let (offset, what) = (block.offset + block.table(), block_name(block, "records"));
        self.read_verified(offset, block.payload, block.payload_hash, &what, counters)
            .map_err(|e| self.place(e))
    }

    /// Fills `out` from `offset` on.
    pub fn read(&self, offset: u64, out: &mut [u8], counters: &Counters) -> Result<()> {
        self.file.read_exact_at(out, offset).map_err(|e| match e {
            OpenError::System(e) if e.kind() == io::ErrorKind::UnexpectedEof => corrupt("it is cut off"),
            e => e.into_error(format!("cannot read {} bytes at offset {offset}", out.len())),
        })?;
        counters.add_request(out.len() as u64);
        Ok(())
    }

    /// Says that the records of an array are about to be loaded: tables of all blocks, payloads of statistics.
    pub fn announce(&self, array: u32) {
        let range = |block: &Block| {
            let payload = if block.kind == Kind::Stats { block.payload } else { 0 };
            block.offset..block.offset + block.table() + payload
        };
        let blocks = self.blocks(array, Kind::Stats).chain(self.blocks(array, Kind::Heads));
        self.file.will_need(&blocks.map(range).collect::<Vec<_>>());
    }

    /// Puts the segment before a message.
    pub fn place(&self, e: Error) -> Error {
        e.at(format!("segment '{}'", self.name))
    }

    fn table(&self, block: &Block, counters: &Counters) -> Result<Vec<u8>> {
        let what = block_name(block, "table");
        self.read_verified(block.offset, block.table(), block.table_hash, &what, counters)
            .map_err(|e| self.place(e))
    }

    /// Reads a range that lies within the file.
    fn read_verified(
        &self,
        offset: u64,
        len: u64,
        hash: u64,
        what: &str,
        counters: &Counters,
    ) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        self.read(offset, &mut bytes, counters)?;
        verify(&bytes, hash, what)?;
        Ok(bytes)
    }

    /// Whether the records, regions with lengths, are of the array and fill the payload.
    fn check(&self, block: &Block, mut records: impl Iterator<Item = (u64, u32)>) -> Result<()> {
        let regions = self.directory.arrays.get(block.array as usize).map_or(0, |(_, regions)| *regions);
        let mut filled = 0;
        let known = records.all(|(region, len)| {
            filled += u64::from(len);
            region < regions
        });
        if known && filled == block.payload {
            return Ok(());
        }
        Err(self.place(corrupt(format!("{} contradicts the array", block_name(block, "table")))))
    }
}

fn block_name(block: &Block, what: &str) -> String {
    let kind = if block.kind == Kind::Stats { "statistics" } else { "bitmap heads" };
    format!("the {what} of its {kind} at {}", block.offset)
}
