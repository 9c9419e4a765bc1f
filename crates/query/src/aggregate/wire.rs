//! States as bytes: what is known of some rows, to be merged with what is known of others elsewhere.
//!
//! Equal states of sums, counts, extremes and different values have equal bytes, whatever way they came about. What is read
//! is foreign: it is checked as far as the arithmetic that follows relies on it, so that damaged states that have a
//! checksum that fits make wrong numbers, and nothing worse. Room for the states is made by whoever knows that the bytes may
//! hold so many groups.

use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

use super::{Aggregate, MAX_BINS, histogram};
use crate::values::ValueType;

/// States that can be written, and read elsewhere.
pub trait Encoded {
    /// Writes the states of the first `groups` groups.
    fn encode(&self, groups: usize, w: &mut Writer);

    /// Reads the states of the first `groups` groups, which know of no value yet, and of `rows` rows at most.
    ///
    /// # Errors
    /// Where the bytes are no such states.
    fn decode(&mut self, groups: usize, rows: u64, r: &mut Reader<'_>) -> Result<()>;
}

/// A number of rows, of which there may be `most`.
pub(super) fn read_count(r: &mut Reader<'_>, most: u64) -> Result<u64> {
    let n = r.uint()?;
    if n > most { Err(r.damaged(format!("{n} values of {most} rows"))) } else { Ok(n) }
}

const TYPES: [ValueType; 5] =
    [ValueType::Bool, ValueType::I64, ValueType::U64, ValueType::F64, ValueType::Str];

/// Writes an aggregate and the type of what it takes in.
pub(crate) fn write_kind(w: &mut Writer, aggregate: &Aggregate, input: Option<ValueType>) {
    let code = match aggregate {
        Aggregate::Count => 0,
        Aggregate::CountValues => 1,
        Aggregate::CountDistinct => 2,
        Aggregate::Min => 3,
        Aggregate::Max => 4,
        Aggregate::Sum => 5,
        Aggregate::Avg => 6,
        Aggregate::StddevSamp => 7,
        Aggregate::StddevPop => 8,
        Aggregate::VarSamp => 9,
        Aggregate::VarPop => 10,
        Aggregate::Median => 11,
        Aggregate::Quantile(_) => 12,
        Aggregate::Histogram { .. } => 13,
        // States of code are not written.
        Aggregate::Reduction => 14,
    };
    w.byte(code);
    match *aggregate {
        Aggregate::Quantile(q) => w.float(q),
        Aggregate::Histogram { bins, range } => {
            w.uint(bins as u64);
            w.option(range, |w, (low, high)| {
                w.float(low);
                w.float(high);
            });
        }
        _ => {}
    }
    w.option(input, |w, of| w.byte(TYPES.iter().position(|t| *t == of).unwrap_or_default() as u8));
}

/// What [`write_kind`] wrote.
pub(crate) fn read_kind(r: &mut Reader<'_>) -> Result<(Aggregate, Option<ValueType>)> {
    let aggregate = match r.byte()? {
        0 => Aggregate::Count,
        1 => Aggregate::CountValues,
        2 => Aggregate::CountDistinct,
        3 => Aggregate::Min,
        4 => Aggregate::Max,
        5 => Aggregate::Sum,
        6 => Aggregate::Avg,
        7 => Aggregate::StddevSamp,
        8 => Aggregate::StddevPop,
        9 => Aggregate::VarSamp,
        10 => Aggregate::VarPop,
        11 => Aggregate::Median,
        12 => match r.float()? {
            q if (0.0..=1.0).contains(&q) => Aggregate::Quantile(q),
            q => return Err(r.damaged(format!("{q} is no probability"))),
        },
        13 => {
            let bins = r.index()?;
            if !(1..=MAX_BINS).contains(&bins) {
                return Err(r.damaged(format!("a histogram of {bins} bins")));
            }
            let range = r.option(|r| Ok((r.float()?, r.float()?)))?;
            if let Some((low, high)) = range
                && histogram::check_range(low, high).ok() != range
            {
                return Err(r.damaged(format!("a histogram from {low:?} to {high:?}")));
            }
            Aggregate::Histogram { bins, range }
        }
        other => return Err(r.damaged(format!("{other} is no aggregate"))),
    };
    let input = r.option(|r| {
        let code = r.byte()?;
        TYPES.get(usize::from(code)).copied().ok_or_else(|| r.damaged(format!("{code} is no type")))
    })?;
    Ok((aggregate, input))
}
