//! Statistics of any bytes: decoding, deciding and merging does not panic, and bounds are in order.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sieva_fuzz::SetRecipe;
use sieva_fuzz::values::STORED;
use sieva_index::stats::{RegionStats, Verdict};
use sieva_types::{DType, ErrorKind, KeySet};

#[derive(Arbitrary, Debug)]
struct Input {
    dtype: u8,
    sets: [SetRecipe; 2],
    missing: SetRecipe,
    other: Vec<u8>,
    bytes: Vec<u8>,
}

fuzz_target!(|input: Input| {
    let dtype = STORED[usize::from(input.dtype) % STORED.len()];
    let Some(stats) = decode(&input.bytes) else { return };
    let keys: Vec<i128> = stats.bounds.into_iter().flat_map(|(low, high)| [low, high]).collect();
    let missing = input.missing.missing(dtype, &keys);
    let sets = input.sets.each_ref().map(|set| set.condition(dtype, &keys));
    check(&stats, &sets, &missing, dtype);
    let Some(other) = decode(&input.other) else { return };
    let (mut one, mut two) = (stats.clone(), other.clone());
    one.merge(&other);
    two.merge(&stats);
    assert_eq!(one, two);
    check(&one, &sets, &missing, dtype);
});

/// What decodes is encoded to bytes that say the same.
fn decode(bytes: &[u8]) -> Option<RegionStats> {
    match RegionStats::decode(bytes) {
        Ok(stats) => {
            let mut again = Vec::new();
            stats.encode(&mut again);
            assert!(again.len() <= bytes.len());
            assert_eq!(RegionStats::decode(&again).as_ref().ok(), Some(&stats));
            Some(stats)
        }
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::CorruptIndex);
            None
        }
    }
}

fn check(stats: &RegionStats, sets: &[KeySet], missing: &KeySet, dtype: DType) {
    for set in sets {
        let (least, most) = stats.count_bounds(set, missing, dtype);
        assert!(least <= most && most <= stats.rows, "{least} to {most} of {} rows", stats.rows);
        match stats.decide(set, missing) {
            Verdict::None => assert_eq!(most, 0),
            Verdict::All => assert_eq!(least, stats.rows),
            Verdict::Some => {}
        }
        if let Some(histogram) = &stats.histogram {
            let (least, most) = histogram.count_bounds(set, dtype);
            assert!(least <= most && most <= histogram.total());
            assert_eq!(histogram.edges().len(), histogram.counts().len() + 1);
        }
    }
}
