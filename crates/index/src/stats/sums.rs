//! Exact sums of a region's present values, so that sums and means of whole regions need no data.
//!
//! Of packed data the sum of the decoded values is kept as well: each is rounded when it is unpacked, so it does not follow
//! from that of the stored ones. It says by which packing it was made, and is that of no other.

mod doubles;
mod singles;

use sieva_types::exact::{BLOCK, ExactSum, Sum};
use sieva_types::keys::{f32_of_key, f64_of_key};
use sieva_types::{DType, KeySet};

use super::RegionStats;
use super::lane::{Lane, Word};
use super::zone::{LINEAR, among, bisect, padded};
use crate::{Elements, each};

/// Elements per inner loop, so that its 64-bit sums of 32-bit halves cannot overflow.
const RANKS: usize = 1 << 24;

/// Missing values of a region, and what is known of it.
type Known<'a> = (&'a KeySet, &'a RegionStats);

/// Exact sums of the present values of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Of the stored values.
    pub stored: Total,
    /// Of the decoded values, where the data are packed.
    pub decoded: Option<Decoded>,
}

/// An exact sum of stored values.
#[derive(Clone, Debug, PartialEq)]
pub enum Total {
    /// Of integers.
    Integer(i128),
    /// Of floats.
    Float(Sum),
}

/// An exact sum of decoded values.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Scale and offset by which they were decoded.
    pub packing: (f64, f64),
    /// Their sum.
    pub sum: Sum,
}

impl Sums {
    /// Of `elements`, of which `zone` is known; `packing` is the scale and the offset of packed data.
    pub(super) fn of(
        elements: Elements<'_>,
        missing: &KeySet,
        zone: &RegionStats,
        packing: Option<(f64, f64)>,
    ) -> Self {
        let decode = |packing| {
            let sum = each!(elements, data => decoded(data, missing, zone, packing))?;
            Some(Decoded { packing, sum: Sum::of(sum) })
        };
        let is_number = |(scale, offset): &(f64, f64)| scale.is_finite() && offset.is_finite();
        Self {
            stored: match elements {
                Elements::F32(data) => {
                    Total::Float(Sum::of(floats(data, elements, missing, zone, singles::add)))
                }
                Elements::F64(data) => {
                    let add = |data: &[f64], known: Known<'_>, largest, sum: &mut ExactSum| {
                        add(data, known, largest, sum, |x| x);
                    };
                    Total::Float(Sum::of(floats(data, elements, missing, zone, add)))
                }
                _ => Total::Integer(each!(elements, data => integers(data, missing, zone.present()))),
            },
            decoded: packing.filter(is_number).and_then(decode),
        }
    }

    /// The sums of both; `None` where they are not of one kind of values.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let stored = match (&self.stored, &other.stored) {
            (Total::Integer(a), Total::Integer(b)) => Total::Integer(a.checked_add(*b)?),
            (Total::Float(a), Total::Float(b)) => Total::Float(a.plus(b)),
            _ => return None,
        };
        let decoded = match (&self.decoded, &other.decoded) {
            (Some(a), Some(b)) if a.packing == b.packing => {
                Some(Decoded { packing: a.packing, sum: a.sum.plus(&b.sum) })
            }
            _ => None,
        };
        Some(Self { stored, decoded })
    }
}

/// The sum of stored floats.
fn floats<T: Lane>(
    data: &[T],
    elements: Elements<'_>,
    missing: &KeySet,
    zone: &RegionStats,
    add: impl Fn(&[T], Known<'_>, f64, &mut ExactSum),
) -> ExactSum {
    let mut sum = ExactSum::default();
    let Some((low, high)) = zone.bounds else { return sum };
    let dtype = elements.dtype();
    let ends = [low, high].map(|key| value(dtype, key));
    // What is infinite is known by the extremes, and left out of the rest.
    ends.iter().filter(|x| x.is_infinite()).for_each(|x| sum.add(*x));
    if ends.iter().all(|x| x.is_finite()) {
        add(data, (missing, zone), largest(ends), &mut sum);
        return sum;
    }
    if let (_, Some((low, high))) = zone.without_infinities(elements, missing) {
        let (least, greatest) = (T::key(T::NUMBERS.0), T::key(T::NUMBERS.1));
        let infinite = KeySet { ranges: vec![(least, least), (greatest, greatest)], nan: false };
        let left_out = missing.union(&infinite);
        let ends = [low, high].map(|key| value(dtype, key));
        // There is something to be left out, whatever the zone map counts.
        let zone = RegionStats { missing: 1, sums: None, histogram: None, ..*zone };
        add(data, (&left_out, &zone), largest(ends), &mut sum);
    }
    sum
}

/// The sum of values as they are unpacked: each in `float64`, as a scan does it. `None` where one is no number.
fn decoded<T: Lane>(
    data: &[T],
    missing: &KeySet,
    zone: &RegionStats,
    (scale, offset): (f64, f64),
) -> Option<ExactSum> {
    let mut sum = ExactSum::default();
    let Some((low, high)) = zone.bounds else { return Some(sum) };
    let unpack = move |x: T| x.float() * scale + offset;
    // Unpacking is monotonic, and of infinities alone it may give no number.
    let ends = [low, high].map(|key| unpack(T::of_key(key)));
    if ends.iter().any(|x| x.is_nan()) {
        return None;
    }
    add(data, (missing, zone), largest(ends), &mut sum, unpack);
    Some(sum)
}

fn largest(ends: [f64; 2]) -> f64 {
    ends[0].abs().max(ends[1].abs())
}

/// The value of a float's key.
fn value(dtype: DType, key: i128) -> f64 {
    if dtype == DType::F64 { f64_of_key(key) } else { f32_of_key(key).into() }
}

/// Adds `f` of each value that is neither NaN nor missing; none is larger than `largest`.
fn add<T: Lane>(
    data: &[T],
    (missing, zone): Known<'_>,
    largest: f64,
    sum: &mut ExactSum,
    f: impl Fn(T) -> f64 + Copy,
) {
    if zone.nan == 0 && zone.missing == 0 {
        return doubles::add(data, largest, sum, f);
    }
    fn some<T: Lane, const R: usize>(
        data: &[T],
        ranges: &[(T::Word, T::Word)],
        largest: f64,
        sum: &mut ExactSum,
        f: impl Fn(T) -> f64 + Copy,
    ) {
        let ranges = padded::<_, R>(ranges);
        let or_zero = move |x: T| {
            let rank = x.rank();
            let nan = T::FLOAT && ((rank < T::NUMBERS.0) | (rank > T::NUMBERS.1));
            if nan | among(&ranges, rank) { 0.0 } else { f(x) }
        };
        doubles::add(data, largest, sum, or_zero);
    }
    let ranges = T::ranks(missing);
    match ranges.len() {
        0..=1 => some::<T, 1>(data, &ranges, largest, sum, f),
        2 => some::<T, 2>(data, &ranges, largest, sum, f),
        3..=LINEAR => some::<T, LINEAR>(data, &ranges, largest, sum, f),
        _ => {
            let or_zero = |x: T| {
                let rank = x.rank();
                let nan = T::FLOAT && ((rank < T::NUMBERS.0) | (rank > T::NUMBERS.1));
                if nan || bisect(&ranges, rank) { 0.0 } else { f(x) }
            };
            data.chunks(BLOCK).for_each(|block| sum.add_mapped(block, largest, or_zero));
        }
    }
}

/// The sum of the integers that are not missing, of which there are so many.
fn integers<T: Lane>(data: &[T], missing: &KeySet, present: u64) -> i128 {
    let ranges = if present == data.len() as u64 { Vec::new() } else { T::ranks(missing) };
    let ranks = data.chunks(RANKS).map(|block| match ranges.len() {
        0 => ranks(block, &[]),
        1 => ranks(block, &padded::<_, 1>(&ranges)),
        2..=LINEAR => ranks(block, &padded::<_, LINEAR>(&ranges)),
        _ => halves(block, |rank| bisect(&ranges, rank)),
    });
    ranks.sum::<i128>() - T::OFFSET * i128::from(present)
}

/// The sum of the ranks of the values that are not missing.
#[inline(always)]
fn halves<T: Lane>(data: &[T], missing: impl Fn(T::Word) -> bool) -> i128 {
    let (mut high, mut low) = (0_u64, 0_u64);
    for value in data {
        let rank = value.rank();
        let wide = if missing(rank) { 0 } else { rank.wide() };
        high += wide >> 32;
        low += wide & u64::from(u32::MAX);
    }
    (i128::from(high) << 32) + i128::from(low)
}

fn ranks<T: Lane, const R: usize>(data: &[T], ranges: &[(T::Word, T::Word); R]) -> i128 {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512<T: Lane, const R: usize>(data: &[T], ranges: &[(T::Word, T::Word); R]) -> i128 {
            halves(data, |rank| among(ranges, rank))
        }
        #[target_feature(enable = "avx2")]
        fn avx2<T: Lane, const R: usize>(data: &[T], ranges: &[(T::Word, T::Word); R]) -> i128 {
            halves(data, |rank| among(ranges, rank))
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
    halves(data, |rank| among(ranges, rank))
}
