//! Files in stores other than local files: what they are read with, what they may lead to, and how they fail.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use common::remote::Remote;
use common::{Dir, array, assert_alike, elsewhere, in_memory, layout, open, open_store};
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Extent, File};
use sieva_format::layout::Placement;
use sieva_format::{ArraySource, LibraryReader};
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_store::{Counters, MemoryStore, RangedRead};
use sieva_types::{Bx, Error, ErrorKind, Result};

/// A store whose reads fail once a number of them were good, and which may be said to have changed.
struct Failing {
    inner: Arc<dyn RangedRead>,
    good: AtomicI64,
    kind: ErrorKind,
    is_remote: bool,
    breaks: bool,
}

impl Failing {
    fn after(inner: Arc<dyn RangedRead>, good: i64) -> Self {
        Self { inner, good: AtomicI64::new(good), kind: ErrorKind::Io, is_remote: false, breaks: false }
    }
}

impl RangedRead for Failing {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if self.good.fetch_sub(1, Ordering::Relaxed) > 0 {
            return self.inner.read_exact_at(offset, out);
        }
        assert!(!self.breaks, "a broken store");
        Err(Error::new(self.kind, "the line to the store is dead"))
    }
    fn check_unchanged(&self) -> Result<()> {
        match self.kind {
            ErrorKind::StaleSource => Err(Error::new(self.kind, "the object was replaced")),
            _ => Ok(()),
        }
    }
    fn is_remote(&self) -> bool {
        self.is_remote
    }
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

/// A file of groups, attributes, dimensions, texts and chunks, of the old structures or the new ones.
fn sample(path: &Path, is_new: bool) {
    let mut builder = hdf5_metno::FileBuilder::new();
    builder.with_fapl(|p| if is_new { p.libver_latest() } else { p });
    let file = builder.create(path).unwrap();
    for g in 0..3 {
        let group = file.create_group(&format!("g{g}")).unwrap();
        for n in 0..12 {
            let d = group.new_dataset::<i32>().shape((Extent::resizable(40), 6)).chunk((2, 3)).deflate(1);
            let d = d.create(format!("d{n}").as_str()).unwrap();
            d.write_raw(&(0..240).collect::<Vec<i32>>()).unwrap();
            for k in 0..10 {
                d.new_attr::<i32>().create(format!("a{k}").as_str()).unwrap().write_scalar(&k).unwrap();
            }
            let units: VarLenUnicode = "K".parse().unwrap();
            d.new_attr::<VarLenUnicode>().create("units").unwrap().write_scalar(&units).unwrap();
        }
    }
    let texts: Vec<VarLenUnicode> = ["one", "two"].iter().map(|s| s.parse().unwrap()).collect();
    file.new_dataset_builder().with_data(&texts).create("texts").unwrap();
    file.close().unwrap();
}

#[test]
fn an_error_in_the_middle_of_opening_is_that_error_and_nothing_is_left_out() {
    let dir = Dir::new();
    for is_new in [false, true] {
        let path = dir.file("a.h5");
        sample(&path, is_new);
        let whole = open(&path);
        let mut failed = 0;
        for good in (0..).step_by(7) {
            let store = Failing { is_remote: good % 2 == 0, ..Failing::after(in_memory(&path), good) };
            match Hdf5Source::open_store(Arc::new(store), &Hdf5Options::default()) {
                Ok(_) => break,
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Io, "{good}: {e}");
                    assert!(e.message().contains("the line to the store is dead"), "{good}: {e}");
                    assert!(e.message().contains(whole.store().name()), "{good}: {e}");
                    failed += 1;
                }
            }
        }
        assert!(failed > 5, "{failed}");
    }
}

#[test]
fn a_layout_that_failed_for_want_of_bytes_is_found_when_they_are_back() {
    let dir = Dir::new();
    let path = dir.file("a.h5");
    sample(&path, false);
    let store = Arc::new(Failing::after(in_memory(&path), i64::MAX));
    let source = open_store(store.clone());
    let (x, texts) = (array(&source, "g1/d3").0, array(&source, "texts").0);
    source.layout(texts).unwrap();
    for good in 0..3 {
        store.good.store(good, Ordering::Relaxed);
        let Err(e) = source.layout(x) else { break };
        assert_eq!(e.kind(), ErrorKind::Io, "{e}");
        assert!(e.message().contains("g1/d3") && e.message().contains(store.name()), "{e}");
    }
    store.good.store(0, Ordering::Relaxed);
    let e = source.read_library_strings(texts, &Bx::whole(&[2])).unwrap_err();
    assert!(e.kind() == ErrorKind::Io && e.message().contains("texts: "), "{e}");
    store.good.store(i64::MAX, Ordering::Relaxed);
    assert_eq!(source.read_library_strings(texts, &Bx::whole(&[2])).unwrap(), ["one", "two"]);
    assert_alike(&open(&path), &source);
}

#[test]
fn a_store_that_was_replaced_is_stale_and_not_damaged() {
    let dir = Dir::new();
    let path = dir.file("a.h5");
    sample(&path, false);
    let stale = |good| Failing { kind: ErrorKind::StaleSource, ..Failing::after(in_memory(&path), good) };
    let e = Hdf5Source::open_store(Arc::new(stale(40)), &Hdf5Options::default()).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::StaleSource, "{e}");
    // Reads go on, but bring bytes of another object, which make no sense any more.
    let mut bytes = std::fs::read(&path).unwrap();
    let len = bytes.len();
    bytes[len / 8..].fill(0x5a);
    let mixed = Failing { inner: Arc::new(MemoryStore::new("mixed", bytes)), ..stale(i64::MAX) };
    let opened = Hdf5Source::open_store(Arc::new(mixed), &Hdf5Options::default());
    let e = opened.and_then(|source| source.layout(0).map(|_| ())).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::StaleSource, "{e}");
}

#[test]
fn a_store_that_panics_is_an_error() {
    let dir = Dir::new();
    let path = dir.file("a.h5");
    sample(&path, true);
    for is_remote in [false, true] {
        let store = Failing { breaks: true, is_remote, ..Failing::after(in_memory(&path), 9) };
        let e = Hdf5Source::open_store(Arc::new(store), &Hdf5Options::default()).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Internal, "{e}");
    }
}

#[test]
fn stores_open_side_by_side_and_stay_apart() {
    let dir = Dir::new();
    let files: Vec<_> = (0..4)
        .map(|n| {
            let path = dir.file(&format!("{n}.h5"));
            let file = File::create(&path).unwrap();
            file.new_dataset_builder().with_data(&vec![n as i64; 10 + n]).create("x").unwrap();
            file.close().unwrap();
            path
        })
        .collect();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let files = &files;
            scope.spawn(move || {
                for round in 0..20 {
                    let n = (worker + round) % files.len();
                    // The same name for all: a name does not tell stores apart.
                    let bytes = std::fs::read(&files[n]).unwrap();
                    let store: Arc<dyn RangedRead> = Arc::new(MemoryStore::new("x.h5", bytes));
                    let source = open_store(if round % 2 == 0 { store } else { Remote::new(store) });
                    assert_eq!(array(&source, "x").1.shape, [10 + n as u64]);
                    let Placement::Direct { offset } = layout(&source, "x").placement else { panic!() };
                    let mut first = [0; 8];
                    source.store().read_exact_at(offset, &mut first).unwrap();
                    assert_eq!(i64::from_le_bytes(first), n as i64);
                }
            });
        }
    });
}

#[test]
fn what_is_no_local_file_leads_to_no_other() {
    let dir = Dir::new();
    let other = File::create(dir.file("b.h5")).unwrap();
    other.new_dataset_builder().with_data(&[1.0_f64, 2.0]).create("x").unwrap();
    other.close().unwrap();
    let path = dir.file("a.h5");
    let main = File::create(&path).unwrap();
    main.new_dataset_builder().with_data(&[3_i32]).create("own").unwrap();
    main.link_external(dir.file("b.h5").to_str().unwrap(), "/x", "far").unwrap();
    raw_elsewhere(&main, &dir.file("b.h5"));
    main.close().unwrap();
    let options = Hdf5Options { external_roots: vec![dir.0.clone(), "/".into()], ..Hdf5Options::default() };
    let local = Hdf5Source::open(&path, &options).unwrap();
    assert_eq!(array(&local, "far").1.shape, [2]);
    assert!(local.layout(array(&local, "raw").0).is_ok());
    for store in elsewhere(&path) {
        let source = Hdf5Source::open_store(store, &options).unwrap();
        let schema = source.schema();
        assert!(schema.array("far").is_none() && schema.array("own").is_some());
        let (_, e) = schema.left_out.iter().find(|(path, _)| path == "far").unwrap();
        assert_eq!(e.kind(), ErrorKind::LinkRefused);
        assert!(e.message().contains("is no local file") && e.hint_text().is_some(), "{e}");
        let e = source.layout(array(&source, "raw").0).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LinkRefused, "{e}");
    }
}

/// A dataset whose raw data are the first bytes of `file`.
fn raw_elsewhere(main: &File, file: &Path) {
    use hdf5_metno_sys::{h5d, h5p, h5s, h5t};
    let name = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    let _guard = hdf5_metno_sys::LOCK.lock();
    // SAFETY: the lock is held, the file is open, the pointers are to locals that outlive the calls.
    unsafe {
        let space = h5s::H5Screate_simple(1, [8].as_ptr(), std::ptr::null());
        let creation = h5p::H5Pcreate(*h5p::H5P_CLS_DATASET_CREATE);
        assert!(h5p::H5Pset_external(creation, name.as_ptr(), 0, 8) >= 0);
        let (kind, default) = (*h5t::H5T_STD_U8LE, h5p::H5P_DEFAULT);
        let d = h5d::H5Dcreate2(main.id(), c"raw".as_ptr(), kind, space, default, creation, default);
        assert!(d >= 0);
        h5d::H5Dclose(d);
        h5p::H5Pclose(creation);
        h5s::H5Sclose(space);
    }
}

/// Large files of sparse bytes: chunks that are far apart need no data in between, only room.
fn spread(path: &Path, is_new: bool, grows: bool) {
    let mut builder = hdf5_metno::FileBuilder::new();
    builder.with_fapl(|p| if is_new { p.libver_latest() } else { p });
    let file = builder.create(path).unwrap();
    let rows = 1500;
    let extent: Extent = if grows { Extent::resizable(rows) } else { rows.into() };
    let arrays: Vec<_> = (0..6)
        .map(|n| {
            let d = file.new_dataset::<u8>().shape((extent, 4096)).chunk((1, 4096));
            d.create(format!("v{n}").as_str()).unwrap()
        })
        .collect();
    let row = ndarray::Array2::<u8>::ones((1, 4096));
    for r in 0..rows {
        for d in &arrays {
            d.write_slice(&row, (r..r + 1, 0..4096)).unwrap();
        }
    }
    drop(arrays);
    file.close().unwrap();
}

#[test]
fn metadata_over_a_network_take_few_round_trips() {
    let dir = Dir::new();
    let path = dir.file("a.h5");
    // Old trees, fixed array, extensible array. The file is 36 MiB: a look at all of it would be 36 requests.
    for (is_new, grows, rounds, requests) in [(false, false, 4, 30), (true, false, 4, 4), (true, true, 7, 30)]
    {
        spread(&path, is_new, grows);
        let want = open(&path);
        let store = Remote::new(in_memory(&path));
        let source = open_store(store.clone());
        let opened = store.traffic();
        assert!(opened.requests <= 3 && opened.rounds <= 3, "{is_new} {grows}: {opened:?}");
        let (i, _) = array(&source, "v3");
        let got = source.layout(i).unwrap();
        let all = store.traffic();
        assert!(all.rounds <= rounds && all.requests <= requests, "{is_new} {grows}: {all:?}");
        assert!(all.bytes < 4 << 20, "{is_new} {grows}: {all:?}");
        assert_eq!(format!("{got:?}"), format!("{:?}", layout(&want, "v3")));
        // Several indexes take no more rounds than one.
        let store = Remote::new(in_memory(&path));
        let source = open_store(store.clone());
        source.will_need_layouts(&["v1", "v3", "v5"].map(|name| array(&source, name).0));
        for name in ["v1", "v3", "v5"] {
            let got = source.layout(array(&source, name).0).unwrap();
            assert_eq!(format!("{got:?}"), format!("{:?}", layout(&want, name)));
        }
        let several = store.traffic();
        assert!(several.rounds <= all.rounds, "{is_new} {grows}: {several:?} {all:?}");
    }
}

/// A store that notes which reads were not announced before.
struct Noting {
    inner: Arc<MemoryStore>,
    announced: std::sync::Mutex<Vec<Range<u64>>>,
    reads: AtomicU64,
    missed: AtomicU64,
}

impl RangedRead for Noting {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let announced = self.announced.lock().unwrap();
        let is_known = |at: u64| announced.iter().any(|r| r.contains(&at));
        let missed = (offset..offset + out.len() as u64).filter(|&at| !is_known(at)).count();
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.missed.fetch_add(u64::from(missed > 0), Ordering::Relaxed);
        self.inner.read_exact_at(offset, out)
    }
    fn will_need(&self, ranges: &[Range<u64>]) {
        self.announced.lock().unwrap().extend(ranges.iter().cloned());
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

#[test]
fn nearly_all_that_is_read_was_announced_before() {
    let dir = Dir::new();
    let path = dir.file("a.h5");
    for is_new in [false, true] {
        sample(&path, is_new);
        // A user block beyond the head that is always announced, so that only what was understood counts.
        let mut bytes = vec![0; 1 << 20];
        bytes.extend(std::fs::read(&path).unwrap());
        let inner = Arc::new(MemoryStore::new("far", bytes));
        let store = Noting {
            inner,
            announced: Default::default(),
            reads: AtomicU64::default(),
            missed: AtomicU64::default(),
        };
        let store = Arc::new(store);
        let source = open_store(store.clone());
        for i in 0..source.schema().arrays.len() {
            source.layout(i).unwrap();
        }
        let (reads, missed) = (store.reads.load(Ordering::Relaxed), store.missed.load(Ordering::Relaxed));
        // The search for the superblock, and a collection of the global heap that only data lead to.
        assert!(reads > 300 && missed <= 10, "{is_new}: {missed} of {reads}");
    }
}

#[test]
fn files_of_all_kinds_are_alike_wherever_they_are_kept() {
    // libhdf5 follows types within types on the stack, and hostile files nest them deep.
    let roomy = std::thread::Builder::new().stack_size(64 << 20);
    roomy.spawn(compare_test_data).unwrap().join().unwrap();
}

fn compare_test_data() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let mut todo = vec![data.clone()];
    let (mut opened, mut refused) = (0, 0);
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if entry.metadata().is_ok_and(|m| m.len() < 32 << 20) {
                match alike_everywhere(&path) {
                    true => opened += 1,
                    false => refused += 1,
                }
            }
        }
    }
    if opened + refused == 0 {
        eprintln!("skipped: no test data at {}", data.display());
        return;
    }
    assert!(opened > 50, "{opened} opened, {refused} not");
}

/// Compares a file with its bytes elsewhere; whether it could be opened.
fn alike_everywhere(path: &Path) -> bool {
    let local = Hdf5Source::open(path, &Hdf5Options::default());
    for store in elsewhere(path) {
        match (&local, Hdf5Source::open_store(store, &Hdf5Options::default())) {
            (Ok(local), Ok(source)) => assert_alike(local, &source),
            (Err(local), Err(e)) => assert_eq!(local, &e, "{}", path.display()),
            (local, other) => panic!("{}: {:?} {:?}", path.display(), local.as_ref().err(), other.err()),
        }
    }
    local.is_ok()
}
