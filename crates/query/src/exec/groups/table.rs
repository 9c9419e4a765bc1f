//! Finished groups: sorted by key, HAVING applied.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_types::{Error, ErrorKind, Result};

use super::columns::{KeyColumn, from_scalars, taken};
use super::dense::{Dense, Numbering};
use super::hashed::{Groups, Kind};
use super::repeated::{KeyValues, range_of};
use super::shared::Shared;
use crate::aggregate::Finished;
use crate::bind::{Body, Value};
use crate::exec::Execution;
use crate::exec::order::keys::{compare_keys, sort_rows};
use crate::exec::tile::evaluate::{Provider, evaluate};
use crate::values::{Scalar, Vector};

/// Groups, sorted by their keys, with what the aggregates came to.
#[derive(Debug)]
pub struct GroupTable {
    /// Number of groups.
    pub len: usize,
    /// For each key, its values.
    pub keys: Vec<KeyValues>,
    /// For each aggregate, its results.
    pub aggregates: Vec<Finished>,
}

/// Some groups of a table.
#[derive(Clone, Debug)]
pub enum GroupRows<'a> {
    /// So many in a row.
    Range(Range<usize>),
    /// Those of these numbers.
    Some(&'a [usize]),
}

/// Groups of which all rows are in.
pub(in crate::exec) enum Made {
    /// Found by hashing.
    Hashed(Groups),
    /// Found by position.
    Dense(Numbering, Dense),
    /// Finished, but for HAVING.
    Table(GroupTable),
}

impl Made {
    /// What an aggregate of the only group of a query without keys comes to.
    ///
    /// # Errors
    /// `arithmetic-overflow`.
    pub(in crate::exec) fn value(&self, aggregate: usize) -> Result<Scalar> {
        let states = match self {
            Self::Hashed(groups) => groups.states(),
            Self::Dense(_, dense) => &dense.states,
            Self::Table(table) => return Ok(table.aggregates[aggregate].scalar(0)),
        };
        states[aggregate].value(0)
    }

    /// The groups as those that are merged with others of like queries.
    ///
    /// # Errors
    /// `memory-limit`.
    pub(in crate::exec) fn into_groups(
        self,
        execution: &Execution,
        keys: usize,
        kinds: &[Kind],
    ) -> Result<Groups> {
        let (plan, dense) = match self {
            Self::Hashed(groups) => return Ok(groups),
            Self::Dense(plan, dense) => (plan, dense),
            Self::Table(_) => return Err(Error::new(ErrorKind::Internal, "finished groups merged")),
        };
        let order = plan.order(dense.seen.as_deref(), keys);
        let columns: Vec<Vector> = (0..keys).filter_map(|k| plan.key(k, &order)).collect();
        let mut groups = Groups::new(keys, kinds, execution.options.room())?;
        groups.take_dense(&order, &columns, dense)?;
        Ok(groups)
    }
}

/// The table of groups.
///
/// # Errors
/// `arithmetic-overflow`; `cancelled`.
pub(in crate::exec) fn finish(execution: &Execution, made: Made, shared: &Shared<'_>) -> Result<GroupTable> {
    let Body::Groups { keys: key_values, having, .. } = &execution.bound.body else {
        return Err(Error::new(ErrorKind::Internal, "groups of a query without them"));
    };
    let (order, keys, states) = match made {
        Made::Dense(plan, dense) => {
            let order = plan.order(dense.seen.as_deref(), key_values.len());
            let keys: Vec<KeyValues> =
                (0..key_values.len()).filter_map(|k| plan.key(k, &order).map(KeyValues::Each)).collect();
            (order, keys, dense.states)
        }
        Made::Table(table) => {
            return match having {
                Some(having) => table.having(execution, having),
                None => Ok(table),
            };
        }
        Made::Hashed(groups) => {
            let order = hashed_order(execution, &groups)?;
            let (keys, states) = groups.into_parts();
            (order.clone(), hashed_keys(execution, key_values, keys, &order)?, states)
        }
    };
    let mut table = GroupTable { len: order.len(), keys, aggregates: Vec::new() };
    // Column by column, so that the states of one are gone before the next are finished.
    let mut all = Vec::new();
    for (number, mut state) in states.into_iter().enumerate() {
        execution.options.check_cancel()?;
        all.extend(shared.finish(number, &mut *state, &order, execution.options.threads)?);
    }
    all.sort_by_key(|(aggregate, _)| *aggregate);
    table.aggregates.extend(all.into_iter().map(|(_, found)| found));
    drop(order);
    match having {
        Some(having) => table.having(execution, having),
        None => Ok(table),
    }
}

/// The values of the keys in the order of the groups.
pub(super) fn hashed_keys(
    execution: &Execution,
    key_values: &[Value],
    keys: Vec<KeyColumn>,
    order: &[usize],
) -> Result<Vec<KeyValues>> {
    let types = key_values.iter().map(|value| execution.bound.type_of(value));
    let keys = keys.into_iter().zip(types);
    keys.map(|(key, of)| Ok(KeyValues::Each(key.into_vector(order, of)?))).collect()
}

/// The groups in the order of their keys.
pub(super) fn hashed_order(execution: &Execution, groups: &Groups) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    sort_rows(&mut order, &execution.options.cancel, |a, b| groups.compare(a, b))?;
    Ok(order)
}

impl Groups {
    /// The order of two groups by their keys.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (self.key(a), self.key(b));
        let mut each = a.iter().zip(&b).map(|(a, b)| compare_keys(a, b));
        each.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl Finished {
    /// The values for which `keep` is true.
    pub(super) fn filter(&self, keep: &[bool]) -> Result<Self> {
        Ok(match self {
            Self::Values(v) => Self::Values(v.filter(keep)?),
            Self::Histograms(v) => {
                let kept = v.iter().zip(keep).filter(|(_, k)| **k).map(|(h, _)| h.clone());
                Self::Histograms(kept.collect())
            }
        })
    }

    /// The values at some places.
    fn take(&self, order: &[usize]) -> Result<Self> {
        Ok(match self {
            Self::Values(v) => Self::Values(taken(v, order)?),
            Self::Histograms(v) => Self::Histograms(order.iter().map(|&i| v[i].clone()).collect()),
        })
    }

    /// Bytes that they take.
    fn memory_bytes(&self) -> u64 {
        let of_histogram = |s: &Scalar| match s {
            // All have the same edges.
            Scalar::Histogram { counts, .. } => 8 * counts.capacity(),
            _ => 0,
        };
        match self {
            Self::Values(v) => v.memory_bytes(),
            Self::Histograms(v) => {
                (v.capacity() * size_of::<Scalar>() + v.iter().map(of_histogram).sum::<usize>()) as u64
            }
        }
    }
}

/// The columns of groups.
struct GroupProvider<'a> {
    execution: &'a Execution,
    table: &'a GroupTable,
}

impl Provider for GroupProvider<'_> {
    fn array(&mut self, _: usize, _: bool) -> Result<Vector> {
        Err(Error::new(ErrorKind::Internal, "an array that varies within a group"))
    }

    fn position(&mut self, _: usize) -> Result<Vector> {
        Err(Error::new(ErrorKind::Internal, "a position that varies within a group"))
    }

    fn units(&self, _: usize) -> Option<&sieva_format::cf::TimeUnits> {
        None
    }

    fn key(&mut self, key: usize) -> Result<Vector> {
        self.table.keys[key].all()
    }

    fn aggregated(&mut self, aggregate: usize) -> Result<Vector> {
        match &self.table.aggregates[aggregate] {
            Finished::Values(v) => Ok(v.clone()),
            // Binding has refused conditions on them.
            Finished::Histograms(v) => {
                from_scalars(v.iter().cloned(), self.execution.bound.type_of(&Value::Aggregated(aggregate)))
            }
        }
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.execution.options.cancel)
    }
}

impl GroupTable {
    /// Bytes that it takes, histograms and texts with what they hold.
    pub fn memory_bytes(&self) -> u64 {
        let keys: u64 = self.keys.iter().map(KeyValues::memory_bytes).sum();
        keys + self.aggregates.iter().map(Finished::memory_bytes).sum::<u64>()
    }

    /// A value of some groups, where it is one that the table has.
    ///
    /// # Errors
    /// `internal-error` where lengths disagree.
    pub fn column(&self, value: &Value, rows: &GroupRows<'_>) -> Result<Option<Vector>> {
        let made = match (value, rows) {
            (Value::Key(k), GroupRows::Range(rows)) => self.keys[*k].range(rows.clone())?,
            (Value::Key(k), GroupRows::Some(groups)) => self.keys[*k].take(groups)?,
            (Value::Aggregated(a), _) => match (&self.aggregates[*a], rows) {
                (Finished::Values(v), GroupRows::Range(rows)) => range_of(v, rows.clone())?,
                (Finished::Values(v), GroupRows::Some(groups)) => taken(v, groups)?,
                (Finished::Histograms(_), _) => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    /// The groups of these numbers.
    ///
    /// # Errors
    /// `internal-error` where lengths disagree.
    pub fn pick(&self, order: &[usize]) -> Result<GroupTable> {
        Ok(GroupTable {
            len: order.len(),
            keys: self.keys.iter().map(|k| Ok(KeyValues::Each(k.take(order)?))).collect::<Result<_>>()?,
            aggregates: self.aggregates.iter().map(|a| a.take(order)).collect::<Result<_>>()?,
        })
    }

    /// The groups for which a condition holds.
    fn having(mut self, execution: &Execution, having: &Value) -> Result<GroupTable> {
        let kept = evaluate(having, &mut GroupProvider { execution, table: &self })?;
        let kept: Vec<bool> = kept.sound()?.mask(self.len)?.iter().collect();
        let left = |k: &KeyValues| Ok(KeyValues::Each(k.all()?.filter(&kept)?));
        self.keys = self.keys.iter().map(left).collect::<Result<_>>()?;
        self.aggregates = self.aggregates.iter().map(|a| a.filter(&kept)).collect::<Result<_>>()?;
        self.len = kept.iter().filter(|&&k| k).count();
        Ok(self)
    }

    /// A value over the groups.
    ///
    /// # Errors
    /// `arithmetic-overflow`, `type-mismatch`.
    pub fn evaluate(&self, execution: &Execution, value: &Value) -> Result<Vector> {
        evaluate(value, &mut GroupProvider { execution, table: self })?.into_rows(self.len)?.sound()
    }
}
