//! A reference set of any text: what is read is written and read again alike, as JSON and as tables, and opens as the
//! Zarr hierarchy that it describes.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva_format::ArraySource;
use sieva_format::manifest::kerchunk::{ReferenceTree, References, import};
use sieva_format_zarr::{ZarrOptions, ZarrSource};
use sieva_fuzz::{PatternStore, check_error, explore};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the object that every url leads to.
const OBJECT: u64 = 5000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let set = match import(text) {
        Ok(set) => set,
        Err(e) => return check_error(&e),
    };
    assert_eq!(import(&set.to_json()).as_ref(), Ok(&set));
    if let Ok(tables) = set.to_tables().inspect_err(check_error) {
        References::from_tables(&tables).expect("tables that were just made");
    }
    let opener = Box::new(|_: &str| Ok(Arc::new(PatternStore::new(OBJECT)) as _));
    let tree = ReferenceTree::new("set", set, opener, &|_| true).expect("everything is allowed");
    match ZarrSource::open(Arc::new(tree), &ZarrOptions::default()) {
        Ok(source) => explore(&(Arc::new(source) as Arc<dyn ArraySource>), xxh3_64(bytes)),
        Err(e) => check_error(&e),
    }
});
