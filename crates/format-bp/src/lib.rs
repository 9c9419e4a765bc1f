//! ADIOS2 BP files: BP4 and BP5 directories and BP3 files, read by the C library of ADIOS2.
//!
//! The library is found when the first such file is opened ([`library`] says where it is looked for), so that nothing
//! is linked to it. It is written for one thread at a time, and its state is that of the process: all calls of it are
//! made under one lock ([`library::Api`]).
//!
//! [`open`] gives a [`ForeignSource`](sieva_format::foreign::ForeignSource): the schema is found here, boxes are read by the
//! library. What becomes of what is said in `docs/guides/adios.md`.

mod abi;
mod attributes;
mod blocks;
mod describe;
mod file;
pub mod library;
mod place;
mod reader;
mod variable;

pub use describe::{open, store};
pub use place::{is_bp, is_bp_directory};

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
