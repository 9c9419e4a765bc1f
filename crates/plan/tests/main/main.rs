//! What a plan is put through and must come out of.
#![allow(clippy::unwrap_used, clippy::panic)]

mod canonical;
mod drawn;
mod forms;
