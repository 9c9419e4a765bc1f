//! Compiled code at work: in an instance of its own, under limits.

mod engine;
mod failure;
mod guest;
mod rows;

pub(crate) use engine::{Kind, engine};
pub use rows::{Run, Slice, Values};
