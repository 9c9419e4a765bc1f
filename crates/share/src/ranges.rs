//! Sets of numbers that mostly follow one another, as ranges.

use serde::{Deserialize, Serialize};

/// A set of numbers, as ranges `[first, end)` in their order, of which none touches the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Whether it is one: what others wrote may be anything.
    pub fn is_valid(&self) -> bool {
        self.0.iter().all(|(first, end)| first < end) && self.0.windows(2).all(|two| two[0].1 < two[1].0)
    }

    pub fn contains(&self, number: u64) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= number);
        after > 0 && number < self.0[after - 1].1
    }

    pub fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let end = number.saturating_add(1);
        let at = self.0.partition_point(|(first, _)| *first <= number);
        let joins_next = self.0.get(at).is_some_and(|next| next.0 == end);
        match at.checked_sub(1).filter(|&before| self.0[before].1 == number) {
            Some(before) if joins_next => {
                self.0[before].1 = self.0[at].1;
                self.0.remove(at);
            }
            Some(before) => self.0[before].1 = end,
            None if joins_next => self.0[at].0 = number,
            None => self.0.insert(at, (number, end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_the_set_of_what_was_inserted_in_as_few_ranges_as_there_are() {
        // All orders of many numbers, drawn by a generator that repeats.
        for seed in 1..200_u64 {
            let (mut ranges, mut set, mut state) = (Ranges::default(), BTreeSet::new(), seed);
            for _ in 0..40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (state >> 33) % 30;
                ranges.insert(number);
                set.insert(number);
                assert!(ranges.is_valid(), "{ranges:?}");
                for n in 0..31 {
                    assert_eq!(ranges.contains(n), set.contains(&n), "{n} in {ranges:?}");
                }
                let gaps = set.iter().filter(|&&n| !set.contains(&(n + 1))).count();
                assert_eq!(ranges.0.len(), gaps);
            }
        }
    }

    #[test]
    fn what_is_no_set_is_noticed() {
        for wrong in [&[(1, 1)][..], &[(2, 1)], &[(0, 2), (1, 3)], &[(0, 2), (2, 3)], &[(5, 6), (0, 1)]] {
            assert!(!Ranges(wrong.to_vec()).is_valid(), "{wrong:?}");
        }
        assert!(Ranges(vec![(0, 2), (3, u64::MAX)]).is_valid());
    }
}
