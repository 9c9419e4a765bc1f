//! An HDF5 file of any bytes: opening, walking, layouts and values, and what libhdf5 makes of it.
#![no_main]

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use sieva_format::ArraySource;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_fuzz::{check_error, explore};
use xxhash_rust::xxh3::xxh3_64;

/// One file, written again for each input; its directory ends with the process.
static FILE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("a.h5");
    (dir, file)
});

fuzz_target!(|bytes: &[u8]| {
    let path = &FILE.1;
    std::fs::write(path, bytes).expect("to be written");
    match Hdf5Source::open(path, &Hdf5Options::default()) {
        Ok(source) => explore(&(Arc::new(source) as Arc<dyn ArraySource>), xxh3_64(bytes)),
        Err(e) => check_error(&e),
    }
});
