//! The reader on files written byte by byte from the standard, and on tiles that astropy wrote.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod damaged;
mod images;
mod schema;
mod tables;
mod tiles;
