//! What the tests share: a file in a temporary place, written by libhdf5 and opened as a source, in every way that
//! there is to open one.
#![allow(clippy::unwrap_used, clippy::panic)]

#[allow(dead_code)]
pub mod remote;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sieva_format::layout::{Layout, Placement};
use sieva_format::schema::{ArrayInfo, Schema};
use sieva_format::{ArraySource, LibraryReader};
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_store::{MemoryStore, RangedRead};
use sieva_types::{Bx, DType, Error, ErrorKind};

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

/// Opens a local file, and the same bytes in memory and behind a network: all three have to be alike in everything.
pub fn open(path: &Path) -> Hdf5Source {
    let source = Hdf5Source::open(path, &Hdf5Options::default()).unwrap();
    for other in elsewhere(path) {
        assert_alike(&source, &open_store(other));
    }
    source
}

#[allow(dead_code)]
pub fn open_store(store: Arc<dyn RangedRead>) -> Hdf5Source {
    Hdf5Source::open_store(store, &Hdf5Options::default()).unwrap()
}

/// The file's bytes in memory, under the name of the file.
pub fn in_memory(path: &Path) -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(path.display().to_string(), std::fs::read(path).unwrap()))
}

/// The file's bytes where libhdf5 cannot get at them by itself.
pub fn elsewhere(path: &Path) -> [Arc<dyn RangedRead>; 3] {
    let memory = in_memory(path);
    [memory.clone(), remote::Remote::new(memory.clone()), remote::Remote::deaf(memory)]
}

/// What two ways to one file have to agree on.
pub fn assert_alike(one: &Hdf5Source, other: &Hdf5Source) {
    // In words, in which NaN equals itself.
    let words = |schema: &Schema| format!("{:?}", comparable(schema));
    assert_eq!(words(one.schema()), words(other.schema()), "{}", one.store().name());
    for (i, info) in one.schema().arrays.iter().enumerate() {
        let (a, b) = (one.layout(i).map_err(settled), other.layout(i).map_err(settled));
        assert_eq!(format!("{a:?}"), format!("{b:?}"), "{}", info.path);
        let (Ok(a), Ok(b)) = (a, b) else { continue };
        if matches!(a.placement, Placement::Library(_)) {
            assert_eq!(decoded(one, i, &a), decoded(other, i, &b), "{}", info.path);
        }
    }
}

/// The schema without what is not added up over a network.
fn comparable(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    schema.arrays.iter_mut().for_each(|a| a.storage.stored_bytes = None);
    schema.left_out.iter_mut().for_each(|(_, e)| *e = settled(e.clone()));
    schema.warnings.retain(|w| !w.contains("it leads to"));
    schema
}

/// A link is refused in other words, and for other reasons, where there is no directory that it could lead into.
fn settled(e: Error) -> Error {
    if e.kind() == ErrorKind::LinkRefused { Error::new(e.kind(), "it leads out") } else { e }
}

/// What the library reads of an array, in words; only whether it does, of a large one.
fn decoded(source: &Hdf5Source, array: usize, layout: &Layout) -> String {
    let bx = Bx::whole(&layout.extent);
    let bytes = layout.extent.iter().try_fold(layout.element_size.max(1) as u64, |n, &s| n.checked_mul(s));
    let Some(bytes) = bytes.filter(|&n| n < 1 << 20) else { return "large".into() };
    if layout.dtype == DType::Str && layout.element_size == 0 {
        return format!("{:?}", source.read_library_strings(array, &bx));
    }
    let mut out = vec![0; bytes as usize];
    let read = source.read_library(array, &bx, &mut out);
    format!("{read:?} {out:?}")
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
