//! Counting different values.

mod wire;

use std::any::Any;
use std::collections::HashSet;
use std::hash::Hash;

use super::Aggregate;
use super::accumulator::{Accumulator, Finished, Piece, Target, internal, is_there, same};
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

pub(super) fn make(aggregate: &Aggregate, input: ValueType) -> Option<Box<dyn Accumulator>> {
    match (aggregate, input) {
        (Aggregate::CountDistinct, ValueType::Str) => Some(Box::new(Distinct::<String>::default())),
        (Aggregate::CountDistinct, _) => Some(Box::new(Distinct::<u64>::default())),
        _ => None,
    }
}

/// The different values of all groups: numbers by their bits, as all of an aggregate are of one type.
#[derive(Debug, Default)]
struct Distinct<T> {
    groups: usize,
    set: HashSet<(u32, T)>,
    /// Bytes of texts.
    held: u64,
}

/// What is told apart.
trait Different: Hash + Ord + Clone + std::fmt::Debug + Send + Sync + 'static {
    fn bytes(&self) -> u64;
    fn write(&self, w: &mut Writer);
    fn read(r: &mut Reader<'_>) -> Result<Self>;
    fn add(set: &mut Distinct<Self>, target: Target<'_>, piece: &Piece<'_>) -> Result<()>;
}

impl<T: Different> Distinct<T> {
    fn insert(&mut self, group: usize, value: T) {
        let more = value.bytes();
        if self.set.insert((group as u32, value)) {
            self.held += more;
        }
    }

    /// The bytes of a table that holds `n`.
    fn table(capacity: usize) -> u64 {
        // An eighth of its places is free, and each has a byte of its own.
        (capacity.div_ceil(7) as u64).saturating_mul(8 * (size_of::<(u32, T)>() as u64 + 1))
    }

    /// Bytes more for so many values more; a table that has to grow is held while the larger one is filled.
    fn more(&self, values: usize) -> u64 {
        let need = self.set.len().saturating_add(values);
        if need <= self.set.capacity() { 0 } else { Self::table(need.max(2 * self.set.capacity())) }
    }
}

impl Different for u64 {
    fn bytes(&self) -> u64 {
        0
    }

    fn write(&self, w: &mut Writer) {
        w.uint(*self);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        r.uint()
    }

    fn add(set: &mut Distinct<u64>, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        // Both zeros are one number.
        let bits = |x: f64| if x == 0.0 { 0 } else { x.to_bits() };
        match *piece {
            Piece::Bool(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| set.insert(g, v[i].into())),
            Piece::I64(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| set.insert(g, v[i] as u64)),
            Piece::U64(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| set.insert(g, v[i])),
            _ => piece.each_float(target, |g, x| set.insert(g, bits(x)))?,
        }
        Ok(())
    }
}

impl Different for String {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn write(&self, w: &mut Writer) {
        w.text(self);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        r.text()
    }

    fn add(set: &mut Distinct<String>, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let Piece::Str(v, p) = *piece else { return Err(super::accumulator::wrong_piece(piece)) };
        target.each(v.len(), |i| is_there(p, i), |g, i| set.insert(g, v[i].to_owned()));
        Ok(())
    }
}

impl<T: Different> Accumulator for Distinct<T> {
    fn len(&self) -> usize {
        self.groups
    }

    fn resize(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        T::add(self, target, piece)
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
                self.insert(group as usize, value.clone());
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        let mut counts = vec![0_i64; self.groups];
        std::mem::take(&mut self.set).into_iter().for_each(|(g, _)| counts[g as usize] += 1);
        let counts = order.iter().map(|&g| counts[g]).collect();
        Ok(Finished::Values(Vector::new(Values::I64(counts), None)?))
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(Scalar::I64(self.set.iter().filter(|(g, _)| *g as usize == group).count() as i64))
    }

    fn memory_bytes(&self) -> u64 {
        Self::table(self.set.capacity()) + self.held
    }

    fn growth(&self, values: u64) -> u64 {
        self.more(values as usize)
    }

    fn repeating(&self, _: u64) -> u64 {
        self.growth(1)
    }

    fn merging(&self, other: &dyn Accumulator) -> u64 {
        same::<Self>(other).map_or(0, |other| self.more(other.set.len()) + other.held)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
