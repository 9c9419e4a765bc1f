//! Groups: rows are taken into the aggregates of the group that their keys name.
//!
//! Where keys are coordinates, positions or what is computed of them, the group of a row follows from its position
//! ([`dense`]); else the rows' keys are hashed ([`hashed`]). Reductions that came as code see their rows in order ([`reduced`]).

pub(super) mod aggregate;
mod columns;
mod combined;
mod dense;
mod feed;
mod frame;
mod grid;
mod hashed;
mod panels;
mod reduced;
mod repeated;
mod seeded;
mod shared;
mod stored;
mod table;
mod tiles;
pub(super) mod together;
mod walk;

pub use hashed::Groups;
pub use repeated::KeyValues;
pub use table::{GroupRows, GroupTable};

pub(super) use hashed::Kind;
pub(super) use panels::Panels;
pub(super) use shared::Shared;
pub(super) use table::{Made, finish};
pub(super) use tiles::{Sink, Wanted, add_window};
