//! The FITS reader, without a C library: images, tables, tile-compressed images.
//!
//! Follows the "Definition of the Flexible Image Transport System", version 4.0 (IAU FITS Working Group, 2018). Only
//! headers are read at opening. Plain images are left to the block reader, which gets their place as a
//! [`Layout`](sieva_format::layout::Layout); columns, unsigned integers and compressed tiles are handed to it as
//! chunks that are decoded here.
//!
//! | part | bytes | meaning |
//! |---|---|---|
//! | header | blocks of 2880 | cards of 80 bytes up to `END` |
//! | data | blocks of 2880 | BITPIX / 8 · GCOUNT · (PCOUNT + NAXIS1 · ... · NAXISn), big-endian, first axis fastest |
//!
//! A file is a primary HDU (header and data unit) and any number of extensions.
//!
//! | file | does |
//! |---|---|
//! | `scan.rs` | finds the HDUs, in few reads |
//! | `card.rs`, `header.rs` | keywords and values |
//! | `scaling.rs` | BSCALE, BZERO, BLANK and their kin |
//! | `image.rs`, `table.rs`, `tiled/` | arrays of the kinds of HDU |
//! | `tform.rs`, `ascii.rs` | forms of columns |
//! | `blocks.rs` | blocks of rows as chunks |
//! | `names.rs`, `builder.rs` | names, dimensions, schema and layouts |
//! | `source.rs` | the [`ArraySource`](sieva_format::ArraySource) |

mod ascii;
mod blocks;
mod builder;
mod card;
mod header;
mod image;
mod names;
mod scaling;
mod scan;
mod source;
mod table;
mod tform;
mod tiled;

pub use source::{FitsSource, is_fits};
