//! HDF5 and netCDF-4: metadata by libhdf5, bytes by their place in the file.
//!
//! [`Hdf5Source::open`] (and [`Hdf5Source::open_store`] for what is not a local file) walks the file once and lists
//! its arrays; where the bytes of an array lie is found on first use. Array data are read elsewhere, without libhdf5 and its lock, except for what only the library can
//! decode ([`Placement::Library`](sieva_format::layout::Placement::Library)).

mod attrs;
mod bounds;
mod bytes;
mod checks;
mod chunks;
mod conventions;
mod dataset;
mod descriptors;
mod dims;
mod driver;
mod ffi;
mod file;
mod fill;
mod heaps;
mod kept;
mod layout;
mod leaves;
mod library;
mod links;
mod memory;
mod numbers;
mod packed;
mod schema;
mod scout;
mod slabs;
mod source;
mod stored;
mod texts;
mod types;
mod walk;

pub use file::is_hdf5;
pub use scout::HEAD as HEAD_BYTES;
pub use source::{Hdf5Options, Hdf5Source};
