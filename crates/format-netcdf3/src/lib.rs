//! The netCDF classic reader: CDF-1 (classic), CDF-2 (64-bit offset) and CDF-5, without a C library.
//!
//! Follows the "NetCDF Classic Format Specification" (Unidata) and its CDF-5 extension (PnetCDF). Only the
//! header is read, in blocks; data are left to the block reader, which gets their place as a
//! [`Layout`](sieva_format::layout::Layout).
//!
//! All numbers are big-endian. `count` takes 4 bytes, in CDF-5 8; `offset` takes 4 bytes in CDF-1, else 8.
//! Names and attribute values are padded to 4 bytes.
//!
//! | part | bytes | meaning |
//! |---|---|---|
//! | magic | 4 | `CDF` and the version: 1, 2 or 5 |
//! | numrecs | count | number of records; all ones: as many as the file holds ("streaming") |
//! | dim_list | list, tag 10 | name, length (count; 0: the record dimension) |
//! | gatt_list | list, tag 12 | attributes of the file: name, type (4), number of values (count), values |
//! | var_list | list, tag 11 | name, dimension ids (count, then counts), attribute list, type (4), vsize (count), begin (offset) |
//!
//! A list is its tag (4), a count and its entries; an absent list is tag 0 and count 0. A name is its length
//! (count) and its bytes.
//!
//! Fixed variables lie at `begin` in C order. Record variables are interleaved: record `r` of each lies at
//! `begin + r * stride`, where the stride is the sum of what they take in one record, each padded to 4 bytes;
//! a record variable that is the only one is not padded. `vsize` is redundant, wrong for variables
//! of 4 GiB and more, and not believed.
//!
//! | file | does |
//! |---|---|
//! | `cursor.rs` | reads the header's bytes in order, in blocks |
//! | `header.rs` | header as it is written |
//! | `geometry.rs` | sizes, records and strides, checked |
//! | `nctype.rs`, `attributes.rs` | types, fill values, attribute values |
//! | `chars.rs` | which dimensions hold the characters of texts |
//! | `arrays.rs` | schema and layouts |
//! | `source.rs` | the [`ArraySource`](sieva_format::ArraySource) |

mod arrays;
mod attributes;
mod chars;
mod cursor;
mod geometry;
mod header;
mod nctype;
mod source;

pub use source::{Netcdf3Source, is_netcdf3};
