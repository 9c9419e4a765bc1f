//! Counts of rows and of values.

mod wire;

use std::any::Any;

use super::Aggregate;
use super::accumulator::{Accumulator, Finished, Piece, Target, bytes, grow, is_there, same};
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_types::Result;

/// How many values each group has.
///
/// Rows that go into neighbouring groups are noted by their first and last group, which takes no longer for many than for
/// one; what single groups have more or less stands beside.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    own: Vec<i64>,
    /// By how many more each group has of noted rows than the one before it; one longer than `own`.
    steps: Vec<i64>,
    has_steps: bool,
}

impl Counts {
    pub(super) fn len(&self) -> usize {
        self.own.len()
    }

    pub(super) fn resize(&mut self, groups: usize) {
        grow(&mut self.own, groups, 0);
        grow(&mut self.steps, groups + 1, 0);
    }

    /// Adds `n` to a group; less than none where rows were counted of which no value is there.
    #[inline(always)]
    pub(super) fn add(&mut self, group: usize, n: i64) {
        self.own[group] += n;
    }

    /// Adds one to each of so many groups.
    pub(super) fn add_run(&mut self, first: usize, n: usize) {
        self.has_steps = true;
        self.steps[first] += 1;
        self.steps[first + n] -= 1;
    }

    /// Adds one to the group of each of `n` values for which `is_there`.
    pub(super) fn add_each(&mut self, target: Target<'_>, n: usize, is_there: impl Fn(usize) -> bool) {
        match target {
            Target::One(group) => {
                self.own[group] += (0..n).filter(|&i| is_there(i)).count() as i64;
            }
            _ => target.each(n, is_there, |g, _| self.own[g] += 1),
        }
    }

    /// Adds one to the group of each of `n` values, all of which are there.
    pub(super) fn add_all(&mut self, target: Target<'_>, n: usize) {
        match target {
            Target::One(group) => self.own[group] += n as i64,
            Target::From(first) => self.add_run(first, n),
            Target::Each(_) => self.add_each(target, n, |_| true),
        }
    }

    /// What groups have besides noted rows.
    pub(super) fn own_mut(&mut self, from: usize, to: usize) -> &mut [i64] {
        &mut self.own[from..to]
    }

    /// Puts what was noted of neighbours into each.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.has_steps) {
            return;
        }
        let mut level = 0;
        for (own, step) in self.own.iter_mut().zip(&mut self.steps) {
            level += std::mem::take(step);
            *own += level;
        }
        if let Some(last) = self.steps.last_mut() {
            *last = 0;
        }
    }

    /// The count of a group. Looks at all groups before it where rows of neighbours were noted.
    pub(super) fn get(&self, group: usize) -> u64 {
        let level: i64 = if self.has_steps { self.steps[..=group].iter().sum() } else { 0 };
        (self.own[group] + level) as u64
    }

    pub(super) fn merge(&mut self, other: &Self, to: &[u32]) {
        let mut level = 0;
        for ((&group, own), step) in to.iter().zip(&other.own).zip(&other.steps) {
            level += step;
            if group != super::NO_GROUP {
                self.own[group as usize] += own + level;
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        bytes(&self.own) + bytes(&self.steps)
    }
}

/// `count(*)` and `count(x)`.
#[derive(Debug)]
struct Count {
    counts: Counts,
    /// Whether missing values count.
    of_rows: bool,
}

pub(super) fn make(aggregate: &Aggregate, _: ValueType) -> Option<Box<dyn Accumulator>> {
    let of_rows = match aggregate {
        Aggregate::Count => true,
        Aggregate::CountValues => false,
        _ => return None,
    };
    Some(Box::new(Count { counts: Counts::default(), of_rows }))
}

impl Accumulator for Count {
    fn len(&self) -> usize {
        self.counts.len()
    }

    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let n = piece.len();
        let counts = &mut self.counts;
        match *piece {
            _ if self.of_rows => counts.add_all(target, n),
            Piece::Rows(_)
            | Piece::Bool(_, None)
            | Piece::I64(_, None)
            | Piece::U64(_, None)
            | Piece::Str(_, None) => counts.add_all(target, n),
            Piece::Bool(_, p) | Piece::I64(_, p) | Piece::U64(_, p) | Piece::Str(_, p) => {
                counts.add_each(target, n, |i| is_there(p, i));
            }
            Piece::F32(v) if !v.iter().fold(false, |any, x| any | x.is_nan()) => counts.add_all(target, n),
            Piece::F64(v) if !v.iter().fold(false, |any, x| any | x.is_nan()) => counts.add_all(target, n),
            Piece::F32(v) => counts.add_each(target, n, |i| !v[i].is_nan()),
            Piece::F64(v) => counts.add_each(target, n, |i| !v[i].is_nan()),
        }
        Ok(())
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        let is_there = self.of_rows || one.has_first();
        self.counts.add(group, if is_there { n as i64 } else { 0 });
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        self.counts.merge(&same::<Self>(other)?.counts, to);
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        self.counts.settle();
        let counts = order.iter().map(|&g| self.counts.get(g) as i64).collect();
        Ok(Finished::Values(Vector::new(Values::I64(counts), None)?))
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(Scalar::I64(self.counts.get(group) as i64))
    }

    fn memory_bytes(&self) -> u64 {
        self.counts.memory_bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
