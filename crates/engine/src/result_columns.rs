//! A result as columns of rows that stay where they are: any rows of any column, at any time, from any thread.
//!
//! What is written in a layout that is known beforehand is written from this. Batches ([`Query::batches`]) come once,
//! from the first to the last.

use std::ops::Range;
use std::sync::Arc;

use sieva_format::decoding::Number;
use sieva_query::aggregate::Aggregate;
use sieva_query::bind::{Body, Value};
use sieva_query::exec::{Column, OrderedRows};
use sieva_types::keys::key_range;
use sieva_types::{DType, Error, ErrorKind, Result};

use crate::arrow::typed;
use crate::query::Query;

/// A column of [`ResultColumns`].
#[derive(Clone, Debug)]
pub struct RowField {
    /// Its name, as in the other forms of the result.
    pub name: String,
    /// The type of its values: numbers of the file where they are times; float16 as float32.
    pub dtype: DType,
    /// Where its values come from.
    pub source: FieldSource,
    /// Whether there may be rows without a value.
    pub may_miss: bool,
    /// A number of its type that none of its values is equal to, where one is known.
    pub unused: Option<Number>,
}

/// What a text is taken to need.
const TEXT_BYTES: u64 = 64;
/// What a row takes while rows that lie anywhere are fetched at once: where it lies, in several orders.
const SCATTERED_BYTES: u64 = 128;

/// What a column's values are of an array of the source; numbers are indices in [`crate::Schema::arrays`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSource {
    /// Its values: all that is said of them there is true here.
    Array(usize),
    /// Numbers in its unit: as stored, or the first or last of times.
    About(usize),
    /// Computed.
    None,
}

/// The rows of a result in their final order: ORDER BY, DISTINCT, OFFSET and LIMIT applied.
///
/// ```no_run
/// # fn main() -> sieva::Result<()> {
/// let source = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?;
/// let query = std::sync::Arc::new(source.ask("TEMP > 25", &sieva::QueryOptions::default())?);
/// let rows = sieva::ResultColumns::new(query)?;
/// let last = rows.read(0, rows.len().saturating_sub(10)..rows.len(), 1)?;
/// # Ok(())
/// # }
/// ```
pub struct ResultColumns {
    query: Arc<Query>,
    fields: Vec<RowField>,
    kept: Kept,
}

enum Kept {
    Ordered(OrderedRows),
    /// All values, in memory.
    Table {
        columns: Vec<Column>,
        len: u64,
    },
}

impl ResultColumns {
    /// Evaluates the query's condition; reads no other values than its own, those of ORDER BY and, for groups and
    /// DISTINCT, of the columns. What has another order than the source is read at once and kept where a quarter of the
    /// query's memory has room for it.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit`; `unsupported` for columns of histograms.
    pub fn new(query: Arc<Query>) -> Result<Self> {
        query.execution()?;
        let fields =
            query.outputs().iter().map(|o| query.row_field(&o.name, &o.value)).collect::<Result<_>>()?;
        let kept =
            if query.is_grouped() { query.kept_groups()? } else { Kept::Ordered(query.ordered_rows()?) };
        let rows = Self { query, fields, kept };
        if rows.is_scattered() { rows.gathered() } else { Ok(rows) }
    }

    /// Whether each part of the rows lies anywhere in the source, and all of them fit into memory.
    fn is_scattered(&self) -> bool {
        let Kept::Ordered(ordered) = &self.kept else { return false };
        let width = |f: &RowField| if f.dtype == DType::Str { TEXT_BYTES } else { f.dtype.size() as u64 };
        let row: u64 = self.fields.iter().map(width).sum();
        let row = row + SCATTERED_BYTES;
        ordered.is_listed() && ordered.len().saturating_mul(row) <= self.query.memory() / 2
    }

    /// The same rows with all values in memory.
    fn gathered(self) -> Result<Self> {
        let (len, threads) = (self.len(), self.query.threads());
        let columns = (0..self.fields.len()).map(|field| self.read(field, 0..len, threads));
        let kept = Kept::Table { columns: columns.collect::<Result<_>>()?, len };
        Ok(Self { kept, ..self })
    }

    /// The query.
    pub fn query(&self) -> &Arc<Query> {
        &self.query
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        match &self.kept {
            Kept::Ordered(rows) => rows.len(),
            Kept::Table { len, .. } => *len,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns.
    pub fn fields(&self) -> &[RowField] {
        &self.fields
    }

    /// Where a part of column `field` that begins with row `start` ends best: at `wanted` at the latest, or at `most` where
    /// that many rows share chunks.
    pub fn part_end(&self, field: usize, start: u64, wanted: u64, most: u64) -> u64 {
        match (&self.kept, self.query.outputs().get(field)) {
            (Kept::Ordered(rows), Some(output)) => rows.part_end(&output.value, start, wanted, most),
            _ => wanted.min(self.len()),
        }
    }

    /// The values of column `field` in some rows, fetched by so many threads.
    ///
    /// # Errors
    /// `invalid-value` where there are no such rows; reading errors; `cancelled`.
    pub fn read(&self, field: usize, rows: Range<u64>, threads: usize) -> Result<Column> {
        let (n, all) = (self.len(), self.query.outputs());
        if rows.start > rows.end || rows.end > n || field >= all.len() {
            let message =
                format!("rows {rows:?} of column {field}: there are {n} rows of {} columns", all.len());
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let _entered = self.query.enter()?;
        match &self.kept {
            Kept::Ordered(ordered) => {
                let column = ordered.read(&all[field].value, rows, threads)?;
                Ok(typed(column, self.fields[field].dtype))
            }
            Kept::Table { columns, .. } => {
                let wanted: Vec<usize> = (rows.start as usize..rows.end as usize).collect();
                Ok(columns[field].take(&wanted))
            }
        }
    }
}

impl Query {
    fn kept_groups(&self) -> Result<Kept> {
        let table = self.groups()?;
        let order = self.group_order(&table)?.list();
        // All columns at once, and one of them thrice while it is made.
        let row = 9 * (self.outputs().len() as u64 + 3);
        let need = table.memory_bytes() + row * table.len as u64;
        self.execution()?.options.room().check(need, format_args!("the columns of {} groups", table.len))?;
        let columns = self.outputs().iter().map(|output| {
            let column = Column::from_vector(table.evaluate(self.execution()?, &output.value)?, table.len)?;
            Ok(typed(column.take(&order), self.dtype(&output.value)))
        });
        let columns = columns.collect::<Result<_>>()?;
        self.lock_stats().hits = Some(order.len() as u64);
        Ok(Kept::Table { columns, len: order.len() as u64 })
    }

    fn row_field(&self, name: &str, value: &Value) -> Result<RowField> {
        let (dtype, source) = (self.dtype(value), self.field_source(value));
        if self.is_histogram(value) {
            let message = format!("column '{name}' is a histogram, which has no place in arrays of numbers");
            return Err(Error::new(ErrorKind::Unsupported, message).hint("take it as Arrow, Parquet or CSV"));
        }
        let (may_miss, unused) = match value {
            Value::Array { array, raw } => {
                let bound = &self.bound().arrays[*array];
                let domain = if *raw { &bound.raw_domain } else { &bound.domain };
                (!domain.missing().is_empty(), if *raw { None } else { self.unused(bound.index, dtype) })
            }
            Value::Position { .. } => (false, None),
            _ => (true, None),
        };
        Ok(RowField { name: name.to_string(), dtype, source, may_miss, unused })
    }

    fn is_histogram(&self, value: &Value) -> bool {
        let (Value::Aggregated(a), Body::Groups { aggregates, .. }) = (value, &self.bound().body) else {
            return false;
        };
        matches!(aggregates.get(*a), Some((Aggregate::Histogram { .. }, _)))
    }

    fn field_source(&self, value: &Value) -> FieldSource {
        let bound = self.bound();
        let index = |array: usize| bound.arrays[array].index;
        let value = match (value, &bound.body) {
            (Value::Key(k), Body::Groups { keys, .. }) => keys.get(*k).unwrap_or(value),
            _ => value,
        };
        match (value, &bound.body) {
            (Value::Array { array, raw: false }, _) => FieldSource::Array(index(*array)),
            (Value::Array { array, raw: true }, _) => FieldSource::About(index(*array)),
            (Value::Aggregated(a), Body::Groups { aggregates, .. }) => match aggregates.get(*a) {
                Some((Aggregate::Min | Aggregate::Max, Some(Value::Array { array, raw: false })))
                    if bound.arrays[*array].time.is_some() =>
                {
                    FieldSource::About(index(*array))
                }
                _ => FieldSource::None,
            },
            _ => FieldSource::None,
        }
    }

    /// A stored integer that means "missing": no decoded value is equal to it, unless values are unpacked.
    fn unused(&self, index: usize, dtype: DType) -> Option<Number> {
        let decoding = &self.source().schema().arrays[index].decoding;
        let (low, high) = key_range(dtype);
        let fits = |n: &Number| match n {
            Number::Int(i) => dtype.is_integer() && (low..=high).contains(i),
            Number::Float(_) => false,
        };
        let decoded = decoding.packing.is_none() && decoding.stored == dtype;
        let outside = match decoding.valid {
            _ if !self.source().options().valid_range => None,
            (Some(Number::Int(low)), _) if fits(&Number::Int(low - 1)) => Some(Number::Int(low - 1)),
            (_, Some(Number::Int(high))) if fits(&Number::Int(high + 1)) => Some(Number::Int(high + 1)),
            _ => None,
        };
        decoded.then(|| decoding.missing.iter().copied().find(fits).or(outside)).flatten()
    }
}
