//! The store of augmentations: a directory `<source>.sieva/`, bytes in, bytes out, verified.
//!
//! What the records mean is not known here. Each region of an array may have *statistics* (small, loaded
//! whole), and a *bitmap*: a *head* (loaded when asked for) and a *body* (read in ranges; it carries its own
//! checksums). Records lie in **segments**, files that one worker writes front to back without regard to any
//! other; the **manifest** lists the segments and [sorted replicas](crate::sorted) that count. A build is
//! published by replacing the manifest, so that it is there wholly or not at all.
//!
//! # Who may delete what
//! A file that the manifest does not list is litter, unless its builder lives: a builder holds a file lock on
//! what it makes until that is published or given up. Locks die with their process, so a killed
//! builder leaves nothing that the next [`Store::publish`] would not remove. The manifest is changed under a
//! lock of the store's own; readers need none, since a rename is atomic.
//!
//! # What is trusted
//! Nothing that others could have written ([`Home`]), and of the rest nothing without a check. All but bodies is verified by xxh3-64 before it is parsed; sizes are checked against the file
//! before memory is asked for, and region numbers against the array's grid. What is damaged is left out and
//! told ([`Store::damage`], [`ArrayRecords::damage`]), never believed.
//!
//! The bytes are described in `docs/reference/store-format.md`.

mod bytes;
mod draft;
mod files;
mod fingerprint;
mod header;
mod heads;
mod home;
mod load;
mod locations;
mod manifest;
mod names;
mod open;
mod publish;
mod records;
mod segment;
mod summary;

#[cfg(test)]
mod tests;

pub use draft::{SharedDraft, SortedDraft};
pub use fingerprint::Fingerprint;
pub use header::ArrayHeader;
pub use heads::Head;
pub use home::Home;
pub use locations::{Locations, locations};
pub use manifest::{Listing, SegmentName, SortedEntry};
pub(crate) use names::random;
pub use open::{Found, Store};
pub use records::ArrayRecords;
pub use segment::{Record, SegmentWriter};
pub use summary::ArraySummary;
