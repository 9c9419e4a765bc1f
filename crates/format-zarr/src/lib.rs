//! The Zarr reader: version 2 and 3, in a directory, a bucket or on a web server, without a Zarr library.
//!
//! Follows "Zarr Storage Specification Version 2" and "Zarr core specification, version 3.0" (zarr-specs), the codec
//! `sharding_indexed` 1.0, and for further codecs the numcodecs library. Metadata are read when a source is
//! opened; chunks are fetched one by one, of shards only the range that holds the chunk, and decoded by the
//! shared [`Pipeline`](sieva_format::filters::Pipeline).
//!
//! | file | does |
//! |---|---|
//! | `documents.rs`, `budget.rs` | metadata documents within limits |
//! | `json.rs`, `scan.rs` | values of JSON, and where they are |
//! | `discover.rs` | which groups and arrays there are |
//! | `array.rs` | one array as either version describes it |
//! | `element.rs`, `item.rs`, `fill.rs` | types of elements, compounds, fill values |
//! | `codecs.rs` | codecs as stages of the pipeline |
//! | `grid.rs`, `keys.rs`, `shards.rs` | from a chunk's number to bytes of an object |
//! | `texts.rs` | texts of any length |
//! | `dims.rs`, `attributes.rs`, `build.rs` | schema and layouts |
//! | `store.rs`, `source.rs` | the [`ArraySource`](sieva_format::ArraySource) |

mod array;
mod attributes;
mod budget;
mod build;
mod codecs;
mod dims;
mod discover;
mod documents;
mod element;
mod fill;
mod grid;
mod item;
mod json;
mod keys;
mod once;
mod scan;
mod shards;
mod source;
mod store;
mod texts;

pub use discover::is_zarr;
pub use source::{ZarrOptions, ZarrSource};
