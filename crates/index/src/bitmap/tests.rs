//! The index against the values themselves.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::ops::Range;

use proptest::prelude::*;
use sieva_types::keys::{f32_key, f64_key};
use sieva_types::{DType, ErrorKind, KeySet};

use super::*;
use crate::each;

/// An element's key; none for NaN.
trait Keyed: Copy {
    fn key(self) -> Option<i128>;
}
macro_rules! keyed {
    ($($t:ty),*) => {$(
        impl Keyed for $t {
            fn key(self) -> Option<i128> {
                Some(i128::from(self))
            }
        }
    )*};
}
keyed!(i8, i16, i32, i64, u8, u16, u32, u64);
impl Keyed for f32 {
    fn key(self) -> Option<i128> {
        (!self.is_nan()).then(|| f32_key(self))
    }
}
impl Keyed for f64 {
    fn key(self) -> Option<i128> {
        (!self.is_nan()).then(|| f64_key(self))
    }
}

fn keys(elements: Elements<'_>) -> Vec<Option<i128>> {
    each!(elements, v => v.iter().map(|x| x.key()).collect())
}

fn holds(set: &KeySet, key: Option<i128>) -> bool {
    key.map_or(set.nan, |k| set.contains(k))
}

fn set_bits(bits: &[u64]) -> Vec<usize> {
    (0..bits.len() * 64).filter(|i| bits[i / 64] >> (i % 64) & 1 == 1).collect()
}

struct Index {
    head: Vec<u8>,
    body: Vec<u8>,
    parsed: RegionBitmap,
    rows: usize,
}

impl Index {
    fn new(elements: Elements<'_>, missing: &KeySet, precision: u32, ws: &mut Workspace) -> Self {
        let (mut head, mut body) = (vec![7; 3], vec![9; 5]); // build appends
        build(elements, missing, precision, ws, &mut head, &mut body);
        let (head, body) = (head.split_off(3), body.split_off(5));
        let parsed = RegionBitmap::parse(&head, body.len() as u64, elements.dtype()).unwrap();
        Self { head, body, parsed, rows: elements.len() }
    }

    /// Rows surely in the set, and rows to be looked up.
    fn evaluate(&self, set: &KeySet, ws: &mut Workspace) -> Result<(Vec<usize>, Vec<usize>)> {
        let words = self.rows.div_ceil(64);
        let (mut sure, mut check) = (vec![0; words], vec![0; words]);
        let mut fetched = 0;
        let mut fetch = |range: Range<u64>, out: &mut Vec<u8>| {
            assert!(out.is_empty() && range.start <= range.end);
            fetched += range.end - range.start;
            out.extend_from_slice(&self.body[range.start as usize..range.end as usize]);
            Ok(())
        };
        self.parsed.evaluate(set, &mut fetch, ws, &mut sure, &mut check)?;
        assert_eq!(fetched, self.parsed.cost(set));
        Ok((set_bits(&sure), set_bits(&check)))
    }

    /// Holds the law: sure rows are in the set, rows neither sure nor to be checked are not. Returns the rows
    /// to be checked.
    fn agrees(&self, keys: &[Option<i128>], set: &KeySet, ws: &mut Workspace) -> Vec<usize> {
        let (sure, check) = self.evaluate(set, ws).unwrap();
        let truth: Vec<usize> = (0..keys.len()).filter(|&i| holds(set, keys[i])).collect();
        let mut found: Vec<usize> = sure.clone();
        found.extend(check.iter().filter(|&&i| holds(set, keys[i])));
        found.sort_unstable();
        assert_eq!(found, truth, "of {set:?}");
        assert!(sure.iter().all(|i| !check.contains(i)));
        let cover = self.parsed.cover(set);
        assert_eq!((cover.inside, cover.edge), (sure.len() as u64, check.len() as u64));
        assert_eq!(self.parsed.edge(set), cover.edge);
        check
    }

    /// Bins are tight, and count what is in them.
    fn is_tight(&self, keys: &[Option<i128>], missing: &KeySet) {
        assert_eq!(self.parsed.rows(), keys.len() as u64);
        assert_eq!(self.parsed.nan(), keys.iter().filter(|k| k.is_none()).count() as u64);
        for bin in self.parsed.bins() {
            let of: Vec<i128> = keys
                .iter()
                .flatten()
                .copied()
                .filter(|&k| bin.low <= k && k <= bin.high && missing.contains(k) == bin.missing)
                .collect();
            assert_eq!(of.len() as u64, bin.count);
            assert_eq!((of.iter().min(), of.iter().max()), (Some(&bin.low), Some(&bin.high)));
        }
    }
}

/// Elements of every type made from the same random bits.
fn every_type(bits: &[u64], f: &mut dyn FnMut(Elements<'_>)) {
    macro_rules! cast { ($($kind:ident: $t:ty),*) => {$(
        f(Elements::$kind(&bits.iter().map(|&b| b as $t).collect::<Vec<$t>>()));
    )*}}
    cast!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64);
    f(Elements::F32(&bits.iter().map(|&b| single(b)).collect::<Vec<_>>()));
    f(Elements::F64(&bits.iter().map(|&b| double(b)).collect::<Vec<_>>()));
}

/// Hostile and everyday floats by the low bits.
fn double(bits: u64) -> f64 {
    match bits % 16 {
        0 => f64::from_bits(bits),
        1 => f64::from_bits(bits >> 12), // denormals
        2 => [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY][bits as usize / 16 % 4],
        3 => [0.0, -0.0, f64::MAX, f64::MIN][bits as usize / 16 % 4],
        4 => ((bits / 16 % 200) as f64 - 100.0) / 10.0,
        _ => (bits >> 11) as f64 / (1_u64 << 53) as f64 * if bits.is_multiple_of(2) { 40.0 } else { -0.3 },
    }
}

fn single(bits: u64) -> f32 {
    match bits % 16 {
        0 => f32::from_bits((bits >> 32) as u32),
        1 => f32::from_bits((bits >> 41) as u32),
        _ => double(bits) as f32,
    }
}

/// Random bits, some with few values, some with long runs.
fn some_bits() -> impl Strategy<Value = Vec<u64>> {
    let of = |values: BoxedStrategy<u64>| proptest::collection::vec(values, 0..700);
    prop_oneof![
        3 => of(any::<u64>().boxed()),
        1 => of((0..12_u64).boxed()),
        1 => of(prop_oneof![Just(3_u64 << 60), any::<u64>()].boxed()),
        1 => proptest::collection::vec((any::<u64>(), 1..90_usize), 0..20)
            .prop_map(|runs| runs.into_iter().flat_map(|(v, n)| vec![v; n]).collect()),
        1 => of(any::<u64>().boxed()).prop_map(|mut v| { v.sort_by(|a, b| double(*a).total_cmp(&double(*b))); v }),
    ]
}

/// A set with ends at or next to some of the keys.
fn set_near(keys: &[Option<i128>], picks: &[(usize, i8)], nan: bool, dtype: DType) -> KeySet {
    let (least, greatest) = sieva_types::keys::key_range(dtype);
    let mut ends: Vec<i128> = picks
        .iter()
        .map(|&(at, off)| {
            let key = keys.get(at % keys.len().max(1)).copied().flatten().unwrap_or(least);
            (key + i128::from(off)).clamp(least, greatest)
        })
        .collect();
    ends.sort_unstable();
    let all = ends.chunks_exact(2).map(|e| KeySet::interval(e[0], e[1]));
    KeySet { nan, ..all.fold(KeySet::EMPTY, |set, one| set.union(&one)) }
}

fn picks(most: usize) -> impl Strategy<Value = Vec<(usize, i8)>> {
    proptest::collection::vec((any::<usize>(), -2..3_i8), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_row_is_lost_or_invented(
        bits in some_bits(), holes in picks(5), ends in proptest::collection::vec(picks(12), 1..5),
        nan: bool, precision in 0..4_u32,
    ) {
        let ws = &mut Workspace::default();
        every_type(&bits, &mut |elements| {
            let (keys, dtype) = (keys(elements), elements.dtype());
            let missing = set_near(&keys, &holes, true, dtype);
            let index = Index::new(elements, &missing, precision, ws);
            index.is_tight(&keys, &missing);
            for ends in &ends {
                index.agrees(&keys, &set_near(&keys, ends, nan, dtype), ws);
            }
            let (least, greatest) = sieva_types::keys::key_range(dtype);
            let all = KeySet { nan: true, ..KeySet::interval(least, greatest) };
            for whole in [&KeySet::EMPTY, &all, &missing, &all.difference(&missing)] {
                assert!(index.agrees(&keys, whole, ws).is_empty());
            }
        });
    }

    #[test]
    fn few_values_are_exact(seeds in proptest::collection::vec(any::<u64>(), 1..200), ends in picks(20), order: u64) {
        let bits: Vec<u64> =
            (0..900_u64).map(|i| seeds[(i ^ order).wrapping_mul(order | 1) as usize % seeds.len()]).collect();
        let ws = &mut Workspace::default();
        every_type(&bits, &mut |elements| {
            let keys = keys(elements);
            let index = Index::new(elements, &KeySet { nan: true, ..KeySet::EMPTY }, 1, ws);
            assert!(index.parsed.bins().iter().all(|b| b.low == b.high));
            assert!(index.agrees(&keys, &set_near(&keys, &ends, false, elements.dtype()), ws).is_empty());
        });
    }

    #[test]
    fn constants_of_two_digits_cut_no_bin(
        bits in some_bits(), digits in 0..100_u32, exponent in prop_oneof![-3..3_i32, -330..310_i32], negative: bool, hole: usize,
    ) {
        let ws = &mut Workspace::default();
        let number = format!("{}{digits}e{exponent}", if negative { "-" } else { "" });
        every_type(&bits, &mut |elements| {
            let keys = keys(elements);
            let missing = set_near(&keys, &[(hole, 0), (hole, 0)], true, elements.dtype());
            let index = Index::new(elements, &missing, 2, ws);
            for set in conditions(elements.dtype(), &number) {
                assert!(index.agrees(&keys, &set.difference(&missing), ws).is_empty(), "{number}: {set:?}");
            }
        });
    }

    #[test]
    fn many_integers_are_cut_at_decimals(
        seed: u64, shift in 0..52_u32, digits in 0..100_i64, exponent in -2..19_i32, hole: usize, ends in picks(8),
    ) {
        // More distinct values than have a bin each.
        let wide: Vec<u64> = (0..6000_u64).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let signed: Vec<i64> = wide.iter().map(|&x| x as i64 >> shift).collect();
        let narrow: Vec<u32> = wide.iter().map(|&x| (x >> 32 >> (shift % 19)) as u32).collect();
        let ws = &mut Workspace::default();
        for elements in [Elements::U64(&wide), Elements::I64(&signed), Elements::U32(&narrow)] {
            let keys = keys(elements);
            let missing = set_near(&keys, &[(hole, 0), (hole, 0)], false, elements.dtype());
            let index = Index::new(elements, &missing, 2, ws);
            index.is_tight(&keys, &missing);
            for number in [format!("{digits}e{exponent}"), format!("-{digits}e{exponent}")] {
                for set in conditions(elements.dtype(), &number) {
                    assert!(index.agrees(&keys, &set.difference(&missing), ws).is_empty(), "{number}: {set:?}");
                }
            }
            index.agrees(&keys, &set_near(&keys, &ends, false, elements.dtype()), ws);
        }
    }

    #[test]
    fn foreign_heads_are_refused(mut head in proptest::collection::vec(any::<u8>(), 0..200), body_len: u64, version in 0..4_u8) {
        if let (1.., Some(first)) = (version, head.first_mut()) {
            *first = version;
        }
        for dtype in [DType::I8, DType::U64, DType::F32, DType::F64, DType::Bool, DType::F16, DType::Str] {
            if let Err(e) = RegionBitmap::parse(&head, body_len, dtype) {
                prop_assert_eq!(e.kind(), ErrorKind::CorruptIndex);
            }
        }
    }

    #[test]
    fn changed_heads_do_not_panic(bits in some_bits(), at: usize, to: u8, cut: usize, ends in picks(8)) {
        let ws = &mut Workspace::default();
        every_type(&bits, &mut |elements| {
            let mut index = Index::new(elements, &KeySet::EMPTY, 2, ws);
            let keys = keys(elements);
            let set = set_near(&keys, &ends, true, elements.dtype());
            let body_len = index.body.len() as u64;
            assert!(RegionBitmap::parse(&index.head, body_len + 1, elements.dtype()).is_err());
            assert!(RegionBitmap::parse(&index.head[..cut % index.head.len()], body_len, elements.dtype()).is_err());
            let at = at % index.head.len();
            index.head[at] = to;
            // A head is verified by its keeper; here it only must do no harm.
            if let Ok(parsed) = RegionBitmap::parse(&index.head, body_len, elements.dtype()) {
                index.parsed = parsed;
                let _ = index.evaluate(&set, ws).map_err(|e| assert_ne!(e.kind(), ErrorKind::Internal));
            }
        });
    }
}

/// Keys below, at most, above and at least a number, as real number and (floats) rounded to the type.
fn conditions(dtype: DType, number: &str) -> Vec<KeySet> {
    let (least, greatest) = sieva_types::keys::key_range(dtype);
    let wide: f64 = number.parse().unwrap();
    // Ends of "below" and starts of "above".
    let (below, above) = match dtype {
        DType::F32 => {
            let near = wide as f32;
            let (low, high) = if near == 0.0 { (-1, 0) } else { (f32_key(near), f32_key(near)) };
            // All comparisons with the double, which no float32 but the nearest can be next to.
            match f64::from(near).total_cmp(&wide) {
                _ if near == 0.0 && wide == 0.0 => (low - 1, high + 1),
                std::cmp::Ordering::Less => (high, high + 1),
                std::cmp::Ordering::Greater => (low - 1, low),
                std::cmp::Ordering::Equal => (low - 1, high + 1),
            }
        }
        DType::F64 if wide == 0.0 => (-2, 1),
        DType::F64 => (f64_key(wide) - 1, f64_key(wide) + 1),
        _ if wide.abs() >= 1e30 => {
            if wide > 0.0 {
                (greatest, greatest + 1)
            } else {
                (least - 1, least)
            }
        }
        // Up to here the digits are exact in 128 bits; fractions lie between two integers.
        _ => {
            let (mantissa, exponent) = number.split_once('e').unwrap();
            let (mantissa, exponent): (i128, i32) = (mantissa.parse().unwrap(), exponent.parse().unwrap());
            let power = 10_i128.checked_pow(exponent.unsigned_abs()).unwrap_or(i128::MAX);
            if exponent >= 0 {
                (mantissa * power - 1, mantissa * power + 1)
            } else {
                let floor = mantissa.div_euclid(power);
                if floor * power == mantissa { (floor - 1, floor + 1) } else { (floor, floor + 1) }
            }
        }
    };
    let clip = |low: i128, high: i128| KeySet::interval(low.max(least), high.min(greatest));
    vec![
        clip(least, below),
        clip(least, above - 1),
        clip(above, greatest),
        clip(below + 1, greatest),
        clip(below + 1, above - 1),
    ]
}

/// Values of a bell-like distribution with a far tail, without a source of randomness.
fn gamma(n: u64) -> Vec<f32> {
    let uniform =
        |i: u64| ((i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (0..n).map(|i| (-(uniform(3 * i) * uniform(5 * i + 1)).ln() * 0.2) as f32).collect()
}

#[test]
fn large_regions_in_many_blocks() {
    let values = gamma(100_000);
    let ws = &mut Workspace::default();
    let index = Index::new(Elements::F32(&values), &KeySet { nan: true, ..KeySet::EMPTY }, 2, ws);
    let keys = keys(Elements::F32(&values));
    index.is_tight(&keys, &KeySet::EMPTY);
    let above = |v: f32| KeySet::interval(f32_key(v) + 1, f32_key(f32::INFINITY));
    for v in [0.01, 0.1, 0.35, 1.3, 2.0] {
        assert!(index.agrees(&keys, &above(v), ws).is_empty());
    }
    let check = index.agrees(&keys, &above(0.3517), ws);
    assert!(!check.is_empty() && check.len() < 5000);
    // The upper tail reads a small part, as one piece or little more.
    assert!(index.parsed.cost(&above(1.3)) < index.body.len() as u64 / 2);
    assert!(index.head.len() < 12 * index.parsed.bins().len() + 400);
}

#[test]
fn rare_bins_are_read_alone() {
    let values = gamma(200_000);
    let ws = &mut Workspace::default();
    let index = Index::new(Elements::F32(&values), &KeySet { nan: true, ..KeySet::EMPTY }, 2, ws);
    assert_eq!(index.head[0], 3);
    let keys = keys(Elements::F32(&values));
    let between = |low: f32, high: f32| KeySet::interval(f32_key(low) + 1, f32_key(high) - 1);
    let listed = |set: &KeySet| index.parsed.cover(set).inside * 2 + 200;
    for (low, high) in [(2.0, f32::INFINITY), (2.1, 2.2), (2.3, 2.5), (2.5, 2.6)] {
        let (inside, beside) = (between(low, high), between(low, high));
        assert!(index.agrees(&keys, &inside, ws).is_empty());
        assert!(index.parsed.cost(&inside) <= listed(&inside), "{low} to {high}");
        // All but these rows: the same lists tell.
        let all =
            KeySet { nan: true, ..KeySet::interval(f32_key(f32::NEG_INFINITY), f32_key(f32::INFINITY)) };
        let others = all.difference(&beside);
        assert!(index.agrees(&keys, &others, ws).is_empty());
        assert_eq!(index.parsed.cost(&others), index.parsed.cost(&inside));
        // Bins of the tree and listed ones together, and listed ones that are cut.
        assert!(index.agrees(&keys, &between(0.35, high.min(2.2)), ws).is_empty());
        index.agrees(&keys, &between(low + 0.033, high), ws);
        index.agrees(&keys, &between(0.1234, low + 0.05), ws);
    }
    // What they cost: an index without them is hardly smaller.
    let leaves = &ws.binning.leaves;
    let tree = tree::Tree::new(leaves.iter().map(|leaf| leaf.1.count));
    ws.stage.fill(&tree, &ws.binning, &merged::Merged::new(leaves.len(), Vec::new()));
    let without: usize = tree.blocks.iter().map(|block| ws.stage.block(block).len()).sum();
    assert!(index.body.len() <= without + without / 20, "{} of {without}", index.body.len());
}

/// An index of version 2, whose lists are of gaps, as one of version 3 would be.
fn of_gaps(index: &Index, keys: &[Option<i128>]) -> Index {
    let tree = &index.parsed.blocks[..index.parsed.tree.blocks.len()];
    let mut body = index.body[..tree.last().map_or(0, |block| block.end as usize)].to_vec();
    let entries: usize = index.parsed.blocks.iter().map(|block| entry(block.end - block.start).len()).sum();
    let mut head = index.head[..index.head.len() - entries].to_vec();
    head[0] = 2;
    tree.iter()
        .for_each(|block| head::put_block(&index.body[block.start as usize..block.end as usize], &mut head));
    for leaf in index.parsed.merged.listed() {
        let bin = index.parsed.bins[leaf - usize::from(index.parsed.nan > 0)];
        let is_in = |key: &Option<i128>| key.is_some_and(|k| bin.low <= k && k <= bin.high);
        let places: Vec<u32> = (0..keys.len()).filter(|&i| is_in(&keys[i])).map(|i| i as u32).collect();
        let mut list = Vec::new();
        gaps::tests::put(&places, keys.len() as u64, &mut list);
        head::put_block(&list, &mut head);
        body.extend(list);
    }
    let parsed = RegionBitmap::parse(&head, body.len() as u64, DType::F32).unwrap();
    Index { head, body, parsed, rows: index.rows }
}

/// The entry of a block of so many bytes.
fn entry(length: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint::put(length, &mut out);
    out.extend([0; 4]);
    out
}

#[test]
fn lists_of_gaps_are_read() {
    let values = gamma(100_000);
    let ws = &mut Workspace::default();
    let index = Index::new(Elements::F32(&values), &KeySet { nan: true, ..KeySet::EMPTY }, 2, ws);
    let keys = keys(Elements::F32(&values));
    let older = of_gaps(&index, &keys);
    for (low, high) in [(2.0, 99.0), (2.1, 2.2), (1.333, 2.6), (0.0, 1.2), (0.1, 2.5)] {
        let set = KeySet::interval(f32_key(low) + 1, f32_key(high) - 1);
        older.agrees(&keys, &set, ws);
        assert_eq!(older.evaluate(&set, ws).unwrap(), index.evaluate(&set, ws).unwrap());
    }
}

/// Twelve rows of 0, but 7 at row 4 and 9 at row 9, of which those are listed: as versions 1, 2 and 3 have it.
#[test]
fn bytes_of_all_versions_are_read() {
    let bins = [0x0c, 0, 0, 3, 0, 0, 9, 6, 0, 0, 1, 0, 0];
    let (root, groups) = ([0x10, 0x02], [1, 1, 1]);
    // Where the root's row is the 7, its right child has a 0.
    let plain: (&[u8], Vec<&[u8]>) = (&[], vec![&[0x10, 0x02, 0x02]]);
    let gaps: (&[u8], Vec<&[u8]>) = (&groups, vec![&root, &[2, 0x02], &[3, 0x06]]);
    let steps: (&[u8], Vec<&[u8]>) = (&groups, vec![&root, &[2, 0x00, 0x02], &[2, 0x01, 0x04]]);
    for (version, (groups, blocks)) in [(1, plain), (2, gaps), (3, steps)] {
        let mut head = [&[version], &bins[..], groups].concat();
        blocks.iter().for_each(|block| head::put_block(block, &mut head));
        let body = blocks.concat();
        let parsed = RegionBitmap::parse(&head, body.len() as u64, DType::U8).unwrap();
        let index = Index { head, body, parsed, rows: 12 };
        let mut values = [0_u8; 12];
        (values[4], values[9]) = (7, 9);
        let keys = keys(Elements::U8(&values));
        for set in [(7, 7), (9, 9), (7, 9), (0, 7), (0, 0), (5, 8), (0, 9)] {
            let set = KeySet::interval(set.0, set.1);
            assert!(index.agrees(&keys, &set, &mut Workspace::default()).is_empty(), "{version}: {set:?}");
        }
        if version == 3 {
            let list = |place: u32| {
                let mut out = Vec::new();
                lists::put(&[place], 12, &mut out);
                out
            };
            assert_eq!([list(4), list(9)], [blocks[1], blocks[2]]);
        }
    }
}

#[test]
fn a_row_in_two_lists_is_noticed() {
    let values = gamma(200_000);
    let ws = &mut Workspace::default();
    let mut index = Index::new(Elements::F32(&values), &KeySet { nan: true, ..KeySet::EMPTY }, 2, ws);
    let region = &mut index.parsed;
    let leaves: Vec<usize> = region.merged.listed().collect();
    let first = region.tree.blocks.len();
    // Two bins of as many rows, of which one gets the other's list and its checksum.
    let (a, b) = (0..leaves.len())
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .find(|&(a, b)| region.leaf_rows(leaves[a]) == region.leaf_rows(leaves[b]))
        .unwrap();
    region.blocks[first + a] = region.blocks[first + b];
    let bin = |leaf: usize| {
        let bin = region.bins[leaf - usize::from(region.nan > 0)];
        KeySet::interval(bin.low, bin.high)
    };
    let both = bin(leaves[a]).union(&bin(leaves[b]));
    let e = index.evaluate(&both, ws).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::CorruptIndex, "bitmap index: a row is in two bins"));
}

#[test]
fn damaged_bodies_are_noticed() {
    let values = gamma(40_000);
    let ws = &mut Workspace::default();
    let mut index = Index::new(Elements::F32(&values), &KeySet::EMPTY, 2, ws);
    let sets = [0.05, 0.31, 1.2].map(|v| KeySet::interval(f32_key(v), f32_key(f32::INFINITY)));
    let want = sets.each_ref().map(|set| index.evaluate(set, ws).unwrap());
    let mut noticed = 0;
    for at in (0..index.body.len()).step_by(61) {
        index.body[at] ^= 1 << (at % 8);
        for (set, want) in sets.iter().zip(&want) {
            match index.evaluate(set, ws) {
                Ok(rows) => assert_eq!(&rows, want),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::CorruptIndex);
                    noticed += 1;
                }
            }
        }
        index.body[at] ^= 1 << (at % 8);
    }
    assert!(noticed > 100);
    let mut short = |_: Range<u64>, _: &mut Vec<u8>| Ok(());
    let (mut sure, mut check) = (vec![0; 625], vec![0; 625]);
    let e = index.parsed.evaluate(&sets[0], &mut short, ws, &mut sure, &mut check).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptIndex);
    let e = index.parsed.evaluate(&sets[0], &mut short, ws, &mut sure[..3], &mut check).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidValue);
}

#[test]
fn bins_are_bounded_in_number() {
    let values: Vec<f64> =
        (0..50_000_u64).map(|i| f64::from_bits(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let keys = keys(Elements::F64(&values));
    let ws = &mut Workspace::default();
    let missing = KeySet::interval(f64_key(-3.0), f64_key(1e-3));
    let index = Index::new(Elements::F64(&values), &missing, 3, ws);
    index.is_tight(&keys, &missing);
    assert!((1000..=4097).contains(&index.parsed.bins().len()));
    assert!(index.agrees(&keys, &missing, ws).is_empty());
    index.agrees(&keys, &KeySet::interval(f64_key(1.0), f64_key(2e100)), ws);
}

#[test]
fn more_missing_intervals_than_bins() {
    let values: Vec<u32> = (0..30_000).map(|i: u32| i.wrapping_mul(2_654_435_769)).collect();
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let ranges = sorted.chunks_exact(3).map(|c| (i128::from(c[0]), i128::from(c[0]))).collect();
    let missing = KeySet { ranges, nan: false };
    let ws = &mut Workspace::default();
    let index = Index::new(Elements::U32(&values), &missing, 2, ws);
    assert!(index.parsed.bins().len() <= 8192);
    index.agrees(&keys(Elements::U32(&values)), &missing, ws);
}

#[test]
fn narrow_ranges_get_more_digits() {
    let ws = &mut Workspace::default();
    let values: Vec<f32> = (0..5000).map(|i| 300.0 + (i * 7919 % 5000) as f32 * 0.0036).collect();
    let index = Index::new(Elements::F32(&values), &KeySet::EMPTY, 2, ws);
    let bins = index.parsed.bins().len();
    assert!((16..60).contains(&bins), "{bins}");
    let set = KeySet::interval(f32_key(305.0), f32_key(311.0));
    assert!(index.agrees(&keys(Elements::F32(&values)), &set, ws).is_empty());
    // A few outliers make no bins where there is nothing, nor cost the others theirs.
    let values = [&values[..], &[1e30, -1e30]].concat();
    let index = Index::new(Elements::F32(&values), &KeySet::EMPTY, 2, ws);
    assert_eq!(index.parsed.bins().len(), bins + 2);
}

#[test]
fn the_least_numbers_beside_many_kinds_of_nan() {
    // Too many distinct bits for a bin each, and between the two numbers decimals without end.
    let mut values: Vec<f64> = (0..300).map(|payload| f64::from_bits(f64::NAN.to_bits() | payload)).collect();
    values.extend([5e-324, -5e-324, 5e-324]);
    let index = Index::new(Elements::F64(&values), &KeySet::EMPTY, 2, &mut Workspace::default());
    let tiny = KeySet::interval(f64_key(5e-324), f64_key(1.0));
    assert_eq!(index.evaluate(&tiny, &mut Workspace::default()).unwrap(), (vec![300, 302], vec![]));
}
