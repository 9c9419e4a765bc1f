//! Exact sums of many groups, two floats each.
//!
//! The sum of a group is that of its two floats, exactly: a value is added to the first, and what the rounding cut off to
//! the second (D. E. Knuth, The Art of Computer Programming 2, section 4.2.2, theorem B). That holds some 106 bits, which
//! is enough where values are within a factor of 2^30 of each other and there are not too many. Before a bit would be lost,
//! and where a value is infinite, what the group has goes into a sum as wide as the range of `float64` ([`ExactSum`]),
//! beside the vectors, and the two floats begin anew.

mod wire;

use std::collections::HashMap;

use super::accumulator::{Target, bytes, grow};
use super::counts::Counts;
use sieva_types::exact::{ExactSum, two_sum};
use sieva_types::widest;

/// Values that are added at once, for the compiler to keep in vector registers.
const LANES: usize = 8;
/// Values that are tried at once.
const WIDE: usize = 64;
/// Values of which lanes are put together at once.
const BLOCK: usize = 2048;

/// A float of either width.
pub(super) trait Float: Copy {
    /// Whether sums of such values are often exact in a `float64`.
    const IS_NARROW: bool;
    /// The value as `float64`.
    fn wide(self) -> f64;
}

impl Float for f32 {
    const IS_NARROW: bool = true;
    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Float for f64 {
    const IS_NARROW: bool = false;
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

/// Exact sums of many groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    high: Vec<f64>,
    low: Vec<f64>,
    wide: HashMap<u32, ExactSum>,
    /// Bytes that those beside hold.
    wide_bytes: u64,
}

impl Pairs {
    pub(super) fn resize(&mut self, groups: usize) {
        grow(&mut self.high, groups, 0.0);
        grow(&mut self.low, groups, 0.0);
    }

    /// Adds a value, which is not NaN.
    #[inline]
    pub(super) fn add(&mut self, group: usize, x: f64) {
        let (high, rest) = two_sum(self.high[group], x);
        let (low, lost) = two_sum(self.low[group], rest);
        // NaN where something is infinite.
        if lost == 0.0 {
            (self.high[group], self.low[group]) = (high, low);
        } else {
            self.add_wide(group, |sum| sum.add(x));
        }
    }

    /// Adds to the wide sum of a group, which takes over what its two floats hold.
    #[cold]
    fn add_wide(&mut self, group: usize, add: impl FnOnce(&mut ExactSum)) {
        let sum = self.wide.entry(group as u32).or_default();
        let before = sum.heap_bytes();
        sum.add(std::mem::take(&mut self.high[group]));
        sum.add(std::mem::take(&mut self.low[group]));
        add(sum);
        self.wide_bytes += (sum.heap_bytes() - before) as u64;
    }

    /// Adds a sum to that of a group.
    pub(super) fn add_sum(&mut self, group: usize, sum: &ExactSum) {
        self.add_wide(group, |own| own.merge(sum));
    }

    /// Adds the values that are there to their groups, and counts them.
    pub(super) fn add_all<T: Float>(
        &mut self,
        mut counts: Option<&mut Counts>,
        target: Target<'_>,
        values: &[T],
    ) {
        match target {
            Target::One(group) => {
                values.chunks(BLOCK).for_each(|block| self.add_block(counts.as_deref_mut(), group, block));
            }
            Target::From(first) => self.add_run(counts, first, values),
            Target::Each(_) => target.each(
                values.len(),
                |i| !values[i].wide().is_nan(),
                |g, i| {
                    count(&mut counts, g, 1);
                    self.add(g, values[i].wide());
                },
            ),
        }
    }

    /// Adds each value to the next group.
    fn add_run<T: Float>(&mut self, mut counts: Option<&mut Counts>, first: usize, values: &[T]) {
        let (to, mut later) = (first + values.len(), Vec::new());
        let mut unused;
        let own = match &mut counts {
            Some(counts) => {
                counts.add_run(first, values.len());
                counts.own_mut(first, to)
            }
            None => {
                unused = vec![0; values.len()];
                &mut unused[..]
            }
        };
        run(&mut self.high[first..to], &mut self.low[first..to], own, values, &mut later);
        for i in later {
            match values[i].wide() {
                x if x.is_nan() => count(&mut counts, first + i, -1),
                x => self.add(first + i, x),
            }
        }
    }

    /// Adds all values of a block to one group.
    fn add_block<T: Float>(&mut self, mut counts: Option<&mut Counts>, group: usize, values: &[T]) {
        if values.len() < 2 * LANES {
            let same = [group as u32; 2 * LANES];
            return self.add_all(counts, Target::Each(&same[..values.len()]), values);
        }
        if T::IS_NARROW
            && let Some(sums) = reduce_narrow(values)
        {
            count(&mut counts, group, values.len() as i64);
            return sums.into_iter().for_each(|x| self.add(group, x));
        }
        if let Some((high, low, n)) = reduce(values) {
            count(&mut counts, group, n);
            return high.into_iter().chain(low).for_each(|x| self.add(group, x));
        }
        let there: Vec<f64> = values.iter().map(|x| x.wide()).filter(|x| !x.is_nan()).collect();
        count(&mut counts, group, there.len() as i64);
        self.add_wide(group, |sum| sum.add_all(&there));
    }

    /// Adds the sums of others: that of group `i` to that of group `to[i]`.
    pub(super) fn merge(&mut self, other: &Self, to: &[u32]) {
        let each = to.iter().zip(other.high.iter().zip(&other.low));
        for (&group, (&high, &low)) in each.filter(|(group, _)| **group != super::NO_GROUP) {
            self.add(group as usize, high);
            self.add(group as usize, low);
        }
        for (&from, sum) in &other.wide {
            if to[from as usize] != super::NO_GROUP {
                self.add_sum(to[from as usize] as usize, sum);
            }
        }
    }

    /// The sum of a group, rounded once; NaN of infinities of both signs.
    pub(super) fn value(&self, group: usize) -> f64 {
        if self.wide.is_empty() || !self.wide.contains_key(&(group as u32)) {
            return self.high[group] + self.low[group];
        }
        self.exact(group).value()
    }

    /// The exact sum of a group.
    pub(super) fn exact(&self, group: usize) -> ExactSum {
        let mut sum = self.wide.get(&(group as u32)).cloned().unwrap_or_default();
        sum.add(self.high[group]);
        sum.add(self.low[group]);
        sum
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let entry = size_of::<(u32, ExactSum)>() as u64 + 1;
        bytes(&self.high) + bytes(&self.low) + self.wide_bytes + self.wide.capacity() as u64 * 8 / 7 * entry
    }
}

#[inline(always)]
fn count(counts: &mut Option<&mut Counts>, group: usize, n: i64) {
    if let Some(counts) = counts {
        counts.add(group, n);
    }
}

widest!(run, run_loop, [T: Float], (high: &mut [f64], low: &mut [f64], own: &mut [i64], values: &[T], later: &mut Vec<usize>) -> ());

/// Adds each value to its group; the places of those that are left to be added one by one go into `later`.
#[inline(always)]
fn run_loop<T: Float>(
    high: &mut [f64],
    low: &mut [f64],
    own: &mut [i64],
    values: &[T],
    later: &mut Vec<usize>,
) {
    let whole = values.len() / WIDE * WIDE;
    let (mut at, mut is_exact) = (0, T::IS_NARROW);
    while is_exact && at < whole {
        is_exact = add_exactly::<T, WIDE>(&mut high[at..at + WIDE], &values[at..at + WIDE]);
        at += if is_exact { WIDE } else { 0 };
    }
    let (chunks, rest) = values[at..].as_chunks::<LANES>();
    for chunk in chunks {
        let to = at..at + LANES;
        let is_done = T::IS_NARROW && add_exactly::<T, LANES>(&mut high[to.clone()], chunk)
            || add_with_rest(&mut high[to.clone()], &mut low[to.clone()], &mut own[to.clone()], chunk);
        if !is_done {
            later.extend(to);
        }
        at += LANES;
    }
    later.extend(values.len() - rest.len()..values.len());
}

/// Adds each of `N` values to its sum, if all sums are exact; else nothing is done.
#[inline(always)]
fn add_exactly<T: Float, const N: usize>(sums: &mut [f64], values: &[T]) -> bool {
    let (mut next, mut lost) = ([0.0; N], 0);
    let (sums, values) = (&mut sums[..N], &values[..N]);
    for i in 0..N {
        // Plus zero: a zero that is negative would look like a loss.
        let (a, b) = (sums[i], values[i].wide() + 0.0);
        let sum = a + b;
        next[i] = sum;
        // One of the differences is exact, that to the larger one; so if both are as they should be, nothing was lost. Of
        // what is infinite or missing one is NaN, which no sum is.
        lost |= ((sum - a).to_bits() ^ b.to_bits()) | ((sum - b).to_bits() ^ a.to_bits());
    }
    if lost == 0 {
        sums.copy_from_slice(&next);
    }
    lost == 0
}

/// Adds each value that is there to its sum and what is cut off to its second one, and takes one off the count of each that
/// is not; if bits would be lost, nothing is done.
#[inline(always)]
fn add_with_rest<T: Float>(high: &mut [f64], low: &mut [f64], own: &mut [i64], values: &[T; LANES]) -> bool {
    let (mut highs, mut lows) = ([0.0; LANES], [0.0; LANES]);
    let (high, low, own) = (&mut high[..LANES], &mut low[..LANES], &mut own[..LANES]);
    let mut lost = 0;
    for i in 0..LANES {
        let x = values[i].wide();
        let (sum, rest) = two_sum(high[i], if x.is_nan() { 0.0 } else { x });
        let (second, left) = two_sum(low[i], rest);
        (highs[i], lows[i]) = (sum, second);
        // Not zero of NaN, too; zero of a negative zero.
        lost |= left.to_bits() << 1;
    }
    if lost != 0 {
        return false;
    }
    high.copy_from_slice(&highs);
    low.copy_from_slice(&lows);
    for i in 0..LANES {
        own[i] -= i64::from(values[i].wide().is_nan());
    }
    true
}

widest!(reduce_narrow, reduce_narrow_loop, [T: Float], (values: &[T]) -> Option<[f64; LANES]>);

/// Sums whose sum is that of the values; `None` if it is not exact, or something is missing.
#[inline(always)]
fn reduce_narrow_loop<T: Float>(values: &[T]) -> Option<[f64; LANES]> {
    let mut sums = [0.0; LANES];
    let mut lost = [0_u64; LANES];
    let mut add = |i: usize, x: f64| {
        let (a, b): (f64, f64) = (sums[i], x + 0.0);
        let sum = a + b;
        lost[i] |= ((sum - a).to_bits() ^ b.to_bits()) | ((sum - b).to_bits() ^ a.to_bits());
        sums[i] = sum;
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (i, x) in chunk.iter().enumerate() {
            add(i, x.wide());
        }
    }
    rest.iter().enumerate().for_each(|(i, x)| add(i, x.wide()));
    (lost.iter().fold(0, |any, l| any | l) == 0).then_some(sums)
}

widest!(reduce, reduce_loop, [T: Float], (values: &[T]) -> Option<([f64; LANES], [f64; LANES], i64)>);

/// Sums and rests whose sum is that of the values that are there, and their number; `None` if bits are lost.
#[inline(always)]
fn reduce_loop<T: Float>(values: &[T]) -> Option<([f64; LANES], [f64; LANES], i64)> {
    let (mut high, mut low) = ([0.0; LANES], [0.0; LANES]);
    let (mut lost, mut missing) = ([0_u64; LANES], [0_i64; LANES]);
    let mut add = |i: usize, x: f64| {
        let value = if x.is_nan() { 0.0 } else { x };
        missing[i] += i64::from(x.is_nan());
        let (sum, rest) = two_sum(high[i], value);
        let (second, left) = two_sum(low[i], rest);
        (high[i], low[i]) = (sum, second);
        lost[i] |= u64::from(left != 0.0);
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (i, x) in chunk.iter().enumerate() {
            add(i, x.wide());
        }
    }
    rest.iter().enumerate().for_each(|(i, x)| add(i, x.wide()));
    let is_exact = lost.iter().fold(0, |any, l| any | l) == 0;
    is_exact.then(|| (high, low, values.len() as i64 - missing.iter().sum::<i64>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values that two floats hold, values that they do not, and what is odd.
    fn hostile() -> impl Strategy<Value = f64> {
        prop_oneof![
            8 => -1e3..1e3_f64,
            4 => any::<f32>().prop_map(f64::from),
            4 => any::<f64>(),
            1 => prop_oneof![
                Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(f64::MAX),
                Just(-f64::MAX), Just(5e-324), Just(-5e-324), Just(1e308), Just(1e-308), Just(2.0_f64.powi(53)),
            ],
        ]
    }

    fn oracle(values: impl Iterator<Item = f64>) -> (u64, f64, i64) {
        let (mut sum, mut n) = (ExactSum::default(), 0);
        for x in values.filter(|x| !x.is_nan()) {
            sum.add(x);
            n += 1;
        }
        let value = sum.value();
        (if value.is_nan() { 0 } else { value.to_bits() }, value, n)
    }

    fn check<T: Float>(rows: &[Vec<T>], finite_only: bool) {
        let width = rows[0].len();
        let (mut runs, mut ones, mut each) = (Pairs::default(), Pairs::default(), Pairs::default());
        let mut counts = [Counts::default(), Counts::default(), Counts::default()];
        for (pairs, counts) in [&mut runs, &mut ones, &mut each].into_iter().zip(&mut counts) {
            pairs.resize(width);
            counts.resize(width);
        }
        let reversed: Vec<u32> = (0..width as u32).rev().collect();
        for row in rows {
            runs.add_all(Some(&mut counts[0]), Target::From(0), row);
            let backwards: Vec<T> = row.iter().rev().copied().collect();
            each.add_all(Some(&mut counts[2]), Target::Each(&reversed), &backwards);
        }
        for g in 0..width {
            let column: Vec<T> = rows.iter().map(|row| row[g]).collect();
            ones.add_all(Some(&mut counts[1]), Target::One(g), &column);
        }
        let mut merged = Pairs::default();
        merged.resize(width);
        merged.merge(&runs, &reversed);
        counts.iter_mut().for_each(Counts::settle);
        for g in 0..width {
            let (bits, value, n) = oracle(rows.iter().map(|row| row[g].wide()));
            for (pairs, counts) in [(&runs, &counts[0]), (&ones, &counts[1]), (&each, &counts[2])] {
                let got = pairs.value(g);
                assert!(got.to_bits() == bits || (got.is_nan() && value.is_nan()), "{got:?} for {value:?}");
                assert_eq!(counts.get(g) as i64, n);
            }
            let got = merged.value(width - 1 - g);
            assert!(got.to_bits() == bits || (got.is_nan() && value.is_nan()), "{got:?} for {value:?}");
        }
        assert!(!finite_only || runs.wide.is_empty());
    }

    proptest! {
        #[test]
        fn sums_are_exact(rows in (1..40_usize).prop_flat_map(|width| {
            prop::collection::vec(prop::collection::vec(hostile(), width), 1..60)
        })) {
            check(&rows, false);
            let narrow: Vec<Vec<f32>> = rows.iter().map(|r| r.iter().map(|&x| x as f32).collect()).collect();
            check(&narrow, false);
        }

        #[test]
        fn usual_values_need_no_wide_sum(rows in prop::collection::vec(
            prop::collection::vec(prop_oneof![9 => 200.0..320.0_f32, 1 => Just(f32::NAN)], 20), 1..300)) {
            check(&rows, true);
        }

        #[test]
        fn long_runs_are_exact(values in prop::collection::vec(hostile(), 0..6000), odd in any::<bool>()) {
            let values: Vec<f64> = if odd { values } else { values.iter().map(|x| (x % 1e5) as f32 as f64).collect() };
            let (mut pairs, mut counts) = (Pairs::default(), Counts::default());
            pairs.resize(1);
            counts.resize(1);
            pairs.add_all(Some(&mut counts), Target::One(0), &values);
            let (bits, value, n) = oracle(values.iter().copied());
            let got = pairs.value(0);
            prop_assert!(got.to_bits() == bits || (got.is_nan() && value.is_nan()), "{:?} for {:?}", got, value);
            prop_assert_eq!(counts.get(0) as i64, n);
        }
    }
}
