//! Sets of object numbers as closed intervals, in order and apart from one another.

use sieva_types::{Error, ErrorKind, Result};

/// Intervals that an answer may take in memory: 256 MiB.
pub(crate) const MAX_INTERVALS: usize = 1 << 24;

/// A set of object numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intervals(Vec<(i64, i64)>);

/// The error of a set that takes too much memory.
pub(crate) fn too_many() -> Error {
    let message = format!("a part of the filter is satisfied in more than {MAX_INTERVALS} separate places");
    Error::new(ErrorKind::MemoryLimit, message).hint("make the filter narrower, or name a collection")
}

impl Intervals {
    /// All numbers.
    pub(crate) fn all() -> Self {
        Self(vec![(0, i64::MAX)])
    }

    /// The union of intervals in any order.
    pub(crate) fn of(mut parts: Vec<(i64, i64)>) -> Self {
        parts.sort_unstable();
        let mut out: Vec<(i64, i64)> = Vec::with_capacity(parts.len());
        for (first, last) in parts {
            match out.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => out.push((first, last)),
            }
        }
        Self(out)
    }

    pub(crate) fn parts(&self) -> &[(i64, i64)] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first and the last number.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }

    /// How many numbers there are.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().fold(0, |n, &(first, last)| n.saturating_add(last.abs_diff(first).saturating_add(1)))
    }

    /// What both hold.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut i, mut j, mut out) = (0, 0, Vec::new());
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let (first, last) = (a.0.max(b.0), a.1.min(b.1));
            if first <= last {
                out.push((first, last));
            }
            if a.1 < b.1 { i += 1 } else { j += 1 }
        }
        Self(out)
    }

    /// What one of them holds.
    pub(crate) fn or(&self, other: &Self) -> Result<Self> {
        if self.0.len() + other.0.len() > MAX_INTERVALS {
            return Err(too_many());
        }
        Ok(Self::of(self.0.iter().chain(&other.0).copied().collect()))
    }

    /// What this one holds and the other does not.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut gaps = Vec::with_capacity(other.0.len() + 1);
        let mut from = i64::MIN;
        for &(first, last) in &other.0 {
            if from < first {
                gaps.push((from, first - 1));
            }
            from = last.saturating_add(1);
        }
        if other.0.last().is_none_or(|&(_, last)| last < i64::MAX) {
            gaps.push((from, i64::MAX));
        }
        self.and(&Self(gaps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(parts: &[(i64, i64)]) -> BTreeSet<i64> {
        parts.iter().flat_map(|&(a, b)| a..=b).collect()
    }

    fn parts() -> impl Strategy<Value = Vec<(i64, i64)>> {
        prop::collection::vec((0i64..60, 0i64..6).prop_map(|(a, n)| (a, a + n)), 0..12)
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(a in parts(), b in parts()) {
            let (x, y) = (Intervals::of(a.clone()), Intervals::of(b.clone()));
            let (p, q) = (set(&a), set(&b));
            prop_assert_eq!(set(x.parts()), p.clone());
            prop_assert_eq!(x.total(), p.len() as u64);
            prop_assert_eq!(set(x.and(&y).parts()), &p & &q);
            prop_assert_eq!(set(x.or(&y).unwrap().parts()), &p | &q);
            prop_assert_eq!(set(x.without(&y).parts()), &p - &q);
            for w in x.without(&y).parts().windows(2) {
                prop_assert!(w[0].1 < w[1].0);
            }
        }
    }

    #[test]
    fn the_ends_of_the_numbers_do_not_overflow() {
        let all = Intervals::all();
        assert_eq!(all.without(&all), Intervals::default());
        assert_eq!(all.without(&Intervals::of(vec![(5, i64::MAX)])).parts(), [(0, 4)]);
        assert_eq!(Intervals::of(vec![(7, i64::MAX), (i64::MAX, i64::MAX)]).parts(), [(7, i64::MAX)]);
        assert_eq!(all.total(), 1 << 63);
    }
}
