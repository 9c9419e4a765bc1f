//! Texts of variable length: where an item says its text lies, and the heap that holds it.
//!
//! An item is the length of the text (4 bytes), the address of a global heap collection and the number of an object in it
//! (4 bytes); an address of zero is no text. A collection is a header and objects one after the other, each with its
//! number, references and size before its bytes, which are filled up to a multiple of eight; object 0 is the room that
//! is left. All numbers are little-endian.
//!
//! Reference: HDF5 file format specification, version 3.0, III.E "Global Heap" and IV.B "Variable-length".

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_store::RangedRead;
use sieva_types::{Error, ErrorKind, Result, Texts};

use crate::heaps::Sizes;

/// Least bytes of a collection, which most of them have.
const LEAST: u64 = 4096;
/// Most bytes of texts fetched in one call, and of one collection.
const BYTES_LIMIT: u64 = 512 << 20;
/// Bytes of collections that are kept, in two halves.
const KEPT: usize = 32 << 20;
/// Bytes of an item besides the address.
pub(crate) const BESIDES_ADDRESS: usize = 8;

/// The texts of one file.
pub(crate) struct HeapTexts {
    store: Arc<dyn RangedRead>,
    sizes: Sizes,
    kept: Mutex<Kept>,
}

/// Collections in use lately: the older half goes when the younger one is full.
#[derive(Default)]
struct Kept {
    young: HashMap<u64, Arc<GlobalHeap>>,
    old: HashMap<u64, Arc<GlobalHeap>>,
    young_bytes: usize,
}

impl Kept {
    fn get(&mut self, address: u64) -> Option<Arc<GlobalHeap>> {
        if let Some(found) = self.young.get(&address) {
            return Some(Arc::clone(found));
        }
        let found = self.old.remove(&address)?;
        self.put(address, Arc::clone(&found));
        Some(found)
    }

    fn put(&mut self, address: u64, collection: Arc<GlobalHeap>) {
        if self.young_bytes > KEPT / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += collection.bytes.len();
        self.young.insert(address, collection);
    }
}

impl HeapTexts {
    /// The texts of the file in `store`, whose superblock says `sizes`.
    pub(crate) fn new(store: Arc<dyn RangedRead>, sizes: Sizes) -> Self {
        Self { store, sizes, kept: Mutex::default() }
    }

    /// Bytes of an item.
    fn item_len(&self) -> usize {
        self.sizes.address + BESIDES_ADDRESS
    }

    /// Appends the texts of stored items, one after another.
    ///
    /// # Errors
    /// `corrupt-file` where there is no such object, or one of another length than its item says; `memory-limit`; those
    /// of the storage.
    pub(crate) fn read(&self, items: &[u8], out: &mut Texts) -> Result<()> {
        let items: Vec<Item> = items.chunks_exact(self.item_len()).map(Item::of).collect();
        let len = self.store.len();
        if let Some(item) = items.iter().find(|item| u64::from(item.len) > len) {
            let message = format!("a text of {} bytes, the file has {len}", item.len);
            return Err(Error::corrupt(message));
        }
        let total: u64 = items.iter().map(|item| u64::from(item.len)).sum();
        if total > BYTES_LIMIT {
            let message = format!("{} texts of {total} bytes, at most {BYTES_LIMIT} are read", items.len());
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint("ask for fewer at once"));
        }
        self.announce(&items);
        // Texts that were written together lie together.
        let mut last: Option<(u64, Arc<GlobalHeap>)> = None;
        for item in items {
            if item.address == 0 {
                out.push("");
                continue;
            }
            let collection = match last.take() {
                Some((address, collection)) if address == item.address => collection,
                _ => self.collection(item.address)?,
            };
            out.push_bytes(collection.text(&item)?);
            last = Some((item.address, collection));
        }
        Ok(())
    }

    /// Tells a storage behind a network which collections are wanted, so that they come together.
    fn announce(&self, items: &[Item]) {
        if !self.store.is_remote() {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted: Vec<u64> = items.iter().map(|item| item.address).filter(|&a| a != 0).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|&address| kept.get(address).is_none());
        drop(kept);
        let start = |address: u64| self.sizes.start.saturating_add(address).min(self.store.len());
        let end = |at: u64| at.saturating_add(LEAST).min(self.store.len());
        let ranges: Vec<Range<u64>> = wanted.into_iter().map(|a| start(a)..end(start(a))).collect();
        if ranges.len() > 1 {
            self.store.will_need(&ranges);
        }
    }

    fn collection(&self, address: u64) -> Result<Arc<GlobalHeap>> {
        let locked = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = locked().get(address) {
            return Ok(found);
        }
        let found = self.fetch(address).map_err(|e| e.at(format!("global heap collection at {address}")))?;
        let found = Arc::new(found);
        locked().put(address, Arc::clone(&found));
        Ok(found)
    }

    fn fetch(&self, address: u64) -> Result<GlobalHeap> {
        let at = self.sizes.start.checked_add(address);
        let room = at.and_then(|at| self.store.len().checked_sub(at)).filter(|&room| room >= LEAST);
        let (Some(at), Some(room)) = (at, room) else {
            let message = format!("it is not in the file, which has {} bytes", self.store.len());
            return Err(Error::corrupt(message));
        };
        let mut bytes = vec![0; LEAST as usize];
        self.store.read_exact_at(at, &mut bytes)?;
        if !bytes.starts_with(b"GCOL\x01") {
            return Err(Error::corrupt("it is none of version 1"));
        }
        let size = number(&bytes[8..8 + self.sizes.length]);
        if size < LEAST || size > room {
            return Err(Error::corrupt(format!("it has {size} bytes, the file {room} from there on")));
        }
        if size > BYTES_LIMIT {
            let message = format!("it has {size} bytes, at most {BYTES_LIMIT} are read");
            return Err(Error::new(ErrorKind::MemoryLimit, message));
        }
        bytes.resize(size as usize, 0);
        self.store.read_exact_at(at + LEAST, &mut bytes[LEAST as usize..])?;
        GlobalHeap::parse(bytes, self.sizes.length)
    }
}

/// What is stored in place of a text.
struct Item {
    len: u32,
    address: u64,
    index: u32,
}

impl Item {
    fn of(bytes: &[u8]) -> Self {
        let (len, rest) = bytes.split_at(4);
        let (address, index) = rest.split_at(rest.len() - 4);
        Self { len: number(len) as u32, address: number(address), index: number(index) as u32 }
    }
}

/// A little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// A collection of objects.
struct GlobalHeap {
    bytes: Vec<u8>,
    /// Where each object's bytes are, by its number.
    objects: HashMap<u16, Range<usize>>,
}

impl GlobalHeap {
    fn parse(bytes: Vec<u8>, length: usize) -> Result<Self> {
        let header = (8 + length).next_multiple_of(8);
        let mut objects = HashMap::new();
        let mut at = header;
        // What is too short for a header is room that is left.
        while let Some(head) = bytes.get(at..at + header) {
            let (index, size) = (number(&head[..2]) as u16, number(&head[8..8 + length]));
            // Object 0 is the room that is left, whose size counts its header.
            let step = match index {
                0 => Some(size).filter(|&step| step > 0),
                _ => size.checked_next_multiple_of(8).and_then(|size| size.checked_add(header as u64)),
            };
            let Some(step) = step.filter(|&step| step <= (bytes.len() - at) as u64) else {
                let message = format!("object {index} of {size} bytes at {at} does not fit into it");
                return Err(Error::corrupt(message));
            };
            let content = at + header..at + header + size as usize;
            if index != 0 && objects.insert(index, content).is_some() {
                return Err(Error::corrupt(format!("it has two objects {index}")));
            }
            at += step as usize;
        }
        Ok(Self { bytes, objects })
    }

    /// The text of an item: up to its first byte of zero, as C's texts are.
    fn text(&self, item: &Item) -> Result<&[u8]> {
        let found = u16::try_from(item.index).ok().and_then(|index| self.objects.get(&index));
        let content = found.filter(|range| range.len() as u64 == u64::from(item.len)).ok_or_else(|| {
            let what = found.map_or("no such object".to_owned(), |range| format!("{} bytes", range.len()));
            let Item { len, address, index } = item;
            Error::corrupt(format!(
                "a text of {len} bytes is said to be object {index} of the heap collection at {address}: {what}"
            ))
        })?;
        let text = &self.bytes[content.clone()];
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Ok(&text[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sieva_store::MemoryStore;

    /// A file of one collection at 512, of these objects.
    fn file(objects: &[(u16, u64, &[u8])]) -> HeapTexts {
        let mut bytes = b"GCOL\x01\0\0\0".to_vec();
        bytes.extend(LEAST.to_le_bytes());
        for (index, size, content) in objects {
            bytes.extend(index.to_le_bytes());
            bytes.extend([1, 0, 0, 0, 0, 0]);
            bytes.extend(size.to_le_bytes());
            bytes.extend(*content);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes.resize(LEAST as usize, 0);
        let content = [vec![0; 512], bytes].concat();
        let store = MemoryStore::new("a.h5", content);
        HeapTexts::new(Arc::new(store), Sizes { start: 256, address: 8, length: 8 })
    }

    fn item(len: u32, address: u64, index: u32) -> Vec<u8> {
        [&len.to_le_bytes()[..], &address.to_le_bytes(), &index.to_le_bytes()].concat()
    }

    fn read(texts: &HeapTexts, items: &[Vec<u8>]) -> Result<Texts> {
        let mut out = Texts::new();
        texts.read(&items.concat(), &mut out).map(|()| out)
    }

    #[test]
    fn texts_by_collection_and_number() {
        let left = LEAST - 16 - 24 - 32;
        let texts = file(&[(7, 5, b"three"), (2, 9, b"on\0e\xe9five"), (0, left, b"")]);
        let items = [item(9, 256, 2), item(0, 0, 0), item(5, 256, 7), item(3, 0, 9)];
        assert_eq!(read(&texts, &items), Ok(["on", "", "three", ""].into_iter().collect()));
    }

    #[test]
    fn what_is_not_there_or_of_another_length() {
        let left = LEAST - 16 - 24;
        let texts = file(&[(7, 5, b"three"), (0, left, b"")]);
        for (wrong, why) in [
            (item(4, 256, 7), "5 bytes"),
            (item(5, 256, 8), "no such object"),
            (item(5, 256, 7 + (1 << 16)), "no such object"),
            (item(4, 256, 0), "no such object"),
            (item(5000, 256, 7), "the file has 4608"),
            (item(5, 8, 7), "none of version 1"),
            (item(5, 1 << 60, 7), "not in the file"),
            (item(5, u64::MAX, 7), "not in the file"),
        ] {
            let e = read(&texts, &[item(5, 256, 7), wrong]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::CorruptFile);
            assert!(e.message().contains(why), "{e}");
        }
        let many = vec![item(4096, 256, 7); (BYTES_LIMIT / 4096) as usize + 1];
        assert_eq!(read(&texts, &many).unwrap_err().kind(), ErrorKind::MemoryLimit);
    }

    #[test]
    fn objects_that_do_not_follow_each_other() {
        for objects in [
            &[(7, 5, &b"three"[..]), (7, 5, b"three")][..],
            &[(7, LEAST, b"")],
            &[(7, u64::MAX, b"")],
            &[(0, 0, b"")],
        ] {
            let e = read(&file(objects), &[item(5, 256, 7)]).unwrap_err();
            assert!(e.message().starts_with("global heap collection at 256: "), "{e}");
        }
    }
}
