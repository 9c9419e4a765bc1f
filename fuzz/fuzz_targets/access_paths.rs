//! One array, one condition: statistics, bitmap and sorted replica answer as a scan does.
#![no_main]

use std::ops::Range;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sieva_fuzz::{Data, Rows, SetRecipe, ValuesRecipe, bits};
use sieva_index::bitmap::{RegionBitmap, Workspace, build};
use sieva_index::members;
use sieva_index::sorted::SortedReplica;
use sieva_index::stats::{RegionStats, Verdict};
use sieva_types::{Buffer, KeySet};

#[derive(Arbitrary, Debug)]
struct Input {
    values: ValuesRecipe,
    missing: SetRecipe,
    sets: [SetRecipe; 3],
    precision: u8,
    region: u16,
    /// Building a replica takes longer than all else: one in four inputs does.
    sorted: u8,
}

fuzz_target!(|input: Input| {
    let data = input.values.make();
    let (dtype, keys) = (data.dtype(), data.keys());
    let missing = input.missing.missing(dtype, &keys);
    let mut sets: Vec<KeySet> = input.sets.iter().map(|set| set.condition(dtype, &keys)).collect();
    sets.push(missing.clone());
    let truths: Vec<Vec<u64>> = sets.iter().map(|set| members(data.all(), set)).collect();
    let questions: Vec<(&KeySet, &[u64])> = sets.iter().zip(truths.iter().map(Vec::as_slice)).collect();
    check_statistics(&data, &missing, usize::from(input.region) + 1, &questions);
    check_bitmap(&data, &missing, u32::from(input.precision) % 4, &questions);
    if input.sorted % 4 == 3 {
        check_sorted(&data, u64::from(input.region) + 1, 1 + usize::from(input.sorted / 4 % 3), &questions);
    }
});

/// Statistics of the regions, of those that are read back, and of all merged in any order.
fn check_statistics(data: &Data, missing: &KeySet, region: usize, questions: &[(&KeySet, &[u64])]) {
    let starts: Vec<usize> = (0..data.len()).step_by(region.max(data.len() / 50 + 1)).collect();
    let mut all: Vec<RegionStats> = Vec::new();
    for (i, &from) in starts.iter().enumerate() {
        let to = starts.get(i + 1).copied().unwrap_or(data.len());
        let part = data.part(from, to);
        let full = read_back(&RegionStats::full(part.all(), missing));
        let zone = read_back(&RegionStats::zone(part.all(), missing));
        for (set, _) in questions {
            let hits = bits::ones(&members(part.all(), set));
            check_bounds(&full, data, missing, set, hits);
            check_bounds(&zone, data, missing, set, hits);
        }
        all.push(full);
    }
    let Some(merged) = merge(all.iter()) else { return };
    assert_eq!(Some(&merged), merge(all.iter().rev()).as_ref());
    let merged = read_back(&merged);
    assert_eq!(merged.rows, data.len() as u64);
    for (set, truth) in questions {
        check_bounds(&merged, data, missing, set, bits::ones(truth));
    }
}

fn merge<'a>(all: impl Iterator<Item = &'a RegionStats>) -> Option<RegionStats> {
    all.cloned().reduce(|mut sum, one| {
        sum.merge(&one);
        sum
    })
}

fn read_back(stats: &RegionStats) -> RegionStats {
    let mut bytes = Vec::new();
    stats.encode(&mut bytes);
    let read = RegionStats::decode(&bytes).expect("statistics that were just made");
    assert_eq!(read, *stats);
    read
}

fn check_bounds(stats: &RegionStats, data: &Data, missing: &KeySet, set: &KeySet, hits: u64) {
    let (least, most) = stats.count_bounds(set, missing, data.dtype());
    assert!(least <= hits && hits <= most && most <= stats.rows, "{least} <= {hits} <= {most}: {set:?}");
    match stats.decide(set, missing) {
        Verdict::None => assert_eq!(hits, 0, "{set:?}"),
        Verdict::All => assert_eq!(hits, stats.rows, "{set:?}"),
        Verdict::Some => {}
    }
    if let Some(histogram) = &stats.histogram {
        let most = histogram.count_bounds(set, data.dtype()).1;
        assert!(most <= stats.present() && histogram.total() == stats.present());
    }
}

fn check_bitmap(data: &Data, missing: &KeySet, precision: u32, questions: &[(&KeySet, &[u64])]) {
    let (mut ws, mut head, mut body) = (Workspace::default(), Vec::new(), Vec::new());
    build(data.all(), missing, precision, &mut ws, &mut head, &mut body);
    let bitmap = RegionBitmap::parse(&head, body.len() as u64, data.dtype()).expect("a head just made");
    assert_eq!(bitmap.rows(), data.len() as u64);
    let words = bits::words(data.len());
    for (set, truth) in questions {
        let (mut sure, mut check) = (vec![0; words], vec![0; words]);
        let mut fetch = |range: Range<u64>, out: &mut Vec<u8>| {
            out.extend_from_slice(&body[range.start as usize..range.end as usize]);
            Ok(())
        };
        bitmap.evaluate(set, &mut fetch, &mut ws, &mut sure, &mut check).expect("a body just made");
        assert_eq!(bits::answer(&sure, &check, truth), *truth, "{set:?}");
        assert!(bits::disjoint(&sure, &check) && bits::ends(&check, data.len()));
        let cover = bitmap.cover(set);
        assert_eq!((cover.inside, cover.edge), (bits::ones(&sure), bits::ones(&check)));
    }
    // Missing values share no bin with present ones.
    assert_eq!(bitmap.cover(missing).edge, 0);
}

fn check_sorted(data: &Data, region: u64, threads: usize, questions: &[(&KeySet, &[u64])]) {
    let dir = tempfile::tempdir().expect("a directory");
    Rows::new(vec![data], region).build(dir.path(), threads, 1 << 28).expect("a replica");
    let replica = SortedReplica::open(dir.path()).expect("a replica that was just built");
    let (size, mut positions, mut elements) = (data.dtype().size(), Vec::new(), Buffer::default());
    for (set, truth) in questions {
        let (mut found, mut count) = (vec![0; truth.len()], 0);
        for slice in replica.slices(set).expect("slices") {
            assert!(slice.start < slice.end);
            count += slice.end - slice.start;
            replica.positions(slice.clone(), &mut positions).expect("positions");
            replica.read(0, slice, &mut elements).expect("elements");
            for (&at, element) in positions.iter().zip(elements.bytes().chunks_exact(size)) {
                found[at as usize / 64] |= 1 << (at % 64);
                assert_eq!(element, &data.bytes()[at as usize * size..][..size]);
            }
        }
        assert_eq!((found.as_slice(), count), (*truth, bits::ones(truth)), "{set:?}");
        let (least, most) = replica.estimate(set);
        assert!(least <= count && count <= most);
    }
}
