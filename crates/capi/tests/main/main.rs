//! The C interface as C programs meet it: compiled, linked, run, and held against their own loops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod header;
mod installed;
mod layout;
mod programs;
mod shared;
mod toolchain;
