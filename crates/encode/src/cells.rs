//! Values of Arrow columns as text: what tables, CSV and JSON share.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::DataType;
use sieva::{Error, ErrorKind, Result};

use crate::text;

/// Text that is held until it is handed on.
pub(crate) const TEXT_BYTES: usize = 1 << 20;

/// How a format writes what is no plain number.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// In the place of a missing value.
    pub missing: &'static str,
    /// Writes a text of the data, which may hold any character.
    pub text: fn(&str, &mut Vec<u8>),
    /// Writes a histogram, which comes as JSON.
    pub histogram: fn(&str, &mut Vec<u8>),
    /// A float that is NaN or infinite.
    pub odd: fn(f64) -> &'static str,
    /// Around times.
    pub quote: &'static str,
}

/// Appends the text of one row of a column.
pub(crate) type Cell<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// The cells of a column.
///
/// # Errors
/// `unsupported` for a type that no result has.
pub(crate) fn cells(column: &ArrayRef, style: Style) -> Result<Cell<'_>> {
    /// The cells of an array, of which `$put` writes a value that is there.
    macro_rules! each {
        ($values:expr, $put:expr) => {{
            let values = $values;
            Box::new(move |i: usize, out: &mut Vec<u8>| {
                if values.is_valid(i) {
                    $put(values.value(i), out);
                } else {
                    out.extend(style.missing.as_bytes());
                }
            })
        }};
    }
    macro_rules! integer {
        ($t:ty) => {
            each!(column.as_primitive::<$t>(), |v, out: &mut Vec<u8>| {
                // Writing to a vector does not fail.
                let _ = write!(out, "{v}");
            })
        };
    }
    macro_rules! float {
        ($t:ty) => {
            each!(column.as_primitive::<$t>(), |v: <$t as arrow_array::ArrowPrimitiveType>::Native, out| {
                match v.is_finite() {
                    true => text::float(v, out),
                    false => out.extend((style.odd)(v.into()).as_bytes()),
                }
            })
        };
    }
    Ok(match column.data_type() {
        DataType::Boolean => each!(column.as_boolean(), |v: bool, out: &mut Vec<u8>| {
            out.extend(if v { "true" } else { "false" }.as_bytes());
        }),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Float32 => float!(Float32Type),
        DataType::Float64 => float!(Float64Type),
        DataType::Timestamp(..) => {
            each!(column.as_primitive::<TimestampMicrosecondType>(), |v, out: &mut Vec<u8>| {
                out.extend(style.quote.as_bytes());
                text::timestamp(v, out);
                out.extend(style.quote.as_bytes());
            })
        }
        DataType::Utf8 => each!(column.as_string::<i32>(), style.text),
        DataType::LargeUtf8 => each!(column.as_string::<i64>(), style.text),
        DataType::Struct(_) => histograms(column.as_struct(), style),
        other => {
            let message = format!("a column of Arrow's type {other} has no text");
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("take numbers, texts, times or histograms, or write Arrow"));
        }
    })
}

/// The rows of a batch as texts: as in CSV, but without quotes.
///
/// # Errors
/// `unsupported` for a type that no result has.
pub fn row_texts(batch: &RecordBatch) -> Result<Vec<Vec<String>>> {
    let style = Style { missing: "", text: plain, histogram: plain, odd, quote: "" };
    let columns = batch.columns().iter().map(|c| cells(c, style)).collect::<Result<Vec<_>>>()?;
    Ok((0..batch.num_rows()).map(|row| columns.iter().map(|put| text_of(put, row)).collect()).collect())
}

/// The text of one row.
pub(crate) fn text_of(put: &Cell<'_>, row: usize) -> String {
    let mut out = Vec::new();
    put(row, &mut out);
    // What is written is UTF-8.
    String::from_utf8_lossy(&out).into_owned()
}

fn histograms(values: &StructArray, style: Style) -> Cell<'_> {
    Box::new(move |i, out| {
        if values.is_valid(i) {
            (style.histogram)(&histogram(values, i), out);
        } else {
            out.extend(style.missing.as_bytes());
        }
    })
}

/// A histogram as JSON: `{"edges": [0.0, 1.0], "counts": [3]}`.
fn histogram(values: &StructArray, row: usize) -> String {
    let edges = values.column(0).as_list::<i32>().value(row);
    let counts = values.column(1).as_list::<i32>().value(row);
    let edges: Vec<String> =
        edges.as_primitive::<Float64Type>().values().iter().map(|v| text::json(*v)).collect();
    let counts: Vec<String> =
        counts.as_primitive::<UInt64Type>().values().iter().map(u64::to_string).collect();
    format!("{{\"edges\": [{}], \"counts\": [{}]}}", edges.join(", "), counts.join(", "))
}

/// A text as it is.
pub(crate) fn plain(text: &str, out: &mut Vec<u8>) {
    out.extend(text.as_bytes());
}

/// `inf`, `-inf`, `nan`.
pub(crate) fn odd(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "inf",
        f64::NEG_INFINITY => "-inf",
        _ => "nan",
    }
}
