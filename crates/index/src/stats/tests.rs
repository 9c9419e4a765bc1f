//! The statistics against brute force, on hostile values of all types.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use proptest::sample::Index;
use sieva_types::keys::{f32_key, f64_key};
use sieva_types::{DType, ErrorKind, KeySet};

use super::bins::lower_key;
use super::*;

mod sums;

/// Elements with an owner.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
enum Data {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// The slice that `$of` makes of the vector of `$data`, as [`Elements`].
macro_rules! elements {
    ($data:expr, $of:expr; $($v:ident),*) => { match $data { $(Data::$v(v) => Elements::$v($of(v)),)* } };
}

impl Data {
    fn part(&self, from: usize, to: usize) -> Elements<'_> {
        fn cut<T>(v: &[T], from: usize, to: usize) -> &[T] {
            &v[from.min(v.len())..to.min(v.len())]
        }
        elements!(self, |v| cut(v, from, to); I8, I16, I32, I64, U8, U16, U32, U64, F32, F64)
    }

    fn all(&self) -> Elements<'_> {
        self.part(0, usize::MAX)
    }

    /// The same values so many times.
    fn repeated(&self, copies: usize) -> Self {
        macro_rules! each {
            ($($v:ident),*) => { match self { $(Self::$v(v) => Self::$v(v.repeat(copies)),)* } };
        }
        each!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64)
    }

    /// Type number `t` of the values with these bits: full range, or `narrow` of it.
    fn new(t: usize, bits: &[u64], narrow: u32, shape: u8) -> Self {
        let mut bits = bits.to_vec();
        match shape {
            0 => bits.sort_unstable(),
            1 => {
                let constant = bits.first().copied().unwrap_or(0);
                bits.fill(constant);
            }
            _ => {}
        }
        fn each<T>(bits: &[u64], f: impl Fn(u64) -> T) -> Vec<T> {
            bits.iter().map(|&v| f(v)).collect()
        }
        let float = |v: u64| (v as i64 >> narrow) as f64 * 1e-3;
        let hostile = |v: u64| {
            [f64::NAN, -f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN]
                [v as usize % 8]
        };
        match t {
            0 => Self::I8(each(&bits, |v| v as i8)),
            1 => Self::I16(each(&bits, |v| (v as i16).wrapping_shr(narrow))),
            2 => Self::I32(each(&bits, |v| (v as i32).wrapping_shr(narrow))),
            3 => Self::I64(each(&bits, |v| v as i64 >> narrow)),
            4 => Self::U8(each(&bits, |v| v as u8)),
            5 => Self::U16(each(&bits, |v| v as u16)),
            6 => Self::U32(each(&bits, |v| v as u32)),
            7 => Self::U64(each(&bits, |v| v >> narrow)),
            8 => Self::F32(each(&bits, |v| f32::from_bits(v as u32))),
            9 => Self::F64(each(&bits, f64::from_bits)),
            10 => {
                Self::F32(each(&bits, |v| if v % 5 == 0 { hostile(v / 5) as f32 } else { float(v) as f32 }))
            }
            11 => Self::F64(each(&bits, |v| if v % 5 == 0 { hostile(v / 5) } else { float(v) })),
            12 => Self::F32(each(&bits, |v| f32::from_bits((v as u32 & 0x8000_003f) | 1 << (v >> 40 & 7)))),
            _ => Self::F64(each(&bits, |v| f64::from_bits(v & 0x8000_0000_0000_00ff))),
        }
    }
}

fn data() -> impl Strategy<Value = Data> {
    (0..14_usize, proptest::collection::vec(any::<u64>(), 0..150), 0..64_u32, 0..4_u8)
        .prop_map(|(t, bits, narrow, shape)| Data::new(t, &bits, narrow, shape))
}

/// Keys of all elements; `None` for NaN.
fn keys(elements: Elements<'_>) -> Vec<Option<i128>> {
    match elements {
        Elements::F32(v) => v.iter().map(|&x| (!x.is_nan()).then(|| f32_key(x))).collect(),
        Elements::F64(v) => v.iter().map(|&x| (!x.is_nan()).then(|| f64_key(x))).collect(),
        Elements::I8(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Elements::I16(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Elements::I32(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Elements::I64(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Elements::U8(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Elements::U16(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Elements::U32(v) => v.iter().map(|&x| Some(x.into())).collect(),
        Elements::U64(v) => v.iter().map(|&x| Some(x.into())).collect(),
    }
}

/// Intervals that start and end at or beside values of the data, or anywhere.
type Recipe = (Vec<(Index, i128, Index, i128)>, bool, bool);

fn recipe(most: usize) -> impl Strategy<Value = Recipe> {
    let shift =
        || prop_oneof![Just(0_i128), -2..3_i128, any::<i64>().prop_map(i128::from), Just(i128::MAX / 4)];
    let interval = (any::<Index>(), shift(), any::<Index>(), shift());
    (proptest::collection::vec(interval, 0..most), any::<bool>(), any::<bool>())
}

fn set((intervals, nan, points): &Recipe, data: &Data) -> KeySet {
    let keys: Vec<i128> = keys(data.all()).into_iter().flatten().chain([0]).collect();
    let mut set = KeySet { ranges: Vec::new(), nan: *nan };
    for (a, da, b, db) in intervals {
        let (a, b) = (a.get(&keys) + da, if *points { a.get(&keys) + da } else { b.get(&keys) + db });
        set = set.union(&KeySet::interval(a.min(b), a.max(b)));
    }
    set
}

fn hits(keys: &[Option<i128>], set: &KeySet) -> u64 {
    keys.iter().filter(|k| k.map_or(set.nan, |k| set.contains(k))).count() as u64
}

fn present(elements: Elements<'_>, missing: &KeySet) -> Vec<i128> {
    keys(elements).into_iter().flatten().filter(|&k| !missing.contains(k)).collect()
}

/// Counts of `keys` in the bins that a histogram has, by the edges of the bins.
fn recount(histogram: &Histogram, dtype: DType, keys: &[i128]) -> Vec<u64> {
    let edges: Vec<i128> = (0..=histogram.counts().len() as i128)
        .map(|j| lower_key(dtype, histogram.first() + j, histogram.exponent()))
        .collect();
    edges.windows(2).map(|e| keys.iter().filter(|&&k| e[0] <= k && k < e[1]).count() as u64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn counts_are_those_of_brute_force(data in data(), missing in recipe(12)) {
        let missing = set(&missing, &data);
        let (all, here) = (keys(data.all()), present(data.all(), &missing));
        let stats = RegionStats::full(data.all(), &missing);
        prop_assert_eq!(stats.rows, all.len() as u64);
        prop_assert_eq!(stats.nan, all.iter().filter(|k| k.is_none()).count() as u64);
        prop_assert_eq!(stats.present(), here.len() as u64);
        prop_assert_eq!(stats.bounds, here.iter().min().copied().zip(here.iter().max().copied()));
        let dtype = data.all().dtype();
        let histogram = stats.histogram.clone().unwrap();
        prop_assert_eq!(histogram.counts(), recount(&histogram, dtype, &here));
        let ends = key_range(dtype);
        let of = |key| here.iter().filter(|&&k| dtype.is_float() && k == key).count() as u64;
        prop_assert_eq!(histogram.infinities(), (of(ends.0), of(ends.1)));
        prop_assert_eq!(histogram.total(), stats.present());
        prop_assert!(histogram.counts().len() <= 100);
        prop_assert_eq!(histogram.edges().len(), histogram.counts().len() + 1);
        prop_assert_eq!(RegionStats::zone(data.all(), &missing), RegionStats { histogram: None, ..stats });
    }

    #[test]
    fn bounds_hold_and_verdicts_agree(data in data(), missing in recipe(4), wanted in recipe(4), null in 0..4_u8, cut in any::<Index>()) {
        let missing = set(&missing, &data);
        let wanted = match null {
            0 => set(&wanted, &data).union(&missing),
            1 => set(&wanted, &data).difference(&missing),
            _ => set(&wanted, &data),
        };
        let (all, dtype) = (keys(data.all()), data.all().dtype());
        let want = hits(&all, &wanted);
        let whole = RegionStats::full(data.all(), &missing);
        let cut = cut.index(all.len() + 1);
        let mut merged = RegionStats::full(data.part(0, cut), &missing);
        merged.merge(&RegionStats::full(data.part(cut, usize::MAX), &missing));
        let zone = RegionStats { histogram: None, ..whole.clone() };
        for stats in [whole, merged, zone] {
            let (lower, upper) = stats.count_bounds(&wanted, &missing, dtype);
            prop_assert!(lower <= want && want <= upper, "{want} hits of {stats:?} not in {lower}..={upper}");
            match stats.decide(&wanted, &missing) {
                Verdict::None => prop_assert_eq!(want, 0),
                Verdict::All => prop_assert_eq!(want, stats.rows),
                Verdict::Some => prop_assert!(stats.rows > 0),
            }
            if let Some(histogram) = &stats.histogram {
                let want = present(data.all(), &missing).iter().filter(|&&k| wanted.contains(k)).count() as u64;
                let (lower, upper) = histogram.count_bounds(&wanted, dtype);
                prop_assert!(lower <= want && want <= upper, "{want} hits of {histogram:?} not in {lower}..={upper}");
            }
        }
    }

    #[test]
    fn merging_is_associative_and_commutative(
        data in data(), missing in recipe(3), cuts in any::<[Index; 2]>(), zone_only in any::<[bool; 3]>()) {
        let (missing, rows) = (set(&missing, &data), data.all().len());
        let mut cuts = cuts.map(|c| c.index(rows + 1));
        cuts.sort_unstable();
        let parts = [(0, cuts[0]), (cuts[0], cuts[1]), (cuts[1], rows)];
        let mut stats: Vec<_> = parts.iter().map(|&(a, b)| RegionStats::full(data.part(a, b), &missing)).collect();
        let merge = |a: &RegionStats, b: &RegionStats| { let mut m = a.clone(); m.merge(b); m };
        let all = merge(&merge(&stats[0], &stats[1]), &stats[2]);
        prop_assert_eq!(&all, &merge(&stats[2], &merge(&stats[1], &stats[0])));
        prop_assert_eq!(&all, &merge(&stats[1], &merge(&stats[0], &stats[2])));
        let whole = RegionStats::full(data.all(), &missing);
        prop_assert_eq!((all.rows, all.nan, all.missing, all.bounds), (whole.rows, whole.nan, whole.missing, whole.bounds));
        let merged = all.histogram.unwrap();
        prop_assert_eq!(merged.counts(), recount(&merged, data.all().dtype(), &present(data.all(), &missing)));
        prop_assert_eq!(merged.infinities(), whole.histogram.unwrap().infinities());
        prop_assert!(merged.counts().len() <= MERGED_BINS);
        prop_assert!(merged.counts().first() != Some(&0) && merged.counts().last() != Some(&0));
        for (part, drop) in stats.iter_mut().zip(zone_only) {
            part.histogram = part.histogram.take().filter(|_| !drop);
        }
        let all = merge(&merge(&stats[0], &stats[1]), &stats[2]);
        prop_assert_eq!(&all, &merge(&stats[1], &merge(&stats[2], &stats[0])));
        let complete = stats.iter().all(|s| s.histogram.is_some() || s.present() == 0);
        prop_assert_eq!(all.histogram.is_some(), complete && stats.iter().any(|s| s.histogram.is_some()));
    }

    #[test]
    fn decoding_undoes_encoding(data in data(), missing in recipe(3), zone in any::<bool>(), at in any::<Index>()) {
        let missing = set(&missing, &data);
        let stats = if zone { RegionStats::zone(data.all(), &missing) } else { RegionStats::full(data.all(), &missing) };
        let mut bytes = Vec::new();
        stats.encode(&mut bytes);
        prop_assert_eq!(&RegionStats::decode(&bytes).unwrap(), &stats);
        let alone = RegionStats { histogram: None, ..stats.clone() };
        prop_assert_eq!(RegionStats::decode_zone(&bytes).unwrap(), (alone, !zone));
        let cut = RegionStats::decode(&bytes[..at.index(bytes.len())]).unwrap_err();
        prop_assert_eq!(cut.kind(), ErrorKind::CorruptIndex);
        bytes.push(0);
        prop_assert_eq!(RegionStats::decode(&bytes).unwrap_err().kind(), ErrorKind::CorruptIndex);
    }

    #[test]
    fn hostile_bytes_do_no_harm(
        data in data(), wanted in recipe(4), dtype in 0..13_usize,
        damage in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..4)) {
        let dtypes = [DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32,
            DType::U64, DType::F16, DType::F32, DType::F64, DType::Str];
        let (set, honest) = (set(&wanted, &data), RegionStats::full(data.all(), &KeySet::EMPTY));
        let mut bytes = Vec::new();
        honest.encode(&mut bytes);
        damage.iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = *byte });
        match RegionStats::decode(&bytes) {
            Ok(mut stats) => {
                for missing in [KeySet::EMPTY, set.clone()] {
                    let (lower, upper) = stats.count_bounds(&set, &missing, dtypes[dtype]);
                    prop_assert!(lower <= upper);
                    stats.decide(&set, &missing);
                }
                stats.merge(&honest);
                stats.histogram.iter().for_each(|h| drop(h.edges()));
                bytes.clear();
                stats.encode(&mut bytes);
            }
            Err(e) => prop_assert_eq!(e.kind(), ErrorKind::CorruptIndex),
        }
    }

    #[test]
    fn any_bytes_are_an_error_or_statistics(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Err(e) = RegionStats::decode(&bytes) {
            prop_assert_eq!(e.kind(), ErrorKind::CorruptIndex);
        }
    }
}

#[test]
fn regions_without_rows_or_present_values() {
    let missing = KeySet { ranges: vec![(-9, -9), (5, 5)], nan: true };
    let empty = RegionStats::full(Elements::I32(&[]), &missing);
    assert_eq!(empty.decide(&missing, &missing), Verdict::None);
    assert_eq!(empty.histogram, Some(Histogram::EMPTY));
    let gone = RegionStats::full(Elements::I32(&[-9, 5, 5]), &missing);
    assert_eq!((gone.present(), gone.bounds, gone.missing), (0, None, 3));
    assert_eq!(gone.decide(&missing, &missing), Verdict::All);
    assert_eq!(gone.decide(&KeySet::interval(0, 10), &missing), Verdict::Some);
    assert_eq!(gone.count_bounds(&KeySet::interval(0, 10), &missing, DType::I32), (0, 3));
    assert_eq!(gone.decide(&KeySet::interval(-8, 4), &missing), Verdict::None);
    let nans = RegionStats::full(Elements::F32(&[f32::NAN; 20]), &missing);
    assert_eq!(nans.decide(&KeySet { ranges: vec![], nan: true }, &missing), Verdict::All);
    assert_eq!(nans.decide(&KeySet::interval(i128::MIN, i128::MAX), &missing), Verdict::None);
}

#[test]
fn a_gap_among_the_values_is_seen_by_the_histogram_only() {
    let missing = KeySet::interval(f32_key(50.0), f32_key(50.0));
    let values: Vec<f32> =
        (0..100).map(|i| if i < 50 { i as f32 / 50.0 } else { 98.0 + i as f32 / 50.0 }).collect();
    let stats = RegionStats::full(Elements::F32(&values), &missing);
    let set = KeySet::interval(f32_key(40.0), f32_key(60.0));
    assert_eq!(stats.decide(&set, &missing), Verdict::Some);
    assert_eq!(stats.count_bounds(&set, &missing, DType::F32), (0, 0));
    let low = KeySet::interval(f32_key(-1.0), f32_key(50.0));
    assert_eq!(stats.count_bounds(&low, &missing, DType::F32), (50, 50));
}

#[test]
fn statistics_of_a_region_are_small() {
    let values: Vec<f32> = (0..65_536).map(|i| ((i * 7919 % 65_536) as f32).sqrt()).collect();
    let mut bytes = Vec::new();
    RegionStats::full(Elements::F32(&values), &KeySet::EMPTY).encode(&mut bytes);
    assert!(bytes.len() < 400, "{}", bytes.len());
}

#[test]
fn histograms_of_a_wide_and_a_narrow_region_align() {
    let one = RegionStats::full(Elements::F64(&[0.5, 0.75, 1.0]), &KeySet::EMPTY);
    let mut all = RegionStats::full(Elements::F64(&[-1000.0, 3000.0]), &KeySet::EMPTY);
    all.merge(&one);
    let histogram = all.histogram.unwrap();
    assert_eq!((histogram.exponent(), histogram.first(), histogram.counts().len()), (6, -16, 63));
    assert_eq!(histogram.counts()[16], 3);
    assert_eq!((histogram.edges()[0], histogram.edges()[63]), (-1024.0, 3008.0));
}

/// The example of `docs/reference/statistics-format.md`.
#[test]
fn bytes_are_those_of_the_format() {
    let two = KeySet::interval(f32_key(2.0), f32_key(2.0));
    let stats = RegionStats::full(Elements::F32(&[1.0, 2.0, f32::NAN]), &two);
    let mut bytes = Vec::new();
    stats.encode(&mut bytes);
    let want = [3, 3, 1, 1, 0x80, 0x80, 0x80, 0xf8, 7, 0, 0x2d, 0, 0, 1, 0x80, 0x80, 0x80, 8, 1];
    assert_eq!(bytes, want);
}

/// A missing value among the present ones is not held against a set that leaves it out.
#[test]
fn all_but_the_missing_value_is_all_present_rows() {
    let missing = KeySet::interval(5, 5);
    let set = KeySet { ranges: vec![(0, 4), (6, 9)], nan: false };
    let stats = RegionStats::full(Elements::U16(&[0, 4, 6, 9]), &missing);
    assert_eq!(stats.decide(&set, &missing), Verdict::All);
    assert_eq!(stats.decide(&missing, &missing), Verdict::None);
    let one = RegionStats::full(Elements::U16(&[0, 4, 5, 6, 9]), &missing);
    assert_eq!(one.decide(&set, &missing), Verdict::Some);
    assert_eq!(one.count_bounds(&set, &missing, DType::U16), (4, 4));
    assert_eq!(one.count_bounds(&missing, &missing, DType::U16), (1, 1));
    assert_eq!(one.decide(&set.union(&missing), &missing), Verdict::All);
}
