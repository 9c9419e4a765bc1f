//! The first pass: how many values are NaN, missing, present, and the extremes of the present ones.
//!
//! One plain loop over ranks, without a branch, that the compiler makes into vector code for each set of
//! instructions asked for.

use sieva_types::KeySet;

use super::lane::{Lane, Word};

/// What one pass tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    pub nan: u64,
    pub missing: u64,
    /// Least and greatest key of the values that are neither.
    pub bounds: Option<(i128, i128)>,
}

/// Missing intervals of a region that are tested one after the other; more are searched by bisection.
pub(super) const LINEAR: usize = 8;

/// Elements per inner loop, so that its 32-bit counters cannot overflow.
const BLOCK: usize = 1 << 24;

/// The zone of `data`, where values whose key is in `missing` are missing.
pub(super) fn zone<T: Lane>(data: &[T], missing: &KeySet) -> Zone {
    let ranges = T::ranks(missing);
    let mut total = Extremes::<T::Word>::NOTHING;
    for block in data.chunks(BLOCK) {
        total.add(match ranges.len() {
            0..=1 => pass(block, &padded::<_, 1>(&ranges)),
            2 => pass(block, &padded::<_, 2>(&ranges)), // _FillValue and missing_value
            3..=LINEAR => pass(block, &padded::<_, LINEAR>(&ranges)),
            _ => scan(block, |rank| bisect(&ranges, rank)),
        });
    }
    let present = data.len() as u64 - total.nan - total.missing;
    let bounds = (present > 0).then(|| (T::key(total.low), T::key(total.high)));
    Zone { nan: total.nan, missing: total.missing, bounds }
}

/// `R` intervals from at most as many: the rest holds nothing.
pub(super) fn padded<W: Word, const R: usize>(ranges: &[(W, W)]) -> [(W, W); R] {
    std::array::from_fn(|i| ranges.get(i).copied().unwrap_or((W::MAX, W::MIN)))
}

/// Whether `rank` is in one of the ascending intervals.
pub(super) fn bisect<W: Word>(ranges: &[(W, W)], rank: W) -> bool {
    let at = ranges.partition_point(|r| r.1 < rank);
    ranges.get(at).is_some_and(|r| r.0 <= rank)
}

/// Whether `rank` is in any of a few intervals, without a branch.
#[inline(always)]
pub(super) fn among<W: Word, const R: usize>(ranges: &[(W, W); R], rank: W) -> bool {
    let mut inside = false;
    for &(low, high) in ranges {
        inside |= (rank >= low) & (rank <= high);
    }
    inside
}

#[derive(Clone, Copy)]
struct Extremes<W> {
    low: W,
    high: W,
    nan: u64,
    missing: u64,
}

impl<W: Word> Extremes<W> {
    const NOTHING: Self = Self { low: W::MAX, high: W::MIN, nan: 0, missing: 0 };

    fn add(&mut self, other: Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.nan += other.nan;
        self.missing += other.missing;
    }
}

#[inline(always)]
fn scan<T: Lane>(data: &[T], missing: impl Fn(T::Word) -> bool) -> Extremes<T::Word> {
    let (mut low, mut high) = (T::Word::MAX, T::Word::MIN);
    let (mut nans, mut misses) = (0_u32, 0_u32);
    for &value in data {
        let rank = value.rank();
        let nan = T::FLOAT && ((rank < T::NUMBERS.0) | (rank > T::NUMBERS.1));
        let miss = missing(rank);
        nans += u32::from(nan);
        misses += u32::from(miss);
        low = low.min(if nan | miss { T::Word::MAX } else { rank });
        high = high.max(if nan | miss { T::Word::MIN } else { rank });
    }
    Extremes { low, high, nan: nans.into(), missing: misses.into() }
}

fn pass<T: Lane, const R: usize>(data: &[T], ranges: &[(T::Word, T::Word); R]) -> Extremes<T::Word> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512<T: Lane, const R: usize>(
            data: &[T],
            ranges: &[(T::Word, T::Word); R],
        ) -> Extremes<T::Word> {
            scan(data, |rank| among(ranges, rank))
        }
        #[target_feature(enable = "avx2")]
        fn avx2<T: Lane, const R: usize>(data: &[T], ranges: &[(T::Word, T::Word); R]) -> Extremes<T::Word> {
            scan(data, |rank| among(ranges, rank))
        }
        if super::has_avx512() {
            // SAFETY: the features were just detected.
            return unsafe { avx512(data, ranges) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { avx2(data, ranges) };
        }
    }
    scan(data, |rank| among(ranges, rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_agree_with_the_plain_loop(bits in proptest::collection::vec(any::<u64>(), 0..300), a: u64, b: u64) {
            macro_rules! each { ($($t:ty, $f:expr);*) => {$(
                let data: Vec<$t> = bits.iter().map(|&v| $f(v)).collect();
                let cut = [$f(a).rank(), $f(b).rank()];
                let range = (cut[0].min(cut[1]), cut[0].max(cut[1]));
                let plain = scan(&data, |rank| among(&[range], rank));
                for found in [pass(&data, &[range]), scan(&data, |rank| bisect(&[range], rank))] {
                    prop_assert_eq!((found.low, found.high), (plain.low, plain.high));
                    prop_assert_eq!((found.nan, found.missing), (plain.nan, plain.missing));
                }
            )*}}
            each!(u8, |v| v as u8; i16, |v| v as i16; u32, |v| v as u32; i64, |v| v as i64; u64, |v| v;
                f32, |v| f32::from_bits(v as u32); f64, f64::from_bits);
        }
    }
}
