//! The header's bytes in order, read in blocks that grow, so that neither a small header costs much nor a
//! large one many requests.

use sieva_store::RangedRead;
use sieva_types::{Error, ErrorKind, Result};

const FIRST_BLOCK: u64 = 8 << 10;
const LARGEST_BLOCK: u64 = 1 << 20;

/// The longest header that is read. What it says may take some twenty times its length in memory.
pub(crate) const MAX_HEADER: u64 = 16 << 20;

/// A position in the header, and the block around it.
pub(crate) struct Cursor<'a> {
    store: &'a dyn RangedRead,
    block: Vec<u8>,
    block_start: u64,
    position: u64,
    next_block: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first byte.
    pub(crate) fn new(store: &'a dyn RangedRead) -> Self {
        Self { store, block: Vec::new(), block_start: 0, position: 0, next_block: FIRST_BLOCK }
    }

    /// Offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the file from here on.
    pub(crate) fn remaining(&self) -> u64 {
        self.store.len().saturating_sub(self.position)
    }

    /// The next `n` bytes, which are `what`.
    pub(crate) fn bytes(&mut self, n: u64, what: &str) -> Result<&[u8]> {
        if n > self.remaining() {
            return Err(Error::corrupt(format!(
                "the header is cut off: {what} at offset {} takes {n} bytes, the file has {} from there on",
                self.position,
                self.remaining()
            )));
        }
        let end = self.position + n;
        if end > MAX_HEADER {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the header goes on to offset {end} with {what}; at most {MAX_HEADER} bytes of header are read"
                ),
            ));
        }
        if end > self.block_start + self.block.len() as u64 {
            self.read_block(n)?;
        }
        // Both differences are within the block, whose length is a usize.
        let from = (self.position - self.block_start) as usize;
        self.position = end;
        Ok(&self.block[from..from + n as usize])
    }

    /// The next 4 bytes as a number.
    pub(crate) fn u32(&mut self, what: &str) -> Result<u32> {
        let mut number = [0; 4];
        number.copy_from_slice(self.bytes(4, what)?);
        Ok(u32::from_be_bytes(number))
    }

    /// The next 8 bytes as a number.
    pub(crate) fn u64(&mut self, what: &str) -> Result<u64> {
        let mut number = [0; 8];
        number.copy_from_slice(self.bytes(8, what)?);
        Ok(u64::from_be_bytes(number))
    }

    /// Makes the block start here and hold at least `n` bytes. What is left of the old one is kept.
    fn read_block(&mut self, n: u64) -> Result<()> {
        self.block.drain(..(self.position - self.block_start) as usize);
        self.block_start = self.position;
        let kept = self.block.len();
        let len = n.max(self.next_block).min(self.remaining());
        self.next_block = (self.next_block * 2).min(LARGEST_BLOCK);
        self.block.resize(len as usize, 0);
        self.store.read_exact_at(self.position + kept as u64, &mut self.block[kept..])
    }
}

#[cfg(test)]
mod tests {
    use sieva_store::MemoryStore;

    use super::*;

    #[test]
    fn bytes_come_in_order_across_blocks() {
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
        let store = MemoryStore::new("m", bytes);
        let mut cursor = Cursor::new(&store);
        assert_eq!(cursor.bytes(2, "x").unwrap(), [0, 0]);
        assert_eq!(cursor.bytes(2, "x").unwrap(), [0, 0]);
        for i in (1..99_999).step_by(2) {
            assert_eq!(cursor.u64("pair").unwrap(), (i << 32) + i + 1);
        }
        assert_eq!(cursor.u32("last").unwrap(), 99_999);
        assert_eq!(cursor.remaining(), 0);
        assert!(store.counters().snapshot().requests < 10);
    }

    #[test]
    fn a_small_header_of_a_large_file_costs_one_block() {
        let store = MemoryStore::new("m", vec![1; 1 << 20]);
        Cursor::new(&store).u32("magic").unwrap();
        assert_eq!(store.counters().snapshot().bytes_read, FIRST_BLOCK);
    }

    #[test]
    fn the_end_is_told_with_its_place() {
        let store = MemoryStore::new("m", vec![0; 6]);
        let mut cursor = Cursor::new(&store);
        cursor.u32("a").unwrap();
        let e = cursor.u32("a name's length").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        assert_eq!(
            e.message(),
            "the header is cut off: a name's length at offset 4 takes 4 bytes, the file has 2 from there on"
        );
        assert!(cursor.bytes(u64::MAX, "x").is_err());
    }

    #[test]
    fn an_endless_header_is_not_read() {
        let store = MemoryStore::new("m", vec![0; MAX_HEADER as usize + 8]);
        let e = Cursor::new(&store).bytes(MAX_HEADER + 4, "values").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert_eq!(store.counters().snapshot().bytes_read, 0);
    }
}
