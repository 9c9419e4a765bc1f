//! Elements put into groups: by their value, or between cuts. Each element gets the number of its group.

use super::ordinal::Ordinal;

/// Elements that a bin is made of: a closed interval of ordinals, tight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub low: u64,
    pub high: u64,
    pub count: u64,
}

/// Groups, some of them perhaps of no elements, and the group of each element.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub list: Vec<Group>,
    pub of: Vec<u32>,
    table: Vec<u32>,
}

const FREE: u32 = u32::MAX;

impl Groups {
    /// One group for each value, in the order of their coming. `false`, and nothing of use in here, as
    /// soon as there are more than `limit`.
    pub(super) fn by_value<O: Ordinal>(&mut self, ordinals: &[O], limit: usize) -> bool {
        // An open hash table, a quarter full at most.
        let bits = (limit * 4).next_power_of_two().ilog2();
        self.table.clear();
        self.table.resize(1 << bits, FREE);
        self.list.clear();
        self.of.clear();
        self.of.reserve(ordinals.len());
        for &x in ordinals {
            let value = x.get();
            // Multiplicative hashing: Knuth, The Art of Computer Programming 3, section 6.4.
            let mut at = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize;
            let group = loop {
                let found = self.table[at];
                if found == FREE {
                    if self.list.len() == limit {
                        return false;
                    }
                    self.table[at] = self.list.len() as u32;
                    self.list.push(Group { low: value, high: value, count: 0 });
                    break self.table[at];
                }
                if self.list[found as usize].low == value {
                    break found;
                }
                at = (at + 1) & ((1 << bits) - 1);
            };
            self.list[group as usize].count += 1;
            self.of.push(group);
        }
        true
    }

    /// Groups between the cuts (ascending, distinct): a cut is the least ordinal of its group.
    ///
    /// `low..=high` is where most elements are. It is cut into buckets of equal width, a power of two, and a
    /// table says which cuts fall into each: mostly none, so that its group is known without a comparison.
    pub(super) fn between<O: Ordinal>(&mut self, ordinals: &[O], cuts: &[u64], low: u64, high: u64) {
        let most = (ordinals.len() / 4).clamp(1 << 10, 1 << 16) as u64;
        let shift = (0..64).find(|s| (high - low) >> s < most).unwrap_or(63);
        let buckets = ((high - low) >> shift) as usize + 1;
        self.table.clear();
        // Below `low` is bucket 0, all that lies above `high` joins the last bucket.
        self.table.push(0);
        let mut passed = 0;
        for bucket in 1..buckets as u64 {
            let start = low + (bucket << shift);
            while passed < cuts.len() && cuts[passed] <= start {
                passed += 1;
            }
            self.table.push(passed as u32);
        }
        self.table.push(cuts.len() as u32);
        self.list.clear();
        self.list.resize(cuts.len() + 1, Group { low: u64::MAX, high: 0, count: 0 });
        self.of.clear();
        self.of.reserve(ordinals.len());
        for &x in ordinals {
            let x = x.get();
            let bucket = ((x.clamp(low, high) - low) >> shift) as usize;
            let (mut group, end) = (self.table[bucket] as usize, self.table[bucket + 1] as usize);
            if end - group > 8 {
                group += cuts[group..end].partition_point(|&cut| cut <= x);
            } else {
                while group < end && cuts[group] <= x {
                    group += 1;
                }
            }
            let entry = &mut self.list[group];
            *entry = Group { low: entry.low.min(x), high: entry.high.max(x), count: entry.count + 1 };
            self.of.push(group as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(groups: &Groups, values: &[u64]) {
        for (i, group) in groups.list.iter().enumerate() {
            let of: Vec<u64> =
                (0..values.len()).filter(|&k| groups.of[k] == i as u32).map(|k| values[k]).collect();
            assert_eq!(of.len() as u64, group.count);
            if let (Some(&low), Some(&high)) = (of.iter().min(), of.iter().max()) {
                assert_eq!((low, high), (group.low, group.high));
            }
        }
    }

    proptest! {
        #[test]
        fn cuts_part_the_elements(
            values in proptest::collection::vec(prop_oneof![any::<u64>(), 0..50_u64, u64::MAX - 50..=u64::MAX], 1..200),
            cuts in proptest::collection::btree_set(prop_oneof![any::<u64>(), 1..50_u64, u64::MAX - 50..=u64::MAX], 0..80),
            low: u64, high: u64,
        ) {
            let cuts: Vec<u64> = cuts.into_iter().collect();
            let mut groups = Groups::default();
            for (low, high) in [(low.min(high), low.max(high)), (0, u64::MAX), (10, 30)] {
                groups.between(&values, &cuts, low, high);
                for (i, &x) in values.iter().enumerate() {
                    prop_assert_eq!(groups.of[i] as usize, cuts.iter().filter(|&&c| c <= x).count());
                }
                check(&groups, &values);
            }
        }

        #[test]
        fn values_are_told_apart(values in proptest::collection::vec(0..40_u64, 0..200), limit in 1..50_usize) {
            let distinct: std::collections::HashSet<u64> = values.iter().copied().collect();
            let mut groups = Groups::default();
            let few = groups.by_value(&values, limit);
            prop_assert_eq!(few, distinct.len() <= limit);
            if few {
                prop_assert_eq!(groups.list.len(), distinct.len());
                check(&groups, &values);
            }
        }
    }
}
