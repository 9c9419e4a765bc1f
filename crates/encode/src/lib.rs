//! Results of queries as the bytes of files.
//!
//! An [`Encoded`] result knows its length and where each value lies before any value is read: the condition has been
//! evaluated, and with the number of rows the layout is fixed. So any part of the file can be made alone, by any
//! thread, and again: for the byte ranges of a transfer that was interrupted, for parallel streams that each send
//! their own region (Su, Wang, Agrawal, Kettimuthu: SDQuery DSI, SC13, sections 4.2 and 4.3), or for a file on disk.
//!
//! ```no_run
//! # fn main() -> sieva::Result<()> {
//! use std::sync::Arc;
//! use sieva_encode::{EncodeOptions, Encoded, Format};
//!
//! let source = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?;
//! let query = Arc::new(source.ask("SELECT TEMP, z_t WHERE TEMP > 25", &sieva::QueryOptions::default())?);
//! let file = Encoded::new(query, Format::named("netcdf")?, &EncodeOptions::default())?;
//! let mut head = vec![0; 64];
//! let n = file.read_at(0, &mut head)?;
//! assert!(n as u64 <= file.size()?);
//! # Ok(())
//! # }
//! ```
//!
//! Of deflated files ([`EncodeOptions::deflate`]) the length is known last: they are sent as they are made
//! ([`Encoded::stream_any_order`]), or written first like the formats that are written once.
//!
//! Formats are a list ([`Format::all`]), each a file of its own: what is written row by row can go anywhere, too
//! ([`Format::begin`]).
//!
//! Not here: grids (`--layout grid` of the command line), which need the whole box of each variable.

mod arrow;
mod attributes;
mod cells;
mod csv;
mod deflated;
mod elements;
mod encoded;
mod file;
mod file_layout;
mod fill;
mod format;
mod hdf5;
mod id;
mod json;
mod netcdf;
mod parquet;
mod sent;
mod spool;
mod stream;
mod table;
mod text;
mod variable;
mod writer;

pub use cells::row_texts;
pub use encoded::{ColumnPlace, EncodeOptions, Encoded};
pub use format::Format;
pub use spool::is_over_spool_limit;
pub use stream::{BLOCK, EncodedStream};
pub use writer::{Out, RowSink};
