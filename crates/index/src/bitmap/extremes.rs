//! The range of the present finite numbers on either side of zero.

use super::ordinal::{Ordinal, Scale};

/// What is looked at: the finite numbers on either side of zero, but for missing intervals.
pub(super) struct Targets<'a> {
    negatives: Option<(u64, u64)>,
    positives: (u64, u64),
    missing: &'a [(u64, u64)],
}

impl<'a> Targets<'a> {
    pub(super) fn new(scale: &Scale, missing: &'a [(u64, u64)]) -> Self {
        Self { negatives: scale.negatives(), positives: scale.positives(), missing }
    }
}

/// Least and greatest ordinal of the negative and of the positive numbers that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extremes {
    negative: Option<(u64, u64)>,
    positive: Option<(u64, u64)>,
}

impl Extremes {
    pub(super) fn of<O: Ordinal>(ordinals: &[O], targets: &Targets<'_>) -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the features were just detected.
            return unsafe { wide(ordinals, targets) };
        }
        scan(ordinals, targets)
    }

    /// From the least to the greatest.
    pub(super) fn hull(&self) -> Option<(u64, u64)> {
        let first = self.negative.or(self.positive)?;
        let last = self.positive.or(self.negative)?;
        Some((first.0, last.1))
    }

    /// Least and greatest magnitude of either side, and whether it is the negative one.
    pub(super) fn sides(&self, scale: &Scale) -> impl Iterator<Item = ((u64, u64), bool)> + use<> {
        let scale = *scale;
        let negative = self.negative.map(|(a, b)| ((scale.magnitude(b), scale.magnitude(a)), true));
        let positive = self.positive.map(|(a, b)| ((scale.magnitude(a), scale.magnitude(b)), false));
        negative.into_iter().chain(positive)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn wide<O: Ordinal>(ordinals: &[O], targets: &Targets<'_>) -> Extremes {
    scan(ordinals, targets)
}

#[inline(always)]
fn scan<O: Ordinal>(ordinals: &[O], targets: &Targets<'_>) -> Extremes {
    let side = |(low, high): (u64, u64)| {
        let (low, span) = (O::new(low), O::new(high - low));
        let none = (O::new(u64::MAX), O::new(0));
        let all = |x: O| x.within(low, span);
        let (first, last) = match targets.missing {
            [] => fold(ordinals, none, all),
            // One is what most arrays have; the loop keeps its shape.
            &[(a, b)] => {
                let (from, more) = (O::new(a), O::new(b - a));
                fold(ordinals, none, |x| all(x) & !x.within(from, more))
            }
            many => fold(ordinals, none, |x| {
                let at = many.partition_point(|r| r.1 < x.get());
                all(x) && many.get(at).is_none_or(|r| r.0 > x.get())
            }),
        };
        (first <= last).then(|| (first.get(), last.get()))
    };
    Extremes { negative: targets.negatives.and_then(side), positive: side(targets.positives) }
}

#[inline(always)]
fn fold<O: Ordinal>(ordinals: &[O], (mut first, mut last): (O, O), counts: impl Fn(O) -> bool) -> (O, O) {
    let (top, bottom) = (first, last);
    for &x in ordinals {
        let yes = counts(x);
        first = first.min(if yes { x } else { top });
        last = last.max(if yes { x } else { bottom });
    }
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sieva_types::DType;

    proptest! {
        #[test]
        fn agrees_with_a_plain_loop(
            values in proptest::collection::vec(prop_oneof![any::<u64>(), (1 << 63) - 9..(1_u64 << 63) + 9], 0..99),
            holes in proptest::collection::btree_set(any::<u64>(), 0..6),
        ) {
            let scale = Scale::of(DType::F64).unwrap();
            let missing: Vec<_> = holes.into_iter().collect::<Vec<_>>().chunks_exact(2).map(|c| (c[0], c[1])).collect();
            let present = |range: (u64, u64)| {
                let is_counted = |x: &u64| range.0 <= *x && *x <= range.1 && missing.iter().all(|r| *x < r.0 || r.1 < *x);
                let of: Vec<u64> = values.iter().copied().filter(is_counted).collect();
                of.iter().copied().min().zip(of.iter().copied().max())
            };
            let want = Extremes { negative: present(scale.negatives().unwrap()), positive: present(scale.positives()) };
            let targets = Targets::new(&scale, &missing);
            prop_assert_eq!(Extremes::of(&values, &targets), want);
            prop_assert_eq!(scan(&values, &targets), want);
        }
    }
}
