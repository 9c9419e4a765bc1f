//! DISTINCT: the rows that were met, in memory, and of those that do not fit there the first ones, found by sorting.

use std::collections::HashSet;

use sieva_types::Result;

use crate::bind::{OrderKey, Value};
use crate::exec::fetch::column::Column;
use crate::exec::order::{Encoded, PositionList, Sorter, make_room};
use crate::exec::{ExecOptions, Execution};
use crate::values::{ValueType, Vector};

/// Bytes of a row in the table besides its own: where they are, what the allocator takes, and a mark.
const PLACE_BYTES: u64 = size_of::<Box<[u8]>>() as u64 + 1;
const ALLOCATED_BYTES: u64 = 16;

impl Execution {
    /// Whether the table of the different ones of so many rows may have no room for all, so that some are fetched twice.
    pub(crate) fn may_spill_distinct(&self, rows: u64) -> bool {
        let options = &self.options;
        let Some(width) = Distinct::new(self).width else { return options.spill > 0 };
        // Of a table that grows three parts are held, of which each may be half empty.
        let each = (width as u64 + ALLOCATED_BYTES).saturating_add(7 * PLACE_BYTES);
        options.spill > 0
            && rows.saturating_mul(each).saturating_add(64 * PLACE_BYTES) > options.room().bytes / 2
    }
}

/// The different rows of a stream.
pub struct Distinct {
    width: Option<usize>,
    keys: Vec<OrderKey>,
    rows: HashSet<Box<[u8]>>,
    /// Bytes of the rows besides their places in the table.
    held: u64,
    /// The number of rows that came.
    came: u64,
    /// Rows that the table has no room for, with their numbers.
    rest: Option<Sorter>,
}

impl Distinct {
    /// None met yet of a query's rows.
    pub fn new(execution: &Execution) -> Self {
        let bound = &execution.bound;
        let keys: Vec<OrderKey> = bound
            .outputs
            .iter()
            .map(|o| OrderKey { value: o.value.clone(), descending: false, nulls_first: false })
            .collect();
        let is_text = |v: &Value| bound.type_of(v) == Some(ValueType::Str);
        let width = crate::exec::order::width_of(&keys, is_text);
        Self { width, keys, rows: HashSet::new(), held: 0, came: 0, rest: None }
    }

    /// Which of some rows were not met before, as far as that can be told now: the others are given by
    /// [`Distinct::rest`] when all have come.
    ///
    /// # Errors
    /// `memory-limit` where there is no room for them, on disk neither; `io-error`, `cancelled`.
    pub fn new_ones(&mut self, columns: &[Column], options: &ExecOptions) -> Result<Vec<usize>> {
        let n = columns.first().map_or(0, Column::len);
        let vectors = columns.iter().map(|c| c.clone().into_vector()).collect::<Result<Vec<Vector>>>()?;
        let rows = Encoded::of(&self.keys, &vectors, n, self.width);
        let first = self.came;
        self.came += n as u64;
        let (mut kept, mut others, mut numbers) = (Vec::new(), Encoded::new(self.width), Vec::new());
        for i in 0..n {
            let row = rows.row(i);
            if self.rows.contains(row) {
                continue;
            }
            if self.rest.is_none() && self.has_room(row, options)? {
                self.rows.insert(row.into());
                kept.push(i);
            } else {
                others.push(row);
                make_room(&mut numbers, 1);
                numbers.push(first + i as u64);
            }
        }
        if !numbers.is_empty() {
            let what = || format!("{} different rows for DISTINCT", self.rows.len());
            let width = self.width;
            // A quarter of what may be spilled is for the numbers of the first of equal rows.
            let spilled = ExecOptions { spill: options.spill / 4 * 3, ..options.clone() };
            let sorter = || Sorter::new(&spilled, width, options.room().bytes / 2, what());
            self.rest.get_or_insert_with(sorter).add(&others, &numbers)?;
        }
        Ok(kept)
    }

    /// Whether the table has room for a row more, which is counted; where nothing may be spilled it must.
    fn has_room(&mut self, row: &[u8], options: &ExecOptions) -> Result<bool> {
        let table = self.rows.capacity() as u64 / 7 * 8 * PLACE_BYTES;
        // A table that is full is held while one of twice the size is filled.
        let growing = if self.rows.len() == self.rows.capacity() { 2 * table } else { 0 };
        let held = self.held + row.len() as u64 + ALLOCATED_BYTES;
        let need = held + table + growing;
        if options.spill > 0 && need > options.room().bytes / 2 {
            return Ok(false);
        }
        options.room().check(need, format_args!("{} different rows for DISTINCT", self.rows.len()))?;
        self.held = held;
        Ok(true)
    }

    /// Once all rows have come: the numbers of the first of equal ones among those that are left, ascending.
    ///
    /// # Errors
    /// As [`Distinct::new_ones`].
    pub fn rest(&mut self, options: &ExecOptions) -> Result<PositionList> {
        let Some(rest) = self.rest.take() else { return Ok(PositionList::Held(Vec::new())) };
        self.rows = HashSet::new();
        let what = "different rows for DISTINCT".to_string();
        let spilled = ExecOptions { spill: (options.spill / 4).max(1), ..options.clone() };
        let mut numbers = Sorter::new(&spilled, Some(8), options.room().bytes / 4, what);
        let mut last: Option<Vec<u8>> = None;
        rest.each(|row, number| {
            if last.as_deref() != Some(row) {
                let mut key = Encoded::new(Some(8));
                key.push(&number.to_be_bytes());
                numbers.add(&key, &[number])?;
                last = Some(row.to_vec());
            }
            Ok(true)
        })?;
        numbers.finish(u64::MAX)
    }
}
