//! Counting different values.

mod texts;
mod wire;

use std::any::Any;
use std::collections::HashSet;

use super::Aggregate;
use super::accumulator::{Accumulator, Finished, Piece, Target, internal, is_there, same};
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_types::Result;

pub(super) fn make(aggregate: &Aggregate, input: ValueType) -> Option<Box<dyn Accumulator>> {
    match (aggregate, input) {
        (Aggregate::CountDistinct, ValueType::Str) => Some(Box::new(texts::DistinctTexts::default())),
        (Aggregate::CountDistinct, _) => Some(Box::new(DistinctNumbers::default())),
        _ => None,
    }
}

/// The different numbers of all groups, by their bits, as all of an aggregate are of one type.
#[derive(Debug, Default)]
struct DistinctNumbers {
    groups: usize,
    set: HashSet<(u32, u64)>,
}

impl DistinctNumbers {
    fn insert(&mut self, group: usize, value: u64) {
        self.set.insert((group as u32, value));
    }

    /// The bytes of a table that holds `n`.
    fn table(capacity: usize) -> u64 {
        // An eighth of its places is free, and each has a byte of its own.
        (capacity.div_ceil(7) as u64).saturating_mul(8 * (size_of::<(u32, u64)>() as u64 + 1))
    }

    /// Bytes more for so many values more; a table that has to grow is held while the larger one is filled.
    fn more(&self, values: usize) -> u64 {
        let need = self.set.len().saturating_add(values);
        if need <= self.set.capacity() { 0 } else { Self::table(need.max(2 * self.set.capacity())) }
    }
}

/// How many values each group in `order` has, of those of which these are the groups.
fn counts(groups: usize, of: impl Iterator<Item = u32>, order: &[usize]) -> Result<Finished> {
    let mut counts = vec![0_i64; groups];
    of.for_each(|g| counts[g as usize] += 1);
    let counts = order.iter().map(|&g| counts[g]).collect();
    Ok(Finished::Values(Vector::new(Values::I64(counts), None)?))
}

impl Accumulator for DistinctNumbers {
    fn len(&self) -> usize {
        self.groups
    }

    fn resize(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        // Both zeros are one number.
        let bits = |x: f64| if x == 0.0 { 0 } else { x.to_bits() };
        match *piece {
            Piece::Bool(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| self.insert(g, v[i].into())),
            Piece::I64(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| self.insert(g, v[i] as u64)),
            Piece::U64(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| self.insert(g, v[i])),
            _ => piece.each_float(target, |g, x| self.insert(g, bits(x)))?,
        }
        Ok(())
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        // Once is as good as often.
        if n > 0 { self.update(Target::One(group), one) } else { Ok(()) }
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (group, value) in &other.set {
            let group = *to.get(*group as usize).ok_or_else(|| internal("a group that is not there"))?;
            if group != super::NO_GROUP {
                self.insert(group as usize, *value);
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        let set = std::mem::take(&mut self.set);
        counts(self.groups, set.into_iter().map(|(g, _)| g), order)
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(Scalar::I64(self.set.iter().filter(|(g, _)| *g as usize == group).count() as i64))
    }

    fn memory_bytes(&self) -> u64 {
        Self::table(self.set.capacity())
    }

    fn growth(&self, values: u64) -> u64 {
        self.more(values as usize)
    }

    fn repeating(&self, _: u64) -> u64 {
        self.growth(1)
    }

    fn merging(&self, other: &dyn Accumulator) -> u64 {
        same::<Self>(other).map_or(0, |other| self.more(other.set.len()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
