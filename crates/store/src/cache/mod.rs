//! Fetched bytes, kept in memory and on disk, so that no byte is fetched twice and no two threads fetch the same.

mod disk;
mod flight;
mod memory;

pub(crate) use disk::DiskCache;
pub(crate) use flight::{Flight, Promise};
pub(crate) use memory::{Cache, Group, Part};
