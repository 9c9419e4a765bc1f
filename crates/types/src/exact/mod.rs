//! Exact sums of floats and integers: the same bits in any order, whatever way the values are cut into pieces.

mod natural;
mod split;
mod sum;
mod widest;
mod wire;

pub use natural::Natural;
pub use split::{BLOCK, Survey, Units};
pub use sum::{ExactSum, FIRST_EXPONENT, rounded, sum_i64, sum_u64};
pub use wire::Sum;

/// The rounded sum, and what it lacks of the exact one; NaN where the sum is infinite.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}
