//! Bit vectors, a bit per row.

/// Words for the bits of so many rows.
pub fn words(rows: usize) -> usize {
    rows.div_ceil(64)
}

/// Number of ones.
pub fn ones(bits: &[u64]) -> u64 {
    bits.iter().map(|w| u64::from(w.count_ones())).sum()
}

/// Whether no bit past the last row is set.
pub fn ends(bits: &[u64], rows: usize) -> bool {
    bits.iter().enumerate().all(|(i, &w)| match rows.saturating_sub(i * 64) {
        0 => w == 0,
        n @ 1..64 => w >> n == 0,
        _ => true,
    })
}

/// Whether no row is in both.
pub fn disjoint(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a & b == 0)
}

/// The rows that are in `sure`, or in `check` and truly in the set.
pub fn answer(sure: &[u64], check: &[u64], truth: &[u64]) -> Vec<u64> {
    sure.iter().zip(check).zip(truth).map(|((s, c), t)| s | (c & t)).collect()
}
