//! Augmentations: what is kept beside a source to answer queries without reading its data.
//!
//! Zone maps and mergeable histograms ([`stats`]), bitmap indexes ([`bitmap`]), sorted replicas ([`sorted`]),
//! and the store that they lie in ([`store`]). Nothing here knows a file format: elements come as typed
//! slices, conditions as sets of stored values ([`sieva_types::KeySet`]), places as numbers of regions
//! ([`RegionGrid`]).
//!
//! No augmentation is trusted: what is read back is checked, and whatever is wrong with it is an error of
//! kind `corrupt-index`, upon which the caller scans the data.

mod array;
pub mod bitmap;
mod elements;
mod grid;
mod limits;
mod pieces;
mod place;
#[cfg(test)]
#[allow(clippy::unwrap_used, missing_docs)]
mod scratch;
pub mod sorted;
pub mod stats;
pub mod store;

pub use array::{ArrayIndex, Want};
pub use elements::{Elements, content_hash, members};
pub use grid::RegionGrid;
pub use limits::RegionLimits;
pub use pieces::{PieceLoader, PieceTable};
pub use place::Place;
