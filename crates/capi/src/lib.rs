//! The C interface of sieva: `include/sieva.h` is what its users read, with one comment for each function.
//!
//! Each file here holds the functions of one heading of that header. All of them keep to the same rules: every
//! pointer is checked for NULL, what is returned is a code of [`status`], the caller allocates, nothing is
//! written before everything given was checked, and no panic leaves ([`status::guarded`]).
#![allow(clippy::missing_safety_doc)] // the header says what a caller must keep to

pub mod asked;
pub mod attributes;
pub mod boxes;
pub mod catalog;
pub mod collection;
pub mod describe;
pub mod given;
pub mod group;
pub mod group_passes;
mod group_published;
pub mod group_step;
pub mod guard;
pub mod histogram;
pub mod index;
pub mod index_care;
mod index_job;
pub mod index_options;
pub mod logical;
pub mod objects;
pub mod options;
pub mod outcome;
pub mod plan;
pub mod query;
pub mod ranks;
pub mod read;
pub mod read_many;
pub mod region;
pub mod request;
pub mod result;
pub mod result_sent;
pub mod result_stream;
pub mod run;
pub mod selection;
pub mod selection_made;
pub mod selection_objects;
pub mod selection_part;
pub mod session;
pub mod source;
pub mod start;
pub mod start_reads;
pub mod start_search;
pub mod start_tasks;
pub mod status;
pub mod stop;
pub mod tags;
pub mod target;
pub mod tasks;
pub mod texts;
pub mod types;
