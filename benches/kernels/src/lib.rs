//! Values that the benchmarks of kernels run on.

/// `n` values between 0 and 1, the same in each run: the fractions of a linear congruential generator.
pub fn fractions(n: usize) -> impl Iterator<Item = f32> {
    let mut state = 1_u64;
    (0..n).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    })
}
