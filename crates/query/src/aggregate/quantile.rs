//! Quantiles of values, by numpy's rules.

use std::cmp::Ordering;

/// Numbers of which there are quantiles.
pub(super) trait Ranked: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// The order of numbers, total.
    fn order(a: &Self, b: &Self) -> Ordering;
    /// The nearest float.
    fn float(self) -> f64;
    /// How far above `below` it is, rounded once.
    fn above(self, below: Self) -> f64;
    /// The quantile of a single value, if it is not found as that of many.
    fn alone(self) -> Option<f64> {
        None
    }
}

impl Ranked for i64 {
    fn order(a: &Self, b: &Self) -> Ordering {
        a.cmp(b)
    }
    fn float(self) -> f64 {
        self as f64
    }
    fn above(self, below: Self) -> f64 {
        (i128::from(self) - i128::from(below)) as f64
    }
}

impl Ranked for u64 {
    fn order(a: &Self, b: &Self) -> Ordering {
        a.cmp(b)
    }
    fn float(self) -> f64 {
        self as f64
    }
    fn above(self, below: Self) -> f64 {
        (self - below) as f64
    }
}

impl Ranked for f64 {
    fn order(a: &Self, b: &Self) -> Ordering {
        a.total_cmp(b)
    }
    fn float(self) -> f64 {
        self
    }
    fn above(self, below: Self) -> f64 {
        self - below
    }
    fn alone(self) -> Option<f64> {
        // numpy's weight at the end keeps the sign of a zero only where it is alone.
        Some(self)
    }
}

/// The quantile of probability `q`, by numpy's method `linear`, its rounding included. The values are put in another order.
pub(super) fn quantile<T: Ranked>(values: &mut [T], q: f64) -> Option<f64> {
    if let [one] = values
        && let Some(alone) = one.alone()
    {
        return Some(alone);
    }
    let place = |n: usize| {
        // The place among the sorted values, which the neighbours are weighted by.
        let place = (n - 1) as f64 * q;
        (place.floor() as usize, place.fract())
    };
    neighbours(values, place).map(|(a, b, t)| between(a.float(), b.float(), b.above(a), t))
}

/// The middle value, or the mean of the two middle ones; this is numpy's `median`, which can differ in the
/// last bit from its quantile of 0.5. Zero is never negative: a mean is a sum that begins with 0.
pub(super) fn median<T: Ranked>(values: &mut [T]) -> Option<f64> {
    let middle = |n: usize| ((n - 1) / 2, if n % 2 == 1 { 0.0 } else { 0.5 });
    let (a, b, t) = neighbours(values, middle)?;
    let (a, b) = (a.float(), b.float());
    Some(if t == 0.0 { a } else { (a + b) / 2.0 } + 0.0)
}

/// The values at a place of the sorted order and at the next one (the same at the end), and the weight of the
/// next one. `place` gives the first place and the weight for a number of values.
fn neighbours<T: Ranked>(values: &mut [T], place: impl Fn(usize) -> (usize, f64)) -> Option<(T, T, f64)> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (at, weight) = place(n);
    let (_, &mut a, above) = values.select_nth_unstable_by(at.min(n - 1), T::order);
    let b = above.iter().copied().min_by(T::order).unwrap_or(a);
    Some((a, b, weight))
}

/// numpy's interpolation: from the nearer end, so that it is monotonic and meets both ends.
///
/// numpy gives NaN for most places beside an infinity, as it computes inf - inf or 0 inf there. Where it gives a number
/// that is the limit, and here the limit is given for the others too; only between -inf and inf there is none.
fn between(a: f64, b: f64, difference: f64, t: f64) -> f64 {
    if a.is_infinite() || b.is_infinite() {
        return match (a.is_infinite(), b.is_infinite()) {
            _ if t == 0.0 || a == b => a,
            (true, true) => f64::NAN,
            (true, false) => a,
            _ => b,
        };
    }
    if t >= 0.5 { b - difference * (1.0 - t) } else { a + difference * t }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantile<T: Ranked>(values: &[T], q: f64) -> Option<f64> {
        super::quantile(&mut values.to_vec(), q)
    }

    fn median<T: Ranked>(values: &[T]) -> Option<f64> {
        super::median(&mut values.to_vec())
    }

    /// What numpy 2.4 gives.
    #[test]
    fn quantiles_are_numpys() {
        let x = [3.0, 1.0, 2.0, 10.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.9, 7.900000000000001), (1.0, 10.0)] {
            assert_eq!(quantile(&x, q), Some(expected), "{q}");
        }
        assert_eq!(quantile::<f64>(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.3), Some(7.0));
        assert_eq!(quantile(&[1_i64, 2], 0.75), Some(1.75));
        assert_eq!(quantile(&[1.0, f64::INFINITY], 0.25), Some(f64::INFINITY));
    }

    /// numpy 2.4 gives the same for a whole number `q` of 0 and 1, and else these numbers or NaN.
    #[test]
    fn infinities_are_limits() {
        let inf = f64::INFINITY;
        for (x, expected) in [
            ([1.0, inf].to_vec(), [1.0, inf, inf, inf, inf]),
            ([-inf, 1.0].to_vec(), [-inf, -inf, -inf, -inf, 1.0]),
            ([1.0, 2.0, inf].to_vec(), [1.0, 1.5, 2.0, inf, inf]),
            ([-inf, 1.0, 2.0, inf].to_vec(), [-inf, -inf, 1.5, inf, inf]),
            ([inf, inf].to_vec(), [inf; 5]),
            ([-inf, -inf, inf].to_vec(), [-inf, -inf, -inf, f64::NAN, inf]),
        ] {
            for (q, expected) in [0.0, 0.25, 0.5, 0.75, 1.0].into_iter().zip(expected) {
                let got = quantile(&x, q).unwrap();
                assert!(got == expected || (got.is_nan() && expected.is_nan()), "{x:?} {q}: {got}");
            }
        }
    }

    /// What numpy 2.4 gives, bit for bit, of zeros of one sign.
    #[test]
    fn zeros_have_the_signs_of_numpys() {
        let (n, p) = (-0.0, 0.0);
        for (x, median, quantiles) in [
            (vec![n], p, [n, n, n, n, n]),
            (vec![p], p, [p, p, p, p, p]),
            (vec![n, n], p, [p, p, n, n, p]),
            (vec![n, n, n], p, [p, n, p, n, p]),
            (vec![-1.0, n], -0.5, [-1.0, -0.75, -0.5, -0.25, p]),
            (vec![1.0, n, -1.0], p, [-1.0, -0.5, p, 0.5, 1.0]),
        ] {
            assert_eq!(super::median(&mut x.clone()).unwrap().to_bits(), f64::to_bits(median), "{x:?}");
            for (q, expected) in [0.0, 0.25, 0.5, 0.75, 1.0].into_iter().zip(quantiles) {
                assert_eq!(quantile(&x, q).unwrap().to_bits(), f64::to_bits(expected), "{x:?} {q}");
            }
        }
    }

    #[test]
    fn integers_keep_their_distance() {
        assert_eq!(quantile(&[i64::MIN, i64::MAX], 0.5), Some(0.0));
        assert_eq!(quantile(&[u64::MAX, u64::MAX - 2], 1.0), Some(u64::MAX as f64));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[1.0, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median::<f64>(&[]), None);
        assert_eq!(median(&[1_i64, 4]), Some(2.5));
        assert_eq!(median(&[5_u64]), Some(5.0));
    }
}
