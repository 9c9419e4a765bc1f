//! Compiled code at work: in an instance of its own, under limits.

mod each;
mod engine;
mod failure;
mod guest;
mod reduce;
mod rows;
mod values;

pub use each::{Each, Wrong};
pub(crate) use engine::{Kind, engine};
pub use reduce::{Reduce, States};
pub use rows::Run;
pub use values::{Slice, Values};
