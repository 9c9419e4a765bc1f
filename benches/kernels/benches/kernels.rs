//! The innermost loops on one million float32 (4 MiB, more than a core's own cache), each with the bytes that it goes
//! through in a second.

use std::hint::black_box;
use std::io::Write;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sieva_format::decoding::{Decoding, Number};
use sieva_format::filters::{Filter, Pipeline, Scratch};
use sieva_index::Elements;
use sieva_index::bitmap::{RegionBitmap, Workspace, build};
use sieva_index::stats::RegionStats;
use sieva_kernels::fractions;
use sieva_query::aggregate::{Aggregate, Piece, Target, accumulator};
use sieva_query::mask::{Mask, and_broadcast};
use sieva_query::raw::{Comparison, RawTest, StoredDomain};
use sieva_query::values::ValueType;
use sieva_types::{Buffer, DType, KeySet};

const N: usize = 1 << 20;
const BYTES: u64 = 4 << 20;

/// The stored float32 that are greater than `than`.
fn greater(than: f64) -> KeySet {
    let domain = StoredDomain::new(&Decoding::none(DType::F32), false).expect("plain values decode");
    domain.satisfying(Comparison::Greater, Number::Float(than))
}

/// A condition on stored values, and a mask of fewer dimensions put onto one of more.
fn conditions(c: &mut Criterion) {
    let mut group = c.benchmark_group("conditions");
    group.throughput(Throughput::Bytes(BYTES));
    let mut data = Buffer::default();
    data.resize(N * 4);
    data.as_mut_slice::<f32>().iter_mut().zip(fractions(N)).for_each(|(to, v)| *to = v);
    let test = RawTest::new(DType::F32, &greater(0.99));
    let mut words = vec![0; N / 64];
    group.bench_function("float32 > constant", |b| b.iter(|| test.test(black_box(&data), &mut words)));
    let mut row = Mask::zeros(1 << 10);
    (0..1 << 10).step_by(3).for_each(|i| row.set(i));
    group.bench_function("mask of columns onto rows", |b| {
        b.iter(|| {
            let mut mask = Mask::ones(N);
            and_broadcast(&mut mask, &[1 << 10, 1 << 10], &row, &[1]);
            mask.count()
        });
    });
    group.finish();
}

/// Aggregates of one group, of neighbouring groups, and of groups in any order.
fn aggregates(c: &mut Criterion) {
    let mut group = c.benchmark_group("aggregates");
    group.throughput(Throughput::Bytes(BYTES));
    let values: Vec<f32> = fractions(N).collect();
    let any: Vec<u32> = fractions(N).map(|v| (v * 4096.0) as u32).collect();
    for aggregate in [Aggregate::Count, Aggregate::Avg, Aggregate::Max, Aggregate::VarPop] {
        let targets = [("one", Target::One(0)), ("each", Target::Each(&any))];
        for (name, target) in targets {
            let mut state = accumulator(&aggregate, Some(ValueType::F64)).expect("numbers have aggregates");
            state.resize(4096);
            group.bench_function(format!("{} into {name}", aggregate.name()), |b| {
                b.iter(|| state.update(target, black_box(&Piece::F32(&values))).expect("floats are taken"));
            });
        }
        let mut state = accumulator(&aggregate, Some(ValueType::F64)).expect("numbers have aggregates");
        state.resize(1 << 12);
        group.bench_function(format!("{} into neighbours", aggregate.name()), |b| {
            b.iter(|| {
                for row in values.chunks(1 << 12) {
                    state.update(Target::From(0), black_box(&Piece::F32(row))).expect("floats are taken");
                }
            });
        });
    }
    group.finish();
}

/// Statistics and the bitmap of a region: building, and a condition in the tail.
fn indexes(c: &mut Criterion) {
    let mut group = c.benchmark_group("indexes");
    group.throughput(Throughput::Bytes(BYTES));
    let values: Vec<f32> = fractions(N).collect();
    let elements = Elements::F32(&values);
    let missing = KeySet { ranges: Vec::new(), nan: true };
    group.bench_function("zone map", |b| b.iter(|| RegionStats::zone(black_box(elements), &missing)));
    let mut ws = Workspace::default();
    let (mut head, mut body) = (Vec::new(), Vec::new());
    group.bench_function("build bitmap", |b| {
        b.iter(|| {
            head.clear();
            body.clear();
            build(black_box(elements), &missing, 2, &mut ws, &mut head, &mut body);
        });
    });
    let bitmap =
        RegionBitmap::parse(&head, body.len() as u64, DType::F32).expect("a head that was just made");
    let set = greater(0.995);
    let (mut sure, mut check) = (vec![0; N / 64], vec![0; N / 64]);
    group.bench_function("bitmap, a 200th", |b| {
        b.iter(|| {
            sure.fill(0);
            check.fill(0);
            let mut fetch = |range: std::ops::Range<u64>, out: &mut Vec<u8>| {
                out.extend_from_slice(&body[range.start as usize..range.end as usize]);
                Ok(())
            };
            bitmap.evaluate(&set, &mut fetch, &mut ws, &mut sure, &mut check).expect("its own body");
        });
    });
    group.finish();
}

/// Decoding of a chunk of 1 MiB.
fn decoding(c: &mut Criterion) {
    let mut group = c.benchmark_group("decoding");
    group.throughput(Throughput::Bytes(1 << 20));
    let values: Vec<f32> = fractions(1 << 18).map(|v| (v * 1000.0).round()).collect();
    let mut shuffled = Vec::new();
    for plane in 0..4 {
        shuffled.extend(values.iter().map(|v| v.to_le_bytes()[plane]));
    }
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(4));
    deflated.write_all(&shuffled).expect("memory takes it");
    let deflated = deflated.finish().expect("memory takes it");
    let (mut out, mut scratch) = (vec![0; 1 << 20], Scratch::default());
    let shuffle = Filter::Shuffle { element_size: 4 };
    let plain = Pipeline { filters: vec![shuffle.clone()] };
    group.bench_function("shuffle", |b| {
        b.iter(|| plain.decode(0, black_box(&shuffled), &mut out, &mut scratch).expect("what was shuffled"));
    });
    let both = Pipeline { filters: vec![shuffle, Filter::Deflate] };
    group.bench_function("shuffle and deflate", |b| {
        b.iter(|| both.decode(0, black_box(&deflated), &mut out, &mut scratch).expect("what was deflated"));
    });
    group.finish();
}

criterion_group!(kernels, conditions, aggregates, indexes, decoding);
criterion_main!(kernels);
