//! A Zarr hierarchy of any objects: metadata of both versions, codecs, shards and values.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva_format::ArraySource;
use sieva_format_zarr::{ZarrOptions, ZarrSource};
use sieva_fuzz::{MemoryTree, check_error, explore};
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|bytes: &[u8]| {
    let tree = Arc::new(MemoryTree::of_bytes(bytes));
    match ZarrSource::open(tree, &ZarrOptions::default()) {
        Ok(source) => explore(&(Arc::new(source) as Arc<dyn ArraySource>), xxh3_64(bytes)),
        Err(e) => check_error(&e),
    }
});
