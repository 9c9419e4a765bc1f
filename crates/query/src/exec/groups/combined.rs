//! One number for the values of several keys.

use std::collections::HashMap;

use super::seeded::Seeded;

/// For each hit, one number for the values of all keys so far; all are below a bound.
pub(super) struct Combined {
    pub(super) codes: Vec<u32>,
    below: u64,
}

impl Combined {
    /// Of no keys yet, for so many hits.
    pub(super) fn new(hits: usize) -> Self {
        Self { codes: vec![0; hits], below: 1 }
    }

    /// Takes in the numbers of another key, which are below `len`.
    pub(super) fn by(&mut self, numbers: &[u32], len: usize) {
        let len = (len as u64).max(1);
        // Both are numbers of hits at most, so that the product of the two fits.
        let code = |before: u32, number: u32| u64::from(before) * len + u64::from(number);
        let pairs = self.codes.iter_mut().zip(numbers);
        if self.below * len <= u64::from(u32::MAX) {
            pairs.for_each(|(slot, &number)| *slot = code(*slot, number) as u32);
            self.below *= len;
            return;
        }
        // Too many to be told apart by the product: those that occur are numbered anew.
        let mut known: HashMap<u64, u32, Seeded> = HashMap::default();
        for (slot, &number) in pairs {
            let next = known.len() as u32;
            *slot = *known.entry(code(*slot, number)).or_insert(next);
        }
        self.below = known.len() as u64;
    }

    /// What all numbers are below.
    pub(super) fn below(&self) -> usize {
        self.below as usize
    }

    /// Numbers those that occur anew, where they are few of those that may.
    pub(super) fn narrow(&mut self) {
        if self.below > 4 * self.codes.len() as u64 + 64 {
            let mut known: HashMap<u64, u32, Seeded> = HashMap::default();
            for slot in &mut self.codes {
                let next = known.len() as u32;
                *slot = *known.entry((*slot).into()).or_insert(next);
            }
            self.below = known.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_of_many_values_are_told_apart() {
        // 5 keys of 2^16 values each: their product is 2^80.
        let n = 1 << 16;
        let mut combined = Combined { codes: vec![0; n], below: 1 };
        for key in 0..5_u32 {
            let numbers: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2 * key + 1) % n as u32).collect();
            combined.by(&numbers, n);
        }
        let mut codes = combined.codes;
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), n);
        let mut two = Combined { codes: vec![0; 4], below: 1 };
        two.by(&[0, 1, 0, 1], 2);
        two.by(&[0, 0, 2, 0], 3);
        assert_eq!((&two.codes[..], two.below), (&[0, 3, 2, 3][..], 6));
        two.by(&[0, 999, 0, 999], 1000);
        two.narrow();
        assert_eq!((two.codes, two.below), (vec![0, 1, 2, 1], 3));
    }
}
