//! Variances: of the exact sums of the values and of their squares, rounded once.
//!
//! The square of a `float64` is exactly the sum of two: the rounded product and its error (T. J. Dekker, "A
//! floating-point technique for extending the available precision", Numerische Mathematik 18 (1971), 224-242). Both
//! go into an exact sum. At the end `(n Σx² - (Σx)²) / (n (n - f))` is computed in whole numbers and rounded, so that
//! the variance is the `float64` nearest to the true one, however the values were cut into pieces.

mod wire;

use sieva_types::exact::{BLOCK, ExactSum, FIRST_EXPONENT, Survey, rounded};

/// Below so many values it does not pay to look at them first.
const BULK: usize = 64;
/// Squares of values from here on leave the range of `float64` ...
const LARGE: f64 = f64::from_bits((1023 + 511) << 52);
/// ... and those below here have errors that do, as far as they are not zero.
const SMALL: f64 = f64::from_bits((1023 - 485) << 52);
/// Such values are scaled by 2^-608 or 2^608, their squares so by 38 digits of a sum.
const SCALE: u64 = 608;
const SCALED_DIGITS: i64 = 2 * SCALE as i64 / 32;
/// Bits of a mantissa that are zero where its square has no more than 53: 26 are left.
const LOW_BITS: u64 = (1 << 27) - 1;
/// The unit of sums is 2^-(32 UNIT_DIGITS - UNIT_BITS).
const UNIT_DIGITS: i64 = (31 - FIRST_EXPONENT) / 32;
const UNIT_BITS: u32 = (32 * UNIT_DIGITS + FIRST_EXPONENT) as u32;
/// Integers up to here are `float64` exactly.
const EXACT: i128 = 1 << 53;

/// What is known of the values so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    count: u64,
    sum: ExactSum,
    squares: ExactSum,
    /// Squares of scaled values: of large ones, and of small ones.
    scaled: Option<Box<[ExactSum; 2]>>,
}

impl Moments {
    /// What is known of so many finite values with plain squares ([`has_plain_square`]), by their sums.
    pub(super) fn of(count: u64, sum: ExactSum, squares: ExactSum) -> Self {
        Self { count, sum, squares, scaled: None }
    }

    /// Adds values, none of which is NaN.
    pub(super) fn add_all(&mut self, values: &[f64]) {
        if values.len() < BULK {
            return values.iter().for_each(|&x| self.add(x));
        }
        for block in values.chunks(BLOCK) {
            let survey = Survey::of(block);
            self.count += block.len() as u64;
            self.sum.add_mapped(block, survey.largest, |x| x);
            self.add_squares(block, survey);
        }
    }

    /// Adds integers, beyond 2^53 exactly too.
    pub(super) fn add_integers(&mut self, values: impl Iterator<Item = i128>) {
        for x in values {
            let near = x as f64;
            if x.abs() <= EXACT {
                self.add(near);
                continue;
            }
            // x is near + rest, and its square near² + 2 near rest + rest².
            let rest = (x - near as i128) as f64;
            self.count += 1;
            self.sum.add(near);
            self.sum.add(rest);
            self.add_product(near, near);
            self.add_product(2.0 * near, rest);
            self.add_product(rest, rest);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
        if let Some(other) = &other.scaled {
            let known = self.scaled.get_or_insert_default();
            known.iter_mut().zip(other.iter()).for_each(|(to, from)| to.merge(from));
        }
    }

    /// The variance with divisor n - `freedom`; none of no more values than that, NaN if one is infinite.
    pub(super) fn variance(&self, freedom: u64) -> Option<f64> {
        if self.count <= freedom {
            return None;
        }
        if !self.sum.is_finite() {
            return Some(f64::NAN);
        }
        let mut squares = self.squares.natural();
        for (sum, moved) in self.scaled.iter().flat_map(|s| s.iter()).zip([SCALED_DIGITS, -SCALED_DIGITS]) {
            squares = squares.plus(&sum.natural().moved(moved));
        }
        // Sums count 2^FIRST_EXPONENT, and the square of one the square of that, which is less by 34 digits but 13 bits.
        let squares = squares.times(self.count).moved(UNIT_DIGITS - 1).shifted(32 - UNIT_BITS);
        let deviations = squares.minus(&self.sum.natural().squared());
        // The quotient begins no more than four digits below the dividend, and has at least three for rounding.
        let low = deviations.end() - 8;
        let quotient = deviations.divided(self.count, low).divided(self.count - freedom, low);
        Some(rounded(&quotient.moved(-UNIT_DIGITS).shifted(UNIT_BITS)))
    }

    fn add(&mut self, x: f64) {
        self.count += 1;
        self.sum.add(x);
        self.add_square(x);
    }

    fn add_square(&mut self, x: f64) {
        let size = x.abs();
        if size == 0.0 || !x.is_finite() {
            // An infinity is known from the sum.
        } else if size >= LARGE {
            add_product(&mut self.scaled.get_or_insert_default()[0], scaled(x, -1), scaled(x, -1));
        } else if size < SMALL {
            add_product(&mut self.scaled.get_or_insert_default()[1], scaled(x, 1), scaled(x, 1));
        } else {
            self.add_product(x, x);
        }
    }

    fn add_product(&mut self, a: f64, b: f64) {
        add_product(&mut self.squares, a, b);
    }

    fn add_squares(&mut self, block: &[f64], survey: Survey) {
        if !(survey.largest < LARGE && survey.least >= SMALL) {
            return block.iter().for_each(|&x| self.add_square(x));
        }
        let largest = survey.largest * survey.largest;
        self.squares.add_mapped(block, largest, |x| x * x);
        if survey.bits & LOW_BITS != 0 {
            self.squares.add_mapped(block, largest * f64::EPSILON, |x| product_error(x, x));
        }
    }
}

/// Adds a product of numbers of middle size exactly.
fn add_product(sum: &mut ExactSum, a: f64, b: f64) {
    sum.add(a * b);
    sum.add(product_error(a, b));
}

/// Whether the square of a value is the sum of two `float64`, the rounded product and its error.
#[inline(always)]
pub(super) fn has_plain_square(x: f64) -> bool {
    let size = x.abs();
    size == 0.0 || (SMALL..LARGE).contains(&size)
}

/// What a rounded product lacks of the exact one (Dekker's algorithm: the halves of the factors have 26 bits, so that
/// their products are exact).
#[inline(always)]
pub(super) fn product_error(a: f64, b: f64) -> f64 {
    let halves = |x: f64| {
        let far = 134_217_729.0 * x;
        let high = far - (far - x);
        (high, x - high)
    };
    let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
    a2 * b2 - (((a * b - a1 * b1) - a2 * b1) - a1 * b2)
}

/// Times 2^608 or 2^-608, exactly.
fn scaled(x: f64, by: i32) -> f64 {
    let power = |e: u64| f64::from_bits(e << 52);
    x * if by < 0 { power(1023 - SCALE) } else { power(1023 + SCALE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Moments {
        let mut m = Moments::default();
        m.add_all(values);
        m
    }

    fn one_by_one(values: &[f64]) -> Moments {
        let mut m = Moments::default();
        values.iter().for_each(|&x| m.add_all(&[x]));
        m
    }

    #[test]
    fn exact_small_cases() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        for m in [of(&values), one_by_one(&values)] {
            assert_eq!(m.variance(0), Some(4.0));
            assert_eq!(m.variance(1), Some(32.0 / 7.0));
        }
        assert_eq!(of(&[]).variance(0), None);
        assert_eq!(of(&[3.0]).variance(0), Some(0.0));
        assert_eq!(of(&[3.0]).variance(1), None);
        assert_eq!(of(&[0.1; 1000]).variance(0), Some(0.0));
        assert_eq!(of(&[-0.0, 0.0]).variance(0), Some(0.0));
    }

    /// Of 1/10, 2/10 and 3/10 as they are stored: fractions.Fraction in Python gives this.
    #[test]
    fn rounded_once() {
        assert_eq!(of(&[0.1, 0.2, 0.3]).variance(1), Some(0.009999999999999998));
        assert_eq!(of(&[0.1, 0.2, 0.3]).variance(0), Some(0.006666666666666665));
    }

    #[test]
    fn a_large_mean_does_not_drown_the_variance() {
        for mean in [1.7e9, 1e15] {
            let values: Vec<f64> = (0..10_000).map(|i| mean + f64::from(i % 2)).collect();
            assert_eq!(of(&values).variance(0), Some(0.25));
            assert_eq!(one_by_one(&values).variance(0), Some(0.25));
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(of(&[f64::MAX, f64::MAX]).variance(0), Some(0.0));
        assert_eq!(of(&[f64::MAX, -f64::MAX]).variance(0), Some(f64::INFINITY));
        assert_eq!(of(&[1e160, 1e160, 3.0]).variance(1), Some(f64::INFINITY));
        assert_eq!(of(&[5e-324, 0.0]).variance(0), Some(0.0));
        let two = |e: i32| match e {
            -1022.. => f64::from_bits(((1023 + e) as u64) << 52),
            _ => f64::from_bits(1 << (e + 1074)),
        };
        assert_eq!(of(&[two(511), -two(511)]).variance(0), Some(two(1022)));
        assert_eq!(of(&[two(511) + two(500), two(511) - two(500)]).variance(0), Some(two(1000)));
        assert_eq!(of(&[two(-530), -two(-530)]).variance(0), Some(two(-1060)));
        assert_eq!(of(&[two(-537), -two(-537)]).variance(0), Some(5e-324));
        assert_eq!(of(&[two(-538), -two(-538)]).variance(0), Some(0.0));
        assert_eq!(of(&[two(600), two(600)]).variance(1), Some(0.0));
    }

    #[test]
    fn infinity_has_no_variance() {
        assert!(of(&[1.0, f64::INFINITY]).variance(0).unwrap().is_nan());
        assert!(of(&[f64::INFINITY; 100]).variance(1).unwrap().is_nan());
    }

    #[test]
    fn integers_beyond_2_to_53_are_exact() {
        let mut m = Moments::default();
        let near = 1_i128 << 62;
        m.add_integers([near + 1, near + 3].into_iter());
        assert_eq!(m.variance(0), Some(1.0));
        m.add_integers([i128::from(u64::MAX)].into_iter());
        let mut ends = Moments::default();
        ends.add_integers([i128::from(i64::MIN), i128::from(i64::MAX)].into_iter());
        // ((2^64 - 1) / 2)^2, rounded.
        assert_eq!(ends.variance(0), Some(2_f64.powi(126)));
    }

    proptest! {
        /// Integers, for which the variance is a fraction of whole numbers.
        #[test]
        fn variances_are_the_exact_ones_rounded(
            values in prop::collection::vec(-1_000_000_i64..1_000_000, 2..3000),
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
        ) {
            let n = values.len() as i128;
            let sum: i128 = values.iter().map(|&v| i128::from(v)).sum();
            let squares: i128 = values.iter().map(|&v| i128::from(v).pow(2)).sum();
            // Below 2^53 but for the rounding of the quotient.
            let exact = (n * squares - sum * sum) as f64 / (n * n) as f64;
            let values: Vec<f64> = values.iter().map(|&v| (v + offset) as f64).collect();
            let got = of(&values).variance(0).unwrap();
            prop_assert!((got - exact).abs() <= 4.0 * f64::EPSILON * exact, "{} instead of {}", got, exact);
        }

        /// Bit for bit, also where values are of very different sizes, at the ends of the range among them.
        #[test]
        fn any_cut_and_order_give_the_same_variance(
            values in prop::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 2..300),
            narrow in prop::collection::vec((1e15_f64..1e15 + 100.0, any::<bool>()), 0..300),
            cut in 0_usize..600,
        ) {
            let all: Vec<f64> = values.iter().copied().chain(narrow.iter().map(|&(x, _)| x)).collect();
            for values in [&all[..], &all[values.len()..]] {
                let cut = cut.min(values.len());
                let mut merged = of(&values[cut..]);
                merged.merge(&one_by_one(&values[..cut]));
                let reversed: Vec<f64> = values.iter().rev().copied().collect();
                let bits = |m: &Moments| [0, 1].map(|f| m.variance(f).map(f64::to_bits));
                prop_assert_eq!(bits(&merged), bits(&of(values)));
                prop_assert_eq!(bits(&of(&reversed)), bits(&of(values)));
            }
        }
    }
}
