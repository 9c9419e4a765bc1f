//! Variances and standard deviations of many groups: of the exact sums of values and squares, rounded once.

mod wire;

use std::any::Any;
use std::collections::HashMap;

use super::Aggregate;
use super::accumulator::{
    Accumulator, Finished, Piece, Target, internal, is_there, of_each, same, wrong_piece,
};
use super::counts::Counts;
use super::moments::{Moments, has_plain_square, product_error};
use super::pairs::{Float, Pairs};
use crate::values::{Scalar, ValueType};
use sieva_types::Result;

/// Integers up to here are `float64` exactly.
const EXACT: u64 = 1 << 53;
/// Values of neighbouring groups that are squared at once.
const BLOCK: usize = 512;
/// From so many values of one group on they are taken in together.
const BULK: usize = 64;
/// Bytes that [`Moments`] beside the vectors hold, typically.
const WIDE_BYTES: u64 = 384;

pub(super) fn make(aggregate: &Aggregate, input: ValueType) -> Option<Box<dyn Accumulator>> {
    let (freedom, is_root) = match aggregate {
        Aggregate::StddevSamp => (1, true),
        Aggregate::StddevPop => (0, true),
        Aggregate::VarSamp => (1, false),
        Aggregate::VarPop => (0, false),
        _ => return None,
    };
    if input == ValueType::Str {
        return None;
    }
    Some(Box::new(Variances { freedom, is_root, ..Variances::default() }))
}

/// Counts, sums and sums of squares; beside, all of them for values whose square is not a sum of two `float64`, and for
/// pieces that go into one group.
#[derive(Debug, Default)]
struct Variances {
    counts: Counts,
    sums: Pairs,
    squares: Pairs,
    wide: HashMap<u32, Moments>,
    freedom: u64,
    is_root: bool,
}

impl Variances {
    #[inline]
    fn add(&mut self, group: usize, x: f64) {
        if !has_plain_square(x) {
            return self.wide.entry(group as u32).or_default().add_all(&[x]);
        }
        self.counts.add(group, 1);
        self.sums.add(group, x);
        self.squares.add(group, x * x);
        let rest = product_error(x, x);
        if rest != 0.0 {
            self.squares.add(group, rest);
        }
    }

    /// Adds each value to the next group.
    fn add_run<T: Float>(&mut self, first: usize, values: &[T]) {
        let (mut squares, mut rests) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (b, block) in values.chunks(BLOCK).enumerate() {
            let (at, n) = (first + b * BLOCK, block.len());
            let is_plain = |x: f64| x.is_nan() || has_plain_square(x);
            if !block.iter().fold(true, |all, x| all & is_plain(x.wide())) {
                let there = block.iter().enumerate().filter(|(_, x)| !x.wide().is_nan());
                there.for_each(|(i, x)| self.add(at + i, x.wide()));
                continue;
            }
            self.sums.add_all(Some(&mut self.counts), Target::From(at), block);
            squares.iter_mut().zip(block).for_each(|(to, x)| *to = x.wide() * x.wide());
            self.squares.add_all(None, Target::From(at), &squares[..n]);
            if !T::IS_NARROW {
                rests.iter_mut().zip(block).for_each(|(to, x)| *to = product_error(x.wide(), x.wide()));
                self.squares.add_all(None, Target::From(at), &rests[..n]);
            }
        }
    }

    fn add_integer(&mut self, group: usize, x: i128) {
        if x.unsigned_abs() <= EXACT.into() {
            self.add(group, x as f64);
        } else {
            self.wide.entry(group as u32).or_default().add_integers(std::iter::once(x));
        }
    }

    /// All that is known of a group.
    fn moments(&self, group: usize) -> Moments {
        let mut all = Moments::of(self.counts.get(group), self.sums.exact(group), self.squares.exact(group));
        if let Some(wide) = self.wide.get(&(group as u32)) {
            all.merge(wide);
        }
        all
    }

    /// The value of a group; `None` where there are too few values.
    fn of(&self, group: usize) -> Option<f64> {
        let variance = self.moments(group).variance(self.freedom)?;
        Some(if self.is_root { variance.sqrt() } else { variance })
    }
}

impl Accumulator for Variances {
    fn len(&self) -> usize {
        self.counts.len()
    }

    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups);
        self.sums.resize(groups);
        self.squares.resize(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        if let (Target::One(group), true) = (target, piece.len() >= BULK) {
            let wide = self.wide.entry(group as u32).or_default();
            match *piece {
                Piece::F64(v) if !v.iter().fold(false, |any, x| any | x.is_nan()) => {
                    wide.add_all(v);
                    return Ok(());
                }
                Piece::F32(_) | Piece::F64(_) => {
                    let mut there = Vec::with_capacity(piece.len());
                    piece.each_float(target, |_, x| there.push(x))?;
                    wide.add_all(&there);
                    return Ok(());
                }
                _ => {}
            }
        }
        match (*piece, target) {
            (Piece::F32(v), Target::From(first)) => {
                self.add_run(first, v);
                return Ok(());
            }
            (Piece::F64(v), Target::From(first)) => {
                self.add_run(first, v);
                return Ok(());
            }
            _ => {}
        }
        match *piece {
            Piece::I64(v, p) => {
                target.each(v.len(), |i| is_there(p, i), |g, i| self.add_integer(g, v[i].into()));
            }
            Piece::U64(v, p) => {
                target.each(v.len(), |i| is_there(p, i), |g, i| self.add_integer(g, v[i].into()));
            }
            _ => piece.each_float(target, |g, x| self.add(g, x))?,
        }
        Ok(())
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        let mut doubled = Moments::default();
        match *one {
            Piece::I64(v, p) if is_there(p, 0) => doubled.add_integers(std::iter::once(v[0].into())),
            Piece::U64(v, p) if is_there(p, 0) => doubled.add_integers(std::iter::once(v[0].into())),
            Piece::I64(..) | Piece::U64(..) => return Ok(()),
            Piece::Rows(_) | Piece::Str(..) => return Err(wrong_piece(one)),
            _ => one.each_float(Target::One(0), |_, x| doubled.add_all(&[x]))?,
        }
        // Put together by doubling, as all merging is exact.
        let wide = self.wide.entry(group as u32).or_default();
        for bit in 0..u64::BITS - n.leading_zeros() {
            if bit > 0 {
                let same = doubled.clone();
                doubled.merge(&same);
            }
            if n >> bit & 1 == 1 {
                wide.merge(&doubled);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if (other.freedom, other.is_root) != (self.freedom, self.is_root) {
            return Err(internal("states of different aggregates merged"));
        }
        self.counts.merge(&other.counts, to);
        self.sums.merge(&other.sums, to);
        self.squares.merge(&other.squares, to);
        for (&from, moments) in &other.wide {
            let group = to[from as usize];
            if group != super::NO_GROUP {
                self.wide.entry(group).or_default().merge(moments);
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], threads: usize) -> Result<Finished> {
        self.counts.settle();
        Finished::floats(of_each(order, threads, |g| self.of(g).unwrap_or(f64::NAN)))
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(self.of(group).map_or(Scalar::Null, Scalar::from_f64))
    }

    fn memory_bytes(&self) -> u64 {
        let wide = self.wide.capacity() as u64 * (size_of::<(u32, Moments)>() as u64 + 1);
        let held = self.wide.len() as u64 * WIDE_BYTES;
        self.counts.memory_bytes() + self.sums.memory_bytes() + self.squares.memory_bytes() + wide + held
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
