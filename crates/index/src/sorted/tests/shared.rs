//! A build of many parts gives the bytes of a build of one.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use sieva_types::ErrorKind;
use sieva_types::wire::{Reader, Subject, Writer};

use super::*;
use crate::sorted::{Runs, SharedBuild};

const SUBJECT: Subject = Subject { name: "runs", kind: ErrorKind::InvalidValue, hint: "" };

/// All files of a replica by their paths.
fn files_of(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![dir.to_path_buf()]);
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// What travels between processes, as bytes.
fn sent(runs: &Runs, buckets: usize) -> Runs {
    let mut w = Writer::default();
    runs.encode(&mut w);
    let bytes = w.into_bytes();
    let mut r = Reader::new(&SUBJECT, &bytes, 1 << 30);
    let read = Runs::decode(&mut r, buckets).unwrap();
    r.finish().unwrap();
    assert_eq!(read, *runs);
    for cut in 0..bytes.len().min(40) {
        // Nothing but an error, or runs that are fewer.
        drop(Runs::decode(&mut Reader::new(&SUBJECT, &bytes[..cut], 1 << 30), buckets));
    }
    read
}

impl Rows {
    /// Builds in `n` parts, those of the last stage in the order that `turned` gives.
    fn build_shared(&self, dir: &Path, how: How, n: usize, turned: usize) -> Result<()> {
        let columns: Vec<Column> = self.columns.iter().map(|c| c.0.clone()).collect();
        let cancel = AtomicBool::new(false);
        let options = SortOptions {
            threads: how.threads,
            memory: how.memory,
            seal: how.seal,
            cancel: &cancel,
            progress: &|_, _| (),
        };
        let (shape, layout) = (self.grid.shape(), how.layout);
        let new = || SharedBuild::with_sizes(layout, how.bucket_rows, shape, &columns, self, &options);
        let asking = new()?;
        let cut = |len: usize| (0..n).map(move |i| len * i / n..len * (i + 1) / n);
        let buckets = asking.buckets(n);
        let mut samples = Vec::new();
        for some in cut(asking.sampled()) {
            samples.extend(new()?.sample(buckets, some)?);
        }
        let pivots = SharedBuild::pivots(samples, buckets);
        asking.create(dir)?;
        let partition = |segments| Ok(sent(&new()?.partition(dir, &pivots, segments)?, pivots.len() + 1));
        let runs = cut(asking.segments()).map(partition).collect::<Result<Vec<_>>>()?;
        let mut spans = asking.spans(n);
        let around = turned % spans.len().max(1);
        spans.rotate_left(around);
        let sort = |span| new()?.sort(dir, &runs, span);
        let mut fences = spans.iter().map(sort).collect::<Result<Vec<_>>>()?;
        fences.rotate_right(around);
        let numbers = runs.iter().map(Runs::numbers).sum();
        asking.finish(dir, numbers, fences.concat(), &attributes())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn parts_give_the_bytes_of_the_whole(table in table(), how in how(), n in 1..6_usize, turned: usize) {
        let (one, many) = (crate::scratch::Scratch::new(), crate::scratch::Scratch::new());
        match table.build_shared(many.path(), how, n, turned) {
            Ok(()) => {
                table.build(one.path(), How { memory: 1 << 30, ..how }).unwrap();
                assert_no_spills(many.path());
                prop_assert_eq!(files_of(many.path()), files_of(one.path()));
                table.check(many.path());
            }
            Err(e) => prop_assert!(e.kind() == ErrorKind::MemoryLimit && how.memory < 1 << 30, "{}", e),
        }
    }
}

#[test]
fn many_rows_with_little_memory_in_the_standard_layout() {
    let values: Vec<[u8; 8]> = (0..997_u64).map(|i| (i * 0x0123_4567_89ab_cdef).to_le_bytes()).collect();
    let table = rows(&[200_003], &[9_000], &[DType::F64, DType::F32], &values, 1);
    let (one, many) = (crate::scratch::Scratch::new(), crate::scratch::Scratch::new());
    table.build_shared(many.path(), How { memory: 3 << 20, ..PLAIN }, 7, 3).unwrap();
    table.build(one.path(), PLAIN).unwrap();
    assert_eq!(files_of(many.path()), files_of(one.path()));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let table = rows(&[1000], &[100], &[DType::I32], &[[1; 8], [2; 8]], 1);
    let columns: Vec<Column> = table.columns.iter().map(|c| c.0.clone()).collect();
    let cancel = AtomicBool::new(false);
    let options = SortOptions { threads: 1, memory: 1 << 30, seal: 7, cancel: &cancel, progress: &|_, _| () };
    let build = SharedBuild::new(table.grid.shape(), &columns, &table, &options).unwrap();
    let dir = crate::scratch::Scratch::new();
    build.create(dir.path()).unwrap();
    let runs = build.partition(dir.path(), &[], 0..5).unwrap();
    for (runs, span) in [(vec![runs.clone()], 0..1000), (vec![runs.clone(), runs.clone()], 1..1000)] {
        let e = build.sort(dir.path(), &runs, &span).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
    }
    let e = build.finish(dir.path(), 0, vec![0; 5], &attributes()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
    // A spill file that is gone, as where it was never written.
    let more = build.partition(dir.path(), &[], 5..10).unwrap();
    super::super::shared::remove_spills(dir.path()).unwrap();
    let e = build.sort(dir.path(), &[runs, more], &(0..1000)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::FileNotFound, "{e}");
}
