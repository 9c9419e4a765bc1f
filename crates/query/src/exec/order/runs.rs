//! Reading a sorted run back, row by row.

use std::cmp::Ordering;
use std::ops::Range;

use sieva_types::Result;

use super::spill::SpillFile;

/// Bytes of a length or a position.
const WORD: usize = 8;

/// A place in a run.
pub struct Cursor<'f> {
    file: &'f SpillFile,
    /// What of the run was not read yet.
    rest: Range<u64>,
    /// Bytes of each row's keys; `None`: told before each.
    width: Option<usize>,
    buffer: Vec<u8>,
    /// Bytes that are read at once.
    size: usize,
    /// The keys of the row at hand, and where the next one begins.
    keys: Range<usize>,
    next: usize,
}

impl<'f> Cursor<'f> {
    /// Before the first row of `run`.
    pub fn new(file: &'f SpillFile, run: Range<u64>, width: Option<usize>, size: usize) -> Self {
        Self { file, rest: run, width, buffer: Vec::new(), size, keys: 0..0, next: 0 }
    }

    /// Goes to the next row; whether there is one.
    ///
    /// # Errors
    /// `io-error`.
    pub fn advance(&mut self) -> Result<bool> {
        if self.next == self.buffer.len() && self.rest.is_empty() {
            return Ok(false);
        }
        let (head, keys) = match self.width {
            Some(width) => (0, width),
            None => {
                self.hold(WORD)?;
                (WORD, word(&self.buffer[self.next..]) as usize)
            }
        };
        self.hold(head + keys + WORD)?;
        self.keys = self.next + head..self.next + head + keys;
        self.next = self.keys.end + WORD;
        Ok(true)
    }

    /// Reads so that `n` bytes from the next row on are held.
    fn hold(&mut self, n: usize) -> Result<()> {
        if self.buffer.len() - self.next >= n {
            return Ok(());
        }
        self.buffer.drain(..self.next);
        self.next = 0;
        let had = self.buffer.len();
        let more = (self.size.max(n) - had).min((self.rest.end - self.rest.start) as usize);
        self.buffer.resize(had + more, 0);
        self.file.read_exact_at(self.rest.start, &mut self.buffer[had..])?;
        self.rest.start += more as u64;
        Ok(())
    }

    /// The keys of the row at hand.
    pub fn keys(&self) -> &[u8] {
        &self.buffer[self.keys.clone()]
    }

    /// The position of the row at hand.
    pub fn position(&self) -> u64 {
        word(&self.buffer[self.keys.end..])
    }

    /// The order of the rows at hand of two runs.
    pub fn compare(&self, other: &Self) -> Ordering {
        let keys = self.keys().cmp(other.keys());
        keys.then_with(|| self.position().cmp(&other.position()))
    }
}

/// The number that bytes begin with.
pub fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}
