//! Sorting positions, each with its place, as single words.

/// Digits that the radix sort takes at once.
const DIGIT: u32 = 11;
/// Fewer pairs than this are sorted by comparison.
const SMALL: usize = 1 << 12;

/// Bits of a place where it shares a word with a position.
pub const PLACE_BITS: u32 = 24;

/// Whether a position and a place fit a word together.
pub fn places_fit(limit: u64, len: u64) -> bool {
    limit < 1 << (u64::BITS - PLACE_BITS) && len <= 1 << PLACE_BITS
}

/// Sorts words by the positions (all below `limit`) in their upper bits: by digits from the least significant
/// one, which beats comparisons where there are many.
pub fn sort(packed: &mut Vec<u64>, limit: u64) {
    if packed.len() < SMALL {
        packed.sort_unstable();
        return;
    }
    let bits = u64::BITS - limit.max(1).leading_zeros();
    let mut other = vec![0; packed.len()];
    for pass in 0..bits.div_ceil(DIGIT) {
        let shift = PLACE_BITS + pass * DIGIT;
        let digit = |p: u64| (p >> shift) as usize & ((1 << DIGIT) - 1);
        let mut ends = [0_usize; 1 << DIGIT];
        packed.iter().for_each(|&p| ends[digit(p)] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        for &word in packed.iter() {
            let slot = &mut ends[digit(word)];
            other[*slot] = word;
            *slot += 1;
        }
        std::mem::swap(packed, &mut other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radix_sort_agrees_with_comparisons() {
        for (n, limit) in [(0, 1), (10, 1 << 39), (5000, 100_000_000), (5000, 1 << 39), (20_000, 7)] {
            let mut state = 1_u64;
            let mut packed: Vec<u64> = (0..n)
                .map(|i| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state % limit) << PLACE_BITS | i
                })
                .collect();
            let mut want = packed.clone();
            want.sort_unstable();
            sort(&mut packed, limit);
            assert_eq!(packed, want);
        }
        assert!(places_fit(1 << 39, 1 << 24) && !places_fit(1 << 40, 1) && !places_fit(1, (1 << 24) + 1));
    }
}
