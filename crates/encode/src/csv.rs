//! CSV: a header line, quoting as RFC 4180 says, lines that end in a line feed; missing values are empty.
//! Where there is one column only, a missing one is `""`: readers skip empty lines.
//!
//! The same bytes as the command line's CSV: floats are the shortest text that reads back to the same value of their own
//! width, times are ISO 8601, histograms JSON.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use sieva::{Batches, Error, ErrorKind, Result};

use crate::spool::failed;
use crate::text;

/// Writes all batches; gives the number of rows.
///
/// # Errors
/// Reading errors, and those of writing.
pub(crate) fn write(batches: Batches, out: &mut impl Write) -> Result<u64> {
    let schema = batches.schema();
    let mut line = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        if i > 0 {
            line.push(b',');
        }
        quoted(field.name(), &mut line);
    }
    line.push(b'\n');
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        let cells = batch.columns().iter().map(cell).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let start = line.len();
            for (i, put) in cells.iter().enumerate() {
                if i > 0 {
                    line.push(b',');
                }
                put(row, &mut line);
            }
            if line.len() == start {
                // Readers skip empty lines.
                line.extend(b"\"\"");
            }
            line.push(b'\n');
        }
        out.write_all(&line).map_err(|e| failed(&e))?;
        line.clear();
        rows += batch.num_rows() as u64;
    }
    out.write_all(&line).map_err(|e| failed(&e))?;
    Ok(rows)
}

/// Appends the text of one row of a column.
type Put<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

fn cell(column: &ArrayRef) -> Result<Put<'_>> {
    macro_rules! primitive {
        ($t:ty, $text:expr) => {{
            let values = column.as_primitive::<$t>();
            Box::new(move |i: usize, out: &mut Vec<u8>| {
                if values.is_valid(i) {
                    $text(values.value(i), out);
                }
            })
        }};
    }
    macro_rules! integer {
        ($t:ty) => {
            primitive!($t, |v, out: &mut Vec<u8>| {
                // Writing to a vector does not fail.
                let _ = write!(out, "{v}");
            })
        };
    }
    Ok(match column.data_type() {
        DataType::Boolean => {
            let values = column.as_boolean();
            Box::new(move |i, out| {
                if values.is_valid(i) {
                    out.extend(if values.value(i) { "true" } else { "false" }.as_bytes());
                }
            })
        }
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Float32 => primitive!(Float32Type, text::float),
        DataType::Float64 => primitive!(Float64Type, text::float),
        DataType::Timestamp(..) => primitive!(TimestampMicrosecondType, text::timestamp),
        DataType::Utf8 => {
            let values = column.as_string::<i32>();
            Box::new(move |i, out| {
                if values.is_valid(i) {
                    quoted(values.value(i), out);
                }
            })
        }
        DataType::Struct(_) => {
            let values = column.as_struct();
            Box::new(move |i, out| {
                if values.is_valid(i) {
                    quoted(&histogram(values, i), out);
                }
            })
        }
        other => {
            let message = format!("a column of type {other} has no text in CSV");
            return Err(Error::new(ErrorKind::Internal, message));
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

/// A text, in double quotes where it needs them; an empty one does, or it would be missing.
fn quoted(text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() && !text.contains(['"', ',', '\r', '\n']) {
        return out.extend(text.as_bytes());
    }
    out.push(b'"');
    out.extend(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}
