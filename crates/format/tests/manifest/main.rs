//! Manifests: round trips, damage, size; and the reference sets made of them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod damage;
mod excerpts;
mod exports;
mod imports;
mod round_trip;
mod sources;
