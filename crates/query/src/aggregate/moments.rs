//! Count, mean and sum of squared deviations, for variances.
//!
//! Single values go in as in B. P. Welford, "Note on a method for calculating corrected sums of squares and
//! products", Technometrics 4 (1962), 419-420. A block is first reduced by two passes over it, with the
//! correction for the rounded mean, and then merged as another state is, by the update of T. F. Chan,
//! G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance", The American Statistician 37
//! (1983), 242-247 (equations 1.7 for the two passes and 2.1 for the merge).

/// Values are reduced in blocks of so many, which stay in the first-level cache between the passes.
const BLOCK: usize = 1024;
/// Sums are taken in so many lanes, for the compiler to keep in vector registers.
const LANES: usize = 8;

/// What is known of the values so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    count: u64,
    mean: f64,
    /// The sum of squared deviations from the mean.
    deviations: f64,
}

impl Moments {
    pub(super) fn add(&mut self, x: f64) {
        self.count += 1;
        let before = x - self.mean;
        self.mean += before / self.count as f64;
        self.deviations += before * (x - self.mean);
    }

    pub(super) fn add_all(&mut self, values: &[f64]) {
        for block in values.chunks(BLOCK) {
            self.merge(&Self::of_block(block));
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let total = n + m;
        let apart = other.mean - self.mean;
        self.mean += apart * (m / total);
        self.deviations += other.deviations + apart * apart * (n * (m / total));
        self.count += other.count;
    }

    /// The variance with divisor n - `freedom`; none of no more values than that.
    pub(super) fn variance(&self, freedom: u64) -> Option<f64> {
        (self.count > freedom).then(|| self.deviations / (self.count - freedom) as f64)
    }

    fn of_block(block: &[f64]) -> Self {
        let n = block.len() as f64;
        let mean = lane_sum(block, |x| x) / n;
        let squares = lane_sum(block, |x| (x - mean) * (x - mean));
        let rest = lane_sum(block, |x| x - mean);
        Self { count: block.len() as u64, mean: mean + rest / n, deviations: squares - rest * rest / n }
    }
}

fn lane_sum(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f(x);
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|&x| f(x)).sum::<f64>()
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
        values.iter().for_each(|&x| m.add(x));
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
    }

    #[test]
    fn a_large_mean_does_not_drown_the_variance() {
        let values: Vec<f64> = (0..10_000).map(|i| 1e9 + f64::from(i % 2)).collect();
        assert_eq!(of(&values).variance(0), Some(0.25));
        assert!((one_by_one(&values).variance(0).unwrap() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn infinity_has_no_variance() {
        assert!(of(&[1.0, f64::INFINITY]).variance(0).unwrap().is_nan());
    }

    proptest! {
        /// Integers, for which the variance is a fraction of whole numbers.
        #[test]
        fn variances_are_near_the_exact_ones(
            values in prop::collection::vec(-1_000_000_i64..1_000_000, 2..3000),
            offset in -1_000_000_000_i64..1_000_000_000,
            cut in 0_usize..3000,
        ) {
            let n = values.len() as i128;
            let sum: i128 = values.iter().map(|&v| i128::from(v)).sum();
            let squares: i128 = values.iter().map(|&v| i128::from(v).pow(2)).sum();
            let exact = (n * squares - sum * sum) as f64 / (n * n) as f64;
            let values: Vec<f64> = values.iter().map(|&v| (v + offset) as f64).collect();
            let cut = cut.min(values.len());
            let mut merged = of(&values[..cut]);
            merged.merge(&of(&values[cut..]));
            for got in [of(&values), merged, one_by_one(&values)] {
                let got = got.variance(0).unwrap();
                prop_assert!((got - exact).abs() <= 1e-9 * exact, "{got} instead of {exact}");
            }
        }
    }
}
