//! Variables of the environment that are meant for other copies of libhdf5: this one neither fails nor follows them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::process::Command;

use sieva_format::ArraySource;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};

/// Run by the test below, in an environment of its own.
#[test]
#[ignore = "run by another test"]
fn opens_a_file() {
    let path = std::env::var_os("SIEVA_TEST_FILE").unwrap();
    let source = Hdf5Source::open(path.as_ref(), &Hdf5Options::default()).unwrap();
    assert_eq!(source.schema().arrays[0].shape, [3]);
    // Everybody else still sees them.
    assert_eq!(std::env::var("SIEVA_TEST_SEEN").as_deref(), Ok("yes"));
}

#[test]
fn variables_of_libhdf5_are_not_looked_at() {
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    let file = hdf5_metno::File::create(&path).unwrap();
    file.new_dataset_builder().with_data(&[1, 2, 3]).create("x").unwrap();
    file.close().unwrap();
    for (name, value) in [
        ("HDF5_VOL_CONNECTOR", "none_that_is_there"),
        ("HDF5_VOL_CONNECTOR", "pass_through under_vol=0;under_info={}"),
        ("HDF5_DRIVER", "none_that_is_there"),
        ("HDF5_DRIVER", "family"),
        ("HDF5_PLUGIN_PATH", "/nonexistent"),
        ("HDF5_PLUGIN_PRELOAD", "::"),
        ("HDF5_DISABLE_VERSION_CHECK", "0"),
        ("HDF5_USE_FILE_LOCKING", "nonsense"),
    ] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "opens_a_file", "--ignored"])
            .env("SIEVA_TEST_FILE", &path)
            .env("SIEVA_TEST_SEEN", "yes")
            .env(name, value)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{name}={value}: {}\n{printed}", child.status);
        assert!(printed.contains("1 passed"), "{printed}");
    }
}
