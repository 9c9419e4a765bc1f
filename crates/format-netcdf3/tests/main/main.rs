//! The reader on files written byte by byte from the specification.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod damaged;
mod data;
mod fuzzed;
mod schema;
