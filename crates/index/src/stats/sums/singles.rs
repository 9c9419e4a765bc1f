//! Sums of float32, which are added as they are in float64 wherever that is exact.
//!
//! All values of a block are whole multiples of the last digit of the one next to zero. Where the largest one is not much
//! larger than that, no sum of them has more than 53 bits, and nothing is rounded.

use sieva_types::exact::{BLOCK, ExactSum};

use super::super::lane::Lane;
use super::super::zone::{LINEAR, among, padded};
use super::Known;

/// Values that are added side by side.
const LANES: usize = 16;
/// The bits of a float32 below its exponent.
const DIGITS: u32 = 23;
/// Bits by which the largest value of a block may be larger than its least one: sums of 2^11 values have 53 at most.
const SPREAD: u32 = 53 - (DIGITS + 1) - BLOCK.ilog2();

/// Adds the values that are neither NaN nor missing; none is larger than `largest`.
pub(super) fn add(data: &[f32], (missing, zone): Known<'_>, largest: f64, sum: &mut ExactSum) {
    let ranges = f32::ranks(missing);
    if zone.nan == 0 && zone.missing == 0 {
        each_block(data, largest, sum, |x| x);
    } else if ranges.len() <= 1 {
        let one = padded::<_, 1>(&ranges);
        each_block(data, largest, sum, |x| or_zero(x, &one));
    } else if ranges.len() <= LINEAR {
        let few = padded::<_, LINEAR>(&ranges);
        each_block(data, largest, sum, |x| or_zero(x, &few));
    } else {
        super::add(data, (missing, zone), largest, sum, f64::from);
    }
}

#[inline(always)]
fn or_zero<const R: usize>(x: f32, missing: &[(u32, u32); R]) -> f32 {
    let rank = x.rank();
    let nan = (rank < f32::NUMBERS.0) | (rank > f32::NUMBERS.1);
    if nan | among(missing, rank) { 0.0 } else { x }
}

fn each_block(data: &[f32], largest: f64, sum: &mut ExactSum, f: impl Fn(f32) -> f32 + Copy) {
    for block in data.chunks(BLOCK) {
        let (total, least) = plain(block, f);
        if spread(largest as f32, least) <= SPREAD {
            sum.add(total);
        } else {
            sum.add_mapped(block, largest, |x| f(x).into());
        }
    }
}

/// By how many bits `largest` is larger than the value of the bits `least`, about.
fn spread(largest: f32, least: u32) -> u32 {
    // Subnormal numbers have the exponent of the least normal ones.
    let exponent = |bits: u32| (bits >> DIGITS).max(1);
    exponent(largest.to_bits()).saturating_sub(exponent(least))
}

/// The sum as it is rounded, and the bits of the value next to zero; those of no value where there is none.
#[inline(always)]
fn plain_loop(block: &[f32], f: impl Fn(f32) -> f32) -> (f64, u32) {
    let (mut sums, mut least) = ([0.0; LANES], [u32::MAX; LANES]);
    let mut add = |i: usize, x: f32| {
        let x = f(x);
        // Zero, which any sum can take, wraps round to the end.
        least[i] = least[i].min((x.to_bits() & !(1 << 31)).wrapping_sub(1));
        sums[i] += f64::from(x);
    };
    let (chunks, rest) = block.as_chunks::<LANES>();
    for chunk in chunks {
        for (i, &x) in chunk.iter().enumerate() {
            add(i, x);
        }
    }
    rest.iter().enumerate().for_each(|(i, &x)| add(i, x));
    let least = least.into_iter().fold(u32::MAX, u32::min);
    (sums.into_iter().sum(), least.saturating_add(1))
}

fn plain(block: &[f32], f: impl Fn(f32) -> f32) -> (f64, u32) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512(block: &[f32], f: impl Fn(f32) -> f32) -> (f64, u32) {
            plain_loop(block, f)
        }
        #[target_feature(enable = "avx2")]
        fn avx2(block: &[f32], f: impl Fn(f32) -> f32) -> (f64, u32) {
            plain_loop(block, f)
        }
        if super::super::has_avx512() {
            // SAFETY: the features were just detected.
            return unsafe { avx512(block, f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { avx2(block, f) };
        }
    }
    plain_loop(block, f)
}
