//! Rows of a result in their final order, of which any part can be fetched at any time, in any order of the parts.
//!
//! What is kept of a row is its position; of rows in C order not even that, as the selection gives the position of a
//! row by its number.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_types::{Error, ErrorKind, Result, Selection};

use super::Execution;
use super::column::Column;
use super::gather::Gatherer;
use super::rows::{RowStream, fetch_value, sorted_positions};
use crate::bind::Value;

/// Rows that are looked at together for duplicates.
const BATCH: usize = 1 << 16;

/// The rows of an ungrouped query, ORDER BY, DISTINCT, OFFSET and LIMIT applied. Used by many threads at once.
pub struct OrderedRows {
    execution: Arc<Execution>,
    order: Order,
    /// Of those that fetched before: they keep small arrays.
    gatherers: Mutex<Vec<Gatherer>>,
}

enum Order {
    /// Consecutive ones of a selection, in C order.
    Ranked { selection: Arc<Selection>, first: u64, len: u64 },
    /// These positions.
    Listed(Vec<u64>),
}

impl OrderedRows {
    /// The rows at the positions of `selection`, which must have all that OFFSET and LIMIT leave.
    ///
    /// # Errors
    /// Reading errors of ORDER BY's and DISTINCT's values, `cancelled`; `memory-limit` where they do not fit.
    pub fn new(execution: Arc<Execution>, selection: Arc<Selection>) -> Result<Self> {
        let bound = &execution.bound;
        let (offset, limit) = (bound.offset, bound.limit.unwrap_or(u64::MAX));
        let mut gatherer = Gatherer::new(Arc::clone(&execution));
        let order = if bound.distinct {
            Order::Listed(distinct_positions(&execution, selection)?)
        } else if bound.order_by.is_empty() {
            let first = offset.min(selection.len());
            let len = (selection.len() - first).min(limit);
            Order::Ranked { selection, first, len }
        } else {
            let mut positions = sorted_positions(&execution, &mut gatherer, &selection)?;
            positions.drain(..offset.min(positions.len() as u64) as usize);
            positions.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Order::Listed(positions)
        };
        Ok(Self { execution, order, gatherers: Mutex::new(vec![gatherer]) })
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        match &self.order {
            Order::Ranked { len, .. } => *len,
            Order::Listed(positions) => positions.len() as u64,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of `value` (one of the query's outputs) in the rows of a range, which must lie within
    /// [`OrderedRows::len`], fetched by so many threads.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn read(&self, value: &Value, rows: Range<u64>, threads: usize) -> Result<Column> {
        let mut gatherer = self.take_gatherer();
        gatherer.use_threads(threads);
        let column = match (value, self.run(&rows)) {
            (Value::Array { array, raw }, Some(first)) => {
                gatherer.run(*array, *raw, first..first + (rows.end - rows.start))
            }
            (_, Some(first)) => {
                let positions: Vec<u64> = (first..first + (rows.end - rows.start)).collect();
                fetch_value(&mut gatherer, value, &positions)
            }
            (_, None) => fetch_value(&mut gatherer, value, &self.positions(rows)),
        };
        self.gatherers.lock().unwrap_or_else(PoisonError::into_inner).push(gatherer);
        column
    }

    fn take_gatherer(&self) -> Gatherer {
        let kept = self.gatherers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Gatherer::new(Arc::clone(&self.execution)))
    }

    /// The first position, where those of the rows follow one another without a gap.
    fn run(&self, rows: &Range<u64>) -> Option<u64> {
        let Order::Ranked { selection, first, .. } = &self.order else { return None };
        let low = selection.select(first + rows.start)?;
        let high = selection.select(first + rows.end.checked_sub(1)?)?;
        (high - low == rows.end - 1 - rows.start).then_some(low)
    }

    fn positions(&self, rows: Range<u64>) -> Vec<u64> {
        let n = (rows.end - rows.start) as usize;
        match &self.order {
            Order::Ranked { selection, first, .. } => {
                selection.iter_from(first + rows.start).take(n).collect()
            }
            Order::Listed(positions) => positions[rows.start as usize..][..n].to_vec(),
        }
    }
}

/// The position of the first of each set of equal rows, OFFSET and LIMIT applied.
fn distinct_positions(execution: &Arc<Execution>, selection: Arc<Selection>) -> Result<Vec<u64>> {
    let mut stream = RowStream::new(Arc::clone(execution), selection, BATCH)?;
    let memory = execution.options.memory;
    let mut found = Vec::new();
    while let Some((positions, _)) = stream.next_rows()? {
        found.extend(positions);
        let need = found.len() as u64 * 8;
        if need > memory {
            let message = format!("DISTINCT keeps {} rows, {need} bytes; the limit is {memory}", found.len());
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("raise the limit with --memory (memory= in Python)"));
        }
    }
    Ok(found)
}
