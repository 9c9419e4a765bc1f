//! Rows of a result in their final order, of which any part can be fetched at any time, in any order of the parts.
//!
//! What is kept of a row is its position; of rows in C order not even that, as the selection gives the position of a
//! row by its number.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_types::{Result, Selection};

use crate::bind::Value;
use crate::exec::Execution;
use crate::exec::fetch::Gatherer;
use crate::exec::fetch::column::Column;
use crate::exec::fetch::rows::{RowStream, fetch_value};
use crate::exec::fetch::steps::Band;
use crate::exec::order::PositionList;
use crate::exec::order::all::sorted_positions;

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
    Listed(PositionList),
}

impl OrderedRows {
    /// The rows at the positions of `selection`, which must have all that OFFSET and LIMIT leave.
    ///
    /// # Errors
    /// Reading errors of ORDER BY's and DISTINCT's values, `cancelled`; `memory-limit` where they do not fit.
    pub fn new(execution: Arc<Execution>, selection: Arc<Selection>) -> Result<Self> {
        let bound = &execution.bound;
        let (offset, limit) = (bound.offset, bound.limit.unwrap_or(u64::MAX));
        let order = if bound.distinct {
            let stream = RowStream::new(Arc::clone(&execution), selection, BATCH)?;
            Order::Listed(PositionList::Held(distinct_positions(&execution, stream)?))
        } else if bound.order_by.is_empty() {
            let first = offset.min(selection.len());
            let len = (selection.len() - first).min(limit);
            Order::Ranked { selection, first, len }
        } else {
            let positions = sorted_positions(&execution, &selection, bound.rows_wanted())?;
            Order::Listed(positions.window(offset, limit))
        };
        Ok(Self { execution, order, gatherers: Mutex::default() })
    }

    /// The rows that a stream of DISTINCT gives.
    ///
    /// # Errors
    /// As [`OrderedRows::new`].
    pub fn of_stream(execution: Arc<Execution>, stream: RowStream) -> Result<Self> {
        let positions = distinct_positions(&execution, stream)?;
        Ok(Self::at(execution, positions))
    }

    /// The rows at `positions`, in this order: OFFSET and LIMIT are applied.
    pub fn at(execution: Arc<Execution>, positions: Vec<u64>) -> Self {
        let order = Order::Listed(PositionList::Held(positions));
        Self { execution, order, gatherers: Mutex::default() }
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        match &self.order {
            Order::Ranked { len, .. } => *len,
            Order::Listed(positions) => positions.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the rows are in another order than their positions, or only some of those selected: then rows that follow
    /// each other lie anywhere, and reading a part costs as much as reading what it touches.
    pub fn is_listed(&self) -> bool {
        matches!(self.order, Order::Listed(_))
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
            (_, None) => self.positions(rows).and_then(|p| fetch_value(&mut gatherer, value, &p)),
        };
        self.gatherers.lock().unwrap_or_else(PoisonError::into_inner).push(gatherer);
        column
    }

    /// Where a part that begins with row `start` ends best: at `wanted` at the latest, or at `most` where that many rows
    /// share chunks, so that no chunk is decoded for two parts if it can be helped.
    pub fn part_end(&self, value: &Value, start: u64, wanted: u64, most: u64) -> u64 {
        let (wanted, most) = (wanted.min(self.len()), most.min(self.len()));
        let (Order::Ranked { selection, first, .. }, Some(band)) = (&self.order, self.band(value)) else {
            return wanted;
        };
        let position = |row: u64| selection.select(first + row);
        // The first row at or behind a position, of those up to `high`.
        let row_at = |target: u64, high: u64| (selection.rank(target).max(*first) - first).clamp(start, high);
        let Some(last) = position(wanted) else { return wanted };
        let end = row_at(band.start_of(last), wanted);
        if end > start {
            return end;
        }
        let target = band.end_of(last);
        match position(most) {
            Some(p) if p < target => wanted,
            _ => row_at(target, most),
        }
    }

    /// The chunks of the first array of a value that has all dimensions of the rows; `None` where it has no chunks.
    fn band(&self, value: &Value) -> Option<Band> {
        let mut arrays = Vec::new();
        value.walk(&mut |v| {
            if let Value::Array { array, .. } = v {
                arrays.push(*array);
            }
        });
        let array = arrays.into_iter().find(|a| self.execution.spans_rows(*a))?;
        self.execution.band_of(array)
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

    fn positions(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        match &self.order {
            Order::Ranked { selection, first, .. } => {
                let n = (rows.end - rows.start) as usize;
                Ok(selection.iter_from(first + rows.start).take(n).collect())
            }
            Order::Listed(positions) => positions.read(rows),
        }
    }
}

/// The position of the first of each set of equal rows, OFFSET and LIMIT applied.
fn distinct_positions(execution: &Execution, mut stream: RowStream) -> Result<Vec<u64>> {
    let (mut found, room) = (Vec::new(), execution.options.room());
    while let Some((positions, _)) = stream.next_rows()? {
        found.extend(positions);
        // Each that was not spilled is in the stream's table of rows, too, which counts more.
        room.check(8 * found.capacity() as u64, format_args!("{} rows of DISTINCT", found.len()))?;
    }
    Ok(found)
}
