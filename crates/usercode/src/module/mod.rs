//! Modules of any language with the columnar interface: what is looked at before they are compiled, and what they export.

mod bounds;
mod exports;

pub(crate) use bounds::{MOST_BYTES, bounded};
pub(crate) use exports::{Form, form};
