//! A netCDF classic file of any bytes: opening, schema, layouts and values.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva_format::ArraySource;
use sieva_format_netcdf3::Netcdf3Source;
use sieva_fuzz::{check_error, explore};
use sieva_store::MemoryStore;
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|bytes: &[u8]| {
    let store = Arc::new(MemoryStore::new("a.nc", bytes));
    match Netcdf3Source::open(store) {
        Ok(source) => explore(&(Arc::new(source) as Arc<dyn ArraySource>), xxh3_64(bytes)),
        Err(e) => check_error(&e),
    }
});
