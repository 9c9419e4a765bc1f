//! Least and greatest values, of their own type.

mod wire;

use std::any::Any;
use std::cmp::Ordering;

use super::Aggregate;
use super::accumulator::{
    Accumulator, Finished, Piece, Target, bytes, grow, internal, is_there, same, wrong_piece,
};
use super::pairs::Float;
use crate::mask::Mask;
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_types::{Result, widest};

/// Values that are compared at once, for the compiler to keep in vector registers.
const LANES: usize = 8;
/// What stands for no value where the least is sought: above all numbers. No float has it, but an integer may.
const NONE: i64 = i64::MAX;

pub(super) fn make(aggregate: &Aggregate, input: ValueType) -> Option<Box<dyn Accumulator>> {
    let is_greatest = match aggregate {
        Aggregate::Min => false,
        Aggregate::Max => true,
        _ => return None,
    };
    Some(match input {
        ValueType::Str => Box::new(Texts { is_greatest, best: Vec::new(), held: 0 }),
        _ => Box::new(Numbers { input, turn: -i64::from(is_greatest), best: Vec::new(), seen: Vec::new() }),
    })
}

/// The least of each group, of numbers as integers in the same order. Where the greatest is sought all bits are turned,
/// which turns the order.
#[derive(Debug)]
struct Numbers {
    input: ValueType,
    turn: i64,
    best: Vec<i64>,
    /// Of integers: which groups have a value.
    seen: Vec<bool>,
}

/// The integer of a float; NaN is [`NONE`]. -0.0 is below 0.0, so that the order of the values does not matter.
#[inline(always)]
fn of_float(x: f64, turn: i64) -> i64 {
    let bits = x.to_bits() as i64;
    let key = (bits ^ ((bits >> 63) as u64 >> 1) as i64) ^ turn;
    if x.is_nan() { NONE } else { key }
}

fn to_float(key: i64) -> f64 {
    f64::from_bits((key ^ ((key >> 63) as u64 >> 1) as i64) as u64)
}

#[inline(always)]
fn of_unsigned(x: u64) -> i64 {
    (x ^ (1 << 63)) as i64
}

widest!(run, run_loop, [T: Float], (best: &mut [i64], values: &[T], turn: i64) -> ());

#[inline(always)]
fn run_loop<T: Float>(best: &mut [i64], values: &[T], turn: i64) {
    for (best, &x) in best.iter_mut().zip(values) {
        *best = (*best).min(of_float(x.wide(), turn));
    }
}

widest!(reduce, reduce_loop, [T: Float], (values: &[T], turn: i64) -> i64);

#[inline(always)]
fn reduce_loop<T: Float>(values: &[T], turn: i64) -> i64 {
    let mut best = [NONE; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (best, &x) in best.iter_mut().zip(chunk) {
            *best = (*best).min(of_float(x.wide(), turn));
        }
    }
    let rest = rest.iter().map(|x| of_float(x.wide(), turn));
    best.into_iter().chain(rest).min().unwrap_or(NONE)
}

impl Numbers {
    fn floats<T: Float>(&mut self, target: Target<'_>, values: &[T]) {
        let turn = self.turn;
        match target {
            Target::One(group) => self.best[group] = self.best[group].min(reduce(values, turn)),
            Target::From(first) => run(&mut self.best[first..first + values.len()], values, turn),
            Target::Each(_) => target.each(
                values.len(),
                |_| true,
                |g, i| {
                    self.best[g] = self.best[g].min(of_float(values[i].wide(), turn));
                },
            ),
        }
    }

    #[inline(always)]
    fn integers(
        &mut self,
        target: Target<'_>,
        n: usize,
        there: impl Fn(usize) -> bool,
        key: impl Fn(usize) -> i64,
    ) {
        target.each(n, there, |g, i| {
            self.best[g] = self.best[g].min(key(i) ^ self.turn);
            self.seen[g] = true;
        });
    }

    fn is_of_floats(&self) -> bool {
        self.input == ValueType::F64
    }

    fn has(&self, group: usize) -> bool {
        if self.is_of_floats() { self.best[group] != NONE } else { self.seen[group] }
    }

    fn of(&self, group: usize) -> Scalar {
        let key = self.best[group] ^ self.turn;
        match self.input {
            _ if !self.has(group) => Scalar::Null,
            ValueType::Bool => Scalar::Bool(key != 0),
            ValueType::U64 => Scalar::U64(key as u64 ^ (1 << 63)),
            ValueType::F64 => Scalar::F64(to_float(key)),
            _ => Scalar::I64(key),
        }
    }
}

impl Accumulator for Numbers {
    fn len(&self) -> usize {
        self.best.len()
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.best, groups, NONE);
        if !self.is_of_floats() {
            grow(&mut self.seen, groups, false);
        }
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let n = piece.len();
        match (*piece, self.input) {
            (Piece::F32(v), ValueType::F64) => self.floats(target, v),
            (Piece::F64(v), ValueType::F64) => self.floats(target, v),
            (Piece::Bool(v, p), ValueType::Bool) => {
                self.integers(target, n, |i| is_there(p, i), |i| v[i].into());
            }
            (Piece::I64(v, p), ValueType::I64) => self.integers(target, n, |i| is_there(p, i), |i| v[i]),
            (Piece::U64(v, p), ValueType::U64) => {
                self.integers(target, n, |i| is_there(p, i), |i| of_unsigned(v[i]));
            }
            _ => return Err(wrong_piece(piece)),
        }
        Ok(())
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        // Once is as good as often.
        if n > 0 { self.update(Target::One(group), one) } else { Ok(()) }
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if (other.input, other.turn) != (self.input, self.turn) {
            return Err(internal("states of different aggregates merged"));
        }
        for (from, &group) in to.iter().enumerate().filter(|(_, group)| **group != super::NO_GROUP) {
            let group = group as usize;
            self.best[group] = self.best[group].min(other.best[from]);
            if !self.is_of_floats() {
                self.seen[group] |= other.seen[from];
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        let keys = order.iter().map(|&g| self.best[g] ^ self.turn);
        let values = match self.input {
            ValueType::Bool => Values::Bool(keys.map(|k| k != 0).collect()),
            ValueType::U64 => Values::U64(keys.map(|k| k as u64 ^ (1 << 63)).collect()),
            ValueType::F64 => {
                let or_nan =
                    |&g: &usize| if self.has(g) { to_float(self.best[g] ^ self.turn) } else { f64::NAN };
                return Finished::floats(order.iter().map(or_nan).collect());
            }
            _ => Values::I64(keys.collect()),
        };
        let valid = Mask::from_fn(order.len(), |i| self.has(order[i])).unless_all();
        Ok(Finished::Values(Vector::new(values, valid)?))
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(self.of(group))
    }

    fn memory_bytes(&self) -> u64 {
        bytes(&self.best) + bytes(&self.seen)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The first or last text of each group.
#[derive(Debug)]
struct Texts {
    is_greatest: bool,
    best: Vec<Option<String>>,
    /// Bytes of the texts.
    held: u64,
}

impl Texts {
    fn add(&mut self, group: usize, x: &str) {
        let better = if self.is_greatest { Ordering::Greater } else { Ordering::Less };
        let best = &mut self.best[group];
        if best.as_deref().is_none_or(|b| x.cmp(b) == better) {
            self.held -= best.as_ref().map_or(0, |b| b.capacity() as u64);
            self.held += x.len() as u64;
            *best = Some(x.to_owned());
        }
    }
}

impl Accumulator for Texts {
    fn len(&self) -> usize {
        self.best.len()
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.best, groups, None);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let Piece::Str(v, p) = *piece else { return Err(wrong_piece(piece)) };
        target.each(v.len(), |i| is_there(p, i), |g, i| self.add(g, &v[i]));
        Ok(())
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        if n > 0 { self.update(Target::One(group), one) } else { Ok(()) }
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if other.is_greatest != self.is_greatest {
            return Err(internal("states of different aggregates merged"));
        }
        for (best, &group) in other.best.iter().zip(to) {
            if let (Some(text), true) = (best, group != super::NO_GROUP) {
                self.add(group as usize, text);
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        let valid = Mask::from_fn(order.len(), |i| self.best[order[i]].is_some()).unless_all();
        let texts = order.iter().map(|&g| self.best[g].take().unwrap_or_default()).collect();
        Ok(Finished::Values(Vector::new(Values::Str(texts), valid)?))
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(self.best[group].clone().map_or(Scalar::Null, Scalar::Str))
    }

    fn memory_bytes(&self) -> u64 {
        bytes(&self.best) + self.held
    }

    fn merging(&self, other: &dyn Accumulator) -> u64 {
        same::<Self>(other).map_or(0, |other| other.held)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f64], is_greatest: bool) -> f64 {
        to_float(reduce(values, -i64::from(is_greatest)) ^ -i64::from(is_greatest))
    }

    #[test]
    fn signs_of_zeros_do_not_depend_on_order() {
        for values in [[0.0, -0.0], [-0.0, 0.0]] {
            assert!(floats(&values, false).is_sign_negative());
            assert!(floats(&values, true).is_sign_positive());
        }
        assert!(floats(&[0.0, 1.0], false).is_sign_positive());
        assert!(floats(&[-0.0, -1.0], true).is_sign_negative());
    }

    #[test]
    fn every_position_is_looked_at() {
        for n in [1, 15, 16, 17, 50] {
            for at in 0..n {
                let mut values = vec![0.5; n];
                values[at] = -1.0;
                assert_eq!((floats(&values, false), n), (-1.0, n));
                values[at] = f64::INFINITY;
                assert_eq!(floats(&values, true), f64::INFINITY);
            }
        }
    }

    #[test]
    fn the_last_integers_are_values() {
        for aggregate in [Aggregate::Min, Aggregate::Max] {
            for x in [i64::MIN, i64::MAX] {
                let mut all = make(&aggregate, ValueType::I64).unwrap();
                all.resize(2);
                all.update(Target::One(1), &Piece::I64(&[x], None)).unwrap();
                assert_eq!(all.value(0).unwrap(), Scalar::Null);
                assert_eq!(all.value(1).unwrap(), Scalar::I64(x));
            }
        }
    }
}
