//! What the fuzz targets share: values and sets that are likely to harm, and changes to bytes.
//!
//! A target fails by a panic. Nothing here is part of the product.

pub mod bits;
pub mod change;
pub mod memory;
pub mod rows;
pub mod set;
pub mod values;

pub use change::Change;
pub use rows::Rows;
pub use set::SetRecipe;
pub use values::{Data, ValuesRecipe};
