//! Shapes, dtypes, dimensions, boxes, the selection algebra and the error kinds. No I/O.
//!
//! Everything here is shared by all other crates and imports none of them.

mod buffer;
mod bx;
mod dtype;
mod error;
pub mod exact;
pub mod keys;
pub mod large;
mod lookup3;
mod printable;
mod selection;
mod size;
mod texts;
pub mod wire;

pub use buffer::{Buffer, Element, bytes_of_mut, try_resize, try_zeros};
pub use bx::{Bx, checked_len};
pub use dtype::{DType, Endian};
pub use error::{Error, ErrorKind, Result};
pub use keys::KeySet;
pub use lookup3::lookup3;
pub use printable::{printable, printable_lines};
pub use selection::{Batches, Marks, PositionBlock, Positions, Runs, Selection, SelectionBuilder, unravel};
pub use size::parse_size;
pub use texts::{PlacedTexts, TextOffsets, TextSlice, Texts};
