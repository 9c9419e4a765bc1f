//! A file that is written again while it is open.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Dir, array, open};

fn write(path: &std::path::Path, n: usize) {
    let file = hdf5_metno::File::create(path).unwrap();
    file.new_dataset::<i32>().shape(n).create("d").unwrap();
    file.close().unwrap();
}

#[test]
fn a_file_written_again_is_seen_as_it_is_now() {
    let dir = Dir::new();
    let path = dir.file("again.h5");
    write(&path, 10);
    let old = open(&path);
    assert_eq!(array(&old, "d").1.shape, [10]);
    write(&path, 7000);
    // The first source is still open: libhdf5 must not answer from what it remembers of it.
    let new = open(&path);
    assert_eq!(array(&new, "d").1.shape, [7000]);
}
