//! Writing a segment: records stream to the file; of statistics and heads at most a few MiB wait in memory.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::super::draft::Draft;
use super::super::files::write_error;
use super::super::{ArrayHeader, Home, SegmentName};
use super::layout::{ALIGN, Block, Directory, HeadEntry, Kind, MAX_RECORD, StatsEntry, Trailer, file_header};

/// Bytes of a block at which it is written.
const BLOCK: usize = 1 << 20;
/// Bytes that wait, of all arrays, at which all are written.
const WAITING: usize = 8 << 20;
/// Bytes gathered for one write; bodies are smaller or larger.
const GATHERED: usize = 256 << 10;

/// What is known of one region.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its number in the array's grid.
    pub region: u64,
    /// xxh3-64 of its elements.
    pub content: Option<u64>,
    /// Its statistics; empty for none, which hides none of an earlier record.
    pub stats: &'a [u8],
    /// Head and body of its bitmap.
    pub bitmap: Option<(&'a [u8], &'a [u8])>,
}

/// Writes one segment. Takes no lock but that of its own file, which is removed if this is dropped unfinished.
#[derive(Debug)]
pub struct SegmentWriter {
    // First, so that what is gathered is not written in vain to a file with a name.
    draft: Draft,
    out: BufWriter<std::fs::File>,
    at: u64,
    arrays: Vec<Waiting>,
    by_path: HashMap<String, usize>,
    blocks: Vec<Block>,
    waiting: usize,
}

/// Records of one array that wait to be written.
#[derive(Debug)]
struct Waiting {
    header: ArrayHeader,
    regions: u64,
    stats: Part,
    heads: Part,
}

#[derive(Debug, Default)]
struct Part {
    records: u32,
    table: Vec<u8>,
    payload: Vec<u8>,
}

impl Part {
    fn len(&self) -> usize {
        self.table.len() + self.payload.len()
    }
}

impl SegmentWriter {
    /// Begins a segment in the store `home`, which is made if there is none.
    ///
    /// # Errors
    /// `permission-denied` where the place is read-only, with a hint; `unsupported` where the file system has no
    /// locks; `io-error`.
    pub fn create(home: impl Into<Home>) -> Result<Self> {
        let draft = Draft::file(&home.into())?;
        let file = draft.locked.0.try_clone().map_err(|e| write_error(&draft.path(), &e))?;
        let mut writer = Self {
            draft,
            out: BufWriter::with_capacity(GATHERED, file),
            at: 0,
            arrays: Vec::new(),
            by_path: HashMap::new(),
            blocks: Vec::new(),
            waiting: 0,
        };
        writer.write(&file_header())?;
        Ok(writer)
    }

    /// Adds a record. Of two records of one region, the later one counts.
    ///
    /// # Errors
    /// `invalid-value` where `array` is no array that has regions, differs from the one of that path given
    /// before, or has no such region; `unsupported` for statistics or heads of more than 16 MiB; those of
    /// writing, after which the writer must be dropped.
    pub fn put(&mut self, array: &ArrayHeader, record: &Record<'_>) -> Result<()> {
        let index = self.index(array)?;
        self.check(index, record)?;
        if let Some((head, body)) = record.bitmap {
            let offset = self.append(body)?;
            let (region, body_len, len) = (record.region, body.len() as u64, head.len() as u32);
            let entry = HeadEntry { region, body: offset, body_len, len };
            self.wait(index, Kind::Heads, head, |table| entry.encode(table))?;
        }
        if record.content.is_some() || !record.stats.is_empty() {
            let (region, content, len) = (record.region, record.content, record.stats.len() as u32);
            let entry = StatsEntry { region, content, len };
            self.wait(index, Kind::Stats, record.stats, |table| entry.encode(table))?;
        }
        Ok(())
    }

    /// Completes the file; with `durable` it survives a crash of the machine. It does not count until it is
    /// [published](super::super::Store::publish).
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self, durable: bool) -> Result<SegmentName> {
        self.flush_all()?;
        self.align()?;
        let arrays = self.arrays.drain(..).map(|waiting| (waiting.header, waiting.regions)).collect();
        let directory = Directory { arrays, blocks: std::mem::take(&mut self.blocks) }.encode();
        let trailer = Trailer { offset: self.at, len: directory.len() as u64, hash: xxh3_64(&directory) };
        self.write(&directory)?;
        self.write(&trailer.encode())?;
        self.settle(durable)?;
        let (name, bytes, directory) = (self.draft.name(), self.at, trailer.hash);
        Ok(SegmentName { name, bytes, directory, durable, draft: Some(Arc::new(self.draft)) })
    }

    /// The number of the array, which is new or as it was.
    fn index(&mut self, array: &ArrayHeader) -> Result<usize> {
        if let Some(&index) = self.by_path.get(&array.path) {
            if self.arrays[index].header == *array {
                return Ok(index);
            }
            let what = format!("records of array '{}' with two different headers", array.path);
            return Err(Error::new(ErrorKind::InvalidValue, what));
        }
        let regions = array.regions()?;
        let (stats, heads) = Default::default();
        self.arrays.push(Waiting { header: array.clone(), regions, stats, heads });
        self.by_path.insert(array.path.clone(), self.arrays.len() - 1);
        Ok(self.arrays.len() - 1)
    }

    fn check(&self, index: usize, record: &Record<'_>) -> Result<()> {
        let Waiting { header, regions, .. } = &self.arrays[index];
        if record.region >= *regions {
            let what =
                format!("array '{}' has {regions} regions, none is number {}", header.path, record.region);
            return Err(Error::new(ErrorKind::InvalidValue, what));
        }
        let head = record.bitmap.map_or(0, |(head, _)| head.len());
        if record.stats.len().max(head) > MAX_RECORD {
            let what = format!("a record of array '{}' of more than {MAX_RECORD} bytes", header.path);
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        Ok(())
    }

    /// Adds a record to those that wait.
    fn wait(
        &mut self,
        index: usize,
        kind: Kind,
        payload: &[u8],
        entry: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let part = self.part(index, kind);
        let before = part.len();
        part.records += 1;
        part.payload.extend_from_slice(payload);
        entry(&mut part.table);
        let after = part.len();
        self.waiting += after - before;
        if self.waiting >= WAITING {
            self.flush_all()
        } else if after >= BLOCK {
            self.flush(index, kind)
        } else {
            Ok(())
        }
    }

    fn part(&mut self, index: usize, kind: Kind) -> &mut Part {
        let waiting = &mut self.arrays[index];
        match kind {
            Kind::Stats => &mut waiting.stats,
            Kind::Heads => &mut waiting.heads,
        }
    }

    fn flush_all(&mut self) -> Result<()> {
        (0..self.arrays.len()).try_for_each(|i| self.flush(i, Kind::Stats).and(self.flush(i, Kind::Heads)))
    }

    /// Writes the records of one kind of one array as a block.
    fn flush(&mut self, index: usize, kind: Kind) -> Result<()> {
        let part = std::mem::take(self.part(index, kind));
        if part.records == 0 {
            return Ok(());
        }
        self.waiting -= part.len();
        let offset = self.append(&part.table)?;
        self.write(&part.payload)?;
        self.blocks.push(Block {
            array: index as u32,
            kind,
            offset,
            records: part.records,
            payload: part.payload.len() as u64,
            table_hash: xxh3_64(&part.table),
            payload_hash: xxh3_64(&part.payload),
        });
        Ok(())
    }

    /// Writes `bytes` on the next multiple of 64, and says where that is.
    fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        self.align()?;
        let at = self.at;
        self.write(bytes)?;
        Ok(at)
    }

    fn align(&mut self) -> Result<()> {
        let gap = (self.at.next_multiple_of(ALIGN) - self.at) as usize;
        self.write(&[0; ALIGN as usize][..gap])
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|e| write_error(&self.draft.path(), &e))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Makes sure that the file is what was written.
    fn settle(&mut self, durable: bool) -> Result<()> {
        let path = self.draft.path();
        let len = self.out.flush().and_then(|()| {
            self.draft.give()?;
            if durable {
                self.out.get_ref().sync_all()?;
                self.draft.sync_dir()?;
            }
            Ok(self.out.get_ref().metadata()?.len())
        });
        if len.map_err(|e| write_error(&path, &e))? == self.at {
            return Ok(());
        }
        // After a write that failed: its position is not what it was taken for.
        Err(Error::new(ErrorKind::Io, format!("'{}' has not the length that was written", path.display())))
    }
}
