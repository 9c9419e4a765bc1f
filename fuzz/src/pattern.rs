//! An object of any length whose bytes are made up.

use sieva_store::{Counters, RangedRead};
use sieva_types::{Error, Result};

/// Every byte follows from its offset.
pub struct PatternStore {
    len: u64,
    counters: Counters,
}

impl PatternStore {
    /// An object of `len` bytes.
    pub fn new(len: u64) -> Self {
        Self { len, counters: Counters::default() }
    }
}

impl RangedRead for PatternStore {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len) {
            return Err(Error::corrupt(format!("{} bytes at {offset}, of {}", out.len(), self.len)));
        }
        out.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = (at ^ at >> 7) as u8);
        Ok(())
    }

    fn name(&self) -> &str {
        "pattern"
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
