//! An HDF5 file of any bytes: opening, walking, layouts and values, and what libhdf5 makes of it. Seven in eight have
//! checksums of their metadata that fit.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva_format::ArraySource;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_fuzz::{check_error, checksums, explore};
use sieva_store::MemoryStore;
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|bytes: &[u8]| {
    let seed = xxh3_64(bytes);
    let mut bytes = bytes.to_vec();
    if seed % 8 != 0 {
        checksums::repair(&mut bytes);
    }
    let store = Arc::new(MemoryStore::new("a.h5", bytes));
    let options = Hdf5Options { chunk_limit: Some(1 << 20), ..Hdf5Options::default() };
    match Hdf5Source::open_store(store, &options) {
        Ok(source) => explore(&(Arc::new(source) as Arc<dyn ArraySource>), seed),
        Err(e) => check_error(&e),
    }
});
