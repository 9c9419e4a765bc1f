//! Streams end, whatever the sizes of blocks, windows, memory and the number of threads, when they are only asked for
//! what is ready: as an event loop does.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use sieva::{OpenOptions, QueryOptions, Source};
use sieva_encode::{EncodeOptions, Encoded, EncodedStream, Format};

/// The format of a name.
fn format(name: &str) -> Format {
    Format::named(name).unwrap()
}

/// Rows of the file.
const N: usize = 120_000;
/// How long a stream may take; no test comes near to it, unless it waits for ever.
const DEADLINE: Duration = Duration::from_secs(30);

/// A netCDF classic file with T (double) along x, of its own name for each test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let head = |begin: u32| {
            let mut out = b"CDF\x01\0\0\0\0".to_vec();
            let mut words = |all: &[u32]| all.iter().for_each(|w| out.extend(w.to_be_bytes()));
            let name = |c: u8| u32::from(c) << 24;
            words(&[10, 1, 1, name(b'x'), N as u32, 0, 0, 11, 1]);
            words(&[1, name(b'T'), 1, 0, 0, 0, 6, 8 * N as u32, begin]);
            out
        };
        let mut bytes = head(head(0).len() as u32);
        bytes.extend((0..N).flat_map(|i| ((i * 7919 % 3400) as f64 / 100.0).to_be_bytes()));
        let path = std::env::temp_dir().join(format!("sieva-streams-{name}-{}.nc", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn open(&self) -> Source {
        Source::open(&self.0, &OpenOptions::default()).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

#[derive(Clone, Debug)]
struct Case {
    columns: usize,
    rows: usize,
    memory: u64,
    threads: usize,
    block: usize,
    format: Format,
    deflate: u32,
    /// Of the file, in thousandths: where the range begins and ends.
    range: (u64, u64),
}

fn encoded(source: &Source, case: &Case) -> Encoded {
    let columns: Vec<_> = (0..case.columns).map(|i| format!("T + {i} AS c{i}")).collect();
    let sql = format!("SELECT {} LIMIT {}", columns.join(", "), case.rows);
    let options =
        QueryOptions { memory: Some(case.memory), threads: Some(case.threads), ..QueryOptions::default() };
    let query = Arc::new(source.ask(&sql, &options).unwrap());
    let options = EncodeOptions { deflate: case.deflate, ..EncodeOptions::default() };
    Encoded::new(query, case.format, &options).unwrap()
}

/// Takes blocks only when they are said to be ready. None: it was not ready within the deadline.
fn polled(stream: &EncodedStream, block: usize) -> Option<Vec<(u64, Vec<u8>)>> {
    let (until, mut blocks) = (Instant::now() + DEADLINE, Vec::new());
    loop {
        while !stream.is_ready() {
            if Instant::now() > until {
                return None;
            }
            std::thread::yield_now();
        }
        let mut to = vec![0; block];
        let (offset, n) = stream.next_block(&mut to).unwrap();
        if n == 0 {
            return Some(blocks);
        }
        to.truncate(n);
        blocks.push((offset, to));
    }
}

/// All of a case: the blocks that are polled, one behind the other, are the bytes of the range.
fn check(source: &Source, case: &Case) {
    let file = encoded(source, case);
    let mut bytes = vec![0; file.size().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut bytes).unwrap() as u64, file.size().unwrap());
    let (begin, end) =
        (file.size().unwrap() * case.range.0 / 1000, file.size().unwrap() * case.range.1 / 1000);
    let stream = file.stream(begin..end, case.block).unwrap();
    let blocks = polled(&stream, case.block).unwrap_or_else(|| panic!("never ready: {case:?}"));
    let mut at = begin;
    for (offset, block) in &blocks {
        assert_eq!(*offset, at, "{case:?}");
        assert!(*block == bytes[at as usize..at as usize + block.len()], "{case:?}");
        at += block.len() as u64;
    }
    assert_eq!(at, end, "{case:?}");
    check_any_order(source, case, &bytes);
}

/// The same of all of it in any order: of a deflated file as it is made.
fn check_any_order(source: &Source, case: &Case, bytes: &[u8]) {
    let stream = encoded(source, case).stream_any_order(case.block).unwrap();
    let blocks = polled(&stream, case.block).unwrap_or_else(|| panic!("never ready: {case:?}"));
    let (mut got, mut sum) = (vec![1; bytes.len()], 0);
    for (offset, block) in &blocks {
        got[*offset as usize..*offset as usize + block.len()].copy_from_slice(block);
        sum += block.len();
    }
    assert_eq!(sum, bytes.len(), "{case:?}");
    assert!(got == bytes, "{case:?}");
}

fn cases() -> impl Strategy<Value = Case> {
    let block =
        prop_oneof![Just(1_usize << 12), Just(10_007), Just(256 << 10), Just(4 << 20), Just(40 << 20)];
    let format = prop_oneof![
        3 => Just((format("netcdf"), 0)),
        3 => Just((format("hdf5"), 0)),
        3 => Just((format("netcdf"), 1)),
        1 => Just((format("hdf5"), 6)),
        1 => Just((format("arrow"), 0)),
        1 => Just((format("csv"), 0))
    ];
    let range = prop_oneof![2 => Just((0, 1000)), 1 => (0_u64..500, 500_u64..1000)];
    let rows = prop_oneof![0..20_usize, 20..3000_usize, Just(N)];
    let memory = prop_oneof![Just(4_u64 << 20), Just(64 << 20), Just(1 << 30)];
    (1..21_usize, rows, memory, 1..9_usize, block, format, range).prop_map(
        |(columns, rows, memory, threads, block, (format, deflate), range)| {
            // Many columns of all rows take long, and say no more than few.
            let columns = if rows == N { columns.min(4) } else { columns };
            Case { columns, rows, memory, threads, block, format, deflate, range }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn what_is_polled_ends_and_is_right(case in cases()) {
        thread_local!(static FILE: (File, Source) = {
            let file = File::new("polled");
            let source = file.open();
            (file, source)
        });
        FILE.with(|(_, source)| check(source, &case));
    }
}

#[test]
fn a_small_result_of_several_columns_is_ready() {
    let file = File::new("small");
    let source = file.open();
    for columns in [1, 4, 7, 20] {
        for threads in [1, 2, 16] {
            for memory in [1 << 20, 1 << 30] {
                let block = sieva_encode::BLOCK;
                let (rows, format, range) = (300, format("netcdf"), (0, 1000));
                let case = Case { columns, rows, memory, threads, block, format, deflate: 0, range };
                check(&source, &case);
                check(&source, &Case { deflate: 1, ..case });
            }
        }
    }
}

/// What waits instead of polling comes to the same end.
#[test]
fn who_waits_is_served() {
    let file = File::new("waits");
    let source = file.open();
    for block in [1 << 12, 256 << 10, 64 << 20] {
        let range = (0, 1000);
        let case = Case {
            columns: 6,
            rows: N,
            memory: 1 << 20,
            threads: 3,
            block,
            format: format("hdf5"),
            deflate: 1,
            range,
        };
        let encoded = encoded(&source, &case);
        let (send, receive) = channel();
        let reader = std::thread::spawn(move || {
            let stream = encoded.stream(0..encoded.size().unwrap(), block).unwrap();
            let (mut to, mut sum) = (vec![0; block], 0);
            loop {
                let (_, n) = stream.next_block(&mut to).unwrap();
                sum += n as u64;
                if n == 0 {
                    break send.send(sum == encoded.size().unwrap()).unwrap();
                }
            }
        });
        match receive.recv_timeout(DEADLINE) {
            Ok(whole) => assert!(whole),
            Err(RecvTimeoutError::Timeout) => panic!("no end: {case:?}"),
            Err(e) => panic!("{e}"),
        }
        reader.join().unwrap();
    }
}
