//! Replicas against a stable sort of the rows in memory.

mod damage;
mod shared;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sieva_types::{Buffer, Bx, DType, Error, ErrorKind, KeySet, Result, keys};

use super::build::Build;
use super::layout::Layout;
use super::{Column, SortOptions, SortedReplica, Table, build};
use crate::RegionGrid;

const NUMERIC: [DType; 10] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F32,
    DType::F64,
];

/// Columns in memory: the elements of each as native bytes, in C order.
#[derive(Debug)]
struct Rows {
    grid: RegionGrid,
    columns: Vec<(Column, Vec<u8>)>,
}

impl Table for Rows {
    fn regions(&self) -> usize {
        self.grid.len()
    }

    fn region(&self, region: usize) -> Bx {
        self.grid.bx(region)
    }

    fn read(&self, region: usize, column: usize, out: &mut Buffer) -> Result<()> {
        let (column, bytes) = &self.columns[column];
        let size = column.dtype.size();
        let places = places(&self.grid.bx(region), self.grid.shape());
        out.resize(places.len() * size);
        for (to, at) in out.bytes_mut().chunks_exact_mut(size).zip(places) {
            to.copy_from_slice(&bytes[at * size..(at + 1) * size]);
        }
        Ok(())
    }
}

fn places(bx: &Bx, shape: &[u64]) -> Vec<usize> {
    let mut all = vec![0];
    for (d, &n) in shape.iter().enumerate() {
        let along = bx.start[d]..bx.end(d);
        all = all.iter().flat_map(|&p| along.clone().map(move |i| p * n as usize + i as usize)).collect();
    }
    all
}

/// The key of an element; NaN has none.
fn key(dtype: DType, raw: &[u8]) -> Option<i128> {
    macro_rules! value {
        ($t:ty) => {
            <$t>::from_ne_bytes(raw.try_into().unwrap())
        };
    }
    Some(match dtype {
        DType::I8 => value!(i8).into(),
        DType::I16 => value!(i16).into(),
        DType::I32 => value!(i32).into(),
        DType::I64 => value!(i64).into(),
        DType::U8 => value!(u8).into(),
        DType::U16 => value!(u16).into(),
        DType::U32 => value!(u32).into(),
        DType::U64 => value!(u64).into(),
        DType::F32 if value!(f32).is_nan() => return None,
        DType::F32 => keys::f32_key(value!(f32)),
        DType::F64 if value!(f64).is_nan() => return None,
        _ => keys::f64_key(value!(f64)),
    })
}

impl Rows {
    fn keys(&self) -> Vec<Option<i128>> {
        let (column, bytes) = &self.columns[0];
        bytes.chunks_exact(column.dtype.size()).map(|raw| key(column.dtype, raw)).collect()
    }

    /// The positions in the order of a stable sort, NaN last.
    fn order(&self) -> Vec<u64> {
        let keys = self.keys();
        let mut order: Vec<u64> = (0..keys.len() as u64).collect();
        order.sort_by_key(|&p| keys[p as usize].map_or((true, 0), |k| (false, k)));
        order
    }

    fn build(&self, dir: &Path, how: How) -> Result<()> {
        let columns: Vec<Column> = self.columns.iter().map(|c| c.0.clone()).collect();
        let (cancel, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        let progress = |done: u64, of: u64| {
            assert!(done <= of);
            seen.fetch_max(done, Relaxed);
        };
        let options = SortOptions {
            threads: how.threads,
            memory: how.memory,
            seal: how.seal,
            cancel: &cancel,
            progress: &progress,
        };
        let build = Build {
            layout: how.layout,
            bucket_rows: how.bucket_rows,
            shape: self.grid.shape(),
            columns: &columns,
            table: self,
            options: &options,
        };
        build.build(dir, &attributes())?;
        let rows = self.keys().len() as u64;
        assert_eq!(seen.into_inner(), 2 * rows);
        Ok(())
    }

    /// Everything that the replica in `dir` says, against the order of the rows in memory.
    fn check(&self, dir: &Path) {
        let replica = SortedReplica::open(dir).unwrap();
        let order = self.order();
        assert_eq!((replica.shape(), replica.rows()), (self.grid.shape(), order.len() as u64));
        assert_eq!(*replica.attributes(), attributes());
        let mut positions = Vec::new();
        replica.positions(0..replica.rows(), &mut positions).unwrap();
        assert_eq!(positions, order);
        let mut out = Buffer::default();
        for (i, (column, bytes)) in self.columns.iter().enumerate() {
            assert_eq!(replica.column(&column.name), Some(i));
            assert_eq!(replica.columns()[i], *column);
            let size = column.dtype.size();
            for rows in [0..order.len(), order.len() / 3..order.len() / 2, order.len() / 5..order.len()] {
                replica.read(i, rows.start as u64..rows.end as u64, &mut out).unwrap();
                let want: Vec<u8> = order[rows]
                    .iter()
                    .flat_map(|&p| bytes[p as usize * size..(p as usize + 1) * size].to_vec())
                    .collect();
                assert!(out.bytes() == want, "column {i}");
            }
        }
        assert!(replica.read(self.columns.len(), 0..0, &mut out).is_err());
        assert!(replica.read(0, 0..replica.rows() + 1, &mut out).is_err());
    }

    fn check_slices(&self, dir: &Path, set: &KeySet) {
        let replica = SortedReplica::open(dir).unwrap();
        let keys = self.keys();
        let sorted: Vec<_> = self.order().iter().map(|&p| keys[p as usize]).collect();
        let inside = |k: &Option<i128>| k.map_or(set.nan, |k| set.contains(k));
        let want: Vec<u64> = (0_u64..).zip(&sorted).filter(|(_, k)| inside(k)).map(|(i, _)| i).collect();
        let slices = replica.slices(set).unwrap();
        assert!(slices.len() <= set.ranges.len() + usize::from(set.nan));
        assert!(slices.iter().all(|s| s.start < s.end));
        assert_eq!(slices.into_iter().flatten().collect::<Vec<_>>(), want, "{set:?}");
        let (least, most) = replica.estimate(set);
        let n = want.len() as u64;
        let slack = 2 * self.grid.shape().len() as u64 + 2 * 16384 * (set.ranges.len() as u64 + 1);
        assert!(least <= n && n <= most && most - least <= slack, "{least} <= {n} <= {most}");
    }
}

#[derive(Clone, Copy, Debug)]
struct How {
    layout: Layout,
    bucket_rows: Option<usize>,
    threads: usize,
    memory: u64,
    seal: u64,
}

const PLAIN: How = How { layout: Layout::STANDARD, bucket_rows: None, threads: 2, memory: 1 << 30, seal: 7 };

fn attributes() -> Map<String, Value> {
    let value = json!({"source": "a\"check\": \"b.nc", "size": u64::MAX, "list": [1, {"x": null}]});
    value.as_object().unwrap().clone()
}

/// Elements that are extreme, equal, or any.
fn element() -> impl Strategy<Value = [u8; 8]> {
    let special = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -5e-324, 9.96921e36, 1.0];
    let narrow = special.map(|x| u64::from((x as f32).to_bits()));
    let wide = special.map(f64::to_bits);
    prop_oneof![
        prop::sample::select(narrow.to_vec()).prop_map(u64::to_le_bytes),
        prop::sample::select(wide.to_vec()).prop_map(u64::to_le_bytes),
        any::<[u8; 8]>(),
        (0..4_u8).prop_map(|i| [i; 8]),
        Just([0xff; 8]),
        Just([0x7f, 0, 0, 0x80, 0, 0, 0xf8, 0xff]),
    ]
}

/// Tables of up to three dimensions and columns of all types; of few different values in one of two.
fn table() -> impl Strategy<Value = Rows> {
    let shape = prop_oneof![
        (0..700_u64).prop_map(|n| vec![n]),
        (1..25_u64, 0..25_u64).prop_map(|(a, b)| vec![a, b]),
        (1..9_u64, 1..9_u64, 1..9_u64).prop_map(|(a, b, c)| vec![a, b, c]),
        Just(vec![]),
    ];
    let columns = prop::collection::vec(prop::sample::select(NUMERIC.to_vec()), 1..5);
    let values = prop_oneof![prop::collection::vec(element(), 1..4), prop::collection::vec(element(), 300)];
    (shape, prop::array::uniform3(1..20_u64), columns, values, any::<u64>())
        .prop_map(|(shape, region, dtypes, values, seed)| rows(&shape, &region, &dtypes, &values, seed))
}

fn rows(shape: &[u64], region: &[u64], dtypes: &[DType], values: &[[u8; 8]], mut seed: u64) -> Rows {
    let count = shape.iter().product::<u64>();
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        values[(seed >> 33) as usize % values.len()]
    };
    let column = |(i, &dtype): (usize, &DType)| {
        let bytes = (0..count).flat_map(|_| next()[..dtype.size()].to_vec()).collect();
        (Column { name: format!("group/column {i}"), dtype }, bytes)
    };
    let columns = dtypes.iter().enumerate().map(column).collect();
    Rows { grid: RegionGrid::new(shape, &region[..shape.len()]).unwrap(), columns }
}

fn how() -> impl Strategy<Value = How> {
    let layout = (1..40_usize, 1..5_usize).prop_map(|(chunk, shard)| Layout { chunk, shard });
    let memory = prop_oneof![Just(1_u64 << 30), 20_000..200_000_u64];
    (layout, prop::option::of(1..200_usize), 1..4_usize, memory).prop_map(
        |(layout, bucket_rows, threads, memory)| How { layout, bucket_rows, threads, memory, seal: 7 },
    )
}

fn key_set(table: &Rows, cuts: &[(u16, i128, i128)], nan: bool) -> KeySet {
    let keys: Vec<i128> = table.keys().into_iter().flatten().collect();
    let near = |at: u16| keys.get(at as usize % keys.len().max(1)).copied().unwrap_or(0);
    let sets = cuts.iter().map(|&(at, below, above)| KeySet::interval(near(at) - below, near(at) + above));
    KeySet { nan, ..sets.fold(KeySet::EMPTY, |a, b| a.union(&b)) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_those_of_a_stable_sort(
        table in table(), how in how(), nan: bool,
        cuts in prop::collection::vec((any::<u16>(), 0..5_i128, 0..300_i128), 0..6),
    ) {
        let dir = crate::scratch::Scratch::new();
        match table.build(dir.path(), how) {
            Ok(()) => {
                assert_no_spills(dir.path());
                table.check(dir.path());
                table.check_slices(dir.path(), &key_set(&table, &cuts, nan));
                table.check_slices(dir.path(), &KeySet { ranges: vec![(i128::MIN, i128::MAX)], nan });
            }
            Err(e) => prop_assert!(e.kind() == ErrorKind::MemoryLimit && how.memory < 1 << 30, "{}", e),
        }
    }
}

fn assert_no_spills(dir: &Path) {
    let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|n| n.starts_with('.')).count(), 0);
}

/// A plan with little memory has several batches and buckets in files, which are cut again.
#[test]
fn little_memory_gives_the_same_rows() {
    let values: Vec<[u8; 8]> = (0..251_u64).map(|i| (i * 0x0123_4567_89ab_cdef).to_le_bytes()).collect();
    for (shape, region, dtype, values) in [
        (vec![90_000], vec![5000], DType::F32, &values[..]),
        (vec![300, 300], vec![70, 70], DType::F64, &values[..]),
        (vec![300, 300], vec![70, 70], DType::I64, &values[..1]),
        (vec![90_000], vec![3000], DType::U8, &values[..3]),
    ] {
        let table = rows(&shape, &region, &[dtype, DType::U64, DType::I16], values, 5);
        let layout = Layout { chunk: 512, shard: 16 };
        for (bucket_rows, memory) in [(None, 1 << 19), (Some(40), 1 << 19), (Some(3000), 1 << 30)] {
            let dir = crate::scratch::Scratch::new();
            table.build(dir.path(), How { layout, bucket_rows, threads: 3, memory, seal: 7 }).unwrap();
            table.check(dir.path());
        }
    }
}

#[test]
fn more_rows_than_a_chunk_in_the_standard_layout() {
    let values: Vec<[u8; 8]> = (0..997_u64).map(|i| (i * 0x0123_4567_89ab_cdef).to_le_bytes()).collect();
    let table = rows(&[100_003], &[30_000], &[DType::F64, DType::F32], &values, 1);
    let dir = crate::scratch::Scratch::new();
    table.build(dir.path(), PLAIN).unwrap();
    table.check(dir.path());
    table.check_slices(dir.path(), &KeySet::interval(0, 1 << 62));
    let replica = SortedReplica::open(dir.path()).unwrap();
    // The seal of a file is looked at when it is opened.
    for seal in [8, 0] {
        let before = (replica.bytes_read(), replica.requests());
        replica.read(1, 16_000..90_000, &mut Buffer::default()).unwrap();
        assert_eq!(replica.requests() - before.1, 1 + u64::from(seal > 0));
        assert_eq!(replica.bytes_read() - before.0, 6 * (16384 * 4 + 4) + seal);
    }
}

#[test]
fn memory_that_no_region_fits_is_refused_with_what_would() {
    let table = rows(&[10_000], &[10_000], &[DType::F64], &[[1; 8]], 1);
    let dir = crate::scratch::Scratch::new();
    let how = How { memory: 100_000, ..PLAIN };
    let e = table.build(&dir.path().join("a"), how).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    let hint = e.hint_text().unwrap();
    let memory = hint.split(' ').find_map(|w| w.parse().ok()).unwrap();
    table.build(&dir.path().join("b"), How { memory, ..PLAIN }).unwrap();
    table.check(&dir.path().join("b"));
}

/// A table that fails or cancels at a later read.
struct Failing<'a>(&'a Rows, AtomicU64, Option<&'a AtomicBool>);

impl Table for Failing<'_> {
    fn regions(&self) -> usize {
        self.0.regions()
    }
    fn region(&self, region: usize) -> Bx {
        self.0.region(region)
    }
    fn read(&self, region: usize, column: usize, out: &mut Buffer) -> Result<()> {
        match (self.1.fetch_add(1, Relaxed) > 4, self.2) {
            (true, Some(cancel)) => cancel.store(true, Relaxed),
            (true, None) => return Err(Error::new(ErrorKind::CorruptFile, "broken")),
            _ => {}
        }
        self.0.read(region, column, out)
    }
}

#[test]
fn errors_and_cancellation_end_the_build_without_spill_files() {
    let table = rows(&[1000], &[100], &[DType::F64], &[[1; 8]], 1);
    let columns = [table.columns[0].0.clone()];
    for cancels in [true, false] {
        let dir = crate::scratch::Scratch::new();
        let cancel = AtomicBool::new(false);
        let failing = Failing(&table, AtomicU64::new(0), cancels.then_some(&cancel));
        let options =
            SortOptions { threads: 2, memory: 1 << 20, seal: 7, cancel: &cancel, progress: &|_, _| {} };
        let e = build(dir.path(), &[1000], &columns, &failing, &Map::new(), &options).unwrap_err();
        assert_eq!(e.kind(), if cancels { ErrorKind::Cancelled } else { ErrorKind::CorruptFile });
        assert_no_spills(dir.path());
        assert_eq!(SortedReplica::open(dir.path()).unwrap_err().kind(), ErrorKind::CorruptIndex);
    }
}

#[test]
fn what_is_no_table_is_refused() {
    let table = rows(&[10], &[3], &[DType::F64], &[[1; 8]], 1);
    let cancel = AtomicBool::new(false);
    let options = SortOptions { threads: 1, memory: 1 << 20, seal: 7, cancel: &cancel, progress: &|_, _| {} };
    let column = |name: &str, dtype| Column { name: name.into(), dtype };
    let dir = crate::scratch::Scratch::new();
    for (shape, columns) in [
        (&[11][..], vec![column("a", DType::F64)]),
        (&[9], vec![column("a", DType::F64)]),
        (&[5, 2], vec![column("a", DType::F64)]),
        (&[10], vec![]),
        (&[10], vec![column("a", DType::Str)]),
        (&[10], vec![column("a", DType::F64), column("a", DType::F64)]),
    ] {
        let e = build(dir.path(), shape, &columns, &table, &Map::new(), &options).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
    }
}

#[test]
fn threads_read_one_replica_at_once() {
    let values: Vec<[u8; 8]> = (0..97_u64).map(|i| (i * 0x0123_4567_89ab_cdef).to_le_bytes()).collect();
    let table = rows(&[2000], &[300], &[DType::I64, DType::F32], &values, 3);
    let dir = crate::scratch::Scratch::new();
    // More shards than may be open.
    table.build(dir.path(), How { layout: Layout { chunk: 2, shard: 2 }, ..PLAIN }).unwrap();
    let (replica, order) = (SortedReplica::open(dir.path()).unwrap(), table.order());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (replica, order) = (&replica, &order);
            scope.spawn(move || {
                let mut positions = Vec::new();
                for i in 0..100 {
                    let rows = (i * 7 + thread) % 1000..1000 + i;
                    replica.positions(rows.start as u64..rows.end as u64, &mut positions).unwrap();
                    assert_eq!(positions, order[rows]);
                }
            });
        }
    });
}
