//! Results as files, read back by our own readers of the formats, and in parts.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva::{Data, ErrorKind, Mask, OpenOptions, QueryOptions, Source};
use sieva_encode::{EncodeOptions, Encoded, Format};

/// The format of a name.
fn format(name: &str) -> Format {
    Format::named(name).unwrap()
}

const N: usize = 50_000;

/// A directory that is removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sieva-encode-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn source(&self) -> Source {
        let path = self.0.join("ocean.nc");
        std::fs::write(&path, classic()).unwrap();
        Source::open(&path, &OpenOptions::default()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn temperature(i: usize) -> f32 {
    if i.is_multiple_of(101) { -0.0 } else { (i * 7919 % 3400) as f32 / 100.0 - 2.0 }
}

/// 7 is the fill value.
fn level(i: usize) -> i16 {
    (i * 31 % 23) as i16
}

/// A netCDF classic file with T (float) and K (short, `_FillValue` 7) along x.
fn classic() -> Vec<u8> {
    let head = |begins: [u32; 2]| {
        let mut out = b"CDF\x01\0\0\0\0".to_vec();
        let mut words = |all: &[u32]| all.iter().for_each(|w| out.extend(w.to_be_bytes()));
        let name = |c: u8| u32::from(c) << 24;
        words(&[10, 1, 1, name(b'x'), N as u32, 0, 0, 11, 2]);
        words(&[1, name(b'T'), 1, 0, 0, 0, 5, 4 * N as u32, begins[0]]);
        words(&[1, name(b'K'), 1, 0, 12, 1, 10]);
        out.extend(b"_FillValue\0\0");
        let mut words = |all: &[u32]| all.iter().for_each(|w| out.extend(w.to_be_bytes()));
        words(&[3, 1, 7 << 16, 3, 2 * N as u32, begins[1]]);
        out
    };
    let length = head([0, 0]).len() as u32;
    let mut bytes = head([length, length + 4 * N as u32]);
    bytes.extend((0..N).flat_map(|i| temperature(i).to_be_bytes()));
    bytes.extend((0..N).flat_map(|i| level(i).to_be_bytes()));
    bytes
}

fn encoded(source: &Source, sql: &str, format: Format) -> Encoded {
    let query =
        Arc::new(source.ask(sql, &QueryOptions { threads: Some(3), ..QueryOptions::default() }).unwrap());
    Encoded::new(query, format, &EncodeOptions::default()).unwrap()
}

fn whole(file: &Encoded) -> Vec<u8> {
    let mut bytes = vec![1; file.size().unwrap() as usize + 5];
    let n = file.read_at(0, &mut bytes).unwrap();
    assert_eq!(n as u64, file.size().unwrap());
    bytes.truncate(n);
    bytes
}

#[test]
fn values_come_back_through_our_own_readers() {
    let dir = Scratch::new("readers");
    let source = dir.source();
    let rows: Vec<usize> = (0..N).filter(|&i| temperature(i) > 20.0).collect();
    for (format, name) in [(format("netcdf"), "out.nc"), (format("hdf5"), "out.h5")] {
        let file = encoded(&source, "SELECT T, K, K * 2 AS twice WHERE T > 20", format);
        assert_eq!(file.rows(), rows.len() as u64);
        let path = dir.0.join(name);
        file.write(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole(&file));
        let back = Source::open(&path, &OpenOptions::default()).unwrap();
        let all = back.sql("SELECT T, K, twice", &QueryOptions::default()).unwrap();
        let t = all.read("T").unwrap();
        let Data::F32(values) = &t.data else { panic!("{:?}", t.dtype()) };
        assert_eq!(values, &rows.iter().map(|&i| temperature(i)).collect::<Vec<_>>());
        let (k, twice) = (all.read("K").unwrap(), all.read("twice").unwrap());
        let present: Vec<bool> = rows.iter().map(|&i| level(i) != 7).collect();
        let valid = Some(Mask::from(&present[..]));
        assert_eq!((&k.valid, &twice.valid), (&valid, &valid));
        let (Data::I16(k), Data::I64(twice)) = (&k.data, &twice.data) else { panic!("{:?}", k.dtype()) };
        for ((i, k), twice) in
            rows.iter().zip(k).zip(twice).zip(&present).filter(|(_, p)| **p).map(|(v, _)| v)
        {
            assert_eq!((*k, *twice), (level(*i), 2 * i64::from(level(*i))));
        }
    }
}

#[test]
fn parts_are_those_of_the_whole_from_any_thread() {
    let dir = Scratch::new("parts");
    let source = dir.source();
    for format in [format("netcdf"), format("hdf5"), format("arrow"), format("csv")] {
        let file = encoded(&source, "SELECT K, T WHERE K < 9 ORDER BY T DESC", format);
        let bytes = whole(&file);
        std::thread::scope(|scope| {
            for seed in 1..5_u64 {
                let (file, bytes) = (&file, &bytes);
                scope.spawn(move || {
                    let mut state = seed;
                    for _ in 0..60 {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let at = (state >> 33) as usize % bytes.len();
                        let mut part = vec![0; (state >> 20) as usize % 9000];
                        let n = file.read_at(at as u64, &mut part).unwrap();
                        assert_eq!(part[..n], bytes[at..bytes.len().min(at + part.len())]);
                    }
                });
            }
        });
        for n in [1, 2, 7] {
            let mut at = 0;
            for range in file.split(n).unwrap() {
                let stream = file.stream(range, 10_007).unwrap();
                let mut block = vec![0; 20_000];
                loop {
                    let (offset, n) = stream.next_block(&mut block).unwrap();
                    if n == 0 {
                        break;
                    }
                    assert_eq!((offset, &block[..n]), (at, &bytes[at as usize..][..n]));
                    at += n as u64;
                }
            }
            assert_eq!(at, file.size().unwrap());
        }
    }
}

#[test]
fn a_stream_that_is_dropped_ends_its_threads() {
    let dir = Scratch::new("dropped");
    let source = dir.source();
    let file = encoded(&source, "SELECT T, K", format("netcdf"));
    let stream = file.stream(0..file.size().unwrap(), 100).unwrap();
    let mut block = [0; 100];
    assert_eq!(stream.next_block(&mut block).unwrap(), (0, 100));
    assert!(stream.is_ready());
    drop(stream);
    assert!(file.stream(file.size().unwrap()..u64::MAX, 0).unwrap().is_ready());
}

#[test]
fn a_result_whose_query_was_stopped_is_no_more_read() {
    let dir = Scratch::new("stopped");
    let source = dir.source();
    for format in [format("netcdf"), format("arrow")] {
        let stop = Arc::<AtomicBool>::default();
        let options = QueryOptions { cancel: Some(Arc::clone(&stop)), ..QueryOptions::default() };
        let ask = |sql: &str| source.ask(sql, &options).map(Arc::new);
        let file = Encoded::new(ask("SELECT T, K WHERE T > 20").unwrap(), format, &EncodeOptions::default())
            .unwrap();
        let mut block = [0; 100];
        assert_eq!(file.read_at(0, &mut block).unwrap(), 100);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(file.read_at(0, &mut block).unwrap_err().kind(), ErrorKind::Cancelled);
        let stream = file.stream(0..file.size().unwrap(), 0).unwrap();
        for _ in 0..2 {
            assert_eq!(stream.next_block(&mut block).unwrap_err().kind(), ErrorKind::Cancelled);
        }
        // Subqueries are answered when the query is run.
        let waiting = ask("T > (SELECT max(K))").unwrap();
        assert_eq!(waiting.count().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn what_is_asked_wrongly_is_told() {
    let dir = Scratch::new("wrong");
    let source = dir.source();
    let ask = |sql: &str| source.ask(sql, &QueryOptions::default()).err().unwrap();
    for sql in ["SELECT T WHERE", "T >", "SELECT T FROM 'other.nc'", "SELECT T FROM collection('c')", ""] {
        assert_eq!(ask(sql).kind(), ErrorKind::Syntax, "{sql}");
    }
    for named in ["ocean.nc", "/ocean.nc", source.path().to_str().unwrap()] {
        assert!(source.ask(&format!("SELECT T FROM '{named}'"), &QueryOptions::default()).is_ok());
    }
    let query = Arc::new(source.ask("K < 3", &QueryOptions::default()).unwrap());
    assert_eq!(query.text(), "SELECT * WHERE K < 3");
    let options = EncodeOptions { spool_limit: 10, ..EncodeOptions::default() };
    let over = Encoded::new(query, format("csv"), &options).err().unwrap();
    assert_eq!(over.kind(), ErrorKind::MemoryLimit);
}

#[test]
fn deflated_files_read_back_and_are_the_same_in_any_order() {
    let dir = Scratch::new("deflated");
    let source = dir.source();
    for (format, level) in [(format("netcdf"), 1), (format("hdf5"), 9)] {
        for sql in ["SELECT T, K", "SELECT K, T, K * 2 AS twice WHERE T > 20", "SELECT T WHERE T > 1000"] {
            let query = Arc::new(source.ask(sql, &QueryOptions::default()).unwrap());
            let options = EncodeOptions { deflate: level, ..EncodeOptions::default() };
            let file = Encoded::new(Arc::clone(&query), format, &options).unwrap();
            let bytes = whole(&file);
            let path = dir.0.join("out");
            file.write(&path).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
            // One that nobody asked for its length before.
            let other = Encoded::new(query, format, &options).unwrap();
            assert_eq!(other.id(), file.id());
            let stream = other.stream_any_order(10_007).unwrap();
            let (mut got, mut block) = (vec![0; bytes.len()], vec![0; 10_007]);
            loop {
                let (at, n) = stream.next_block(&mut block).unwrap();
                if n == 0 {
                    break;
                }
                got[at as usize..at as usize + n].copy_from_slice(&block[..n]);
            }
            assert_eq!(got, bytes);
            assert!(stream.is_ready());
            let back = Source::open(&path, &OpenOptions::default()).unwrap();
            let ask = |source: &Source, sql: &str, name: &str| {
                let query = source.ask(sql, &QueryOptions::default()).unwrap();
                query.read(name).unwrap()
            };
            for name in ["T", "K"].into_iter().filter(|name| sql.contains(name)) {
                let (want, found) = (ask(&source, sql, name), ask(&back, &format!("SELECT {name}"), name));
                assert_eq!(format!("{want:?}"), format!("{found:?}"), "{sql}: {name}");
            }
        }
    }
}

#[test]
fn what_has_no_deflate_or_no_such_level_is_told() {
    let dir = Scratch::new("levels");
    let source = dir.source();
    for (format, deflate, words) in [
        (format("netcdf"), 10, "deflate=10: levels are 0 (not compressed), and 1 (fast) to 9 (small)"),
        (format("csv"), 1, "deflate=1: results as csv have no deflate"),
        (format("arrow"), 1, "deflate=1: results as arrow have no deflate"),
    ] {
        let query = Arc::new(source.ask("SELECT T", &QueryOptions::default()).unwrap());
        let options = EncodeOptions { deflate, ..EncodeOptions::default() };
        let e = Encoded::new(query, format, &options).err().unwrap();
        assert_eq!((e.kind(), e.message()), (ErrorKind::InvalidValue, words));
    }
    let query = Arc::new(source.ask("SELECT T", &QueryOptions::default()).unwrap());
    let options = EncodeOptions { deflate: 1, spool_limit: 10_000, ..EncodeOptions::default() };
    let file = Encoded::new(query, format("hdf5"), &options).unwrap();
    assert_eq!(file.size().unwrap_err().kind(), ErrorKind::MemoryLimit);
    // Who takes it as it is made needs no room.
    file.write(&dir.0.join("out")).unwrap();
}
