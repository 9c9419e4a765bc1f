//! The reader against what zarr-python wrote and reads, and against damaged and hostile trees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod hostile;
mod real;
mod tree;
