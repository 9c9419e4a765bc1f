//! Values that are the same at all positions of a box, known by evaluating them once: those of arrays of which nothing
//! was ever written there, and of single positions.
//!
//! A file of few bytes may declare arrays of any length. What is asked of them takes no longer than their file.

use sieva_index::stats::Verdict;
use sieva_types::{Bx, Result};

use crate::aggregate::Aggregate;
use crate::bind::Value;
use crate::exec::Execution;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::groups::{Sink, Wanted};
use crate::exec::tile::Tiles;
use crate::exec::tile::arrays::{BoxProvider, Leaves};
use crate::exec::tile::evaluate::evaluate;
use crate::optimizer::Known;
use crate::values::Vector;

impl Execution {
    /// Whether it is known that a value is the same at all positions of a box of the row space.
    pub(in crate::exec) fn is_same(&self, value: &Value, bx: &Bx) -> bool {
        let mut same = true;
        value.walk(&mut |v| {
            same = same
                && match v {
                    Value::Array { array, .. } | Value::Date(_, array) => {
                        let own = self.own_box(*array, bx);
                        own.len() == 1 || self.readers[*array].is_unwritten(&own)
                    }
                    Value::Position { dim } => self.bound.rows.axis(*dim).is_some_and(|a| bx.shape[a] == 1),
                    _ => true,
                };
        });
        same
    }

    /// Whether a computed condition holds in all of a box or nowhere in it, where one row tells.
    pub(crate) fn foresee_computed(&self, value: &Value, bx: &Bx) -> Verdict {
        if bx.is_empty() || !self.is_same(value, bx) {
            return Verdict::Some;
        }
        // What cannot be read, or failed, is told of by the tile that is.
        let found = self.same(value, bx, &mut Leaves::new(self)).and_then(|found| found.mask(1));
        match found {
            Ok(found) if found.all() => Verdict::All,
            Ok(_) => Verdict::None,
            Err(_) => Verdict::Some,
        }
    }

    /// The value that `value` has at all positions of a box, for which [`Execution::is_same`] holds, as a column of one row.
    ///
    /// # Errors
    /// Reading errors, and `arithmetic-overflow`.
    fn same<'e>(&'e self, value: &Value, bx: &Bx, leaves: &mut Leaves<'e>) -> Result<Vector> {
        let one = Bx::new(bx.start.clone(), vec![1; bx.rank()]);
        let axes = self.bound.axes_of(value);
        evaluate(value, &mut BoxProvider { leaves, bx: &one, axes: &axes })?.into_rows(1)?.sound()
    }

    /// Whether all rows of a box of the row space belong to one group, and add the same to its aggregates, or what zone maps
    /// know.
    pub(crate) fn is_one_group(
        &self,
        keys: &[Value],
        aggregates: &[(Aggregate, Option<Value>)],
        bx: &Bx,
    ) -> bool {
        // Code is called for each row.
        if aggregates.iter().any(|(aggregate, _)| *aggregate == Aggregate::Reduction) {
            return false;
        }
        let known = |(aggregate, value): &(Aggregate, Option<Value>)| {
            value.as_ref().is_none_or(|v| self.is_same(v, bx))
                || self.known_of_box(aggregate, value.as_ref(), bx).is_some()
        };
        keys.iter().all(|key| self.is_same(key, bx)) && aggregates.iter().all(known)
    }

    /// Adds all rows of a box for which [`Execution::is_one_group`] holds.
    ///
    /// # Errors
    /// Reading errors, `arithmetic-overflow`, and `memory-limit`.
    pub(in crate::exec) fn add_one_group<'e>(
        &'e self,
        wanted: &Wanted<'_>,
        bx: &Bx,
        leaves: &mut Leaves<'e>,
        sink: &mut Sink,
    ) -> Result<()> {
        let mut column = |v: &Value| self.same(v, bx, leaves);
        let key = wanted.keys.iter().map(&mut column).collect::<Result<Vec<_>>>()?;
        let mut values = Vec::with_capacity(wanted.aggregates.len());
        for (aggregate, value) in wanted.aggregates {
            values.push(match self.known_of_box(aggregate, value.as_ref(), bx) {
                Some(known) => known,
                None => Known::Rows(vec![(value.as_ref().map(&mut column).transpose()?, bx.len())]),
            });
        }
        sink.repeat(self, wanted.kinds, bx, &key, &values)
    }

    /// Adds those of some tiles of which one row tells, takes them out, and returns their number.
    ///
    /// # Errors
    /// As [`Execution::add_one_group`]; `cancelled`.
    pub(in crate::exec) fn add_same<'e>(
        &'e self,
        wanted: &Wanted<'_>,
        tiles: &Tiles,
        candidates: &mut Vec<Candidate>,
        leaves: &mut Leaves<'e>,
        sink: &mut Sink,
    ) -> Result<u64> {
        let mut open = Vec::with_capacity(candidates.len());
        for &candidate in candidates.iter() {
            let bx = tiles.tile(candidate.tile);
            if !candidate.all || !self.is_one_group(wanted.keys, wanted.aggregates, &bx) {
                open.push(candidate);
                continue;
            }
            self.options.check_cancel()?;
            self.add_one_group(wanted, &bx, leaves, sink)?;
        }
        let known = candidates.len() - open.len();
        *candidates = open;
        Ok(known as u64)
    }
}
