//! Damage in heaps that libhdf5 does not notice itself, found in the raw bytes before it reads them.
//!
//! - A global heap collection (variable-length data) is read object after object; one of no length, as zeroed
//!   bytes hold it, keeps the library in a loop for ever.
//! - The free list of a local heap (the names in an old-style group) may lead back into itself; the library
//!   follows it until memory ends.
//! - Two local heaps may claim the same data. The library has one copy of it in its cache, for the first, and
//!   follows a null pointer for the second.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The heaps of one file. Addresses are offsets from the file's start.
#[derive(Debug)]
pub(crate) struct Heaps {
    /// Bytes of an address and of a length in the file's structures.
    address_size: usize,
    length_size: usize,
    /// The local heap that each block of heap data was first seen with.
    owner: HashMap<u64, u64>,
}

impl Heaps {
    /// The heaps of a file, as its superblock describes them.
    pub(crate) fn of(file: &File, len: u64) -> Self {
        let (address_size, length_size) = sizes(file, len).unwrap_or((8, 8));
        Self { address_size, length_size, owner: HashMap::new() }
    }

    /// What is wrong with the global heap collection at `address`, if anything is.
    pub(crate) fn check_global(&self, file: &File, len: u64, address: u64) -> Option<&'static str> {
        // A collection that does not fit into the file is refused by libhdf5 itself.
        let size = number(file, address.checked_add(8)?, self.length_size)?;
        address.checked_add(size).filter(|&end| end <= len)?;
        let header = (8 + self.length_size as u64).next_multiple_of(8);
        let mut at = header;
        while at.checked_add(header).is_some_and(|end| end <= size) {
            match self.object(file, address + at, header) {
                Some(step) if step > 0 && step <= size - at => at += step,
                _ => return Some("the objects of a global heap collection do not follow each other"),
            }
        }
        None
    }

    /// Bytes that the object at `address` takes with its header.
    fn object(&self, file: &File, address: u64, header: u64) -> Option<u64> {
        let index = number(file, address, 2)?;
        let size = number(file, address + 8, self.length_size)?;
        // Object 0 is the free space, whose size counts its header.
        if index == 0 { Some(size) } else { size.checked_next_multiple_of(8)?.checked_add(header) }
    }

    /// What is wrong with the local heap at `address`, if anything is. Addresses in it count from `base`.
    pub(crate) fn check_local(&mut self, file: &File, address: u64, base: u64) -> Option<&'static str> {
        let width = self.length_size;
        let size = number(file, address.checked_add(8)?, width)?;
        let free = number(file, address + 8 + width as u64, width)?;
        let data = number(file, address + 8 + 2 * width as u64, self.address_size)?;
        if size == 0 {
            return None;
        }
        let data = base.checked_add(data)?;
        if *self.owner.entry(data).or_insert(address) != address {
            return Some("two groups keep their names in the same bytes");
        }
        self.has_endless_list(file, data, size, free).then_some("the free list of a group's names has no end")
    }

    fn has_endless_list(&self, file: &File, data: u64, size: u64, first: u64) -> bool {
        let node = 2 * self.length_size as u64;
        let mut next = first;
        // As many free blocks as fit; the list ends with 1. Anything else libhdf5 refuses itself.
        for _ in 0..=size / node {
            if next == 1 || next.checked_add(node).is_none_or(|end| end > size) {
                return false;
            }
            match data.checked_add(next).and_then(|at| number(file, at, self.length_size)) {
                Some(offset) => next = offset,
                None => return false,
            }
        }
        true
    }
}

/// The little-endian number of `width` bytes at `at`.
fn number(file: &File, at: u64, width: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(bytes.get_mut(..width)?, at).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// How many bytes addresses and lengths take, as the superblock says.
fn sizes(file: &File, len: u64) -> Option<(usize, usize)> {
    let mut start = [0; 16];
    let mut offset = 0;
    while offset < len {
        file.read_exact_at(&mut start, offset).ok()?;
        if start.starts_with(b"\x89HDF\r\n\x1a\n") {
            let at = if start[8] < 2 { 13 } else { 9 };
            return Some((usize::from(start[at].clamp(2, 8)), usize::from(start[at + 1].clamp(2, 8))));
        }
        offset = (2 * offset).max(512);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn with_bytes<T>(bytes: &[u8], f: impl FnOnce(&File) -> T) -> T {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("sieva-h5-heaps-{}-{n}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let out = f(&File::open(&path).unwrap());
        std::fs::remove_file(path).unwrap();
        out
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
            let found = with_bytes(&local(free, list), |file| Heaps::of(file, 64).check_local(file, 0, 0));
            assert_eq!(found.is_none(), is_good, "{free} {list:?}");
        }
    }

    #[test]
    fn heap_data_have_one_owner() {
        let mut bytes = local(1, [0, 0]);
        bytes.extend(local(1, [0, 0]));
        with_bytes(&bytes, |file| {
            let mut heaps = Heaps::of(file, 128);
            assert_eq!(heaps.check_local(file, 0, 0), None);
            assert_eq!(heaps.check_local(file, 0, 0), None);
            assert!(heaps.check_local(file, 64, 0).is_some());
        });
    }

    #[test]
    fn objects_of_a_collection_have_to_advance() {
        let start = u64::from_le_bytes(*b"GCOL\x01\0\0\0");
        let good = words(&[start, 64, 1, 5, 0, 0, 24, 0]);
        let zeros = words(&[start, 64, 1, 5, 0, 0, 0, 0]);
        for (bytes, is_good) in [(good, true), (zeros, false)] {
            let found = with_bytes(&bytes, |file| Heaps::of(file, 64).check_global(file, 64, 0));
            assert_eq!(found.is_none(), is_good);
        }
    }
}
