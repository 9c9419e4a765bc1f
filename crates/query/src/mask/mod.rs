//! Bit masks over the positions of a box, in C order, and their broadcast along dimensions.

mod bits;
mod broadcast;
mod build;

pub use bits::Mask;
pub use broadcast::{and_broadcast, project, slice_box};
pub use build::Bits;
