//! Groups as producers and consumers use them, in a directory and in a store that fails, forgets and is slow to list.
#![allow(clippy::unwrap_used, clippy::panic)]

mod code;
mod crashes;
mod encrypted;
mod hostile;
mod interleavings;
mod limits;
mod many;
mod memory;
mod offered;
mod overlap;
mod packs;
mod published;
mod whole;
mod world;
mod zone_maps;
