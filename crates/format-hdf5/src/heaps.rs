//! Damage in heaps that libhdf5 does not notice itself, found in the raw bytes before it reads them.
//!
//! - A global heap collection (variable-length data) is read object after object; one of no length, as zeroed
//!   bytes hold it, keeps the library in a loop for ever.
//! - The free list of a local heap (the names in an old-style group) may lead back into itself; the library
//!   follows it until memory ends.
//! - Two local heaps may claim the same data. The library has one copy of it in its cache, for the first, and
//!   follows a null pointer for the second.

use std::collections::HashMap;

use sieva_types::{Error, Result};

use crate::bytes::FileBytes;

/// Free blocks of one local heap at most: it holds the names of one group.
const MOST_FREE_BLOCKS: u64 = 1 << 20;
/// Bytes that are read at once where numbers stand near each other.
const WINDOW: u64 = 1024;

/// What the superblock says of numbers in a file's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Where the superblock is, from which addresses count.
    pub(crate) start: u64,
    /// Bytes of an address.
    pub(crate) address: usize,
    /// Bytes of a length.
    pub(crate) length: usize,
}

impl Sizes {
    /// Those of a file; 8 bytes each where it has no superblock.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn of(bytes: &FileBytes) -> Result<Self> {
        let mut start = Window::new(bytes);
        let sizes = sizes(&mut start, bytes.len()).unwrap_or(Self { start: 0, address: 8, length: 8 });
        start.finish(sizes)
    }
}

/// The heaps of one file. Addresses are offsets from the file's start.
#[derive(Debug)]
pub(crate) struct Heaps {
    sizes: Sizes,
    /// The local heap that each block of heap data was first seen with.
    owner: HashMap<u64, u64>,
}

impl Heaps {
    /// The heaps of a file whose superblock says this.
    pub(crate) fn new(sizes: Sizes) -> Self {
        Self { sizes, owner: HashMap::new() }
    }

    /// What is wrong with the global heap collection at `address`, if anything is.
    ///
    /// # Errors
    /// Those of the storage: what could not be looked at must not be read.
    pub(crate) fn check_global(&self, bytes: &FileBytes, address: u64) -> Result<Option<&'static str>> {
        let mut window = Window::new(bytes);
        let wrong = self.wrong_global(&mut window, bytes.len(), address);
        window.finish(wrong)
    }

    fn wrong_global(&self, window: &mut Window, len: u64, address: u64) -> Option<&'static str> {
        // A collection that does not fit into the file is refused by libhdf5 itself.
        let size = window.number(address.checked_add(8)?, self.sizes.length)?;
        address.checked_add(size).filter(|&end| end <= len)?;
        let header = (8 + self.sizes.length as u64).next_multiple_of(8);
        let mut at = header;
        while at.checked_add(header).is_some_and(|end| end <= size) {
            match self.object(window, address + at, header) {
                Some(step) if step > 0 && step <= size - at => at += step,
                _ => return Some("the objects of a global heap collection do not follow each other"),
            }
        }
        None
    }

    /// Bytes that the object at `address` takes with its header.
    fn object(&self, window: &mut Window, address: u64, header: u64) -> Option<u64> {
        let index = window.number(address, 2)?;
        let size = window.number(address + 8, self.sizes.length)?;
        // Object 0 is the free space, whose size counts its header.
        if index == 0 { Some(size) } else { size.checked_next_multiple_of(8)?.checked_add(header) }
    }

    /// What is wrong with the local heap at `address`, if anything is. Addresses in it count from `base`.
    ///
    /// # Errors
    /// As [`Heaps::check_global`].
    pub(crate) fn check_local(
        &mut self,
        bytes: &FileBytes,
        address: u64,
        base: u64,
    ) -> Result<Option<&'static str>> {
        let mut window = Window::new(bytes);
        let wrong = self.wrong_local(&mut window, address, base);
        window.finish(wrong)
    }

    fn wrong_local(&mut self, window: &mut Window, address: u64, base: u64) -> Option<&'static str> {
        let width = self.sizes.length;
        let size = window.number(address.checked_add(8)?, width)?;
        let free = window.number(address + 8 + width as u64, width)?;
        let data = window.number(address + 8 + 2 * width as u64, self.sizes.address)?;
        if size == 0 {
            return None;
        }
        let data = base.checked_add(data)?;
        if *self.owner.entry(data).or_insert(address) != address {
            return Some("two groups keep their names in the same bytes");
        }
        self.has_endless_list(window, data, size, free)
            .then_some("the free list of a group's names has no end")
    }

    fn has_endless_list(&self, window: &mut Window, data: u64, size: u64, first: u64) -> bool {
        let node = 2 * self.sizes.length as u64;
        let mut next = first;
        // As many free blocks as fit, into the file too; the list ends with 1. Anything else libhdf5 refuses itself.
        for _ in 0..=(size.min(window.bytes.len()) / node).min(MOST_FREE_BLOCKS) {
            if next == 1 || next.checked_add(node).is_none_or(|end| end > size) {
                return false;
            }
            match data.checked_add(next).and_then(|at| window.number(at, self.sizes.length)) {
                Some(offset) => next = offset,
                None => return false,
            }
        }
        true
    }
}

/// Numbers of a file, read some at a time. After an error of the storage all numbers are absent.
pub(crate) struct Window<'a> {
    bytes: &'a FileBytes,
    start: u64,
    held: Vec<u8>,
    failure: Option<Error>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(bytes: &'a FileBytes) -> Self {
        Self { bytes, start: 0, held: Vec::new(), failure: None }
    }

    /// What was found, unless the storage failed on the way.
    pub(crate) fn finish<T>(self, found: T) -> Result<T> {
        self.failure.map_or(Ok(found), Err)
    }

    /// The little-endian number of `width` bytes at `at`; `None` past the end of the file.
    pub(crate) fn number(&mut self, at: u64, width: usize) -> Option<u64> {
        let mut number = [0; 8];
        number.get_mut(..width)?.copy_from_slice(self.get(at, width)?);
        Some(u64::from_le_bytes(number))
    }

    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len()
    }

    /// `len` bytes at `at`; `None` past the end of the file.
    pub(crate) fn bytes(&mut self, at: u64, len: u64) -> Option<Vec<u8>> {
        let end = at.checked_add(len)?;
        if end > self.len() || self.failure.is_some() {
            return None;
        }
        let mut out = vec![0; len as usize];
        match self.bytes.read(at, &mut out) {
            Ok(()) => Some(out),
            Err(e) => {
                self.failure = Some(e);
                None
            }
        }
    }

    fn get(&mut self, at: u64, width: usize) -> Option<&[u8]> {
        let is_held = at >= self.start && at - self.start + width as u64 <= self.held.len() as u64;
        if !is_held {
            let there = self.bytes.len().checked_sub(at).filter(|&there| there >= width as u64)?;
            if self.failure.is_some() {
                return None;
            }
            self.held.resize(there.min(WINDOW) as usize, 0);
            self.start = at;
            if let Err(e) = self.bytes.read(at, &mut self.held) {
                self.held.clear();
                self.failure = Some(e);
                return None;
            }
        }
        let from = (at - self.start) as usize;
        self.held.get(from..from + width)
    }
}

fn sizes(window: &mut Window, len: u64) -> Option<Sizes> {
    let mut offset = 0;
    while offset < len {
        let start = window.get(offset, 16)?;
        if start.starts_with(b"\x89HDF\r\n\x1a\n") {
            let at = if start[8] < 2 { 13 } else { 9 };
            let size = |at: usize| usize::from(start[at].clamp(2, 8));
            return Some(Sizes { start: offset, address: size(at), length: size(at + 1) });
        }
        offset = (2 * offset).max(512);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sieva_store::MemoryStore;

    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn file(bytes: Vec<u8>) -> Arc<FileBytes> {
        FileBytes::new(Arc::new(MemoryStore::new("heaps", bytes)))
    }

    fn heaps(file: &FileBytes) -> Heaps {
        Heaps::new(Sizes::of(file).unwrap())
    }

    fn local(free: u64, list: [u64; 2]) -> Vec<u8> {
        // Prefix at 0 with 32 bytes of data at 32: two free blocks of 16.
        words(&[u64::from_le_bytes(*b"HEAP\0\0\0\0"), 32, free, 32, list[0], 16, list[1], 16])
    }

    #[test]
    fn a_free_list_has_to_end() {
        for (free, list, is_good) in
            [(1, [0, 0], true), (0, [16, 1], true), (0, [16, 0], false), (16, [1, 16], false)]
        {
            let file = file(local(free, list));
            let found = heaps(&file).check_local(&file, 0, 0).unwrap();
            assert_eq!(found.is_none(), is_good, "{free} {list:?}");
        }
    }

    #[test]
    fn a_heap_larger_than_the_file_is_not_followed_for_ever() {
        // It claims 2^62 bytes, and its only free block leads to itself.
        let mut bytes = local(0, [0, 0]);
        bytes[8..16].copy_from_slice(&(1_u64 << 62).to_le_bytes());
        let file = file(bytes);
        assert!(heaps(&file).check_local(&file, 0, 0).unwrap().is_some());
    }

    #[test]
    fn heap_data_have_one_owner() {
        let mut bytes = local(1, [0, 0]);
        bytes.extend(local(1, [0, 0]));
        let file = file(bytes);
        let mut heaps = heaps(&file);
        assert_eq!(heaps.check_local(&file, 0, 0), Ok(None));
        assert_eq!(heaps.check_local(&file, 0, 0), Ok(None));
        assert!(heaps.check_local(&file, 64, 0).unwrap().is_some());
    }

    #[test]
    fn objects_of_a_collection_have_to_advance() {
        let start = u64::from_le_bytes(*b"GCOL\x01\0\0\0");
        let good = words(&[start, 64, 1, 5, 0, 0, 24, 0]);
        let zeros = words(&[start, 64, 1, 5, 0, 0, 0, 0]);
        for (bytes, is_good) in [(good, true), (zeros, false)] {
            let file = file(bytes);
            let found = heaps(&file).check_global(&file, 0).unwrap();
            assert_eq!(found.is_none(), is_good);
        }
    }
}
