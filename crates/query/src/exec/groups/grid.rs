//! The result of groups by position as a grid of their keys, into which panels are put as they are finished.

use std::sync::{Mutex, PoisonError};

use sieva_types::{Error, ErrorKind, PlacedTexts, Result, Texts};

use super::columns::taken;
use super::dense::Numbering;
use super::frame::Frame;
use super::hashed::{Kind, accumulators};
use super::repeated::KeyValues;
use super::table::GroupTable;
use crate::aggregate::Finished;
use crate::mask::Mask;
use crate::values::{Scalar, ValueType, Values, Vector};

/// Values of all groups in the order of their keys.
pub(super) struct Grid<'p> {
    plan: &'p Numbering,
    /// The parts of the plan in the order of their keys.
    by_key: &'p [usize],
    columns: Vec<Mutex<Column>>,
    /// Which groups have rows; `None`: all.
    seen: Option<Mutex<Vec<bool>>>,
}

/// What an aggregate comes to, of all groups.
enum Column {
    Values(Values, Option<Mask>),
    Texts(PlacedTexts, Option<Mask>),
    Histograms(Vec<Scalar>),
}

/// Where the groups of a panel lie: runs of so many, and the place of each.
pub(super) struct Places {
    run: usize,
    at: Vec<usize>,
}

impl<'p> Grid<'p> {
    /// Without values.
    ///
    /// # Errors
    /// As of [`accumulators`].
    pub(super) fn new(plan: &'p Numbering, by_key: &'p [usize], kinds: &[Kind]) -> Result<Self> {
        let n = plan.frame.groups;
        let empty = accumulators(kinds)?.into_iter().map(|mut state| {
            Ok(Mutex::new(match state.finish(&[], 1)? {
                Finished::Values(v) => match v.values.value_type() {
                    ValueType::Str => Column::Texts(PlacedTexts::new(n), None),
                    of => Column::Values(Values::zeros(of, n), None),
                },
                Finished::Histograms(_) => Column::Histograms(vec![Scalar::Null; n]),
            }))
        });
        let seen = (!plan.is_full).then(|| Mutex::new(vec![false; n]));
        Ok(Self { plan, by_key, columns: empty.collect::<Result<_>>()?, seen })
    }

    /// The places of a panel's groups in the order of their keys.
    pub(super) fn places(&self, frame: &Frame) -> Places {
        let (mut run, mut at, mut stride) = (1, vec![0], 1);
        let mut is_whole = true;
        for &part in self.by_key.iter().rev() {
            let (all, own) = (self.plan.parts[part].len, frame.lens[part]);
            let first = frame.rank(part, &self.plan.parts[part]) * stride;
            if is_whole {
                run = own * stride;
                at = vec![first];
            } else {
                at = (0..own).flat_map(|i| at.iter().map(move |a| first + i * stride + a)).collect();
            }
            is_whole &= own == all;
            stride *= all;
        }
        Places { run, at }
    }

    /// Puts the values of an aggregate of a panel in their places.
    ///
    /// # Errors
    /// `internal-error` for values of another type.
    pub(super) fn put(&self, aggregate: usize, places: &Places, values: Finished) -> Result<()> {
        let mut column = self.columns[aggregate].lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *column, values) {
            (Column::Values(to, valid), Finished::Values(from)) => {
                match (to, &from.values) {
                    (Values::Bool(to), Values::Bool(from)) => places.put(to, from),
                    (Values::I64(to), Values::I64(from)) => places.put(to, from),
                    (Values::U64(to), Values::U64(from)) => places.put(to, from),
                    (Values::F64(to), Values::F64(from)) => places.put(to, from),
                    _ => return Err(Error::new(ErrorKind::Internal, "values of panels of different types")),
                }
                if let Some(from) = &from.valid {
                    places.put_bits(valid.get_or_insert_with(|| Mask::ones(self.plan.frame.groups)), from);
                }
            }
            (
                Column::Texts(to, valid),
                Finished::Values(Vector { values: Values::Str(texts), valid: some, .. }),
            ) => {
                places.put_texts(to, &texts);
                if let Some(from) = &some {
                    places.put_bits(valid.get_or_insert_with(|| Mask::ones(self.plan.frame.groups)), from);
                }
            }
            (Column::Histograms(to), Finished::Histograms(from)) => places.put(to, &from),
            _ => return Err(Error::new(ErrorKind::Internal, "values of panels of different kinds")),
        }
        Ok(())
    }

    /// Notes which groups of a panel have rows, in the order of their keys.
    pub(super) fn see(&self, places: &Places, seen: &[bool]) {
        if let Some(all) = &self.seen {
            places.put(&mut all.lock().unwrap_or_else(PoisonError::into_inner), seen);
        }
    }

    /// The table of the groups that have rows.
    ///
    /// # Errors
    /// `internal-error` where lengths disagree.
    pub(super) fn table(self, keys: usize) -> Result<GroupTable> {
        let mut table = GroupTable { len: self.plan.frame.groups, keys: Vec::new(), aggregates: Vec::new() };
        let seen = self.seen.as_ref().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let kept = seen.filter(|s| s.contains(&false));
        for key in (0..keys).map(|key| self.key(key)) {
            table.keys.push(match &kept {
                Some(kept) => KeyValues::Each(key?.all()?.filter(kept)?),
                None => key?,
            });
        }
        for column in self.columns {
            let all = match column.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Column::Values(values, valid) => Finished::Values(Vector::new(values, valid)?),
                Column::Texts(texts, valid) => {
                    Finished::Values(Vector::new(Values::Str(texts.finish("")), valid)?)
                }
                Column::Histograms(v) => Finished::Histograms(v),
            };
            table.aggregates.push(match &kept {
                Some(kept) => all.filter(kept)?,
                None => all,
            });
        }
        table.len = kept.map_or(table.len, |k| k.iter().filter(|&&k| k).count());
        Ok(table)
    }

    /// A key of all groups: each of its values as often as there are groups within.
    fn key(&self, key: usize) -> Result<KeyValues> {
        let (mut within, mut found) = (1, None);
        for &part in self.by_key {
            let of = &self.plan.parts[part];
            match of.keys.iter().find(|(k, _)| *k == key) {
                Some((_, values)) => found = Some((values, &of.sorted)),
                None if found.is_some() => within *= of.len,
                None => {}
            }
        }
        let (values, sorted) = found.ok_or_else(|| Error::new(ErrorKind::Internal, "a key of no part"))?;
        let values = taken(values, &sorted.iter().map(|&c| c as usize).collect::<Vec<_>>())?;
        Ok(KeyValues::Repeated { values, within, len: self.plan.frame.groups })
    }
}

impl Places {
    fn put<T: Clone>(&self, to: &mut [T], from: &[T]) {
        for (&at, from) in self.at.iter().zip(from.chunks(self.run.max(1))) {
            to[at..at + from.len()].clone_from_slice(from);
        }
    }

    fn put_texts(&self, to: &mut PlacedTexts, from: &Texts) {
        let run = self.run.max(1);
        for (&at, first) in self.at.iter().zip((0..from.len()).step_by(run)) {
            let part = from.part(first..from.len().min(first + run));
            part.iter().enumerate().for_each(|(i, text)| to.put(at + i, text));
        }
    }

    fn put_bits(&self, to: &mut Mask, from: &Mask) {
        let run = self.run.max(1);
        for (&at, first) in self.at.iter().zip((0..from.len()).step_by(run)) {
            let n = run.min(from.len() - first);
            to.clear_range(at, n);
            to.or_range(at, from, first, n);
        }
    }
}
