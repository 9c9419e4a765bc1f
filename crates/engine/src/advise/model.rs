//! What a condition costs by each way to answer it: the planner's cost model (SDQuery, section 4.1), applied to
//! regions that were sampled.
//!
//! The model is believed for ratios, the log for seconds: see [`Clock`].

use sieva_index::stats::Verdict;
use sieva_types::KeySet;

use super::sample::{Part, Sample};
use super::workload::{Asked, Way};

/// Nanoseconds that every evaluation takes besides its work.
const START: f64 = 30_000.0;
/// Requests of evaluating the bitmap of a region, as the planner has it.
const BITMAP_REQUESTS: u64 = 2;
/// Nanoseconds of a row that a replica gives, as the planner has it.
const ROW: f64 = 25.0;
/// Requests of finding a slice of a replica.
const SLICE_REQUESTS: u64 = 24;

/// Seconds of the model for one condition on a whole array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seconds {
    pub scan: f64,
    /// By zone map, bitmap, sorted replica.
    pub by: [f64; 3],
}

/// The price of a condition by each way; `hits` is the part of the rows that it selects, where that is known.
pub(super) fn price(
    sample: &Sample,
    set: &KeySet,
    hits: Option<f64>,
    count: bool,
    threads: usize,
) -> Seconds {
    let rows: u64 = sample.parts.iter().map(|p| p.rows).sum();
    let times = if rows == 0 { 0.0 } else { sample.elements as f64 / rows as f64 };
    let (mut scan, mut zones, mut bits, mut found) = (0.0, 0.0, 0.0, 0.0);
    for part in &sample.parts {
        let read = region(sample, part.rows);
        scan += read;
        let (low, high) = part.stats.count_bounds(set, &sample.missing, sample.dtype);
        found += (low as f64 + high as f64) / 2.0;
        if matches!(part.stats.decide(set, &sample.missing), Verdict::Some) {
            zones += read;
            bits += by_bitmap(sample, part, set, read);
        }
    }
    let share = hits.filter(|h| h.is_finite()).unwrap_or(if rows == 0 { 0.0 } else { found / rows as f64 });
    let index = &sample.costs.index;
    let slices = index.price(SLICE_REQUESTS * set.ranges.len().max(1) as u64, 0);
    // A count is the length of the slice.
    let listed = if count { 0.0 } else { share * sample.elements as f64 * (ROW + 4.0 * index.byte.get()) };
    let parallel = threads.max(1) as f64;
    let seconds = |work: f64| (START + work) * 1e-9;
    Seconds {
        scan: seconds(scan * times / parallel),
        by: [seconds(zones * times / parallel), seconds(bits * times / parallel), seconds(slices + listed)],
    }
}

/// Nanoseconds of reading a region.
fn region(sample: &Sample, rows: u64) -> f64 {
    let bytes = rows * sample.dtype.size() as u64;
    let costs = if sample.chunked { &sample.costs.chunked } else { &sample.costs.direct };
    costs.price(bytes.div_ceil(sample.chunk_bytes.max(1)).max(1), bytes)
}

/// Nanoseconds of a region that zone maps leave open, by its bitmap or without it.
fn by_bitmap(sample: &Sample, part: &Part, set: &KeySet, read: f64) -> f64 {
    let Some((bitmap, _)) = &part.bitmap else { return read };
    let points = bitmap.edge(set) as f64 * sample.costs.direct.request.get();
    let check = if sample.chunked && points > 0.0 { read } else { points.min(read) };
    (sample.costs.index.price(BITMAP_REQUESTS, bitmap.cost(set)) + check).min(read)
}

/// Turns seconds of the model into those of the log: the ratio between them, as uses show it that read data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(f64);

impl Clock {
    /// The median ratio of uses with their prices; 1 where no use tells it.
    pub fn of(uses: &[(Asked, f64, Seconds)]) -> Self {
        let mut ratios: Vec<f64> = uses.iter().filter_map(|(a, took, s)| ratio(a, *took, s)).collect();
        ratios.sort_by(f64::total_cmp);
        Self(ratios.get(ratios.len() / 2).copied().unwrap_or(1.0))
    }

    /// Seconds of one use without augmentations, and with each of them.
    pub fn real(self, asked: &Asked, took: f64, seconds: &Seconds) -> Seconds {
        // Where it read data, its own time is the best measure: of a part of the array, or of a cold disk.
        let k = ratio(asked, took, seconds).unwrap_or(self.0);
        Seconds { scan: seconds.scan * k, by: seconds.by.map(|s| s * k) }
    }
}

fn ratio(asked: &Asked, took: f64, seconds: &Seconds) -> Option<f64> {
    let model = match asked.way {
        Way::Scan => seconds.scan,
        Way::ZoneMap => seconds.by[0],
        Way::Bitmap | Way::Sorted | Way::Known => return None,
    };
    let ratio = took / model;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}
