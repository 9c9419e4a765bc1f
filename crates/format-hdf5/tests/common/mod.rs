//! What the tests share: a file in a temporary place, written by libhdf5 and opened as a source.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sieva_format::ArraySource;
use sieva_format::layout::Layout;
use sieva_format::schema::ArrayInfo;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};

/// A directory that goes when it is dropped.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("sieva-h5-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Writes a file with `write` and opens it.
#[allow(dead_code)]
pub fn written(write: impl FnOnce(&hdf5_metno::File) -> hdf5_metno::Result<()>) -> (Dir, Hdf5Source) {
    let dir = Dir::new();
    let path = dir.file("a.h5");
    let file = hdf5_metno::File::create(&path).unwrap();
    write(&file).unwrap();
    file.close().unwrap();
    let source = open(&path);
    (dir, source)
}

pub fn open(path: &Path) -> Hdf5Source {
    Hdf5Source::open(path, &Hdf5Options::default()).unwrap()
}

#[allow(dead_code)]
pub fn array<'a>(source: &'a Hdf5Source, path: &str) -> (usize, &'a ArrayInfo) {
    let i = source.schema().array(path).unwrap_or_else(|| panic!("no array {path}"));
    (i, &source.schema().arrays[i])
}

#[allow(dead_code)]
pub fn layout(source: &Hdf5Source, path: &str) -> std::sync::Arc<Layout> {
    source.layout(array(source, path).0).unwrap()
}

/// The paths of an array's dimensions.
#[allow(dead_code)]
pub fn dims(source: &Hdf5Source, path: &str) -> Vec<String> {
    array(source, path).1.dims.iter().map(|&d| source.schema().dims[d].path.clone()).collect()
}
