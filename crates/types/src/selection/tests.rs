//! Selections against two plain models: a vector of booleans, and a list of intervals for huge row spaces.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

/// A little more than three blocks, no multiple of 64.
const ROWS: u64 = 3 * 65_536 + 1_037;

/// Three whole buckets and some of a fourth.
const HUGE: u64 = (3 << 32) + 70_001;

fn names(n: usize) -> Vec<String> {
    ["t", "z", "y", "x"][4 - n..].iter().map(|s| s.to_string()).collect()
}

fn of(shape: &[u64], positions: impl IntoIterator<Item = u64>) -> Selection {
    Selection::from_positions(names(shape.len()), shape.to_vec(), positions).unwrap()
}

fn of_runs(rows: u64, runs: &[(u64, u64)]) -> Selection {
    let mut b = SelectionBuilder::new(names(1), vec![rows]).unwrap();
    for &(start, len) in runs {
        b.push_run(start, len).unwrap();
    }
    b.finish()
}

fn words_of(bits: &[bool]) -> Vec<u64> {
    bits.chunks(64).map(|c| c.iter().enumerate().map(|(i, &b)| u64::from(b) << i).sum()).collect()
}

fn positions_of(bits: &[bool]) -> Vec<u64> {
    (0..).zip(bits).filter(|(_, b)| **b).map(|(i, _)| i).collect()
}

/// Stretches of all, none and random bits of several densities, as they come from data.
fn any_bits() -> impl Strategy<Value = Vec<bool>> {
    let stretch = (0..6u8, 1..40_000usize, any::<u64>());
    prop::collection::vec(stretch, 1..12).prop_map(|stretches| {
        let mut bits = Vec::new();
        for (kind, len, seed) in stretches {
            let mut state = seed | 1;
            bits.extend((0..len).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % 1000 < [0, 1, 30, 500, 990, 1000][kind as usize]
            }));
        }
        bits.resize(ROWS as usize, false);
        bits
    })
}

fn from_bits(bits: &[bool]) -> Selection {
    let mut b = SelectionBuilder::new(names(1), vec![ROWS]).unwrap();
    b.push_bits(0, &words_of(bits), bits.len() as u64).unwrap();
    b.finish()
}

/// Runs whose ends lie about the borders of words, blocks and buckets, or anywhere.
fn any_runs() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let near =
        |unit: u64| (0..=HUGE / unit, -70..70i64).prop_map(move |(k, d)| (k * unit).saturating_add_signed(d));
    let end =
        prop_oneof![near(1 << 32), near(1 << 32).prop_map(|p| p / 65_536 * 65_536), near(1 << 16), 0..=HUGE];
    let run = (end.clone(), end, prop::option::of(1..200u64)).prop_map(|(a, b, short)| {
        let (a, b) = (a.min(b).min(HUGE), a.max(b).min(HUGE));
        (a, short.map_or(b - a, |n| n.min(HUGE - a)))
    });
    prop::collection::vec(run, 0..8)
}

/// The maximal runs of the positions for which `f` of being in `a` and in `b` holds.
fn model(a: &[(u64, u64)], b: &[(u64, u64)], f: fn(bool, bool) -> bool) -> Vec<(u64, u64)> {
    let mut cuts: Vec<u64> = a.iter().chain(b).flat_map(|&(s, n)| [s, s + n]).chain([0, HUGE]).collect();
    cuts.sort_unstable();
    let is_in = |runs: &[(u64, u64)], p: u64| runs.iter().any(|&(s, n)| s <= p && p < s + n);
    let mut out: Vec<(u64, u64)> = Vec::new();
    for w in cuts.windows(2).filter(|w| w[0] < w[1] && f(is_in(a, w[0]), is_in(b, w[0]))) {
        match out.last_mut() {
            Some((s, n)) if *s + *n == w[0] => *n += w[1] - w[0],
            _ => out.push((w[0], w[1] - w[0])),
        }
    }
    out
}

fn runs(s: &Selection) -> Vec<(u64, u64)> {
    s.runs().collect()
}

fn saved(s: &Selection) -> Vec<u8> {
    let mut bytes = Vec::new();
    s.write_to(&mut bytes).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn algebra_of_bits(a in any_bits(), b in any_bits()) {
        let (x, y) = (from_bits(&a), from_bits(&b));
        let expect = |f: fn(bool, bool) -> bool| {
            positions_of(&a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect::<Vec<_>>())
        };
        let got = |s: Result<Selection>| s.unwrap().iter().collect::<Vec<_>>();
        prop_assert_eq!(got(x.intersection(&y)), expect(|a, b| a & b));
        prop_assert_eq!(got(x.union(&y)), expect(|a, b| a | b));
        prop_assert_eq!(got(x.difference(&y)), expect(|a, b| a & !b));
        prop_assert_eq!(got(x.symmetric_difference(&y)), expect(|a, b| a ^ b));
        prop_assert_eq!(got(Ok(x.complement())), expect(|a, _| !a));
    }

    #[test]
    fn algebra_of_huge_runs(a in any_runs(), b in any_runs()) {
        let (x, y) = (of_runs(HUGE, &a), of_runs(HUGE, &b));
        prop_assert_eq!(runs(&x), model(&a, &[], |a, _| a));
        prop_assert_eq!(runs(&x.intersection(&y).unwrap()), model(&a, &b, |a, b| a & b));
        prop_assert_eq!(runs(&x.union(&y).unwrap()), model(&a, &b, |a, b| a | b));
        prop_assert_eq!(runs(&x.difference(&y).unwrap()), model(&a, &b, |a, b| a & !b));
        prop_assert_eq!(runs(&x.symmetric_difference(&y).unwrap()), model(&a, &b, |a, b| a ^ b));
        prop_assert_eq!(runs(&x.complement()), model(&a, &[], |a, _| !a));
        // Equal sets are equal, however they came to be.
        prop_assert_eq!(&x.complement().complement(), &x);
        let morgan = x.complement().union(&y.complement()).unwrap().complement();
        prop_assert_eq!(&morgan, &x.intersection(&y).unwrap());
        prop_assert_eq!(&x.difference(&y).unwrap().union(&x.intersection(&y).unwrap()).unwrap(), &x);
        prop_assert_eq!(Selection::read_from(&mut &saved(&x)[..]).unwrap(), x);
    }

    #[test]
    fn huge_ranks(a in any_runs(), offset in any::<u64>(), count in any::<u64>(), size in 1..5000usize) {
        let x = of_runs(HUGE, &a);
        let expected = model(&a, &[], |a, _| a);
        prop_assert_eq!(x.len(), expected.iter().map(|r| r.1).sum::<u64>());
        let (offset, count) = (offset % (x.len() + 2), count % (x.len() + 2));
        // The runs, cut at the ranks.
        let (mut rank, mut cut) = (0, Vec::new());
        for (start, n) in expected {
            let (from, to) = (offset.clamp(rank, rank + n), (offset + count).clamp(rank, rank + n));
            if from < to {
                cut.push((start + from - rank, to - from));
            }
            rank += n;
        }
        let slice = x.slice(offset, count);
        prop_assert_eq!(runs(&slice), cut.clone());
        prop_assert_eq!(x.select(offset), x.slice(offset, 1).iter().next());
        for p in [offset, x.select(offset).unwrap_or(HUGE), x.select(offset).unwrap_or(0) + 1, HUGE] {
            let below: u64 = runs(&x).iter().map(|&(start, n)| p.clamp(start, start + n) - start).sum();
            prop_assert_eq!(x.rank(p), below, "{}", p);
        }
        let head: Vec<u64> = cut.iter().flat_map(|&(s, n)| s..s + n).take(size).collect();
        prop_assert_eq!(x.iter_from(offset).take(head.len()).collect::<Vec<_>>(), head.clone());
        prop_assert_eq!(slice.batches(size).next().unwrap_or_default(), head.clone());
        for p in head {
            prop_assert!(x.contains(p));
        }
    }

    #[test]
    fn every_way_through(bits in any_bits(), size in 1..30_000usize, offset in 0..ROWS, count in 0..ROWS) {
        let x = from_bits(&bits);
        let expected = positions_of(&bits);
        prop_assert_eq!(x.len(), expected.len() as u64);
        prop_assert_eq!(x.mask().unwrap(), bits.iter().map(|&b| u8::from(b)).collect::<Vec<_>>());
        let batches: Vec<_> = x.batches(size).collect();
        prop_assert!(batches.iter().rev().skip(1).all(|b| b.len() == size));
        prop_assert_eq!(batches.concat(), expected.clone());
        prop_assert_eq!(x.runs().flat_map(|(s, n)| s..s + n).collect::<Vec<_>>(), expected.clone());
        let rest = expected.get(offset as usize..).unwrap_or(&[]);
        prop_assert_eq!(x.select(offset), rest.first().copied());
        prop_assert_eq!(x.iter_from(offset).collect::<Vec<_>>(), rest);
        prop_assert_eq!(x.iter_from(offset).size_hint().0, rest.len());
        let slice = &rest[..rest.len().min(count as usize)];
        prop_assert_eq!(x.slice(offset, count).iter().collect::<Vec<_>>(), slice);
        prop_assert_eq!(Selection::read_from(&mut &saved(&x)[..]).unwrap(), x);
    }

    #[test]
    fn blocks_of_bits_at_any_place_and_in_any_order(
        blocks in prop::collection::vec((prop_oneof![0..ROWS, (0..3u64).prop_map(|b| b << 16)], any::<u64>(), prop_oneof![0..9000u64, Just(1 << 16)], 0..4u8), 1..12),
    ) {
        let mut b = SelectionBuilder::new(names(1), vec![ROWS]).unwrap();
        let mut bits = vec![false; ROWS as usize];
        for (base, seed, len, kind) in blocks {
            let len = len.min(ROWS - base);
            // Garbage beyond the end must not count.
            let words: Vec<u64> = (0..len.div_ceil(64) + 1)
                .map(|i| [0, u64::MAX, seed.rotate_left(i as u32).wrapping_mul(i | 1), 1 << (seed.rotate_right(i as u32) % 64)][kind as usize])
                .collect();
            let block = PositionBlock::new(base, &words[..len as usize / 64]).filter(|_| len % 64 == 0);
            match block {
                Some(block) => b.push_block(block).unwrap(),
                None => b.push_bits(base, &words, len).unwrap(),
            }
            for i in 0..len {
                bits[(base + i) as usize] |= words[i as usize / 64] >> (i % 64) & 1 == 1;
            }
        }
        prop_assert_eq!(b.finish(), of(&[ROWS], positions_of(&bits)));
    }

    #[test]
    fn coordinates(
        shape in prop::collection::vec(1..9u64, 1..5),
        bits in prop::collection::vec(any::<bool>(), 4096),
        run in any::<bool>(),
    ) {
        let n: u64 = shape.iter().product();
        let all: Vec<u64> = (0..n).filter(|&p| bits[p as usize % 4096 / if run { 50 } else { 1 }]).collect();
        let mut expected = Vec::new();
        for &p in &all {
            for d in 0..shape.len() {
                expected.push((p / shape[d + 1..].iter().product::<u64>() % shape[d]) as i64);
            }
        }
        let x = of(&shape, all.clone());
        prop_assert_eq!(&x.coords().unwrap(), &expected);
        prop_assert_eq!(&unravel(&all, &shape), &expected);
        let mut backwards = unravel(&all.iter().rev().copied().collect::<Vec<_>>(), &shape);
        backwards = backwards.chunks(shape.len()).rev().flatten().copied().collect();
        prop_assert_eq!(&backwards, &expected);
        let column = |d: usize| expected.iter().skip(d).step_by(shape.len()).map(|&c| c as u64);
        let expected_box = (!all.is_empty()).then(|| {
            let start: Vec<u64> = (0..shape.len()).map(|d| column(d).min().unwrap()).collect();
            let extent = (0..shape.len()).map(|d| column(d).max().unwrap() - start[d] + 1).collect();
            Bx::new(start, extent)
        });
        prop_assert_eq!(x.bounding_box(), expected_box);
    }

    #[test]
    fn every_damage_is_found(bits in any_bits(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let good = saved(&from_bits(&bits));
        let mut bytes = good.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let error = Selection::read_from(&mut &bytes[..]).unwrap_err();
        // A later version cannot be told from a damaged number.
        let kind = if (8..12).contains(&at) && bytes[8..12] != [0; 4] { ErrorKind::Unsupported } else { ErrorKind::CorruptFile };
        prop_assert_eq!(error.kind(), kind, "{}", error);
        prop_assert_eq!(Selection::read_from(&mut &good[..at]).unwrap_err().kind(), ErrorKind::CorruptFile);
    }

    /// With a checksum that fits, hostile bytes are either an error or a selection that keeps its promises.
    #[test]
    fn hostile_bytes(
        a in any_runs(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = saved(&of_runs(HUGE, &a));
        let n = bytes.len() - 4;
        for (at, value) in changes {
            // The numbers at the head of things lead further astray than the rest.
            let at = at.index(n);
            bytes[if value % 2 == 0 { at % 160 % n } else { at }] = value;
        }
        let crc = crc32fast::hash(&bytes[..n]);
        bytes[n..].copy_from_slice(&crc.to_le_bytes());
        if let Ok(x) = Selection::read_from(&mut &bytes[..]) {
            prop_assert_eq!(x.runs().map(|r| r.1).sum::<u64>(), x.len());
            prop_assert!(x.runs().all(|(s, len)| s + len <= x.n_rows()));
            prop_assert_eq!(x.complement().len(), x.n_rows() - x.len());
        }
    }
}

#[test]
fn everything_costs_nothing() {
    let shape = vec![1_000_000, 1_000_000];
    let all = Selection::all(names(2), shape.clone()).unwrap();
    assert_eq!(all.len(), 1_000_000_000_000);
    assert!(all.memory_bytes() < 100);
    assert_eq!(runs(&all), [(0, 1_000_000_000_000)]);
    assert_eq!(all.select(999_999_999_999), Some(999_999_999_999));
    assert_eq!(all.bounding_box(), Some(Bx::whole(&shape)));
    assert_eq!(all.complement(), Selection::empty(names(2), shape).unwrap());
    assert_eq!(all.slice(10, 3).coords().unwrap(), [0, 10, 0, 11, 0, 12]);
    let most = Selection::all(names(1), vec![i64::MAX as u64]).unwrap();
    assert_eq!(
        most.iter_from(i64::MAX as u64 - 2).collect::<Vec<_>>(),
        [i64::MAX as u64 - 2, i64::MAX as u64 - 1]
    );
    assert_eq!(Selection::read_from(&mut &saved(&most)[..]).unwrap(), most);
}

#[test]
fn no_rows_and_no_dimensions() {
    let none = Selection::all(names(2), vec![0, 7]).unwrap();
    assert!(none.is_empty());
    assert_eq!((none.bounding_box(), none.iter().next(), none.mask().unwrap().len()), (None, None, 0));
    assert_eq!(none.complement(), none);
    assert_eq!(unravel(&[], &[0, 7]), [0i64; 0]);
    let scalar = Selection::all(vec![], vec![]).unwrap();
    assert_eq!((scalar.len(), scalar.coords().unwrap().len(), scalar.mask().unwrap()), (1, 0, vec![1]));
    assert_eq!(scalar.bounding_box(), Some(Bx::whole(&[])));
    for s in [none, scalar] {
        assert_eq!(Selection::read_from(&mut &saved(&s)[..]).unwrap(), s);
    }
}

#[test]
fn other_row_spaces_are_refused_with_both_shown() {
    let a = of(&[2, 3], [1]);
    let b = of(&[3, 2], [1]);
    let e = a.union(&b).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DimensionMismatch);
    assert_eq!(e.message(), "selections over (y: 2, x: 3) and over (y: 3, x: 2) do not share one row space");
    let e = Selection::empty(names(2), vec![3]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DimensionMismatch);
    let e = Selection::all(names(2), vec![1 << 40, 1 << 40]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Overflow);
}

#[test]
fn positions_outside_of_the_row_space_are_refused() {
    let mut b = SelectionBuilder::new(names(1), vec![100]).unwrap();
    assert_eq!(b.push_run(90, 11).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(b.push_run(u64::MAX, 2).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(b.push_bits(64, &[0], 37).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(b.push_bits(0, &[0], 65).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(b.push_positions([100]).unwrap_err().kind(), ErrorKind::InvalidValue);
    b.push_bits(64, &[u64::MAX], 36).unwrap();
    assert_eq!(runs(&b.finish()), [(64, 36)]);
    assert!(!of(&[100], [5]).contains(100));
}

#[test]
fn memory_of_the_caller_must_fit() {
    let x = of(&[2, 3], [0, 5]);
    let mut mask = [7; 6];
    x.fill_mask(&mut mask).unwrap();
    assert_eq!(mask, [1, 0, 0, 0, 0, 1]);
    assert_eq!(x.fill_mask(&mut [0; 5]).unwrap_err().kind(), ErrorKind::InvalidValue);
    let mut coords = [9; 4];
    x.fill_coords(&mut coords).unwrap();
    assert_eq!(coords, [0, 0, 1, 2]);
    assert_eq!(x.fill_coords(&mut [0; 3]).unwrap_err().kind(), ErrorKind::InvalidValue);
    let huge = Selection::all(names(1), vec![1 << 62]).unwrap();
    assert_eq!(huge.coords().unwrap_err().kind(), ErrorKind::MemoryLimit);
    assert_eq!(huge.mask().unwrap_err().kind(), ErrorKind::MemoryLimit);
}

#[test]
fn reading_stops_at_the_end_of_the_selection() {
    let x = of(&[70_000, 3], [0, 5, 65_536, 200_000]);
    let mut bytes = saved(&x);
    bytes.extend(saved(&x.complement()));
    let mut input = &bytes[..];
    assert_eq!(Selection::read_from(&mut input).unwrap(), x);
    assert_eq!(Selection::read_from(&mut input).unwrap(), x.complement());
    assert!(input.is_empty());
}

#[test]
fn trouble_of_the_input_is_not_damage() {
    struct Broken<'a>(&'a [u8]);
    impl std::io::Read for Broken<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match std::io::Read::read(&mut self.0, buf)? {
                0 => Err(std::io::ErrorKind::PermissionDenied.into()),
                n => Ok(n),
            }
        }
    }
    let bytes = saved(&of(&[100_000], (0..90_000).step_by(3)));
    for n in [0, 10, 25, 60, bytes.len() / 2, bytes.len() - 1] {
        let e = Selection::read_from(&mut Broken(&bytes[..n])).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{n}: {e}");
    }
}

#[test]
fn a_builder_keeps_runs_as_runs() {
    let rows = 40 << 16;
    let mut b = SelectionBuilder::new(names(1), vec![rows]).unwrap();
    for base in (0..rows).step_by(1 << 16) {
        b.push_bits(base, &[u64::MAX; 1000], 64_000).unwrap();
    }
    let x = b.finish();
    assert_eq!((x.len(), x.runs().count()), (40 * 64_000, 40));
    assert!(x.memory_bytes() < 40 * 100, "{}", x.memory_bytes());
}

#[test]
fn whole_blocks_after_scattered_positions_are_kept() {
    let block = 1 << 16;
    let mut b = SelectionBuilder::new(names(1), vec![1 << 33]).unwrap();
    b.push_positions([3, 5, 9, block - 2]).unwrap();
    b.push_run(block, 2 * block).unwrap();
    b.push_positions([3 * block + 1, 3 * block + 7]).unwrap();
    b.push_run((1 << 32) - 3, 5).unwrap();
    let x = b.finish();
    let mut expected = vec![(3, 1), (5, 1), (9, 1), (block - 2, 1), (block, 2 * block)];
    expected.extend([(3 * block + 1, 1), (3 * block + 7, 1), ((1 << 32) - 3, 5)]);
    assert_eq!(runs(&x), expected);
    let positions: Vec<u64> = expected.iter().flat_map(|&(s, n)| s..s + n).collect();
    for size in [1, 2, 7, 1000, 1 << 20] {
        assert_eq!(x.batches(size).flatten().collect::<Vec<_>>(), positions, "{size}");
    }
    for rank in (0..positions.len()).step_by(997).chain(positions.len() - 6..positions.len()) {
        assert_eq!(x.iter_from(rank as u64).collect::<Vec<_>>(), positions[rank..], "{rank}");
    }
}

#[test]
fn coordinates_and_boxes_select_what_they_name() {
    let (dims, shape) = (["z", "y", "x"].map(String::from).to_vec(), vec![4, 5, 6]);
    let inside = |start: [u64; 3], count: [u64; 3]| {
        let mut all = Vec::new();
        for z in start[0]..start[0] + count[0] {
            for y in start[1]..start[1] + count[1] {
                all.extend((start[2]..start[2] + count[2]).map(|x| (z * 5 + y) * 6 + x));
            }
        }
        all
    };
    let boxes = [
        ([0, 0, 0], [4, 5, 6]),
        ([1, 2, 3], [2, 2, 2]),
        ([1, 0, 0], [2, 5, 6]),
        ([1, 1, 0], [3, 3, 6]),
        ([3, 4, 5], [1, 1, 1]),
        ([2, 5, 0], [1, 0, 6]),
        ([0, 0, 2], [4, 5, 1]),
    ];
    for (start, count) in boxes {
        let bx = Bx::new(start.to_vec(), count.to_vec());
        let found = Selection::from_boxes(dims.clone(), shape.clone(), &[bx], FREE).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), inside(start, count), "{start:?} {count:?}");
        let coords: Vec<u64> = found.coords().unwrap().into_iter().map(|c| c as u64).collect();
        assert!(Selection::from_coords(dims.clone(), shape.clone(), &coords).unwrap() == found);
        assert!(Selection::from_bytes(&found.to_bytes().unwrap()).unwrap() == found);
    }
    // Boxes that overlap and come in any order; coordinates backwards and twice.
    let two = [Bx::new(vec![2, 0, 0], vec![2, 5, 6]), Bx::new(vec![0, 1, 1], vec![3, 2, 2])];
    let found = Selection::from_boxes(dims.clone(), shape.clone(), &two, FREE).unwrap();
    let mut expected = [inside([2, 0, 0], [2, 5, 6]), inside([0, 1, 1], [3, 2, 2])].concat();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    let twice = Selection::from_coords(dims.clone(), shape.clone(), &[3, 4, 5, 0, 0, 1, 3, 4, 5]).unwrap();
    assert_eq!(twice.iter().collect::<Vec<_>>(), [1, 119]);
    // A whole dimension of 2^40 costs nothing.
    let large = Selection::from_boxes(
        vec!["n".into()],
        vec![1 << 40],
        &[Bx::new(vec![5], vec![(1 << 40) - 5])],
        FREE,
    );
    assert_eq!(large.unwrap().len(), (1 << 40) - 5);
    let kind = |r: Result<Selection>| r.map(|s| s.len()).unwrap_err().kind();
    let of_box = |start: Vec<u64>, count: Vec<u64>| {
        let bx = Bx { start, shape: count };
        kind(Selection::from_boxes(dims.clone(), shape.clone(), &[bx], FREE))
    };
    assert_eq!(of_box(vec![0, 0], vec![1, 1]), ErrorKind::DimensionMismatch);
    assert_eq!(of_box(vec![0, 0, 6], vec![1, 1, 1]), ErrorKind::InvalidValue);
    assert_eq!(of_box(vec![0, u64::MAX, 0], vec![1, 2, 1]), ErrorKind::InvalidValue);
    let of_coords = |c: &[u64]| kind(Selection::from_coords(dims.clone(), shape.clone(), c));
    assert_eq!(of_coords(&[4, 0, 0]), ErrorKind::InvalidValue);
    assert_eq!(of_coords(&[1, 0]), ErrorKind::InvalidValue);
    let mut more = twice.to_bytes().unwrap();
    more.push(0);
    assert_eq!(kind(Selection::from_bytes(&more)), ErrorKind::CorruptFile);
}

/// No limit, and nobody who stops it.
static NEVER: AtomicBool = AtomicBool::new(false);
const FREE: (u64, &AtomicBool) = (u64::MAX, &NEVER);

#[test]
fn boxes_of_many_runs_end_at_the_limit_and_when_cancelled() {
    let (dims, shape) = (vec!["y".to_string(), "x".to_string()], vec![1 << 30, 1 << 30]);
    let tall = [Bx::new(vec![0, 0], vec![1 << 26, 1])];
    let of = |memory: u64, cancel: bool| {
        let within = (memory, &AtomicBool::new(cancel));
        Selection::from_boxes(dims.clone(), shape.clone(), &tall, within).unwrap_err().kind()
    };
    assert_eq!(of(1 << 20, false), ErrorKind::MemoryLimit);
    assert_eq!(of(u64::MAX, true), ErrorKind::Cancelled);
}

#[test]
fn positions_that_no_memory_holds_are_refused() {
    let one = Selection::from_positions(vec!["x".into()], vec![1 << 62], [1_u64]).unwrap();
    assert_eq!(one.positions().unwrap(), [1]);
    assert_eq!(one.complement().positions().unwrap_err().kind(), ErrorKind::MemoryLimit);
}
