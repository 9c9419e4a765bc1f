//! Which elements share a bin.
//!
//! Few distinct values have a bin each. Otherwise present values are cut at the numbers of `precision`
//! significant decimal digits (as FastBit's option of that name does, the library that SDS III.A.1 and PDC
//! III build their indexes with), where the value nearest to such a number is a bin of its own ([`super::decimal`]); a digit more as long as
//! that leaves few bins, only within those occupied. Zeros and infinities are bins, cuts at the ends of the
//! missing intervals keep bins of present values free of holes.

use sieva_types::KeySet;

use super::decimal;
use super::extremes::{Extremes, Targets};
use super::groups::{Group, Groups};
use super::ordinal::{Ordinal, Scale};

/// Present values: so many distinct ones at most have a bin each.
const EXACT_FLOATS: usize = 256;
const EXACT_INTEGERS: usize = 4096;
/// A digit more if fewer bins than these are occupied.
const FEW_BINS: usize = 16;
/// Bins of a class (present, missing) at most; neighbours are joined beyond.
pub(super) const MANY_BINS: usize = 4096;

/// What the elements of a bin are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Nan,
    Missing,
    Present,
}

/// Scratch memory, and the result: leaves in order and the leaf of each group.
#[derive(Debug, Default)]
pub(super) struct Binning {
    pub groups: Groups,
    /// Leaves of the tree: NaN, missing, present; ascending within a class.
    pub leaves: Vec<(Class, Group)>,
    /// The leaf of each group of `groups`.
    pub leaf_of: Vec<u16>,
    cuts: Vec<u64>,
    order: Vec<(Class, u64, u32)>,
}

/// Missing intervals as ordinals.
pub(super) struct Missing(Vec<(u64, u64)>);

impl Missing {
    pub(super) fn new(set: &KeySet, scale: &Scale) -> Self {
        Self(set.ranges.iter().filter_map(|&(low, high)| scale.clip(low, high)).collect())
    }

    pub(super) fn ranges(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// The class of a group, which cuts kept in one.
    fn class(&self, group: &Group, scale: &Scale) -> Class {
        match () {
            () if scale.is_float() && group.low > scale.last => Class::Nan,
            () if self.place(group.low).1 => Class::Missing,
            () => Class::Present,
        }
    }

    /// The number of intervals that end below `ordinal`, and whether the next one holds it.
    fn place(&self, ordinal: u64) -> (usize, bool) {
        let at = self.0.partition_point(|r| r.1 < ordinal);
        (at, self.0.get(at).is_some_and(|r| r.0 <= ordinal))
    }
}

impl Binning {
    /// Bins of the elements with these ordinals.
    pub(super) fn make<O: Ordinal>(
        &mut self,
        ordinals: &[O],
        scale: &Scale,
        missing: &KeySet,
        precision: u32,
    ) {
        let missing = Missing::new(missing, scale);
        let limit = if scale.is_float() { EXACT_FLOATS } else { EXACT_INTEGERS };
        if !self.groups.by_value(ordinals, limit) {
            self.decimal(ordinals, scale, &missing, precision);
        }
        self.join(scale, &missing);
    }

    /// Groups between decimal numbers.
    fn decimal<O: Ordinal>(&mut self, ordinals: &[O], scale: &Scale, missing: &Missing, precision: u32) {
        let extremes = Extremes::of(ordinals, &Targets::new(scale, missing.ranges()));
        let (low, high) = extremes.hull().unwrap_or(scale.zeros());
        let mut digits = first_digits(scale, &extremes, precision);
        self.cuts.clear();
        for (magnitudes, negative) in extremes.sides(scale) {
            push_points(scale, magnitudes, negative, digits, &mut self.cuts);
        }
        loop {
            self.finish_cuts(scale, missing);
            self.groups.between(ordinals, &self.cuts, low, high);
            let present = |g: &&Group| g.count > 0 && missing.class(g, scale) == Class::Present;
            let occupied = self.groups.list.iter().filter(present).count();
            let enough = occupied >= FEW_BINS && digits >= precision;
            let wide = self.groups.list.iter().filter(present).any(|g| g.low < g.high);
            if enough || occupied > MANY_BINS || digits == decimal::max_digits(scale.kind) || !wide {
                return;
            }
            digits += 1;
            self.cuts.clear();
            for group in self.groups.list.iter().filter(present) {
                self.cuts.push(group.low);
                // The two zeros are one number.
                if group.low < group.high && group.high != scale.zero {
                    let (a, b) = (scale.magnitude(group.low), scale.magnitude(group.high));
                    let negative = group.low < scale.zero;
                    push_points(scale, (a.min(b), a.max(b)), negative, digits, &mut self.cuts);
                }
            }
        }
    }

    /// Adds the cuts that are always made, and brings them in order.
    fn finish_cuts(&mut self, scale: &Scale, missing: &Missing) {
        let zeros = scale.zeros();
        self.cuts.extend([zeros.0, zeros.1 + 1]);
        if scale.is_float() {
            self.cuts.extend([scale.first + 1, scale.last, scale.last + 1]);
        }
        for &(low, high) in missing.ranges() {
            self.cuts.push(low);
            self.cuts.extend(high.checked_add(1));
        }
        self.cuts.sort_unstable();
        self.cuts.dedup();
    }

    /// Runs of elements of one leaf, at most: the number of neighbours in different groups, and one.
    pub(super) fn runs(&self) -> u64 {
        let of = &self.groups.of;
        1 + of.iter().zip(of.iter().skip(1)).map(|(a, b)| u64::from(a != b)).sum::<u64>()
    }

    /// Leaves from groups: in order, those of a missing interval as one, and neighbours as one where there
    /// are too many.
    fn join(&mut self, scale: &Scale, missing: &Missing) {
        self.order.clear();
        for (i, group) in self.groups.list.iter().enumerate().filter(|(_, g)| g.count > 0) {
            self.order.push((missing.class(group, scale), group.low, i as u32));
        }
        self.order.sort_unstable();
        // Bins end at the missing intervals, unless there are more of these than there may be bins.
        let few_holes = missing.ranges().len() <= MANY_BINS;
        let quotas = [Class::Nan, Class::Missing, Class::Present].map(|class| self.quota(class));
        self.leaves.clear();
        self.leaf_of.clear();
        self.leaf_of.resize(self.groups.list.len(), 0);
        for &(class, low, i) in &self.order {
            let group = self.groups.list[i as usize];
            let joined = self.leaves.last_mut().filter(|(last, leaf)| {
                let light = leaf.count < quotas[class as usize];
                let together = missing.place(low) == missing.place(leaf.low);
                *last == class
                    && match class {
                        Class::Nan => true,
                        Class::Missing => together || (light && !few_holes),
                        Class::Present => light && (together || !few_holes),
                    }
            });
            if let Some((_, leaf)) = joined {
                leaf.high = group.high;
                leaf.count += group.count;
            } else {
                self.leaves.push((class, group));
            }
            self.leaf_of[i as usize] = (self.leaves.len() - 1) as u16;
        }
    }

    /// Rows that a bin of a class gets before the next one begins: 0 unless there are too many bins.
    fn quota(&self, class: Class) -> u64 {
        let members = || self.order.iter().filter(|entry| entry.0 == class);
        if members().count() <= MANY_BINS {
            return 0;
        }
        let rows: u64 = members().map(|entry| self.groups.list[entry.2 as usize].count).sum();
        rows.div_ceil(MANY_BINS as u64 / 2)
    }
}

/// Digits to begin with: fewer than `precision` where that would make numbers without end (they are refined
/// where elements are), more where there cannot be bins enough.
fn first_digits(scale: &Scale, extremes: &Extremes, precision: u32) -> u32 {
    let most = decimal::max_digits(scale.kind);
    let numbers = |digits| {
        let sides = extremes.sides(scale).map(|(m, _)| decimal::span(scale.kind, m.0, m.1, digits));
        sides.fold(0, u64::saturating_add)
    };
    let mut digits = precision.clamp(1, most);
    while digits > 1 && numbers(digits) > MANY_BINS as u64 {
        digits -= 1;
    }
    while digits < most && numbers(digits) < FEW_BINS as u64 / 2 {
        digits += 1;
    }
    digits
}

/// Cuts before and after each point.
fn push_points(scale: &Scale, magnitudes: (u64, u64), negative: bool, digits: u32, cuts: &mut Vec<u64>) {
    let from = cuts.len();
    decimal::points(scale, magnitudes, negative, digits, cuts);
    for i in from..cuts.len() {
        // Past the last integer there is nothing to part.
        if let Some(after) = cuts[i].checked_add(1) {
            cuts.push(after);
        }
    }
}
