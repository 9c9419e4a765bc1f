//! Rows of a result: fetched batch by batch at the selected positions, in C order or in that of ORDER BY.

use std::collections::HashSet;
use std::sync::Arc;

use sieva_format::cf::TimeUnits;
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::Execution;
use super::chosen::Chosen;
use super::column::Column;
use super::evaluate::{Provider, evaluate};
use super::gather::Gatherer;
use super::keys::{Key, order_by};
use crate::bind::{Output, Value};
use crate::values::{Values, Vector};

/// The rows of a query, batch by batch.
pub struct RowStream {
    execution: Arc<Execution>,
    gatherer: Gatherer,
    positions: Positions,
    batch: usize,
    seen: Option<HashSet<Vec<Key>>>,
    /// Rows still to be skipped and to be given: counted here where duplicates are dropped on the way.
    skip: u64,
    left: u64,
}

/// Where the rows come from.
enum Positions {
    /// A selection in C order, from this rank on.
    Ranked { selection: Arc<Selection>, rank: u64 },
    /// Positions in the order of ORDER BY, from this one on.
    Sorted { positions: Vec<u64>, at: usize },
    /// The rows that a sorted replica gave, from this one on.
    Chosen { chosen: Arc<Chosen>, at: usize },
}

impl Positions {
    fn next(&mut self, batch: usize) -> Vec<u64> {
        match self {
            Self::Ranked { selection, rank } => {
                let positions: Vec<u64> = selection.iter_from(*rank).take(batch).collect();
                *rank += positions.len() as u64;
                positions
            }
            Self::Sorted { positions, at } => {
                let part = positions[*at..(*at + batch).min(positions.len())].to_vec();
                *at += part.len();
                part
            }
            Self::Chosen { chosen, at } => {
                let all = chosen.positions();
                let part = all[(*at).min(all.len())..(*at + batch).min(all.len())].to_vec();
                *at += part.len();
                part
            }
        }
    }
}

impl RowStream {
    /// The rows at the positions of `selection`, at most `batch` at once.
    ///
    /// # Errors
    /// Reading errors of ORDER BY's values, `memory-limit` where they do not fit.
    pub fn new(execution: Arc<Execution>, selection: Arc<Selection>, batch: usize) -> Result<Self> {
        let mut gatherer = Gatherer::new(Arc::clone(&execution));
        let positions = if execution.bound.order_by.is_empty() {
            Positions::Ranked { selection, rank: 0 }
        } else {
            Positions::Sorted { positions: sorted_positions(&execution, &mut gatherer, &selection)?, at: 0 }
        };
        Ok(Self::over(execution, gatherer, positions, batch))
    }

    /// The rows that a sorted replica gave, where those are the answer and no other order is wanted; `None`
    /// otherwise. No selection is made of them.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn of_replica(execution: &Arc<Execution>, batch: usize) -> Result<Option<Self>> {
        if !execution.bound.order_by.is_empty() {
            return Ok(None);
        }
        let Some(chosen) = execution.rows_by_replica()? else { return Ok(None) };
        let gatherer = Gatherer::new(Arc::clone(execution));
        Ok(Some(Self::over(Arc::clone(execution), gatherer, Positions::Chosen { chosen, at: 0 }, batch)))
    }

    fn over(execution: Arc<Execution>, gatherer: Gatherer, mut positions: Positions, batch: usize) -> Self {
        let bound = &execution.bound;
        let (mut skip, left) = (bound.offset, bound.limit.unwrap_or(u64::MAX));
        if !bound.distinct {
            match &mut positions {
                Positions::Ranked { rank, .. } => *rank = skip,
                Positions::Sorted { positions, at } => *at = (skip.min(positions.len() as u64)) as usize,
                Positions::Chosen { chosen, at } => *at = skip.min(chosen.count()) as usize,
            }
            skip = 0;
        }
        let seen = bound.distinct.then(HashSet::new);
        Self { execution, gatherer, positions, batch: batch.max(1), seen, skip, left }
    }

    /// The columns of the next rows; `None` after the last ones.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn next_batch(&mut self) -> Result<Option<Vec<Column>>> {
        Ok(self.next_rows()?.map(|(_, columns)| columns))
    }

    /// As [`RowStream::next_batch`], with the positions of the rows.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn next_rows(&mut self) -> Result<Option<(Vec<u64>, Vec<Column>)>> {
        while self.left > 0 {
            let mut positions = self.positions.next(self.batch);
            if positions.is_empty() {
                return Ok(None);
            }
            if self.seen.is_none() {
                self.window(&mut positions);
            }
            let mut columns = fetch(&mut self.gatherer, &self.execution.bound.outputs, &positions)?;
            if let Some(kept) = self.distinct(&columns)? {
                columns = columns.iter().map(|c| c.take(&kept)).collect();
                positions = kept.iter().map(|&i| positions[i]).collect();
            }
            if columns.first().is_some_and(|c| !c.is_empty()) {
                return Ok(Some((positions, columns)));
            }
        }
        Ok(None)
    }

    /// Applies what is left of OFFSET and LIMIT.
    fn window<T>(&mut self, rows: &mut Vec<T>) {
        let skipped = self.skip.min(rows.len() as u64);
        rows.drain(..skipped as usize);
        self.skip -= skipped;
        rows.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= rows.len() as u64;
    }

    /// The rows that were not met before and are wanted; `None`: all.
    fn distinct(&mut self, columns: &[Column]) -> Result<Option<Vec<usize>>> {
        let Some(mut seen) = self.seen.take() else { return Ok(None) };
        let n = columns.first().map_or(0, Column::len);
        let keys = columns.iter().map(Key::of_column).collect::<Result<Vec<_>>>()?;
        let mut kept: Vec<usize> =
            (0..n).filter(|&i| seen.insert(keys.iter().map(|k| k[i].clone()).collect())).collect();
        let row: usize =
            seen.iter().next().map_or(0, |r| 64 + r.iter().map(Key::memory_bytes).sum::<usize>());
        let need = (seen.len() * row) as u64;
        let memory = self.execution.options.memory;
        if need > memory {
            let message =
                format!("DISTINCT remembers {} rows, about {need} bytes; the limit is {memory}", seen.len());
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("raise the limit with --memory (memory= in Python)"));
        }
        self.seen = Some(seen);
        self.window(&mut kept);
        Ok(Some(kept))
    }
}

/// The outputs' columns at the given positions.
///
/// # Errors
/// Reading errors and `cancelled`.
pub fn fetch(gatherer: &mut Gatherer, outputs: &[Output], positions: &[u64]) -> Result<Vec<Column>> {
    outputs.iter().map(|output| fetch_value(gatherer, &output.value, positions)).collect()
}

/// The values of one output at the given positions.
pub(super) fn fetch_value(gatherer: &mut Gatherer, value: &Value, positions: &[u64]) -> Result<Column> {
    if let Value::Array { array, raw } = value {
        return gatherer.column(*array, *raw, positions);
    }
    let mut points = Points { gatherer, positions };
    Column::from_vector(evaluate(value, &mut points)?, positions.len())
}

/// All positions in the order of ORDER BY, C order among equals.
pub(super) fn sorted_positions(
    execution: &Execution,
    gatherer: &mut Gatherer,
    selection: &Selection,
) -> Result<Vec<u64>> {
    let keys = &execution.bound.order_by;
    let need = selection.len().saturating_mul(16 + 24 * keys.len() as u64);
    if need > execution.options.memory {
        return Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "ORDER BY of {} rows needs about {need} bytes, the limit is {}",
                selection.len(),
                execution.options.memory
            ),
        )
        .hint("select fewer rows, or raise the limit with --memory (memory= in Python)"));
    }
    let positions: Vec<u64> = selection.iter().collect();
    let mut vectors = Vec::with_capacity(keys.len());
    for key in keys {
        let mut points = Points { gatherer, positions: &positions };
        vectors.push(evaluate(&key.value, &mut points)?.into_rows(positions.len())?);
    }
    let order = order_by(keys, &vectors, positions.len());
    Ok(order.into_iter().map(|i| positions[i]).collect())
}

/// The columns at some positions.
struct Points<'a> {
    gatherer: &'a mut Gatherer,
    positions: &'a [u64],
}

impl Provider for Points<'_> {
    fn array(&mut self, array: usize, raw: bool) -> Result<Vector> {
        self.gatherer.column(array, raw, self.positions)?.into_vector()
    }

    fn position(&mut self, dim: usize) -> Result<Vector> {
        let rows = &self.gatherer.execution().bound.rows;
        let axis = rows.axis(dim).unwrap_or_default();
        let inner: u64 = rows.shape[axis + 1..].iter().product();
        let along = |&p: &u64| (p / inner % rows.shape[axis]) as i64;
        Vector::new(Values::I64(self.positions.iter().map(along).collect()), None)
    }

    fn units(&self, array: usize) -> Option<&TimeUnits> {
        self.gatherer.execution().bound.arrays[array].time.as_deref()
    }
}
