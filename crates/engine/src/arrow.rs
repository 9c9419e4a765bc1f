//! Results as Arrow record batches.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arrow_array::builder::{Float64Builder, ListBuilder, UInt64Builder};
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, SchemaRef, TimeUnit};
use sieva_format::cf::{Calendar, TimeUnits};
use sieva_format::schema::{AttrValue, attr};
use sieva_query::aggregate::{Aggregate, Finished};
use sieva_query::bind::{Body, Output, Value};
use sieva_query::exec::{Column, Data, Execution, GroupRows, GroupTable, RowStream};
use sieva_query::mask::Mask;
use sieva_query::values::{Scalar, Values, Vector};
use sieva_types::{Bx, DType, Error, ErrorKind, Result, TextOffsets, Texts};

use crate::query::Query;
use crate::session::Turn;
use crate::stats::{Phase, QueryStats};

/// Bytes of a value of a row that is compared with all others.
const DISTINCT_BYTES: u64 = 112;

/// How a column is shown.
#[derive(Clone, Debug)]
enum Kind {
    /// As it is.
    Plain,
    /// Numbers of a time coordinate as timestamps.
    Timestamp(Arc<TimeUnits>),
    /// Numbers of a time coordinate as ISO text: its calendar is not that of timestamps, or its dates
    /// lie before 1582.
    IsoText(Arc<TimeUnits>),
    /// Counts and edges.
    Histogram(usize),
}

/// The record batches of a result. Iterate, or hand on as an Arrow stream.
pub struct Batches {
    schema: SchemaRef,
    kinds: Vec<Kind>,
    rows: RowSource,
    stats: Arc<Mutex<QueryStats>>,
    failure: Arc<Mutex<Option<Error>>>,
    given: u64,
    turn: Turn,
}

enum RowSource {
    Stream(Box<RowStream>),
    /// Groups, which are known already.
    Groups(OrderedGroups),
}

/// Which groups a result has, in order.
pub(crate) enum GroupOrder {
    /// These of the table, one after the other.
    AsTheyAre(Range<usize>),
    /// Those of these numbers.
    Listed(Vec<usize>),
}

impl GroupOrder {
    /// How many.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::AsTheyAre(rows) => rows.len(),
            Self::Listed(order) => order.len(),
        }
    }

    /// The `n` from place `at` on.
    fn part(&self, at: usize, n: usize) -> GroupRows<'_> {
        match self {
            Self::AsTheyAre(rows) => GroupRows::Range(rows.start + at..rows.start + at + n),
            Self::Listed(order) => GroupRows::Some(&order[at..at + n]),
        }
    }

    /// All of them, by number.
    pub(crate) fn list(self) -> Vec<usize> {
        match self {
            Self::AsTheyAre(rows) => rows.collect(),
            Self::Listed(order) => order,
        }
    }
}

/// Groups in their final order, as many at a time as a batch has.
struct OrderedGroups {
    execution: Arc<Execution>,
    table: Arc<GroupTable>,
    order: GroupOrder,
    types: Vec<DType>,
    /// The next of them; `None` before the first, which is given even where there is none.
    at: Option<usize>,
    size: usize,
}

impl OrderedGroups {
    fn next_batch(&mut self, schema: &SchemaRef, kinds: &[Kind]) -> Result<Option<RecordBatch>> {
        let first = self.at.unwrap_or(0);
        if self.at.is_some() && first >= self.order.len() {
            return Ok(None);
        }
        let n = self.size.min(self.order.len() - first);
        self.at = Some(first + n);
        let rows = self.order.part(first, n);
        let mut picked = None;
        let mut arrays = Vec::with_capacity(kinds.len());
        for ((output, kind), dtype) in self.execution.bound.outputs.iter().zip(kinds).zip(&self.types) {
            arrays.push(match kind {
                Kind::Histogram(a) => histograms(&self.picked(&rows, &mut picked)?.aggregates[*a]),
                _ => {
                    let values = match self.table.column(&output.value, &rows)? {
                        Some(values) => values,
                        None => {
                            let table = self.picked(&rows, &mut picked)?;
                            table.evaluate(&self.execution, &output.value)?
                        }
                    };
                    to_arrow(typed(Column::from_vector(values, n)?, *dtype), kind)?
                }
            });
        }
        batch(schema, arrays, n).map(Some)
    }
}

impl OrderedGroups {
    /// The table of some groups alone, made once.
    fn picked<'a>(&self, rows: &GroupRows<'_>, made: &'a mut Option<GroupTable>) -> Result<&'a GroupTable> {
        let table = match made.take() {
            Some(table) => table,
            None => match rows {
                GroupRows::Some(groups) => self.table.pick(groups)?,
                GroupRows::Range(rows) => self.table.pick(&rows.clone().collect::<Vec<_>>())?,
            },
        };
        Ok(made.insert(table))
    }
}

impl Query {
    /// The result as record batches of at most `size` rows.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit`.
    pub fn batches(&self, size: usize) -> Result<Batches> {
        // Non-negative subqueries beside unsigned values are of their type.
        self.execution()?;
        let kinds = self.kinds()?;
        let schema = self.arrow_schema(&kinds)?;
        let rows = if self.is_grouped() {
            RowSource::Groups(self.group_rows(size)?)
        } else {
            RowSource::Stream(Box::new(self.row_stream(size)?))
        };
        let (stats, failure) = (self.shared_stats(), self.shared_failure());
        Ok(Batches { schema, kinds, rows, stats, failure, given: 0, turn: self.turn().clone() })
    }

    /// Names and types of the columns: numpy's name of the type, `str`, `datetime` or `histogram`.
    ///
    /// # Errors
    /// Reading errors of time coordinates.
    pub fn columns(&self) -> Result<Vec<(String, String)>> {
        let kinds = self.kinds()?;
        let named = self.outputs().iter().zip(&kinds).map(|(output, kind)| {
            let name = match kind {
                Kind::Plain => self.dtype(&output.value).name().to_string(),
                Kind::Timestamp(_) => "datetime".into(),
                Kind::IsoText(_) => "str".into(),
                Kind::Histogram(_) => "histogram".into(),
            };
            (output.name.clone(), name)
        });
        Ok(named.collect())
    }

    /// The type of a column: an array's own (decoded), or that of the computation.
    pub(crate) fn dtype(&self, value: &Value) -> DType {
        if let Value::Array { array, raw } = value {
            let array = &self.bound().arrays[*array];
            let info = &self.source().schema().arrays[array.index];
            return match if *raw { info.dtype } else { info.decoding.decoded() } {
                DType::F16 => DType::F32,
                other => other,
            };
        }
        self.bound().type_of(value).map_or(DType::F64, |t| t.dtype())
    }

    fn kinds(&self) -> Result<Vec<Kind>> {
        self.outputs().iter().map(|o| self.kind(&o.value)).collect()
    }

    fn kind(&self, value: &Value) -> Result<Kind> {
        let time = match value {
            Value::Array { array, raw: false } => Some(*array),
            Value::Key(k) => match &self.bound().body {
                Body::Groups { keys, .. } => match keys.get(*k) {
                    Some(Value::Array { array, raw: false }) => Some(*array),
                    _ => None,
                },
                Body::Rows => None,
            },
            Value::Aggregated(a) => match &self.bound().body {
                Body::Groups { aggregates, .. } => match aggregates.get(*a) {
                    Some((Aggregate::Histogram { .. }, _)) => return Ok(Kind::Histogram(*a)),
                    Some((Aggregate::Min | Aggregate::Max, Some(Value::Array { array, raw: false }))) => {
                        Some(*array)
                    }
                    _ => None,
                },
                Body::Rows => None,
            },
            _ => None,
        };
        let Some(array) = time else { return Ok(Kind::Plain) };
        let array = &self.bound().arrays[array];
        let Some(units) = &array.time else { return Ok(Kind::Plain) };
        let fits = self.fits_timestamps(array.index, units)?;
        Ok(if fits { Kind::Timestamp(Arc::clone(units)) } else { Kind::IsoText(Arc::clone(units)) })
    }

    /// Whether all dates of a time coordinate can be told as timestamps (proleptic Gregorian).
    fn fits_timestamps(&self, index: usize, units: &TimeUnits) -> Result<bool> {
        if !matches!(units.calendar(), Calendar::Standard | Calendar::ProlepticGregorian) {
            return Ok(false);
        }
        // Of the mixed calendar the values themselves decide, wherever the epoch is; but for many values, where it decides.
        let is_late = units.epoch().to_unix_microseconds(units.calendar()).is_some();
        if units.calendar() == Calendar::Standard || !is_late {
            let info = &self.source().schema().arrays[index];
            if Bx::whole(&info.shape).len() > 1 << 20 {
                return Ok(is_late);
            }
            let column = self.source().read_box(index, &Bx::whole(&info.shape), false)?;
            let values = column.into_vector()?;
            return Ok((0..values.len()).all(|i| match number(&values, i) {
                Some(x) => {
                    units.to_datetime(x).is_some_and(|d| d.to_unix_microseconds(units.calendar()).is_some())
                }
                None => true,
            }));
        }
        Ok(true)
    }

    /// The schema of the batches of [`Query::batches`].
    pub(crate) fn result_schema(&self) -> Result<SchemaRef> {
        self.arrow_schema(&self.kinds()?)
    }

    fn arrow_schema(&self, kinds: &[Kind]) -> Result<SchemaRef> {
        let fields = self.outputs().iter().zip(kinds).map(|(output, kind)| self.field(output, kind));
        Ok(Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>())))
    }

    /// The array whose values a column holds, as they are or as the groups' keys.
    fn array_of(&self, value: &Value) -> Option<usize> {
        match (value, &self.bound().body) {
            (Value::Array { array, .. }, _) => Some(*array),
            (Value::Key(k), Body::Groups { keys, .. }) => match keys.get(*k) {
                Some(Value::Array { array, .. }) => Some(*array),
                _ => None,
            },
            _ => None,
        }
    }

    /// A field with the array's path, units and names as metadata.
    fn field(&self, output: &Output, kind: &Kind) -> Field {
        let data_type = match kind {
            Kind::Plain => arrow_type(self.dtype(&output.value)),
            Kind::Timestamp(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::IsoText(_) => DataType::Utf8,
            Kind::Histogram(_) => DataType::Struct(histogram_fields()),
        };
        let mut metadata = HashMap::new();
        if let Some(array) = self.array_of(&output.value) {
            let info = &self.source().schema().arrays[self.bound().arrays[array].index];
            metadata.insert("array".to_string(), info.path.clone());
            for name in ["units", "long_name", "standard_name", "calendar"] {
                if let Some(text) = attr(&info.attrs, name).and_then(AttrValue::as_text) {
                    metadata.insert(name.to_string(), text.to_string());
                }
            }
        }
        Field::new(&output.name, data_type, true).with_metadata(metadata)
    }

    /// The groups, ordered and cut.
    fn group_rows(&self, size: usize) -> Result<OrderedGroups> {
        let table = self.groups()?;
        let order = self.group_order(&table)?;
        self.lock_stats().hits = Some(order.len() as u64);
        let execution = Arc::clone(self.execution()?);
        let types = self.outputs().iter().map(|o| self.dtype(&o.value)).collect();
        // A group picked out is there once more, and then as columns.
        let row = 4 * (table.memory_bytes() / table.len.max(1) as u64) + 32 * self.outputs().len() as u64;
        let most = usize::try_from(self.memory() / 4 / row.max(1)).unwrap_or(usize::MAX);
        Ok(OrderedGroups { execution, table, order, types, at: None, size: size.clamp(1, most.max(1)) })
    }

    /// The groups' numbers in the order of ORDER BY, DISTINCT, OFFSET and LIMIT applied.
    pub(crate) fn group_order(&self, table: &GroupTable) -> Result<GroupOrder> {
        let execution = self.execution()?;
        let bound = &execution.bound;
        let distinct = if bound.distinct { DISTINCT_BYTES * self.outputs().len() as u64 } else { 0 };
        let row = 24 + 9 * bound.order_by.len() as u64 + distinct;
        let need = table.memory_bytes() + row * table.len as u64;
        execution.options.room().check(need, format_args!("{} groups in order", table.len))?;
        let most = usize::try_from(bound.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        if bound.order_by.is_empty() && !bound.distinct {
            let first = bound.offset.min(table.len as u64) as usize;
            return Ok(GroupOrder::AsTheyAre(first..table.len.min(first.saturating_add(most))));
        }
        let keys =
            bound.order_by.iter().map(|k| table.evaluate(execution, &k.value)).collect::<Result<Vec<_>>>()?;
        let mut order = sieva_query::exec::order_by(&bound.order_by, &keys, table.len);
        if bound.distinct {
            let columns = self
                .outputs()
                .iter()
                .map(|o| Column::from_vector(table.evaluate(execution, &o.value)?, table.len));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            sieva_query::exec::retain_distinct(&columns, &mut order)?;
        }
        let skip = bound.offset.min(order.len() as u64) as usize;
        order.drain(..skip);
        order.truncate(most);
        Ok(GroupOrder::Listed(order))
    }
}

impl Batches {
    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let started = Instant::now();
        let stream = match &mut self.rows {
            RowSource::Groups(groups) => return groups.next_batch(&self.schema, &self.kinds),
            RowSource::Stream(stream) => stream,
        };
        let columns = stream.next_batch()?;
        let made = columns.map(|columns| {
            let n = columns.first().map_or(0, Column::len);
            let arrays = columns
                .into_iter()
                .zip(&self.kinds)
                .map(|(c, k)| to_arrow(c, k))
                .collect::<Result<Vec<_>>>()?;
            batch(&self.schema, arrays, n)
        });
        let made = made.transpose()?;
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        stats.add(Phase::Fetch, started);
        self.given += made.as_ref().map_or(0, |b| b.num_rows() as u64);
        stats.hits = Some(stats.hits.unwrap_or(0).max(self.given));
        Ok(made)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.turn.clone().enter().and_then(|_entered| self.next_batch());
        if let Err(e) = &next {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.clone());
        }
        next.transpose()
    }

    /// None where all were given: nothing is to be done for that any more.
    fn size_hint(&self) -> (usize, Option<usize>) {
        let is_over = match &self.rows {
            RowSource::Stream(stream) => stream.is_over(),
            RowSource::Groups(groups) => groups.at.is_some_and(|at| at >= groups.order.len()),
        };
        (0, is_over.then_some(0))
    }
}

/// The batches as an Arrow C stream wants them: errors as Arrow errors that carry ours.
impl From<Batches> for Box<dyn arrow_array::RecordBatchReader + Send> {
    fn from(batches: Batches) -> Self {
        let schema = batches.schema();
        let each = batches.map(|b| b.map_err(|e| ArrowError::ExternalError(Box::new(e))));
        Box::new(arrow_array::RecordBatchIterator::new(each, schema))
    }
}

fn batch(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("a record batch could not be made: {e}")))
}

fn arrow_type(dtype: DType) -> DataType {
    match dtype {
        DType::Bool => DataType::Boolean,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::F16 | DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::Str => DataType::Utf8,
    }
}

fn to_arrow(column: Column, kind: &Kind) -> Result<ArrayRef> {
    match kind {
        Kind::Timestamp(units) => return timestamps(column, units),
        Kind::IsoText(units) => return iso_texts(column, units),
        _ => {}
    }
    let valid = column.valid.map(nulls);
    Ok(match column.data {
        Data::Bool(v) => Arc::new(BooleanArray::new(v.into(), valid)),
        Data::I8(v) => primitive::<Int8Type>(v, valid),
        Data::I16(v) => primitive::<Int16Type>(v, valid),
        Data::I32(v) => primitive::<Int32Type>(v, valid),
        Data::I64(v) => primitive::<Int64Type>(v, valid),
        Data::U8(v) => primitive::<UInt8Type>(v, valid),
        Data::U16(v) => primitive::<UInt16Type>(v, valid),
        Data::U32(v) => primitive::<UInt32Type>(v, valid),
        Data::U64(v) => primitive::<UInt64Type>(v, valid),
        Data::F32(v) => primitive::<Float32Type>(v, valid),
        Data::F64(v) => primitive::<Float64Type>(v, valid),
        Data::Str(v) => Arc::new(texts(v, valid)?),
    })
}

/// A column's validity, taken over: its words are the bitmap.
fn nulls(valid: Mask) -> NullBuffer {
    let n = valid.len();
    NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(valid.into_words()), 0, n))
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, valid: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), valid))
}

/// Texts, taken over: their offsets and bytes are those of `utf8`.
fn texts(values: Texts, valid: Option<NullBuffer>) -> Result<StringArray> {
    let (n, bytes) = (values.len(), values.as_str().len());
    let (TextOffsets::Small(offsets), values) = values.into_parts() else {
        let message = format!("{n} texts of one batch have {bytes} bytes, Arrow's utf8 at most {}", i32::MAX);
        return Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("ask for fewer rows at once: batches(size) in Python, Query::batches(rows) in Rust"));
    };
    StringArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(values), valid)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("texts could not be handed to Arrow: {e}")))
}

fn number(vector: &Vector, i: usize) -> Option<f64> {
    match &vector.values {
        _ if !vector.is_valid(i) => None,
        Values::F64(v) => Some(v[i]),
        Values::I64(v) => Some(v[i] as f64),
        Values::U64(v) => Some(v[i] as f64),
        _ => None,
    }
}

fn timestamps(column: Column, units: &TimeUnits) -> Result<ArrayRef> {
    let n = column.len();
    let vector = column.into_vector()?;
    let each = (0..n).map(|i| {
        let Some(x) = number(&vector, i) else { return Ok(None) };
        let date = units.to_datetime(x).and_then(|d| d.instant_microseconds(units.calendar()));
        date.map(Some).ok_or_else(|| {
            Error::new(ErrorKind::Overflow, format!("time {x} is no date that a timestamp can hold"))
        })
    });
    let values: Vec<Option<i64>> = each.collect::<Result<_>>()?;
    Ok(Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from_iter(values)))
}

fn iso_texts(column: Column, units: &TimeUnits) -> Result<ArrayRef> {
    let n = column.len();
    let vector = column.into_vector()?;
    let text = |i| number(&vector, i).and_then(|x| units.to_datetime(x)).map(|d| d.to_string());
    Ok(Arc::new((0..n).map(text).collect::<StringArray>()))
}

/// A column as the type that its schema says (a group's key comes back wide).
pub(crate) fn typed(column: Column, dtype: DType) -> Column {
    let Column { data, valid } = column;
    let data = match (data, dtype) {
        (Data::F64(v), DType::F32) => Data::F32(v.into_iter().map(|x| x as f32).collect()),
        (Data::I64(v), DType::I8) => Data::I8(v.into_iter().map(|x| x as i8).collect()),
        (Data::I64(v), DType::I16) => Data::I16(v.into_iter().map(|x| x as i16).collect()),
        (Data::I64(v), DType::I32) => Data::I32(v.into_iter().map(|x| x as i32).collect()),
        (Data::I64(v), DType::U8) => Data::U8(v.into_iter().map(|x| x as u8).collect()),
        (Data::I64(v), DType::U16) => Data::U16(v.into_iter().map(|x| x as u16).collect()),
        (Data::I64(v), DType::U32) => Data::U32(v.into_iter().map(|x| x as u32).collect()),
        (data, _) => data,
    };
    Column { data, valid }
}

fn histogram_fields() -> Fields {
    let item = |t| Arc::new(Field::new("item", t, true));
    Fields::from(vec![
        Field::new("edges", DataType::List(item(DataType::Float64)), true),
        Field::new("counts", DataType::List(item(DataType::UInt64)), true),
    ])
}

fn histograms(of_groups: &Finished) -> ArrayRef {
    let mut edges = ListBuilder::new(Float64Builder::new());
    let mut counts = ListBuilder::new(UInt64Builder::new());
    for i in 0..of_groups.len() {
        if let Scalar::Histogram { edges: e, counts: c } = of_groups.scalar(i) {
            edges.values().append_slice(&e);
            counts.values().append_slice(&c);
        }
        edges.append(true);
        counts.append(true);
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(edges.finish()), Arc::new(counts.finish())];
    Arc::new(arrow_array::StructArray::new(histogram_fields(), columns, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn texts_are_handed_to_arrow_as_they_are() {
        let (given, valid) = (Texts::from_iter(["b", "", "é", "lost"]), [true, true, true, false]);
        let place = given.as_str().as_ptr();
        let array = texts(given, Some(nulls(Mask::from(&valid[..])))).unwrap();
        assert_eq!(array.value_data().as_ptr(), place);
        assert_eq!(array.value_offsets(), [0, 1, 1, 3, 7]);
        assert_eq!(array.iter().collect::<Vec<_>>(), [Some("b"), Some(""), Some("é"), None]);
        assert_eq!(texts(Texts::new(), None).unwrap().len(), 0);
    }
}
