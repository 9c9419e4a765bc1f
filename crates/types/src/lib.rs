//! Shapes, dtypes, dimensions, boxes, the selection algebra and the error kinds. No I/O.
//!
//! Everything here is shared by all other crates and imports none of them.

mod bx;
mod dtype;
mod error;
mod selection;

pub use bx::{Bx, checked_len};
pub use dtype::{DType, Endian};
pub use error::{Error, ErrorKind, Result};
pub use selection::{Batches, Positions, Runs, Selection, SelectionBuilder, unravel};
