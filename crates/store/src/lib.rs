//! Ranged reads from where a source's bytes live, and the counters of bytes and requests.
//!
//! A reader of a format asks for byte ranges and nothing else; whether they come from a local file
//! or from elsewhere is decided here.

mod counters;
mod file;
mod memory;

pub use counters::{Counters, CountersSnapshot};
pub use file::FileStore;
pub use memory::MemoryStore;

use sieva_types::Result;

/// Byte ranges of one object (a file), readable from many threads at once.
pub trait RangedRead: Send + Sync {
    /// Length of the object in bytes.
    fn len(&self) -> u64;

    /// Whether the object has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// `corrupt-file` where the range reaches past the end, `io-error` where the system fails.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Whether the object still is the one that was opened: data read now would belong to what was understood
    /// of it then.
    ///
    /// # Errors
    /// `stale-source` where it was changed since.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// What changes when the object does: its time of modification, or its tag. Empty where nothing is known.
    fn version(&self) -> String {
        String::new()
    }

    /// How messages name the object.
    fn name(&self) -> &str;

    /// Counters of this object's traffic.
    fn counters(&self) -> &Counters;
}
