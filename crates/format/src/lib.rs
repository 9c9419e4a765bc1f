//! What all file formats share: the schema, the physical layout, the [`ArraySource`] trait, filters, CF
//! decoding, and the block reader that turns a layout and byte ranges into values.

pub mod buffer;
pub mod cf;
pub mod decoding;
pub mod filters;
pub mod foreign;
pub mod join;
pub mod json;
pub mod layout;
pub mod manifest;
pub mod physical;
pub mod read;
pub mod schema;

mod resolve;
mod source;
mod warnings;

pub use source::{ArraySource, BlockBounds, LibraryReader, ObjectChunks, PartOpener, Wrapped};
pub use warnings::Warnings;
