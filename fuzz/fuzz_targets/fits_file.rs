//! A FITS file of any bytes: opening, schema, layouts and values, tile-compressed ones included.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva_format::ArraySource;
use sieva_format_fits::FitsSource;
use sieva_fuzz::{check_error, explore};
use sieva_store::MemoryStore;
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|bytes: &[u8]| {
    let store = Arc::new(MemoryStore::new("a.fits", bytes));
    match FitsSource::open(store, &[]) {
        Ok(source) => explore(&(Arc::new(source) as Arc<dyn ArraySource>), xxh3_64(bytes)),
        Err(e) => check_error(&e),
    }
});
