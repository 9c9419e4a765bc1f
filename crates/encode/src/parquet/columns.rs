//! The values of columns: those that are there, and for each row whether it has one.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use parquet::data_type as stored;
use parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter};
use sieva::{Error, ErrorKind, Result};

use super::file::of_parquet;

/// Writes one field of a row group: the same column of each batch. A histogram has two columns in Parquet.
///
/// # Errors
/// Those of writing.
pub(super) fn write<'a, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    batches: impl Iterator<Item = &'a ArrayRef> + Clone,
) -> Result<()> {
    let is_histogram = batches.clone().any(|array| matches!(array.data_type(), DataType::Struct(_)));
    for part in 0..if is_histogram { 2 } else { 1 } {
        let next = group.next_column().map_err(of_parquet)?;
        let mut column = next.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "a batch has more columns than the Parquet file that it is for")
        })?;
        for array in batches.clone() {
            match is_histogram {
                true => lists(&mut column, array.as_struct(), part)?,
                false => values(&mut column, array)?,
            }
        }
        column.close().map_err(of_parquet)?;
    }
    Ok(())
}

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
        DataType::LargeUtf8 => put!(stored::ByteArrayType, array.as_string::<i64>()),
        _ => put!(stored::ByteArrayType, array.as_string::<i32>()),
    };
    written.map(|_| ()).map_err(of_parquet)
}

/// Writes one of the two lists of histograms. Levels say how much of `histogram.list.element` is there: 0 no histogram,
/// 1 no list, 2 an empty one, 3 an element without a value, 4 one with it; and a list's elements but the first repeat.
fn lists(column: &mut SerializedColumnWriter<'_>, array: &StructArray, part: usize) -> Result<()> {
    let all = array.column(part).as_list::<i32>();
    let items = all.values();
    let (mut defined, mut repeated, mut present) = (Vec::<i16>::new(), Vec::<i16>::new(), Vec::new());
    for row in 0..array.len() {
        let (from, end) = (all.value_offsets()[row] as usize, all.value_offsets()[row + 1] as usize);
        if !array.is_valid(row) || !all.is_valid(row) || from == end {
            defined
                .push(i16::from(array.is_valid(row)) + i16::from(array.is_valid(row) && all.is_valid(row)));
            repeated.push(0);
            continue;
        }
        for item in from..end {
            defined.push(if items.is_valid(item) { 4 } else { 3 });
            repeated.push((item > from).into());
            if items.is_valid(item) {
                present.push(item);
            }
        }
    }
    macro_rules! put {
        ($stored:ty, $t:ty) => {{
            let values = items.as_primitive::<$t>();
            let present: Vec<_> = present.iter().map(|&i| convert(values.value(i))).collect();
            column.typed::<$stored>().write_batch(&present, Some(&defined), Some(&repeated))
        }};
    }
    let written = match items.data_type() {
        DataType::UInt64 => put!(stored::Int64Type, UInt64Type),
        _ => put!(stored::DoubleType, Float64Type),
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
