//! Fetched bytes, kept in memory and on disk, so that no byte is fetched twice and no two threads fetch the same.

mod disk;
mod memory;
mod single_flight;

pub(crate) use disk::DiskCache;
pub(crate) use memory::{Cache, Group, Part};
pub(crate) use single_flight::{Flight, Promise};
