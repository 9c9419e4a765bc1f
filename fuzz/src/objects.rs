//! A tree of objects held in memory, made of one run of bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use sieva_store::{Counters, Entry, MemoryStore, ObjectTree, RangedRead, Span};
use sieva_types::{Error, Result};

/// What stands between two objects.
const BETWEEN: &[u8] = b"\0\0==";
/// Objects of a tree at most.
const MOST: usize = 64;

/// Objects by key.
pub struct MemoryTree {
    objects: BTreeMap<String, Arc<[u8]>>,
    counters: Counters,
}

impl MemoryTree {
    /// Objects that stand one after another, `\0\0==` between them; each is a key, a line feed, and its bytes.
    pub fn of_bytes(mut bytes: &[u8]) -> Self {
        let mut objects = BTreeMap::new();
        while !bytes.is_empty() && objects.len() < MOST {
            let end = bytes.windows(BETWEEN.len()).position(|w| w == BETWEEN);
            let object = &bytes[..end.unwrap_or(bytes.len())];
            bytes = end.map_or(&[], |end| &bytes[end + BETWEEN.len()..]);
            let line = object.iter().position(|&b| b == b'\n').unwrap_or(object.len());
            if let Ok(key) = std::str::from_utf8(&object[..line]) {
                objects.insert(key.to_owned(), object.get(line + 1..).unwrap_or_default().into());
            }
        }
        Self { objects, counters: Counters::default() }
    }
}

impl ObjectTree for MemoryTree {
    fn get(&self, key: &str, span: &Span, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let Some(object) = self.objects.get(key) else { return Ok(false) };
        let len = object.len() as u64;
        let range = match span {
            Span::All => 0..len,
            Span::Range(range) => range.clone(),
            Span::Last(n) => len.saturating_sub(*n)..len,
        };
        if range.start > range.end || range.end > len {
            return Err(Error::corrupt(format!("'{key}' is cut off: {range:?} of {len} bytes")));
        }
        out.extend_from_slice(&object[range.start as usize..range.end as usize]);
        Ok(true)
    }

    fn list(&self, prefix: &str) -> Result<Option<Vec<Entry>>> {
        let within = self.objects.iter().filter(|(key, _)| key.starts_with(prefix));
        let entry = |(key, bytes): (&String, &Arc<[u8]>)| Entry {
            key: key.clone(),
            size: bytes.len() as u64,
            version: String::new(),
        };
        Ok(Some(within.map(entry).collect()))
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn RangedRead>>> {
        let object = self.objects.get(key);
        Ok(object.map(|bytes| Box::new(MemoryStore::new(key, Arc::clone(bytes))) as Box<dyn RangedRead>))
    }

    fn name(&self) -> &str {
        "tree"
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
