//! Parquet: row groups of about a million rows, columns that may miss values, pages compressed by zstd.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type as stored;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use sieva::{Batches, Error, ErrorKind, Result};

/// Rows of a row group at least, unless the result or memory ends first.
const GROUP_ROWS: usize = 1 << 20;
/// Bytes in memory that end a row group.
const GROUP_BYTES: usize = 64 << 20;

/// Writes all batches; gives the number of rows.
///
/// # Errors
/// Reading errors, and those of writing; `unsupported` for histograms.
pub(crate) fn write(batches: Batches, out: &mut (impl Write + Send)) -> Result<u64> {
    let schema = schema(&batches.schema())?;
    let created_by = format!("sieva {}", sieva::VERSION);
    // The fastest level: results are sent while they are made.
    let level = ZstdLevel::try_new(1).map_err(of_parquet)?;
    let properties = WriterProperties::builder().set_created_by(created_by);
    let properties = Arc::new(properties.set_compression(Compression::ZSTD(level)).build());
    let mut file = SerializedFileWriter::new(out, schema, properties).map_err(of_parquet)?;
    let (mut held, mut rows) = (Vec::<RecordBatch>::new(), 0);
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        held.push(batch);
        let is_full = held.iter().map(RecordBatch::num_rows).sum::<usize>() >= GROUP_ROWS
            || held.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() >= GROUP_BYTES;
        if is_full {
            group(&mut file, &held)?;
            held.clear();
        }
    }
    if !held.is_empty() {
        group(&mut file, &held)?;
    }
    file.close().map_err(of_parquet)?;
    Ok(rows)
}

fn schema(schema: &Schema) -> Result<TypePtr> {
    let fields = schema.fields().iter().map(|f| column_type(f)).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("schema").with_fields(fields).build().map(Arc::new).map_err(of_parquet)
}

fn column_type(field: &Field) -> Result<TypePtr> {
    let integer = |bits, signed| Some(LogicalType::integer(bits, signed));
    let (physical, logical) = match field.data_type() {
        DataType::Boolean => (Physical::BOOLEAN, None),
        DataType::Int8 => (Physical::INT32, integer(8, true)),
        DataType::Int16 => (Physical::INT32, integer(16, true)),
        DataType::Int32 => (Physical::INT32, None),
        DataType::Int64 => (Physical::INT64, None),
        DataType::UInt8 => (Physical::INT32, integer(8, false)),
        DataType::UInt16 => (Physical::INT32, integer(16, false)),
        DataType::UInt32 => (Physical::INT32, integer(32, false)),
        DataType::UInt64 => (Physical::INT64, integer(64, false)),
        DataType::Float32 => (Physical::FLOAT, None),
        DataType::Float64 => (Physical::DOUBLE, None),
        DataType::Utf8 => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        DataType::Timestamp(..) => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::MICROS))),
        _ => {
            let message =
                format!("column '{}' is a histogram, which is not written as Parquet", field.name());
            return Err(Error::new(ErrorKind::Unsupported, message).hint("take it as Arrow or CSV"));
        }
    };
    let built = Type::primitive_type_builder(field.name(), physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build();
    built.map(Arc::new).map_err(of_parquet)
}

fn group<W: Write + Send>(file: &mut SerializedFileWriter<W>, batches: &[RecordBatch]) -> Result<()> {
    let mut group = file.next_row_group().map_err(of_parquet)?;
    let mut number = 0;
    while let Some(mut column) = group.next_column().map_err(of_parquet)? {
        for batch in batches {
            values(&mut column, batch.column(number))?;
        }
        column.close().map_err(of_parquet)?;
        number += 1;
    }
    group.close().map(|_| ()).map_err(of_parquet)
}

/// Writes the values of one column of a batch: those that are there, and for each row whether it has one.
fn values(column: &mut SerializedColumnWriter<'_>, array: &ArrayRef) -> Result<()> {
    let levels: Vec<i16> = (0..array.len()).map(|i| array.is_valid(i).into()).collect();
    macro_rules! put {
        ($stored:ty, $values:expr) => {{
            let values = $values;
            let present: Vec<<$stored as stored::DataType>::T> = (0..array.len())
                .filter(|&i| values.is_valid(i))
                .map(|i| values.value(i))
                .map(convert)
                .collect();
            column.typed::<$stored>().write_batch(&present, Some(&levels), None)
        }};
    }
    let written = match array.data_type() {
        DataType::Boolean => put!(stored::BoolType, array.as_boolean()),
        DataType::Int8 => put!(stored::Int32Type, array.as_primitive::<Int8Type>()),
        DataType::Int16 => put!(stored::Int32Type, array.as_primitive::<Int16Type>()),
        DataType::Int32 => put!(stored::Int32Type, array.as_primitive::<Int32Type>()),
        DataType::Int64 => put!(stored::Int64Type, array.as_primitive::<Int64Type>()),
        DataType::UInt8 => put!(stored::Int32Type, array.as_primitive::<UInt8Type>()),
        DataType::UInt16 => put!(stored::Int32Type, array.as_primitive::<UInt16Type>()),
        DataType::UInt32 => put!(stored::Int32Type, array.as_primitive::<UInt32Type>()),
        DataType::UInt64 => put!(stored::Int64Type, array.as_primitive::<UInt64Type>()),
        DataType::Float32 => put!(stored::FloatType, array.as_primitive::<Float32Type>()),
        DataType::Float64 => put!(stored::DoubleType, array.as_primitive::<Float64Type>()),
        DataType::Timestamp(..) => put!(stored::Int64Type, array.as_primitive::<TimestampMicrosecondType>()),
        _ => put!(stored::ByteArrayType, array.as_string::<i32>()),
    };
    written.map(|_| ()).map_err(of_parquet)
}

/// A value as Parquet stores it: unsigned ones by the same bits.
trait Convert<T> {
    fn converted(self) -> T;
}

fn convert<A: Convert<B>, B>(value: A) -> B {
    value.converted()
}

macro_rules! converted {
    ($($from:ty => $to:ty),*) => {$(
        impl Convert<$to> for $from {
            fn converted(self) -> $to {
                self as $to
            }
        }
    )*};
}
converted!(bool => bool, i8 => i32, i16 => i32, i32 => i32, i64 => i64, u8 => i32, u16 => i32, u32 => i32, u64 => i64,
    f32 => f32, f64 => f64);

impl Convert<stored::ByteArray> for &str {
    fn converted(self) -> stored::ByteArray {
        stored::ByteArray::from(self)
    }
}

fn of_parquet(e: ParquetError) -> Error {
    match e {
        ParquetError::External(e) => {
            Error::new(ErrorKind::Io, format!("cannot write the result to a temporary file: {e}"))
        }
        e => Error::new(ErrorKind::Internal, format!("the result could not be written as Parquet: {e}")),
    }
}
