//! Exact sums of regions against adding one value after the other.

use proptest::prelude::*;
use proptest::sample::Index;
use sieva_types::exact::{ExactSum, Sum};
use sieva_types::keys::f32_key;
use sieva_types::{ErrorKind, KeySet};

use super::super::*;
use super::{data, keys, recipe, set};

type Packing = Option<(f64, f64)>;

fn packing() -> impl Strategy<Value = Packing> {
    let scale = prop_oneof![
        Just(1.0),
        Just(-0.0),
        Just(0.01),
        Just(-3.7e-3),
        Just(1e300),
        Just(5e-324),
        any::<f64>().prop_filter("finite", |x| x.is_finite())
    ];
    let offset = prop_oneof![Just(-0.0), Just(0.0), Just(273.15), Just(-1e17), Just(f64::MAX)];
    prop_oneof![Just(None), (scale, offset).prop_map(Some)]
}

/// The sums of the elements that are neither NaN nor missing, one by one.
fn oracle(elements: Elements<'_>, missing: &KeySet, packing: Packing) -> Sums {
    let keys = keys(elements);
    let is_there = |i: &usize| keys[*i].is_some_and(|k| !missing.contains(k));
    let there: Vec<usize> = (0..keys.len()).filter(is_there).collect();
    let float = |i: usize| match elements {
        Elements::F32(v) => v[i].into(),
        Elements::F64(v) => v[i],
        Elements::U64(v) => v[i] as f64,
        Elements::I64(v) => v[i] as f64,
        _ => keys[i].unwrap() as f64,
    };
    let sum = |f: &dyn Fn(f64) -> f64| {
        let mut sum = ExactSum::default();
        there.iter().for_each(|&i| sum.add(f(float(i))));
        Sum::of(sum)
    };
    let stored = if elements.dtype().is_float() {
        Total::Float(sum(&|x| x))
    } else {
        Total::Integer(there.iter().map(|&i| keys[i].unwrap()).sum())
    };
    let decoded = packing.and_then(|(scale, offset)| {
        let is_nan = |i: &usize| (float(*i) * scale + offset).is_nan();
        let packing = (scale, offset);
        (!there.iter().any(is_nan)).then(|| Decoded { packing, sum: sum(&|x| x * scale + offset) })
    });
    Sums { stored, decoded }
}

fn bytes_of(stats: &RegionStats) -> Vec<u8> {
    let mut bytes = Vec::new();
    stats.encode(&mut bytes);
    bytes
}

/// The bits too: a zero has no sign, and there is one form of each sum.
fn same(a: &Option<Box<Sums>>, b: &Option<Box<Sums>>) -> bool {
    let bytes = |sums: &Option<Box<Sums>>| {
        let zone = RegionStats::zone(Elements::U8(&[]), &KeySet::EMPTY);
        bytes_of(&RegionStats { sums: sums.clone(), ..zone })
    };
    a == b && bytes(a) == bytes(b)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn sums_are_those_of_one_by_one(data in data(), missing in recipe(12), packing in packing(), copies in 1..40_usize) {
        let missing = set(&missing, &data);
        let data = data.repeated(copies);
        let stats = RegionStats::zone(data.all(), &missing).with_sums(data.all(), &missing, packing);
        prop_assert!(same(&stats.sums, &Some(Box::new(oracle(data.all(), &missing, packing)))), "{:?}", stats.sums);
        let full = RegionStats::full(data.all(), &missing).with_sums(data.all(), &missing, packing);
        prop_assert_eq!(full.sums, stats.sums);
    }

    #[test]
    fn sums_of_parts_are_those_of_the_whole(
        data in data(), missing in recipe(3), packing in packing(), cuts in any::<[Index; 2]>(), without in 0..5_usize) {
        let (missing, rows) = (set(&missing, &data), data.all().len());
        let mut cuts = cuts.map(|c| c.index(rows + 1));
        cuts.sort_unstable();
        let of = |from, to| {
            let part = data.part(from, to);
            RegionStats::zone(part, &missing).with_sums(part, &missing, packing)
        };
        let mut parts = [of(0, cuts[0]), of(cuts[0], cuts[1]), of(cuts[1], rows)];
        let merge = |a: &RegionStats, b: &RegionStats| { let mut m = a.clone(); m.merge(b); m };
        let whole = of(0, rows);
        let all = merge(&merge(&parts[0], &parts[1]), &parts[2]);
        prop_assert!(same(&all.sums, &whole.sums), "{:?} {:?}", all.sums, whole.sums);
        prop_assert_eq!(&all, &merge(&parts[2], &merge(&parts[1], &parts[0])));
        if let Some(part) = parts.get_mut(without) {
            part.sums = None;
            let is_whole = part.present() == 0;
            let all = merge(&merge(&parts[0], &parts[1]), &parts[2]);
            prop_assert_eq!(&all.sums, &if is_whole { whole.sums } else { None });
            prop_assert_eq!(all.sums, merge(&parts[1], &merge(&parts[2], &parts[0])).sums);
        }
    }

    #[test]
    fn sums_survive_their_bytes(
        data in data(), missing in recipe(3), packing in packing(), zone in any::<bool>(), at in any::<Index>(),
        damage in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..4)) {
        let missing = set(&missing, &data);
        let stats = if zone { RegionStats::zone(data.all(), &missing) } else { RegionStats::full(data.all(), &missing) };
        let stats = stats.with_sums(data.all(), &missing, packing);
        let mut bytes = bytes_of(&stats);
        prop_assert_eq!(&RegionStats::decode(&bytes).unwrap(), &stats);
        let alone = RegionStats { histogram: None, ..stats.clone() };
        prop_assert_eq!(RegionStats::decode_zone(&bytes).unwrap(), (alone, !zone));
        let cut = RegionStats::decode(&bytes[..at.index(bytes.len())]).unwrap_err();
        prop_assert_eq!(cut.kind(), ErrorKind::CorruptIndex);
        damage.iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = *byte });
        match RegionStats::decode(&bytes) {
            Ok(mut foreign) => {
                prop_assert_eq!(&RegionStats::decode(&bytes_of(&foreign)).unwrap(), &foreign);
                foreign.merge(&stats);
            }
            Err(e) => prop_assert_eq!(e.kind(), ErrorKind::CorruptIndex),
        }
    }
}

#[test]
fn sums_of_another_packing_are_not_put_together() {
    let values = Elements::I16(&[1, 2, 3]);
    let of = |packing| RegionStats::zone(values, &KeySet::EMPTY).with_sums(values, &KeySet::EMPTY, packing);
    let mut all = of(Some((0.5, 1.0)));
    all.merge(&of(Some((0.5, 1.0))));
    let sums = all.sums.clone().unwrap();
    assert_eq!(sums.stored, Total::Integer(12));
    assert_eq!(sums.decoded.unwrap().sum, Sum::Pair(12.0, 0.0));
    all.merge(&of(Some((0.5, 2.0))));
    assert_eq!(*all.sums.unwrap(), Sums { stored: Total::Integer(18), decoded: None });
}

/// More elements than are added at once, of very different sizes.
#[test]
fn large_regions() {
    let missing = KeySet::interval(f32_key(7.0), f32_key(7.0));
    let mut values: Vec<f32> = (0..70_000).map(|i| ((i * 7919 % 65_536) as f32 - 3e4).sqrt() + 7.0).collect();
    values[500] = f32::MAX;
    values[66_000] = -1e-40;
    let all = Elements::F32(&values);
    for packing in [None, Some((0.01, 273.15))] {
        let stats = RegionStats::zone(all, &missing).with_sums(all, &missing, packing);
        assert_eq!(*stats.sums.unwrap(), oracle(all, &missing, packing));
    }
    let wide: Vec<i64> = (0..70_000).map(|i| i64::MIN + i).collect();
    let stats = RegionStats::zone(Elements::I64(&wide), &missing);
    let sums = stats.with_sums(Elements::I64(&wide), &missing, None).sums.unwrap();
    assert_eq!(sums.stored, Total::Integer(70_000 * i128::from(i64::MIN) + 35_000 * 69_999));
}

/// Where adding float32 as they are just begins to round.
#[test]
fn singles_of_any_spread() {
    for bits in 0..40 {
        let large = f32::from_bits((127 + bits) << 23) * 1.999_999_9;
        for small in [1.0 + f32::EPSILON, -1.0 - f32::EPSILON, f32::EPSILON] {
            let mut values = vec![large; 2047];
            values.push(small);
            values.extend(vec![-large; 100]);
            let all = Elements::F32(&values);
            for missing in [KeySet::EMPTY, KeySet::interval(f32_key(-large), f32_key(-large))] {
                let stats = RegionStats::zone(all, &missing).with_sums(all, &missing, None);
                assert_eq!(*stats.sums.unwrap(), oracle(all, &missing, None), "{large} {small}");
            }
        }
    }
}

/// The same of float64 and of packed values.
#[test]
fn doubles_of_any_spread() {
    for bits in 20..60 {
        let large = f64::from_bits((1023 + bits) << 52) * (2.0 - f64::EPSILON);
        for small in [1.0 + f64::EPSILON, -1.0 - f64::EPSILON, f64::EPSILON] {
            let mut values = vec![large; 2047];
            values.push(small);
            values.extend(vec![-large; 100]);
            let all = Elements::F64(&values);
            for packing in [None, Some((0.1, -0.0)), Some((-0.3, 1e5))] {
                let stats = RegionStats::zone(all, &KeySet::EMPTY).with_sums(all, &KeySet::EMPTY, packing);
                assert_eq!(*stats.sums.unwrap(), oracle(all, &KeySet::EMPTY, packing), "{large} {small}");
            }
        }
    }
}

#[test]
fn impossible_sums_are_refused() {
    let values = Elements::I16(&[1, 2, 3]);
    let honest =
        RegionStats::zone(values, &KeySet::EMPTY).with_sums(values, &KeySet::EMPTY, Some((0.5, 1.0)));
    let refused = |change: &dyn Fn(&mut Sums)| {
        let mut stats = honest.clone();
        change(stats.sums.as_mut().unwrap());
        let error = RegionStats::decode(&bytes_of(&stats)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptIndex);
        error.message().to_string()
    };
    for sum in [2, 10, -6, i128::MAX, i128::MIN] {
        let message = refused(&|s| s.stored = Total::Integer(sum));
        assert_eq!(message, "statistics of a region: a sum of other values");
    }
    let packed = |packing| move |s: &mut Sums| s.decoded.as_mut().unwrap().packing = packing;
    for packing in [(f64::NAN, 0.0), (1.0, f64::INFINITY)] {
        assert_eq!(refused(&packed(packing)), "statistics of a region: a packing by no numbers");
    }
    let mut bytes = bytes_of(&honest);
    bytes[0] &= !4;
    assert!(RegionStats::decode(&bytes).unwrap_err().message().ends_with("a sum of decoded values alone"));
    let nothing = RegionStats::zone(Elements::F64(&[]), &KeySet::EMPTY);
    let nothing = nothing.with_sums(Elements::F64(&[]), &KeySet::EMPTY, None);
    let sums = Sums { stored: Total::Float(Sum::Pair(1.0, 0.0)), decoded: None };
    let error =
        RegionStats::decode(&bytes_of(&RegionStats { sums: Some(Box::new(sums)), ..nothing })).unwrap_err();
    assert!(error.message().ends_with("a sum of other values"));
}

/// The example of `docs/reference/statistics-format.md`, and what a sum adds to it.
#[test]
fn bytes_of_sums_are_those_of_the_format() {
    let two = KeySet::interval(f32_key(2.0), f32_key(2.0));
    let values = Elements::F32(&[1.0, 2.0, f32::NAN]);
    let bytes = bytes_of(&RegionStats::full(values, &two).with_sums(values, &two, None));
    let zone = [7, 3, 1, 1, 0x80, 0x80, 0x80, 0xf8, 7, 0];
    let sum = [1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    let histogram = [0x2d, 0, 0, 1, 0x80, 0x80, 0x80, 8, 1];
    assert_eq!(bytes, [&zone[..], &sum, &histogram].concat());
    let packed = Elements::I8(&[4, -2]);
    let bytes = bytes_of(&RegionStats::zone(packed, &two).with_sums(packed, &two, Some((0.5, -0.0))));
    let scale = [0, 0, 0, 0, 0, 0, 0xe0, 0x3f];
    let offset = [0, 0, 0, 0, 0, 0, 0, 0x80];
    let sums = [&[4, 4][..], &scale, &offset, &[1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]].concat();
    assert_eq!(bytes, [&[13, 2, 0, 0, 3, 6][..], &sums].concat());
}

#[test]
fn sums_take_few_bytes() {
    let values: Vec<f32> = (0..65_536).map(|i| ((i * 7919 % 65_536) as f32).sqrt()).collect();
    let all = Elements::F32(&values);
    let stats = RegionStats::full(all, &KeySet::EMPTY);
    let more = |packing| {
        let with = stats.clone().with_sums(all, &KeySet::EMPTY, packing);
        bytes_of(&with).len() - bytes_of(&stats).len()
    };
    assert_eq!(more(None), 9);
    assert!(more(Some((0.01, 273.15))) <= 9 + 16 + 17);
}
