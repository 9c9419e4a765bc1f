//! Segments: files of records, written by one worker front to back.

mod layout;
mod read;
mod write;

pub(super) use layout::{Block, Kind};
pub(super) use read::Segment;
pub use write::{Record, SegmentWriter};
