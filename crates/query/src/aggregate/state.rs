//! The state of an aggregate.

use super::{
    Aggregate,
    distinct::Distinct,
    extreme::Extreme,
    histogram::Histogram,
    moments::Moments,
    quantile::Kept,
    sum::{ExactSum, sum_i64, sum_u64},
};
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_types::{Error, ErrorKind, Result};

/// Which rows of a piece go into a state.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// All of so many.
    All(usize),
    /// Those that are true.
    Mask(&'a [bool]),
}

/// The group of a row that goes into no state.
pub const NO_GROUP: u32 = u32::MAX;

/// Values are packed and fed in blocks of so many, which stay in the first-level cache.
const BLOCK: usize = 2048;

/// What an aggregate knows of the values it has seen.
#[derive(Clone, Debug)]
pub struct State {
    aggregate: Aggregate,
    input: ValueType,
    known: Known,
}

#[derive(Clone, Debug)]
enum Known {
    /// Of rows or of values.
    Count(u64),
    Distinct(Distinct),
    Extreme(Extreme),
    /// The sum and the count of integers.
    Integers(i128, u64),
    /// The sum and the count of floats.
    Floats(ExactSum, u64),
    Moments(Moments),
    Kept(Kept),
    Histogram(Histogram),
}

impl State {
    /// The state of no values of type `input` (`None`: the untyped NULL, or no argument).
    ///
    /// # Errors
    /// `TypeMismatch` if the aggregate needs numbers and the argument is text; `Internal` if
    /// [`Aggregate::needs_range`].
    pub fn new(aggregate: &Aggregate, input: Option<ValueType>) -> Result<Self> {
        aggregate.result_type(input)?;
        let input = input.unwrap_or(ValueType::F64);
        let known = match *aggregate {
            Aggregate::Count | Aggregate::CountValues => Known::Count(0),
            Aggregate::CountDistinct => Known::Distinct(Distinct::new(input)),
            Aggregate::Min => Known::Extreme(Extreme::new(input, false)),
            Aggregate::Max => Known::Extreme(Extreme::new(input, true)),
            Aggregate::Sum | Aggregate::Avg if input == ValueType::F64 => {
                Known::Floats(ExactSum::default(), 0)
            }
            Aggregate::Sum | Aggregate::Avg => Known::Integers(0, 0),
            Aggregate::StddevSamp | Aggregate::StddevPop | Aggregate::VarSamp | Aggregate::VarPop => {
                Known::Moments(Moments::default())
            }
            Aggregate::Quantile(_) | Aggregate::Median => Known::Kept(Kept::new(input)),
            Aggregate::Histogram { bins, range: Some(range) } => {
                Known::Histogram(Histogram::new(bins, range))
            }
            Aggregate::Histogram { range: None, .. } => {
                return Err(internal("a histogram without its range"));
            }
        };
        Ok(Self { aggregate: *aggregate, input, known })
    }

    /// Takes in a piece. `values` may be a constant; of `count(*)` it is not looked at.
    pub fn update(&mut self, values: &Vector, rows: Rows<'_>) -> Result<()> {
        let (n, mask) = match rows {
            Rows::All(n) => (n, None),
            Rows::Mask(mask) => (mask.len(), Some(mask)),
        };
        if self.aggregate == Aggregate::Count {
            let count = mask.map_or(n, |mask| mask.iter().filter(|&&m| m).count());
            return self.update_count(count);
        }
        let values = rows_of(values, self.input, n)?;
        let keep = [values.valid.as_deref(), mask];
        match &values.values {
            Values::Bool(v) => v.iter().enumerate().filter(|&(i, _)| is_kept(keep, i)).for_each(|(_, &x)| {
                self.add_bool(x);
            }),
            Values::Str(v) => v.iter().enumerate().filter(|&(i, _)| is_kept(keep, i)).for_each(|(_, x)| {
                self.add_str(x);
            }),
            Values::I64(v) => in_blocks(v, keep, |_| false, |block| self.add_i64s(block)),
            Values::U64(v) => in_blocks(v, keep, |_| false, |block| self.add_u64s(block)),
            Values::F64(v) => in_blocks(v, keep, f64::is_nan, |block| self.add_f64s(block)),
        }
        Ok(())
    }

    /// Takes in decoded `float64` as they are; NaN is missing.
    pub fn update_f64(&mut self, values: &[f64]) -> Result<()> {
        self.expect_floats()?;
        if self.aggregate == Aggregate::Count {
            return self.update_count(values.len());
        }
        in_blocks(values, [None, None], f64::is_nan, |block| self.add_f64s(block));
        Ok(())
    }

    /// Takes in decoded `float32` as they are; NaN is missing.
    pub fn update_f32(&mut self, values: &[f32]) -> Result<()> {
        self.expect_floats()?;
        if self.aggregate == Aggregate::Count {
            return self.update_count(values.len());
        }
        let mut wide = [0.0; BLOCK];
        for block in values.chunks(BLOCK) {
            let wide = &mut wide[..block.len()];
            wide.iter_mut().zip(block).for_each(|(to, &from)| *to = f64::from(from));
            in_blocks(wide, [None, None], f64::is_nan, |block| self.add_f64s(block));
        }
        Ok(())
    }

    /// Takes in so many rows of `count(*)`.
    pub fn update_count(&mut self, rows: usize) -> Result<()> {
        match &mut self.known {
            Known::Count(count) => {
                *count += rows as u64;
                Ok(())
            }
            _ => Err(internal("rows counted into an aggregate of values")),
        }
    }

    /// Takes in a piece, each row into the state of its group; those of [`NO_GROUP`] into none.
    pub fn update_grouped(states: &mut [State], group_of_row: &[u32], values: &Vector) -> Result<()> {
        let Some(first) = states.first() else {
            return match group_of_row.iter().find(|&&g| g != NO_GROUP) {
                Some(&g) => Err(no_group(g, 0)),
                None => Ok(()),
            };
        };
        if first.aggregate == Aggregate::Count {
            return each_row(states, group_of_row, |_| true, |state, _| state.add_row());
        }
        let values = rows_of(values, first.input, group_of_row.len())?;
        let keep = [values.valid.as_deref(), None];
        let kept = |i: usize| is_kept(keep, i);
        match &values.values {
            Values::Bool(v) => each_row(states, group_of_row, kept, |s, i| s.add_bool(v[i])),
            Values::I64(v) => each_row(states, group_of_row, kept, |s, i| s.add_i64s(&v[i..=i])),
            Values::U64(v) => each_row(states, group_of_row, kept, |s, i| s.add_u64s(&v[i..=i])),
            Values::Str(v) => each_row(states, group_of_row, kept, |s, i| s.add_str(&v[i])),
            Values::F64(v) => {
                let kept = |i: usize| !v[i].is_nan() && is_kept(keep, i);
                each_row(states, group_of_row, kept, |s, i| s.add_f64s(&v[i..=i]))
            }
        }
    }

    /// Takes in what another state of the same aggregate knows.
    pub fn merge(&mut self, other: State) -> Result<()> {
        if self.aggregate != other.aggregate || self.input != other.input {
            return Err(internal("states of different aggregates merged"));
        }
        match (&mut self.known, other.known) {
            (Known::Count(a), Known::Count(b)) => *a += b,
            (Known::Distinct(a), Known::Distinct(b)) => a.merge(b),
            (Known::Extreme(a), Known::Extreme(b)) => a.merge(b),
            (Known::Integers(sum, n), Known::Integers(other, m)) => (*sum, *n) = (*sum + other, *n + m),
            (Known::Floats(sum, n), Known::Floats(other, m)) => {
                sum.merge(&other);
                *n += m;
            }
            (Known::Moments(a), Known::Moments(b)) => a.merge(&b),
            (Known::Kept(a), Known::Kept(b)) => a.merge(b),
            (Known::Histogram(a), Known::Histogram(b)) if a.is_like(&b) => a.merge(&b),
            _ => return Err(internal("states of different aggregates merged")),
        }
        Ok(())
    }

    /// The value of the aggregate.
    ///
    /// # Errors
    /// `Overflow` if a sum of integers does not fit in its type.
    pub fn finish(self) -> Result<Scalar> {
        Ok(match self.known {
            Known::Count(n) => Scalar::I64(n as i64),
            Known::Distinct(set) => Scalar::I64(set.count() as i64),
            Known::Extreme(extreme) => extreme.finish(),
            Known::Integers(_, 0) | Known::Floats(_, 0) => Scalar::Null,
            Known::Integers(sum, n) if self.aggregate == Aggregate::Avg => Scalar::F64(sum as f64 / n as f64),
            Known::Integers(sum, _) => return integer(sum, self.input),
            Known::Floats(sum, n) if self.aggregate == Aggregate::Avg => {
                Scalar::from_f64(sum.value() / n as f64)
            }
            Known::Floats(sum, _) => Scalar::from_f64(sum.value()),
            Known::Moments(moments) => {
                let (freedom, is_root) = match self.aggregate {
                    Aggregate::StddevSamp => (1, true),
                    Aggregate::StddevPop => (0, true),
                    Aggregate::VarSamp => (1, false),
                    _ => (0, false),
                };
                let root = |v: f64| if is_root { v.sqrt() } else { v };
                or_null(moments.variance(freedom).map(root))
            }
            Known::Kept(kept) => or_null(match self.aggregate {
                Aggregate::Quantile(q) => kept.quantile(q),
                _ => kept.median(),
            }),
            Known::Histogram(histogram) => histogram.finish(),
        })
    }

    /// The memory that it takes. It grows with the values for quantiles, medians and distinct counts only.
    pub fn memory_bytes(&self) -> usize {
        let heap = match &self.known {
            Known::Count(_) | Known::Integers(..) | Known::Moments(_) => 0,
            Known::Distinct(set) => set.heap_bytes(),
            Known::Extreme(extreme) => extreme.heap_bytes(),
            Known::Floats(sum, _) => sum.heap_bytes(),
            Known::Kept(kept) => kept.heap_bytes(),
            Known::Histogram(histogram) => histogram.heap_bytes(),
        };
        size_of::<Self>() + heap
    }

    fn expect_floats(&self) -> Result<()> {
        match self.input {
            ValueType::F64 => Ok(()),
            other => Err(internal(&format!("floats fed to an aggregate of {other}"))),
        }
    }

    fn add_row(&mut self) {
        if let Known::Count(n) = &mut self.known {
            *n += 1;
        }
    }

    fn add_bool(&mut self, x: bool) {
        match &mut self.known {
            Known::Distinct(set) => set.add_bits(u64::from(x)),
            Known::Extreme(extreme) => extreme.add_bool(x),
            // In all others it counts as a number.
            _ => self.add_i64s(&[i64::from(x)]),
        }
    }

    fn add_str(&mut self, x: &str) {
        match &mut self.known {
            Known::Count(n) => *n += 1,
            Known::Distinct(set) => set.add_str(x),
            Known::Extreme(extreme) => extreme.add_str(x),
            // The others were refused for text.
            _ => {}
        }
    }

    fn add_i64s(&mut self, values: &[i64]) {
        match &mut self.known {
            Known::Count(n) => *n += values.len() as u64,
            Known::Distinct(set) => values.iter().for_each(|&x| set.add_bits(x as u64)),
            Known::Extreme(extreme) => extreme.add_i64s(values),
            Known::Integers(sum, n) => (*sum, *n) = (*sum + sum_i64(values), *n + values.len() as u64),
            Known::Kept(Kept::I64(kept)) => kept.extend_from_slice(values),
            _ => self.add_converted(values, |x| x as f64),
        }
    }

    fn add_u64s(&mut self, values: &[u64]) {
        match &mut self.known {
            Known::Count(n) => *n += values.len() as u64,
            Known::Distinct(set) => values.iter().for_each(|&x| set.add_bits(x)),
            Known::Extreme(extreme) => extreme.add_u64s(values),
            Known::Integers(sum, n) => (*sum, *n) = (*sum + sum_u64(values), *n + values.len() as u64),
            Known::Kept(Kept::U64(kept)) => kept.extend_from_slice(values),
            _ => self.add_converted(values, |x| x as f64),
        }
    }

    fn add_converted<T: Copy>(&mut self, values: &[T], convert: impl Fn(T) -> f64) {
        if let [x] = values {
            return self.add_f64s(&[convert(*x)]);
        }
        let mut floats = [0.0; BLOCK];
        for block in values.chunks(BLOCK) {
            let floats = &mut floats[..block.len()];
            floats.iter_mut().zip(block).for_each(|(to, &from)| *to = convert(from));
            self.add_f64s(floats);
        }
    }

    fn add_f64s(&mut self, values: &[f64]) {
        match &mut self.known {
            Known::Count(n) => *n += values.len() as u64,
            Known::Distinct(set) => values.iter().for_each(|&x| set.add_f64(x)),
            Known::Extreme(extreme) => extreme.add_f64s(values),
            Known::Floats(sum, n) => {
                sum.add_all(values);
                *n += values.len() as u64;
            }
            Known::Moments(moments) => match values {
                [x] => moments.add(*x),
                _ => moments.add_all(values),
            },
            Known::Kept(Kept::F64(kept)) => kept.extend_from_slice(values),
            Known::Histogram(histogram) => values.iter().for_each(|&x| histogram.add(x)),
            // These hold integers, and are fed with integers.
            Known::Integers(..) | Known::Kept(_) => {}
        }
    }
}

/// The column of `n` rows of the type that a state takes.
fn rows_of(values: &Vector, input: ValueType, n: usize) -> Result<std::borrow::Cow<'_, Vector>> {
    let values = values.widen(input)?;
    if !values.is_constant() && values.len() == n {
        return Ok(values);
    }
    values.into_owned().into_rows(n).map(std::borrow::Cow::Owned)
}

/// Whether row `i` is kept by all of the masks that are there.
#[inline(always)]
fn is_kept(keep: [Option<&[bool]>; 2], i: usize) -> bool {
    keep.iter().all(|mask| mask.is_none_or(|mask| mask[i]))
}

/// Feeds what is kept and not missing, packed, block by block.
fn in_blocks<T: Copy + Default>(
    values: &[T],
    keep: [Option<&[bool]>; 2],
    is_missing: impl Fn(T) -> bool,
    mut feed: impl FnMut(&[T]),
) {
    let is_all_kept = keep == [None, None];
    let mut packed = [T::default(); BLOCK];
    for (b, block) in values.chunks(BLOCK).enumerate() {
        if is_all_kept && !block.iter().fold(false, |any, &x| any | is_missing(x)) {
            feed(block);
            continue;
        }
        let mut n = 0;
        let mut pack = |is_kept: &dyn Fn(usize) -> bool| {
            for (i, &x) in block.iter().enumerate() {
                // Without a branch: written always, kept by moving on.
                packed[n] = x;
                n += usize::from(is_kept(b * BLOCK + i) & !is_missing(x));
            }
        };
        match keep {
            [None, None] => pack(&|_| true),
            [Some(mask), None] | [None, Some(mask)] => pack(&|i| mask[i]),
            [Some(valid), Some(mask)] => pack(&|i| valid[i] & mask[i]),
        }
        if n > 0 {
            feed(&packed[..n]);
        }
    }
}

fn each_row(
    states: &mut [State],
    group_of_row: &[u32],
    is_kept: impl Fn(usize) -> bool,
    mut add: impl FnMut(&mut State, usize),
) -> Result<()> {
    let groups = states.len();
    for (i, &group) in group_of_row.iter().enumerate() {
        if group == NO_GROUP || !is_kept(i) {
            continue;
        }
        add(states.get_mut(group as usize).ok_or_else(|| no_group(group, groups))?, i);
    }
    Ok(())
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

fn or_null(value: Option<f64>) -> Scalar {
    value.map_or(Scalar::Null, Scalar::from_f64)
}

fn no_group(group: u32, groups: usize) -> Error {
    internal(&format!("row of group {group} of {groups}"))
}

fn internal(message: &str) -> Error {
    Error::new(ErrorKind::Internal, message)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
