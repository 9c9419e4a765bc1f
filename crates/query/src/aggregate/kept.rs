//! Quantiles and medians: exact, so the values of all groups are kept until the end.

mod wire;

use std::any::Any;

use super::Aggregate;
use super::accumulator::{
    Accumulator, Finished, Piece, Target, bytes, internal, is_there, same, wrong_piece,
};
use super::quantile::{self, Ranked};
use crate::values::{Scalar, ValueType};
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

/// Room that is left free is this part of what is in use: it counts as memory.
const SPARE: u64 = 8;

/// Groups whose values are laid out at once: of each row a few cache lines.
const COLUMNS: usize = 32;

/// Groups of which the quantiles are found by one thread at least.
const SHARE: usize = 1 << 8;

pub(super) fn make(aggregate: &Aggregate, input: ValueType) -> Option<Box<dyn Accumulator>> {
    let probability = probability_of(aggregate)?;
    match input {
        ValueType::U64 => Some(Box::new(Kept::<u64>::new(probability))),
        ValueType::F64 => Some(Box::new(Kept::<f64>::new(probability))),
        // Bool counts as 0 and 1.
        ValueType::Bool | ValueType::I64 => Some(Box::new(Kept::<i64>::new(probability))),
        ValueType::Str => None,
    }
}

/// The probability of a quantile, none of a median; `None` for what is neither.
fn probability_of(aggregate: &Aggregate) -> Option<Option<f64>> {
    match *aggregate {
        Aggregate::Quantile(q) => Some(Some(q)),
        Aggregate::Median => Some(None),
        _ => None,
    }
}

/// The quantile of a probability, or the median. The values are put in another order.
fn found<T: Ranked>(probability: Option<f64>, values: &mut [T]) -> f64 {
    let found = match probability {
        Some(q) => quantile::quantile(values, q),
        None => quantile::median(values),
    };
    found.unwrap_or(f64::NAN)
}

/// The values of all groups in the order in which they came, each with its group.
#[derive(Debug)]
struct Kept<T> {
    groups: usize,
    values: Vec<T>,
    /// Left empty while there is but one group.
    group_of: Vec<u32>,
    /// Of a quantile; of a median none.
    probability: Option<f64>,
}

impl<T: Ranked> Kept<T> {
    fn new(probability: Option<f64>) -> Self {
        Self { groups: 0, values: Vec::new(), group_of: Vec::new(), probability }
    }

    fn has_groups(&self) -> bool {
        self.groups > 1
    }

    /// Bytes of a value with its group.
    fn value_bytes(&self) -> u64 {
        size_of::<T>() as u64 + if self.has_groups() { size_of::<u32>() as u64 } else { 0 }
    }

    /// Bytes once there are `more` values. Where that moves them, old and new are held for a moment: both may take all of a
    /// limit, of which three quarters are for what is kept.
    fn with_more(&self, more: u64) -> u64 {
        let held = self.values.capacity() as u64 * self.value_bytes();
        let need = more.saturating_add(self.values.len() as u64).saturating_mul(self.value_bytes());
        let grown = need.saturating_add(need / SPARE);
        if need <= held { held } else { grown.max(held.saturating_add(grown) / 4 * 3) }
    }

    fn reserve(&mut self, more: usize) {
        fn make_room<T>(v: &mut Vec<T>, more: usize) {
            let need = v.len() + more;
            if need > v.capacity() {
                v.reserve_exact(more + need / SPARE as usize);
            }
        }
        make_room(&mut self.values, more);
        if self.has_groups() {
            make_room(&mut self.group_of, more);
        }
    }

    #[inline(always)]
    fn push(&mut self, group: usize, value: T) {
        self.values.push(value);
        if self.groups > 1 {
            self.group_of.push(group as u32);
        }
    }

    /// Of how many groups there are values, if these came one of each, in the order of the groups, again and again: of rows
    /// along the innermost dimension, a time after the other, which lack values at the same places.
    fn width(&self) -> Option<usize> {
        let all = &self.group_of;
        let width = 1 + all.windows(2).take_while(|w| w[0] < w[1]).count();
        let is_repeated = |part: &[u32]| part == &all[..width];
        let is_so = width >= 2 * COLUMNS && all.len() > width && all.len().is_multiple_of(width);
        (is_so && all.chunks(width).all(is_repeated)).then_some(width)
    }

    /// What the groups come to, `each` of one behind the other, where they are columns of rows of `width` values. Each of so
    /// many threads lays out a few columns at a time.
    fn of_columns(&self, each: &[Option<f64>], width: usize, threads: usize) -> Vec<f64> {
        let (rows, mut all) = (self.values.len() / width, vec![f64::NAN; width * each.len()]);
        let find = |first: usize, all: &mut [f64]| {
            let mut columns = Vec::with_capacity(rows * COLUMNS);
            for (k, all) in all.chunks_mut(COLUMNS * each.len()).enumerate() {
                let (first, n) = (first + k * COLUMNS, all.len() / each.len());
                columns.clear();
                columns.resize(rows * n, self.values[0]);
                for (r, row) in self.values.chunks(width).enumerate() {
                    row[first..first + n].iter().enumerate().for_each(|(c, &x)| columns[c * rows + r] = x);
                }
                for (own, all) in columns.chunks_mut(rows).zip(all.chunks_mut(each.len())) {
                    all.iter_mut().zip(each).for_each(|(to, &q)| *to = found(q, own));
                }
            }
        };
        // As many as have room for columns where the groups' numbers were.
        let threads = threads.min(width / (2 * COLUMNS)).max(1);
        let share = width.div_ceil(threads).next_multiple_of(COLUMNS);
        if threads == 1 {
            find(0, &mut all);
            return all;
        }
        std::thread::scope(|scope| {
            let find = &find;
            for (k, all) in all.chunks_mut(share * each.len()).enumerate() {
                scope.spawn(move || find(k * share, all));
            }
        });
        all
    }

    /// What the groups come to, `each` of one behind the other, of values that lie side by side, from these places on; so many
    /// threads take a share of the groups each.
    fn of_side_by_side(
        &self,
        each: &[Option<f64>],
        values: &mut [T],
        starts: &[usize],
        threads: usize,
    ) -> Vec<f64> {
        let mut all = vec![f64::NAN; self.groups * each.len()];
        let share = self.groups.div_ceil(threads.max(1)).max(SHARE);
        let find = |all: &mut [f64], own: &mut [T], starts: &[usize]| {
            for (g, all) in all.chunks_mut(each.len()).enumerate() {
                let own = &mut own[starts[g] - starts[0]..starts[g + 1] - starts[0]];
                all.iter_mut().zip(each).for_each(|(to, &q)| *to = found(q, own));
            }
        };
        if self.groups <= share {
            find(&mut all, values, starts);
            return all;
        }
        std::thread::scope(|scope| {
            let (mut rest, mut done) = (values, 0);
            for (n, all) in all.chunks_mut(share * each.len()).enumerate() {
                let groups = all.len() / each.len();
                let starts = &starts[n * share..n * share + groups + 1];
                let (own, others) = std::mem::take(&mut rest).split_at_mut(starts[groups] - done);
                (rest, done) = (others, starts[groups]);
                scope.spawn(move || find(all, own, starts));
            }
        });
        all
    }

    /// What the groups come to, `each` of one behind the other. The values are used up.
    fn of_groups(&mut self, each: &[Option<f64>], threads: usize) -> Vec<f64> {
        let Some(width) = self.width() else {
            let starts = self.sort_by_group();
            let mut values = std::mem::take(&mut self.values);
            return self.of_side_by_side(each, &mut values, &starts, threads);
        };
        // Makes room for the columns.
        self.group_of.truncate(width);
        self.group_of.shrink_to_fit();
        let columns = self.of_columns(each, width, threads);
        self.values = Vec::new();
        let mut all = vec![f64::NAN; self.groups * each.len()];
        for (&g, column) in self.group_of.iter().zip(columns.chunks(each.len())) {
            all[g as usize * each.len()..][..each.len()].copy_from_slice(column);
        }
        all
    }

    /// Puts the values of each group side by side, and returns where each group's begin, and the end.
    fn sort_by_group(&mut self) -> Vec<usize> {
        let mut starts = vec![0; self.groups + 1];
        if !self.has_groups() {
            starts.iter_mut().skip(1).for_each(|end| *end = self.values.len());
            return starts;
        }
        self.group_of.iter().for_each(|&g| starts[g as usize + 1] += 1);
        for g in 0..self.groups {
            starts[g + 1] += starts[g];
        }
        // Each value is exchanged with the one in its place, until one comes that belongs here.
        let mut next = starts.clone();
        for g in 0..self.groups {
            while next[g] < starts[g + 1] {
                let at = next[g];
                let group = self.group_of[at] as usize;
                let to = next[group];
                next[group] += 1;
                self.values.swap(at, to);
                self.group_of.swap(at, to);
            }
        }
        starts
    }
}

/// What goes into a [`Kept`] of each type.
trait Keep: Ranked {
    fn write(self, w: &mut Writer);
    fn read(r: &mut Reader<'_>) -> Result<Self>;
    fn add(kept: &mut Kept<Self>, target: Target<'_>, piece: &Piece<'_>) -> Result<()>;
}

impl Kept<f64> {
    /// Adds those that are not NaN.
    fn push_floats<F: Copy>(&mut self, target: Target<'_>, values: &[F], wide: impl Fn(F) -> f64) {
        let is_there = |i: usize| !wide(values[i]).is_nan();
        if let Target::From(first) = target
            && self.groups > 1
            && values.iter().fold(true, |all, &x| all & !wide(x).is_nan())
        {
            self.values.extend(values.iter().map(|&x| wide(x)));
            return self.group_of.extend(first as u32..(first + values.len()) as u32);
        }
        target.each(values.len(), is_there, |g, i| self.push(g, wide(values[i])));
    }
}

impl Keep for f64 {
    fn write(self, w: &mut Writer) {
        w.float(self);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        let x = r.float()?;
        if x.is_nan() { Err(r.damaged("a missing value that was kept")) } else { Ok(x) }
    }

    fn add(kept: &mut Kept<f64>, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        match piece {
            Piece::F32(v) => kept.push_floats(target, v, f64::from),
            Piece::F64(v) => kept.push_floats(target, v, |x| x),
            _ => return Err(wrong_piece(piece)),
        }
        Ok(())
    }
}

impl Keep for i64 {
    fn write(self, w: &mut Writer) {
        w.int(self.into());
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        let x = r.int()?;
        Self::try_from(x).map_err(|_| r.damaged(format!("{x} is no int64")))
    }

    fn add(kept: &mut Kept<i64>, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        match *piece {
            Piece::I64(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| kept.push(g, v[i])),
            Piece::Bool(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| kept.push(g, v[i].into())),
            _ => return Err(wrong_piece(piece)),
        }
        Ok(())
    }
}

impl Keep for u64 {
    fn write(self, w: &mut Writer) {
        w.uint(self);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        r.uint()
    }

    fn add(kept: &mut Kept<u64>, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let Piece::U64(v, p) = *piece else { return Err(wrong_piece(piece)) };
        target.each(v.len(), |i| is_there(p, i), |g, i| kept.push(g, v[i]));
        Ok(())
    }
}

impl<T: Keep> Accumulator for Kept<T> {
    fn len(&self) -> usize {
        self.groups
    }

    fn resize(&mut self, groups: usize) {
        if self.groups <= 1 && groups > 1 {
            self.group_of = Vec::with_capacity(self.values.capacity());
            self.group_of.resize(self.values.len(), 0);
        }
        self.groups = self.groups.max(groups);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        self.reserve(piece.len());
        T::add(self, target, piece)
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        let before = self.values.len();
        if n > 0 {
            T::add(self, Target::One(group), one)?;
        }
        if self.values.len() > before {
            let value = self.values[before];
            self.reserve(n as usize - 1);
            (1..n).for_each(|_| self.push(group, value));
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if other.probability != self.probability {
            return Err(internal("states of different aggregates merged"));
        }
        self.reserve(other.values.len());
        for (i, &value) in other.values.iter().enumerate() {
            let group = to[other.group_of.get(i).copied().unwrap_or_default() as usize];
            if group != super::NO_GROUP {
                self.push(group as usize, value);
            }
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], threads: usize) -> Result<Finished> {
        let all = self.of_groups(&[self.probability], threads);
        Finished::floats(order.iter().map(|&g| all[g]).collect())
    }

    fn finish_each(&mut self, of: &[Aggregate], order: &[usize], threads: usize) -> Result<Vec<Finished>> {
        let each: Option<Vec<Option<f64>>> = of.iter().map(probability_of).collect();
        let each = each.filter(|e| !e.is_empty()).ok_or_else(|| internal("a state shared with others"))?;
        let all = self.of_groups(&each, threads);
        let column = |k: usize| Finished::floats(order.iter().map(|&g| all[g * each.len() + k]).collect());
        (0..each.len()).map(column).collect()
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        let is_of = |i: usize| self.group_of.get(i).copied().unwrap_or_default() as usize == group;
        let mut own: Vec<T> = (0..self.values.len()).filter(|&i| is_of(i)).map(|i| self.values[i]).collect();
        Ok(Scalar::from_f64(found(self.probability, &mut own)))
    }

    fn memory_bytes(&self) -> u64 {
        bytes(&self.values) + bytes(&self.group_of)
    }

    fn growth(&self, values: u64) -> u64 {
        self.with_more(values).saturating_sub(self.memory_bytes())
    }

    fn expect_values(&mut self, values: u64) {
        self.reserve(usize::try_from(values).unwrap_or(0));
    }

    fn merging(&self, other: &dyn Accumulator) -> u64 {
        same::<Self>(other).map_or(0, |other| self.growth(other.values.len() as u64))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is held while they are moved stays under a limit of which the bytes that are foreseen are three quarters.
    #[test]
    fn moving_values_is_foreseen() {
        let (mut kept, mut part) = (Kept::<f64>::new(None), Kept::<f64>::new(None));
        kept.resize(1);
        part.resize(1);
        part.update(Target::One(0), &Piece::F64(&[1.0; 5000])).unwrap();
        for _ in 0..50 {
            let (held, foreseen) = (kept.memory_bytes(), kept.memory_bytes() + kept.merging(&part));
            kept.merge(&part, &[0]).unwrap();
            let moved = if kept.memory_bytes() > held { held } else { 0 };
            assert!(kept.memory_bytes() <= foreseen && moved + kept.memory_bytes() <= foreseen / 3 * 4 + 16);
        }
    }

    #[test]
    fn rows_are_taken_by_columns() {
        // 50 rows of 100 groups, of which some have no values; then one row of one value less.
        let has = |g: usize| !g.is_multiple_of(3);
        let row = |r: usize| -> Vec<f64> {
            (0..100)
                .map(|g| if has(g) { ((r * 31 + g * 17) % 101) as f64 - 50.0 } else { f64::NAN })
                .collect()
        };
        for cut in [false, true] {
            let mut kept = Kept::<f64>::new(Some(0.3));
            kept.resize(100);
            (0..50).for_each(|r| kept.update(Target::From(0), &Piece::F64(&row(r))).unwrap());
            if cut {
                kept.update(Target::From(1), &Piece::F64(&[7.0])).unwrap();
            }
            assert_eq!(kept.width(), (!cut).then_some(66));
            let order: Vec<usize> = (0..100).rev().collect();
            let both = [Aggregate::Median, Aggregate::Quantile(0.3)];
            let found = kept.finish_each(&both, &order, 1).unwrap();
            for (i, &g) in order.iter().enumerate() {
                let mut own: Vec<f64> = (0..50).map(|r| row(r)[g]).filter(|x| !x.is_nan()).collect();
                own.extend((cut && g == 1).then_some(7.0));
                let expected = quantile::quantile(&mut own, 0.3).map_or(Scalar::Null, Scalar::F64);
                assert_eq!(found[1].scalar(i), expected);
                let middle = quantile::median(&mut own).map_or(Scalar::Null, Scalar::F64);
                assert_eq!(found[0].scalar(i), middle);
            }
        }
    }

    #[test]
    fn groups_are_put_side_by_side() {
        let mut kept = Kept::<i64>::new(None);
        kept.resize(4);
        let groups: Vec<u32> =
            (0..1000_u32).map(|i| [3, 0, 1][(i.wrapping_mul(2_654_435_761) >> 7) as usize % 3]).collect();
        let values: Vec<i64> = groups.iter().map(|&g| i64::from(g) * 10).collect();
        kept.update(Target::Each(&groups), &Piece::I64(&values, None)).unwrap();
        let starts = kept.sort_by_group();
        for g in 0..4 {
            let own = &kept.values[starts[g]..starts[g + 1]];
            assert_eq!(own.len(), groups.iter().filter(|&&of| of as usize == g).count());
            assert!(own.iter().all(|&x| x == 10 * g as i64));
        }
    }
}
