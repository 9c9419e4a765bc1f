//! Sorting positions, each with its place, as single words.

/// Bits that the radix sort takes at once, at most.
const DIGIT: u32 = 11;
/// Fewer words than this are sorted by comparison.
const SMALL: usize = 1 << 6;

/// How a position and a place share a word: the position in the upper bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Bits of the positions.
    pub position_bits: u32,
    /// Bits of the places, below them.
    pub place_bits: u32,
}

impl Packing {
    /// That of positions below `limit` and of `len` places; `None` where both do not fit a word.
    pub fn of(limit: u64, len: u64) -> Option<Self> {
        let bits = |n: u64| u64::BITS - n.saturating_sub(1).leading_zeros();
        let packing = Self { position_bits: bits(limit), place_bits: bits(len) };
        (packing.position_bits + packing.place_bits < u64::BITS).then_some(packing)
    }

    /// The word of a position at a place.
    pub fn word(self, position: u64, place: u64) -> u64 {
        position << self.place_bits | place
    }

    /// The position of a word.
    pub fn position(self, word: u64) -> u64 {
        word >> self.place_bits
    }

    /// The place of a word.
    pub fn place(self, word: u64) -> usize {
        (word & ((1 << self.place_bits) - 1)) as usize
    }
}

/// Sorts words by the bits from `low` to `high`, which differ in all of them: by digits from the least significant one, which
/// beats comparisons where there are many. Bits from `high` on are the same in all.
pub fn sort(words: &mut [u64], scratch: &mut Vec<u64>, low: u32, high: u32) {
    if words.len() < SMALL || high <= low {
        words.sort_unstable();
        return;
    }
    let passes = (high - low).div_ceil(DIGIT);
    let digit_bits = (high - low).div_ceil(passes);
    if scratch.len() < words.len() {
        scratch.resize(words.len(), 0);
    }
    let (mut from, mut to) = (words, &mut scratch[..]);
    let n = from.len();
    to = &mut to[..n];
    for pass in 0..passes {
        let shift = low + pass * digit_bits;
        // The last digit may have fewer bits: what is above is the same in all words, and is left out.
        let mask = (1_usize << digit_bits.min(high - shift)) - 1;
        let digit = |word: u64| (word >> shift) as usize & mask;
        let mut ends = [0_u32; 1 << DIGIT];
        let ends = &mut ends[..mask + 1];
        from.iter().for_each(|&w| ends[digit(w)] += 1);
        let mut start = 0;
        for end in ends.iter_mut() {
            start += std::mem::replace(end, start);
        }
        for &word in from.iter() {
            let slot = &mut ends[digit(word)];
            to[*slot as usize] = word;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    if passes % 2 == 1 {
        // What is sorted lies in the scratch.
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn positions_and_places_share_a_word_where_both_fit() {
        let fits = |limit, len| Packing::of(limit, len).map(|p| (p.position_bits, p.place_bits));
        assert_eq!(fits(100_000_000, 294_688), Some((27, 19)));
        assert_eq!((fits(1 << 39, 1 << 24), fits(1 << 40, 1 << 24)), (Some((39, 24)), None));
        assert_eq!((fits(1, 1), fits(0, 0), fits(u64::MAX, 1)), (Some((0, 0)), Some((0, 0)), None));
        let packing = Packing::of(1000, 1000).unwrap();
        let word = packing.word(999, 998);
        assert_eq!((packing.position(word), packing.place(word)), (999, 998));
        let packing = Packing::of(7, 1).unwrap();
        assert_eq!((packing.position(packing.word(6, 0)), packing.place(packing.word(6, 0))), (6, 0));
    }

    proptest! {
        #[test]
        fn the_radix_sort_agrees_with_comparisons(
            limit in prop_oneof![Just(1_u64), Just(7), Just(100_000_000), Just(1 << 39), 1_u64..1 << 39],
            n in prop_oneof![0_usize..200, Just(20_000)],
            seed in any::<u64>(),
            same in 0_u32..20,
        ) {
            let packing = Packing::of(limit, n as u64).unwrap();
            let mut state = seed | 1;
            let mut words: Vec<u64> = (0..n as u64).map(|i| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                packing.word((state >> 20) % limit, i)
            }).collect();
            let mut want = words.clone();
            want.sort_unstable();
            let (low, high) = (packing.place_bits, packing.place_bits + packing.position_bits);
            let mut scratch = vec![3; 5];
            sort(&mut words, &mut scratch, low, high);
            prop_assert_eq!(&words, &want);
            // Of words with the same upper bits.
            let high = high.saturating_sub(same).max(low);
            let upper = |w: u64| w >> high;
            for run in want.chunk_by(|a, b| upper(*a) == upper(*b)) {
                let mut reversed: Vec<u64> = run.iter().rev().copied().collect();
                // Equal positions keep the order in which they came: each comes once.
                reversed.dedup_by_key(|w| packing.position(*w));
                let mut want = reversed.clone();
                want.sort_unstable();
                sort(&mut reversed, &mut scratch, low, high);
                prop_assert_eq!(reversed, want);
            }
        }
    }
}
