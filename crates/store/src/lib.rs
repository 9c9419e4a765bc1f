//! Ranged reads from where a source's bytes live, and the counters of bytes and requests.
//!
//! A reader of a format asks for byte ranges and nothing else; whether they come from a local file
//! or from elsewhere is decided here.

mod cache;
mod counters;
mod file;
pub mod guard;
pub mod local;
mod location;
mod looks;
mod memory;
pub mod objects;
mod remote;
mod stores;
mod striping;
mod tree;
mod unnamed;

#[cfg(test)]
extern crate self as sieva_store;

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;

pub use counters::{Counters, CountersSnapshot};
pub use file::{FileStore, id as file_id};
pub use location::{check_name, is_url, redacted, redacted_database, without_secrets};
pub use memory::MemoryStore;
pub use remote::{RemoteOption, RemoteOptions, RemoteValue, open, open_tree, open_tree_within, open_within};
pub use stores::Store;
pub use striping::{Piece, Striping, Told};
pub use tree::{DirTree, Entry, ObjectTree, Span, Want};
pub use unnamed::unnamed_file;
pub use url::Url;

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

    /// When the object was last changed, in seconds since 1970, where it is a remote one whose server says so.
    fn modified(&self) -> Option<u64> {
        None
    }

    /// Says that these byte ranges are about to be read. An object behind a network fetches them at once, in as few
    /// requests as pay; what cannot be fetched is told when it is read. Nothing happens where reads are cheap.
    fn will_need(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }

    /// Whether a network lies between: a request then costs far more than the bytes that it brings.
    fn is_remote(&self) -> bool {
        false
    }

    /// The local file that it is, where it is one.
    fn local_path(&self) -> Option<&Path> {
        None
    }

    /// The open file behind it, where there is one: whoever wants to know something of its file system asks this.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// How messages name the object.
    fn name(&self) -> &str;

    /// Counters of this object's traffic.
    fn counters(&self) -> &Counters;
}

/// A name for what belongs to `identity` (an address, a path): 32 hexadecimal digits of its SHA-256. Nobody can find another
/// identity that has the same name, and so have what was made of theirs taken for what was made of this.
///
/// ```
/// assert_eq!(sieva_store::name_of(b"https://host/a.nc"), sieva_store::name_of(b"https://host/a.nc"));
/// assert_eq!(sieva_store::name_of(b"").len(), 32);
/// ```
pub fn name_of(identity: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, identity);
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
