//! An object held in memory: for bytes that came from elsewhere, and for tests of readers.

use std::sync::Arc;

use sieva_types::{Error, Result};

use crate::{Counters, RangedRead};

/// A named object whose bytes are in memory.
///
/// ```
/// use sieva_store::{MemoryStore, RangedRead};
/// let store = MemoryStore::new("digits", b"0123456789".to_vec());
/// let mut out = [0; 3];
/// store.read_exact_at(4, &mut out).unwrap();
/// assert_eq!(&out, b"456");
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    bytes: Arc<[u8]>,
    name: String,
    counters: Counters,
}

impl MemoryStore {
    /// An object of these bytes, which messages call `name`.
    pub fn new(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { bytes: bytes.into(), name: name.into(), counters: Counters::default() }
    }

    /// All of its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl RangedRead for MemoryStore {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let range = usize::try_from(offset).ok().and_then(|start| {
            let end = start.checked_add(out.len())?;
            self.bytes.get(start..end)
        });
        let Some(range) = range else {
            return Err(Error::corrupt(format!(
                "'{}' is cut off: {} bytes at offset {offset} asked for, the object has {}",
                self.name,
                out.len(),
                self.bytes.len()
            )));
        };
        out.copy_from_slice(range);
        self.counters.add_request(out.len() as u64);
        Ok(())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use sieva_types::ErrorKind;

    use super::*;

    #[test]
    fn ranges_are_served_and_counted() {
        let store = MemoryStore::new("m", b"0123456789".to_vec());
        let mut out = [0; 4];
        store.read_exact_at(6, &mut out).unwrap();
        assert_eq!(&out, b"6789");
        store.read_exact_at(10, &mut []).unwrap();
        assert_eq!(store.counters().snapshot().bytes_read, 4);
        assert_eq!(store.counters().snapshot().requests, 2);
    }

    #[test]
    fn a_range_past_the_end_is_refused() {
        let store = MemoryStore::new("m", b"0123456789".to_vec());
        let e = store.read_exact_at(8, &mut [0; 4]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        assert_eq!(e.message(), "'m' is cut off: 4 bytes at offset 8 asked for, the object has 10");
        assert!(store.read_exact_at(u64::MAX, &mut [0; 4]).is_err());
    }
}
