//! The same answers with a process between as without, and through a manifest's bytes as without.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::buffer::Buffer;
use sieva_format::manifest::{Layouts, Manifest, ManifestSource};
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_isolate::{IsolateOptions, IsolatedSource, OpenRequest, WorkerLimits};
use sieva_types::{Bx, DType, Result, Texts};

use crate::deeds::open;

/// At most so many elements of an array are compared.
const MOST: u64 = 1 << 20;

/// The first elements of an array: bytes, or texts.
pub fn elements(source: &Arc<dyn ArraySource>, array: usize) -> Result<(Vec<u8>, Texts)> {
    let info = &source.schema().arrays[array];
    let mut bx = Bx::whole(&info.shape);
    for d in 0..bx.rank() {
        while bx.len() > MOST && bx.shape[d] > 1 {
            bx.shape[d] = bx.shape[d].div_ceil(2);
        }
    }
    let reader = BlockReader::new(Arc::clone(source), array, Arc::new(ChunkCache::new(1 << 24)), 1 << 28)?;
    let mut ws = Workspace::default();
    if info.dtype == DType::Str {
        return Ok((Vec::new(), reader.read_texts(&bx, &mut ws)?));
    }
    let mut out = Buffer::default();
    reader.read(&bx, &mut out, &mut ws)?;
    Ok((out.bytes_mut().to_vec(), Texts::new()))
}

fn compare(path: &PathBuf, ours: &Arc<dyn ArraySource>, theirs: &Arc<dyn ArraySource>) {
    assert_eq!(format!("{:?}", ours.schema()), format!("{:?}", theirs.schema()), "{path:?}");
    for (i, info) in theirs.schema().arrays.iter().enumerate() {
        match (elements(ours, i), elements(theirs, i)) {
            (Ok(ours), Ok(theirs)) => assert!(ours == theirs, "{path:?}: {}", info.path),
            (Err(ours), Err(theirs)) => assert_eq!(ours.kind(), theirs.kind(), "{path:?}: {}", info.path),
            (ours, theirs) => panic!("{path:?}: {}: {:?} {:?}", info.path, ours.err(), theirs.err()),
        }
    }
}

fn real_files() -> Vec<PathBuf> {
    let Some(dev) = crate::shared("dev") else { return Vec::new() };
    ["hdf5", "netcdf3", "netcdf4"].iter().flat_map(|folder| crate::files(&dev.join(folder))).collect()
}

fn direct(path: &Path) -> Arc<dyn ArraySource> {
    open(&OpenRequest { path: path.to_path_buf(), ..OpenRequest::default() }).unwrap()
}

pub fn isolated_answers_are_those_of_the_reader() {
    for (i, path) in real_files().iter().enumerate() {
        let options = IsolateOptions { all_layouts: i % 2 == 0, ..IsolateOptions::default() };
        let isolated =
            IsolatedSource::open(&crate::command("good"), path, &options, WorkerLimits::default()).unwrap();
        compare(path, &isolated, &direct(path));
    }
}

pub fn manifests_of_real_files_round_trip() {
    for path in real_files() {
        let source = direct(&path);
        let mut manifest = Manifest::take(&*source, Layouts::All).unwrap();
        manifest.keep_values(&source, 1 << 16).unwrap();
        let bytes = manifest.encode();
        let again = Manifest::decode(&bytes).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        assert_eq!(again.encode(), bytes, "{path:?}");
        assert_eq!(format!("{:?}", again.schema()), format!("{:?}", source.schema()), "{path:?}");
        for (i, info) in source.schema().arrays.iter().enumerate() {
            if let Some(kept) = again.values(i) {
                assert!(kept == elements(&source, i).unwrap().0, "{path:?}: {}", info.path);
            }
        }
        let fallback = Arc::clone(&source);
        let from = ManifestSource::new(again, Arc::clone(source.store())).unwrap();
        let from: Arc<dyn ArraySource> =
            Arc::new(from.with_fallback(Box::new(move || Ok(Arc::clone(&fallback)))));
        compare(&path, &from, &source);
    }
}
