//! What the fuzz targets share: values and sets that are likely to harm, and changes to bytes.
//!
//! A target fails by a panic. Nothing here is part of the product.

pub mod bits;
pub mod change;
pub mod checksums;
pub mod explore;
pub mod memory;
pub mod objects;
pub mod pattern;
pub mod rows;
pub mod set;
pub mod small;
pub mod values;

pub use change::Change;
pub use explore::{check_error, explore};
pub use objects::MemoryTree;
pub use pattern::PatternStore;
pub use rows::Rows;
pub use set::SetRecipe;
pub use small::small_source;
pub use values::{Data, ValuesRecipe};
