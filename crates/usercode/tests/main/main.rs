//! Code of users, as its callers see it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod each;
mod examples;
mod given;
mod groups;
mod hostile;
mod language;
mod math;
mod modules;
mod native;
mod rows;
mod stream;
