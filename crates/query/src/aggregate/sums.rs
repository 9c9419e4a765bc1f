//! Sums and means: of floats the exact sum, rounded once; of integers exact or refused.

mod wire;

use std::any::Any;
use std::collections::HashMap;

use super::Aggregate;
use super::accumulator::{
    Accumulator, Finished, Piece, Target, bytes, grow, internal, is_there, same, wrong_piece,
};
use super::counts::Counts;
use super::pairs::Pairs;
use crate::mask::Mask;
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_index::stats::Total;
use sieva_types::exact::{ExactSum, Sum, sum_i64, sum_u64};
use sieva_types::{Error, ErrorKind, Result};

pub(super) fn make(aggregate: &Aggregate, input: ValueType) -> Option<Box<dyn Accumulator>> {
    let is_mean = match aggregate {
        Aggregate::Sum => false,
        Aggregate::Avg => true,
        _ => return None,
    };
    Some(match input {
        ValueType::F64 => Box::new(Floats { is_mean, ..Floats::default() }),
        _ => Box::new(Integers { is_mean, input, ..Integers::default() }),
    })
}

#[derive(Debug, Default)]
struct Floats {
    sums: Pairs,
    counts: Counts,
    is_mean: bool,
}

impl Floats {
    /// The value of a group; NaN where there is none.
    fn of(&self, group: usize) -> f64 {
        match self.counts.get(group) {
            0 => f64::NAN,
            n if self.is_mean => self.sums.value(group) / n as f64,
            _ => self.sums.value(group),
        }
    }
}

impl Accumulator for Floats {
    fn len(&self) -> usize {
        self.counts.len()
    }

    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups);
        self.counts.resize(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        match *piece {
            Piece::F32(v) => self.sums.add_all(Some(&mut self.counts), target, v),
            Piece::F64(v) => self.sums.add_all(Some(&mut self.counts), target, v),
            _ => return Err(wrong_piece(piece)),
        }
        Ok(())
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        let x = match *one {
            Piece::F32(v) => f64::from(v[0]),
            Piece::F64(v) => v[0],
            _ => return Err(wrong_piece(one)),
        };
        if !x.is_nan() {
            self.counts.add(group, n as i64);
            self.sums.add_sum(group, &times(x, n));
        }
        Ok(())
    }

    fn add_total(&mut self, group: usize, total: &Total, n: u64) -> Result<()> {
        match total {
            // As two values, which may need no wide sum.
            Total::Float(Sum::Pair(high, low)) => {
                [*high, *low].into_iter().for_each(|x| self.sums.add(group, x))
            }
            Total::Float(Sum::Wide(sum)) => self.sums.add_sum(group, sum),
            Total::Integer(_) => return Err(wrong_total()),
        }
        self.counts.add(group, n as i64);
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if other.is_mean != self.is_mean {
            return Err(internal("states of different aggregates merged"));
        }
        self.counts.merge(&other.counts, to);
        self.sums.merge(&other.sums, to);
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        self.counts.settle();
        Finished::floats(order.iter().map(|&g| self.of(g)).collect())
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(Scalar::from_f64(self.of(group)))
    }

    fn memory_bytes(&self) -> u64 {
        self.sums.memory_bytes() + self.counts.memory_bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The sum of a value that is there so many times.
pub(super) fn times(x: f64, n: u64) -> ExactSum {
    let mut one = ExactSum::default();
    one.add(x);
    one.times(n)
}

/// Sums that fit in 64 bits, and what does not beside.
#[derive(Debug)]
struct Integers {
    low: Vec<i64>,
    wide: HashMap<u32, i128>,
    counts: Counts,
    is_mean: bool,
    input: ValueType,
}

impl Default for Integers {
    fn default() -> Self {
        let (low, wide, counts) = (Vec::new(), HashMap::new(), Counts::default());
        Self { low, wide, counts, is_mean: false, input: ValueType::I64 }
    }
}

impl Integers {
    #[inline(always)]
    fn add(&mut self, group: usize, x: i64) {
        match self.low[group].checked_add(x) {
            Some(sum) => self.low[group] = sum,
            None => self.add_wide(group, x.into()),
        }
    }

    #[cold]
    fn add_wide(&mut self, group: usize, x: i128) {
        *self.wide.entry(group as u32).or_default() += x;
    }

    fn add_unsigned(&mut self, group: usize, x: u64) {
        match i64::try_from(x) {
            Ok(x) => self.add(group, x),
            Err(_) => self.add_wide(group, x.into()),
        }
    }

    fn sum(&self, group: usize) -> i128 {
        let wide = if self.wide.is_empty() { None } else { self.wide.get(&(group as u32)) };
        wide.copied().unwrap_or_default() + i128::from(self.low[group])
    }

    fn of(&self, group: usize) -> Result<Scalar> {
        match self.counts.get(group) {
            0 => Ok(Scalar::Null),
            n if self.is_mean => Ok(Scalar::F64(self.sum(group) as f64 / n as f64)),
            _ => integer(self.sum(group), self.input),
        }
    }
}

impl Accumulator for Integers {
    fn len(&self) -> usize {
        self.counts.len()
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.low, groups, 0);
        self.counts.resize(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let n = piece.len();
        match *piece {
            Piece::Bool(_, p) | Piece::I64(_, p) | Piece::U64(_, p) => match p {
                None => self.counts.add_all(target, n),
                Some(p) => self.counts.add_each(target, n, |i| p.get(i)),
            },
            _ => return Err(wrong_piece(piece)),
        }
        match (*piece, target) {
            (Piece::I64(v, None), Target::One(group)) => self.add_wide_or_low(group, sum_i64(v)),
            (Piece::U64(v, None), Target::One(group)) => self.add_wide_or_low(group, sum_u64(v)),
            (Piece::I64(v, p), _) => target.each(n, |i| is_there(p, i), |g, i| self.add(g, v[i])),
            (Piece::U64(v, p), _) => target.each(n, |i| is_there(p, i), |g, i| self.add_unsigned(g, v[i])),
            (Piece::Bool(v, p), _) => target.each(n, |i| is_there(p, i), |g, i| self.add(g, v[i].into())),
            _ => {}
        }
        Ok(())
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        let x: i128 = match *one {
            Piece::Bool(v, p) if is_there(p, 0) => v[0].into(),
            Piece::I64(v, p) if is_there(p, 0) => v[0].into(),
            Piece::U64(v, p) if is_there(p, 0) => v[0].into(),
            Piece::Bool(..) | Piece::I64(..) | Piece::U64(..) => return Ok(()),
            _ => return Err(wrong_piece(one)),
        };
        self.counts.add(group, n as i64);
        self.add_wide_or_low(group, x * i128::from(n));
        Ok(())
    }

    fn add_total(&mut self, group: usize, total: &Total, n: u64) -> Result<()> {
        let Total::Integer(sum) = total else { return Err(wrong_total()) };
        self.add_wide_or_low(group, *sum);
        self.counts.add(group, n as i64);
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if other.is_mean != self.is_mean || other.input != self.input {
            return Err(internal("states of different aggregates merged"));
        }
        self.counts.merge(&other.counts, to);
        for (&group, &sum) in to.iter().zip(&other.low).filter(|(group, _)| **group != super::NO_GROUP) {
            self.add(group as usize, sum);
        }
        for (&from, &sum) in &other.wide {
            if to[from as usize] != super::NO_GROUP {
                self.add_wide(to[from as usize] as usize, sum);
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        self.counts.settle();
        if self.is_mean {
            let mean = |g: usize| match self.counts.get(g) {
                0 => f64::NAN,
                n => self.sum(g) as f64 / n as f64,
            };
            return Finished::floats(order.iter().map(|&g| mean(g)).collect());
        }
        let valid = Mask::from_fn(order.len(), |i| self.counts.get(order[i]) > 0).unless_all();
        let sums = order.iter().map(|&g| self.of(g));
        let values = if self.input == ValueType::U64 {
            let each = sums.map(|s| s.map(|s| if let Scalar::U64(x) = s { x } else { 0 }));
            Values::U64(each.collect::<Result<_>>()?)
        } else {
            let each = sums.map(|s| s.map(|s| if let Scalar::I64(x) = s { x } else { 0 }));
            Values::I64(each.collect::<Result<_>>()?)
        };
        Ok(Finished::Values(Vector::new(values, valid)?))
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        self.of(group)
    }

    fn memory_bytes(&self) -> u64 {
        let entry = size_of::<(u32, i128)>() as u64 + 1;
        bytes(&self.low) + self.counts.memory_bytes() + self.wide.capacity() as u64 * 8 / 7 * entry
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Integers {
    fn add_wide_or_low(&mut self, group: usize, x: i128) {
        match i64::try_from(x) {
            Ok(x) => self.add(group, x),
            Err(_) => self.add_wide(group, x),
        }
    }
}

fn wrong_total() -> Error {
    internal("a sum of another type")
}

fn integer(sum: i128, input: ValueType) -> Result<Scalar> {
    let fitting = match input {
        ValueType::U64 => u64::try_from(sum).ok().map(Scalar::U64),
        _ => i64::try_from(sum).ok().map(Scalar::I64),
    };
    fitting.ok_or_else(|| {
        let to = if input == ValueType::U64 { input } else { ValueType::I64 };
        Error::new(ErrorKind::Overflow, format!("the sum {sum} does not fit in {to}"))
            .hint("sum in floating point: sum(float64(x))")
    })
}
