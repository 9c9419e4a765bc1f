//! Sums of values in float64, in one pass wherever that is exact.
//!
//! The leading bits of each value are split off as in [`Units`], and what is left is added up beside them. Where the largest
//! value of a block is within 2^30 of the one next to zero, neither sum has more than 53 bits, and nothing is rounded.

use sieva_types::exact::{BLOCK, ExactSum, Units};

use super::super::lane::Lane;

/// Values that are added side by side.
const LANES: usize = 8;
/// The bits of a float64 below its exponent.
const DIGITS: u32 = 52;
/// Bits by which the largest value of a block may be larger than its least one. What is left of a value is at most half of
/// the leading bits' last one, 2^(13 - 53) of the largest; so many sums of 2^11 of them have 53 bits at most.
const SPREAD: u64 = 30;

/// Adds `f` of each value; none is larger than `largest`.
#[inline(always)]
pub(super) fn add<T: Lane>(data: &[T], largest: f64, sum: &mut ExactSum, f: impl Fn(T) -> f64 + Copy) {
    let Some(units) = Units::of(largest) else {
        return data.chunks(BLOCK).for_each(|block| sum.add_mapped(block, largest, f));
    };
    for block in data.chunks(BLOCK) {
        let (totals, least) = plain(block, units.first(), f);
        if (largest.to_bits() >> DIGITS).saturating_sub(least >> DIGITS) <= SPREAD {
            totals.into_iter().for_each(|total| sum.add(total));
        } else {
            sum.add_mapped(block, largest, f);
        }
    }
}

/// The sums of leading bits and of what they leave, as they are rounded, and the bits of the value next to zero; those of no
/// value where there is none.
#[inline(always)]
fn plain_loop<T: Lane>(block: &[T], unit: f64, f: impl Fn(T) -> f64) -> ([f64; 2], u64) {
    let (mut high, mut low, mut least) = ([0.0; LANES], [0.0; LANES], [u64::MAX; LANES]);
    let mut add = |i: usize, x: T| {
        let x = f(x);
        let leading = (unit + x) - unit;
        high[i] += leading;
        low[i] += x - leading;
        // Zero, which any sum can take, wraps round to the end.
        least[i] = least[i].min((x.to_bits() & !(1 << 63)).wrapping_sub(1));
    };
    let (chunks, rest) = block.as_chunks::<LANES>();
    for chunk in chunks {
        for (i, &x) in chunk.iter().enumerate() {
            add(i, x);
        }
    }
    rest.iter().enumerate().for_each(|(i, &x)| add(i, x));
    let least = least.into_iter().fold(u64::MAX, u64::min);
    ([high.into_iter().sum(), low.into_iter().sum()], least.saturating_add(1))
}

#[inline(always)]
fn plain<T: Lane>(block: &[T], unit: f64, f: impl Fn(T) -> f64) -> ([f64; 2], u64) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512<T: Lane>(block: &[T], unit: f64, f: impl Fn(T) -> f64) -> ([f64; 2], u64) {
            plain_loop(block, unit, f)
        }
        #[target_feature(enable = "avx2")]
        fn avx2<T: Lane>(block: &[T], unit: f64, f: impl Fn(T) -> f64) -> ([f64; 2], u64) {
            plain_loop(block, unit, f)
        }
        if super::super::has_avx512() {
            // SAFETY: the features were just detected.
            return unsafe { avx512(block, unit, f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { avx2(block, unit, f) };
        }
    }
    plain_loop(block, unit, f)
}
