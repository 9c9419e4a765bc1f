//! Sums: exact in any order.
//!
//! Floats are summed without rounding in a fixed-point number as wide as the range of `float64`, and rounded once
//! at the end, to the nearest, ties to even; so the sum does not depend on the order of the values or on how they
//! are cut into pieces. The scheme is the small superaccumulator of R. M. Neal, "Fast exact summation using small
//! and large superaccumulators" (2015, section 3, arXiv:1505.05571): digits of 32 bits are held in signed 64-bit
//! words, so that carries need to be settled but once in a thousand additions. We differ in that a state at rest
//! holds only the digits that its values have reached, typically three to five, since there may be one for each
//! of many groups.
//!
//! Blocks of values are first reduced to a few ([`Units`]); only these, and what they leave, go in one by one.

use super::natural::Natural;
use super::split::{BLOCK, Survey, Units};

/// Bits of one digit.
const DIGIT_BITS: u32 = 32;
pub(super) const DIGIT_MASK: i64 = (1 << DIGIT_BITS) - 1;
/// An addition changes a word by less than 2^52, so that this many leave it below 2^63.
const MAX_PENDING: u32 = 1024;
/// Below so many values it does not pay to lay out all digits.
const BULK: usize = 64;
/// The exponent of the weight of bit 0 of digit 0.
pub const FIRST_EXPONENT: i64 = -1075;

/// An exact sum of `float64` values.
///
/// Bit 0 of digit 0 has the weight 2^-1075 ([`FIRST_EXPONENT`]), so that a value of biased exponent e begins at bit e.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    /// The digits from `first` on; the last one carries the sign.
    pub(super) digits: Vec<i64>,
    pub(super) first: usize,
    /// Additions since carries were settled.
    pub(super) pending: u32,
    /// Whether +inf and -inf were added; NaN counts as both.
    pub(super) infinite: [bool; 2],
}

/// What a finite value adds: to the digit `index` the low part, to the next one the high part.
struct Parts {
    index: usize,
    low: i64,
    high: i64,
}

impl Parts {
    #[inline(always)]
    fn of(x: f64) -> Self {
        let bits = x.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as u32;
        let normal = u32::from(exponent != 0);
        let mantissa = (bits & ((1 << 52) - 1)) | (u64::from(normal) << 52);
        // Subnormal numbers have the exponent of the least normal ones.
        let begin = exponent + 1 - normal;
        let shift = begin % DIGIT_BITS;
        let sign = (bits as i64) >> 63;
        let low = ((mantissa << shift) & DIGIT_MASK as u64) as i64;
        let high = (mantissa >> (DIGIT_BITS - shift)) as i64;
        Self { index: (begin / DIGIT_BITS) as usize, low: (low ^ sign) - sign, high: (high ^ sign) - sign }
    }
}

/// Sums that are infinite are the same whatever else was added.
impl PartialEq for ExactSum {
    fn eq(&self, other: &Self) -> bool {
        let is_same = || self.magnitude().1 == other.magnitude().1 && self.natural() == other.natural();
        self.infinite == other.infinite && (!self.is_finite() || is_same())
    }
}

impl ExactSum {
    /// Adds one value.
    pub fn add(&mut self, x: f64) {
        if !x.is_finite() {
            return self.add_infinite(x);
        }
        if x == 0.0 {
            return;
        }
        let parts = Parts::of(x);
        self.reach(parts.index, parts.index + 2);
        let at = parts.index - self.first;
        self.digits[at] += parts.low;
        self.digits[at + 1] += parts.high;
        self.count_pending(1);
    }

    /// Adds all of them.
    pub fn add_all(&mut self, values: &[f64]) {
        if values.len() < BULK {
            return values.iter().for_each(|&x| self.add(x));
        }
        for block in values.chunks(BLOCK) {
            self.add_mapped(block, Survey::of(block).largest, |x| x);
        }
    }

    /// Adds `f` of each value, of which none is larger than `largest`; no more than [`BLOCK`] values.
    #[inline(always)]
    pub fn add_mapped<T: Copy>(&mut self, values: &[T], largest: f64, f: impl Fn(T) -> f64 + Copy) {
        let Some(units) = Units::of(largest) else {
            // Huge or infinite, or next to nothing.
            return values.iter().for_each(|&x| self.add(f(x)));
        };
        let (sums, is_left) = units.sums(values, f);
        sums.into_iter().for_each(|sum| self.add(sum));
        if is_left {
            // Values of very different sizes.
            values.iter().for_each(|&x| self.add(units.rest(f(x))));
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        let mut settled = other.digits.clone();
        let carry = settle(&mut settled);
        if carry != 0 {
            settled.push(carry);
        }
        self.add_digits(&settled, other.first);
        self.infinite[0] |= other.infinite[0];
        self.infinite[1] |= other.infinite[1];
    }

    /// The sum of so many of it: by doubling, as all adding is exact.
    #[must_use]
    pub fn times(mut self, n: u64) -> Self {
        let mut sum = Self::default();
        for bit in 0..u64::BITS - n.leading_zeros() {
            if bit > 0 {
                let same = self.clone();
                self.merge(&same);
            }
            if n >> bit & 1 == 1 {
                sum.merge(&self);
            }
        }
        sum
    }

    /// The sum, rounded to the nearest `float64`; NaN if infinities of both signs were added.
    pub fn value(&self) -> f64 {
        match self.infinite {
            [true, true] => return f64::NAN,
            [true, false] => return f64::INFINITY,
            [false, true] => return f64::NEG_INFINITY,
            [false, false] => {}
        }
        let (digits, is_negative) = self.magnitude();
        let magnitude = round(&digits, self.first as i64);
        if is_negative { -magnitude } else { magnitude }
    }

    /// Whether no infinity was added.
    pub fn is_finite(&self) -> bool {
        self.infinite == [false; 2]
    }

    /// The sum without its sign, in units of 2 to the power of [`FIRST_EXPONENT`].
    pub fn natural(&self) -> Natural {
        Natural::new(self.magnitude().0.into_iter().map(|d| d as u32).collect(), self.first as i64)
    }

    /// The settled digits of the sum without its sign, and whether it is negative.
    pub(super) fn magnitude(&self) -> (Vec<i64>, bool) {
        let mut digits = self.digits.clone();
        digits.extend([0, 0]);
        settle(&mut digits);
        let is_negative = digits.last().is_some_and(|&top| top < 0);
        if is_negative {
            digits.iter_mut().for_each(|d| *d = -*d);
            settle(&mut digits);
        }
        (digits, is_negative)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.digits.capacity() * size_of::<i64>()
    }

    #[cold]
    fn add_infinite(&mut self, x: f64) {
        self.infinite[0] |= x.is_nan() || x > 0.0;
        self.infinite[1] |= x.is_nan() || x < 0.0;
    }

    /// Adds settled digits, the first of which is digit `first`.
    fn add_digits(&mut self, digits: &[i64], first: usize) {
        let Some(begin) = digits.iter().position(|&d| d != 0) else { return };
        let end = digits.iter().rposition(|&d| d != 0).map_or(begin, |last| last + 1);
        self.reach(first + begin, first + end);
        let at = first + begin - self.first;
        for (to, from) in self.digits[at..].iter_mut().zip(&digits[begin..end]) {
            *to += from;
        }
        self.count_pending(1);
    }

    /// Makes room for the digits from `begin` up to `end`.
    fn reach(&mut self, begin: usize, end: usize) {
        if self.digits.is_empty() {
            self.first = begin;
        }
        if begin < self.first {
            self.digits.splice(0..0, std::iter::repeat_n(0, self.first - begin));
            self.first = begin;
        }
        if end > self.first + self.digits.len() {
            // The sign has to stay in the last word only; all others are free to be negative until settled.
            self.digits.resize(end - self.first, 0);
        }
    }

    fn count_pending(&mut self, additions: u32) {
        self.pending += additions;
        if self.pending >= MAX_PENDING - 1 {
            let carry = settle(&mut self.digits);
            if carry != 0 {
                self.digits.push(carry);
            }
            self.pending = 0;
        }
    }
}

/// Brings all digits but the last into 0..2^32, and gives back what the last has beyond that, of either sign.
/// A last digit that is within -2^32..2^32 is left as it is.
fn settle(digits: &mut [i64]) -> i64 {
    let Some((last, others)) = digits.split_last_mut() else { return 0 };
    let mut carry = 0;
    for digit in others {
        let sum = *digit + carry;
        carry = sum >> DIGIT_BITS;
        *digit = sum & DIGIT_MASK;
    }
    *last += carry;
    if last.unsigned_abs() <= DIGIT_MASK as u64 {
        return 0;
    }
    let over = *last >> DIGIT_BITS;
    *last &= DIGIT_MASK;
    over
}

/// The `float64` nearest to settled digits that are not negative; ties to even.
fn round(digits: &[i64], first: i64) -> f64 {
    let Some(top) = digits.iter().rposition(|&d| d != 0) else { return 0.0 };
    // The four highest digits hold at least 97 bits from the highest one; of the rest only counts if it is zero.
    let digit = |i: usize| top.checked_sub(i).map_or(0, |at| digits[at] as u128);
    let head = digit(0) << 96 | digit(1) << 64 | digit(2) << 32 | digit(3);
    let is_rest_zero = digits[..top.saturating_sub(3)].iter().all(|&d| d == 0);
    let highest = 127 - i64::from(head.leading_zeros());
    // The bit of the whole number that bit 0 of the head is.
    let offset = DIGIT_BITS as i64 * (first + top as i64 - 3);
    if offset + highest < 0 {
        // Less than half of the least number that there is.
        return 0.0;
    }
    // The last bit of the result: that of subnormal numbers is bit 1.
    let last = (offset + highest - 52).max(1);
    let cut = (last - offset) as u32;
    let mantissa = head.checked_shr(cut).unwrap_or(0) as u64;
    let half = 1_u128 << (cut - 1);
    let below = head & (half | (half - 1));
    let up = below > half || (below == half && (!is_rest_zero || mantissa % 2 == 1));
    // A carry out of the mantissa runs into the exponent, as it should.
    let bits = ((last as u64 - 1) << 52) + mantissa + u64::from(up);
    if bits >= f64::INFINITY.to_bits() { f64::INFINITY } else { f64::from_bits(bits) }
}

/// The `float64` nearest to a number of units of 2 to the power of [`FIRST_EXPONENT`]; ties to even.
pub fn rounded(number: &Natural) -> f64 {
    let (digits, first) = number.parts();
    round(&digits.iter().map(|&d| i64::from(d)).collect::<Vec<_>>(), first)
}

/// The exact sum of integers that fit in 64 bits.
pub fn sum_i64(values: &[i64]) -> i128 {
    // The halves are summed apart, in 64 bits, where the loop can be vectorised.
    values.chunks(1 << 20).fold(0, |sum, block| {
        let (high, low) = block
            .iter()
            .fold((0_i64, 0_i64), |(high, low), &x| (high + (x >> DIGIT_BITS), low + (x & DIGIT_MASK)));
        sum + (i128::from(high) << DIGIT_BITS) + i128::from(low)
    })
}

/// As [`sum_i64`].
pub fn sum_u64(values: &[u64]) -> i128 {
    values.chunks(1 << 20).fold(0, |sum, block| {
        let (high, low) = block.iter().fold((0_u64, 0_u64), |(high, low), &x| {
            (high + (x >> DIGIT_BITS), low + (x & DIGIT_MASK as u64))
        });
        sum + (i128::from(high) << DIGIT_BITS) + i128::from(low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(values: &[f64]) -> f64 {
        let mut bulk = ExactSum::default();
        bulk.add_all(values);
        let mut single = ExactSum::default();
        values.iter().for_each(|&x| single.add(x));
        assert_eq!(bulk.value().to_bits(), single.value().to_bits());
        bulk.value()
    }

    #[test]
    fn nothing_is_lost_to_cancellation() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[1e16, 1.0, 1.0]), 1e16 + 2.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1e308, 1e308, -1e308]), 1e308);
        assert_eq!(sum(&[]), 0.0);
        let many: Vec<f64> =
            (0..10_000).flat_map(|i| [f64::from(i) * 1e300, f64::from(i) * -1e300]).collect();
        assert_eq!(sum(&many), 0.0);
    }

    #[test]
    fn ties_go_to_even_unless_something_lies_below() {
        let two_53 = 9_007_199_254_740_992.0;
        assert_eq!(sum(&[two_53, 1.0]), two_53);
        assert_eq!(sum(&[two_53 + 2.0, 1.0]), two_53 + 4.0);
        assert_eq!(sum(&[two_53, 1.0, 5e-324]), two_53 + 2.0);
        assert_eq!(sum(&[-two_53, -1.0, -5e-324]), -two_53 - 2.0);
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(sum(&[5e-324, 5e-324]), 1e-323);
        assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), f64::from_bits((1 << 52) - 1));
        assert_eq!(sum(&[f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX, f64::MAX, f64::MAX]), 0.0);
        assert_eq!(sum(&[f64::MAX, 1e291]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, 1e292]), f64::INFINITY);
    }

    #[test]
    fn infinities() {
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert_eq!(sum(&[f64::NEG_INFINITY, f64::MAX]), f64::NEG_INFINITY);
        assert!(sum(&[f64::NEG_INFINITY, f64::INFINITY]).is_nan());
    }

    #[test]
    fn carries_are_settled_in_time() {
        for x in [f64::MAX / 1e6, -1.999_999, 4_294_967_295.999, -1e-310] {
            let n = 100_000;
            let exact = (0..n).fold((0.0_f64, 0.0_f64), |(s, c), _| {
                let t = s + x;
                (t, c + if s.abs() >= x.abs() { (s - t) + x } else { (x - t) + s })
            });
            assert_eq!(sum(&vec![x; n]), exact.0 + exact.1, "{x}");
        }
    }

    #[test]
    fn integer_sums_are_exact() {
        assert_eq!(sum_i64(&[i64::MAX, i64::MAX, 1]), 2 * i128::from(i64::MAX) + 1);
        assert_eq!(sum_i64(&[i64::MIN, -1]), i128::from(i64::MIN) - 1);
        assert_eq!(sum_u64(&[u64::MAX, u64::MAX]), 2 * i128::from(u64::MAX));
    }

    /// The sum as an integer number of 2^-1074, for values that are not too far apart.
    fn oracle(values: &[f64]) -> i128 {
        values.iter().map(|x| (x * f64::powi(2.0, 60)) as i128).sum()
    }

    proptest! {
        /// Of multiples of 2^-60 below 2^60 the oracle is exact, and so is its rounding.
        #[test]
        fn sums_are_rounded_once(
            values in prop::collection::vec((-(1_i64 << 53)..1_i64 << 53, 0..60_i32), 0..200),
        ) {
            let values: Vec<f64> = values.iter().map(|&(m, e)| m as f64 * f64::powi(2.0, -e)).collect();
            prop_assert_eq!(sum(&values), oracle(&values) as f64 / f64::powi(2.0, 60));
        }

        /// In bulk and one by one, `sum` compares both; the exponents are near each other or far apart.
        #[test]
        fn blocks_lose_nothing(
            values in prop::collection::vec((-1.0_f64..1.0, 0..100_i32), 64..5000),
            spread in prop_oneof![Just(1), Just(20), Just(100)],
            base in prop_oneof![Just(0), Just(-1040), Just(922)],
        ) {
            let scaled = |&(x, e): &(f64, i32)| x * f64::powi(2.0, base / 2) * f64::powi(2.0, base / 2 + e % spread);
            sum(&values.iter().map(scaled).collect::<Vec<f64>>());
        }

        #[test]
        fn any_cut_and_order_give_the_same_sum(
            values in prop::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 0..300),
            cut in 0_usize..300,
        ) {
            let cut = cut.min(values.len());
            let (mut a, mut b) = (ExactSum::default(), ExactSum::default());
            a.add_all(&values[..cut]);
            b.add_all(&values[cut..]);
            let mut ab = a.clone();
            ab.merge(&b);
            b.merge(&a);
            let reversed: Vec<f64> = values.iter().rev().copied().collect();
            let expected = sum(&values).to_bits();
            prop_assert_eq!(ab.value().to_bits(), expected);
            prop_assert_eq!(b.value().to_bits(), expected);
            prop_assert_eq!(sum(&reversed).to_bits(), expected);
        }
    }
}
