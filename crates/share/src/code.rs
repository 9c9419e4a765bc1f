//! Code of asks (DR8): what a SELECT gives is handed to it, and what comes of it is the result.
//!
//! Code that fails takes nothing from anybody: its consumer gets the data that it was asked of, and is told (the rule of
//! Scibox), or an error where the group was made so.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sieva::{Batches, Error, ErrorKind, Query, Result};
use sieva_encode::Format;
use sieva_reduce::{DimsOf, Reduction};
use sieva_usercode::{Code, Element, Function, Input, Slice};

use crate::made::Made;
use crate::values;
use crate::watch::Limits;

/// Bytes of a module of an ask: records are small.
const MOST_MODULE: usize = 128 << 10;
/// What the text of an ask begins with that is a module.
const MODULE: &str = "wasm:";
/// Rows that are handed over at once.
const BATCH_ROWS: usize = 1 << 16;

/// Code as an ask keeps it: text as it is, a module as text.
///
/// # Errors
/// Those of [`Code::check`]; `invalid-value` for a module of more bytes than an ask may have.
pub(crate) fn kept(bytes: &[u8]) -> Result<String> {
    let code = Code::of_bytes(bytes)?;
    code.check()?;
    match code {
        Code::C(text) => Ok(text.to_owned()),
        Code::Wasm(module) if module.len() > MOST_MODULE => {
            let message = format!("a module of {} bytes: an ask has at most {MOST_MODULE}", module.len());
            Err(Error::new(ErrorKind::InvalidValue, message).hint("strip it: wasm-strip, or wasm-opt -Oz"))
        }
        Code::Wasm(module) => Ok(format!("{MODULE}{}", BASE64.encode(module))),
    }
}

/// The bytes of code that an ask keeps.
fn bytes_of(kept: &str) -> Result<Vec<u8>> {
    match kept.strip_prefix(MODULE) {
        None => Ok(kept.as_bytes().to_vec()),
        Some(text) => BASE64
            .decode(text)
            .map_err(|e| Error::new(ErrorKind::CorruptFile, format!("the module of an ask is damaged: {e}"))),
    }
}

/// The SELECT of a reduction, and the code that its values are handed to.
pub(crate) fn of_reduction(reduction: &Reduction, dims_of: DimsOf<'_>) -> Result<(String, Option<String>)> {
    match reduction {
        Reduction::Code(code) => {
            let whole = Reduction::whole(&code.variable).to_sql(dims_of)?;
            Ok((whole, Some(kept(code.source.as_bytes())?)))
        }
        other => Ok((other.to_sql(dims_of)?, None)),
    }
}

/// How code of others is run.
pub(crate) struct Running<'a> {
    /// Whether code that fails is an error.
    pub strict: bool,
    /// Where results are kept.
    pub spool: &'a Path,
    /// Of an ask.
    pub limits: &'a Limits,
}

impl Running<'_> {
    /// What comes of code that the result of a query is handed to.
    ///
    /// # Errors
    /// What the query says; where the group is strict what the code says.
    pub fn made(&self, query: Arc<Query>, code: &str, format: Format) -> Result<Made> {
        match self.ran(&query, code, format) {
            Err(e) if !self.strict && !is_of_data(&e) => {
                let why =
                    format!("the code failed, and these are the data that it was asked of: {}", e.message());
                let mut told = Error::new(e.kind(), why);
                if let Some(hint) = e.hint_text() {
                    told = told.hint(hint);
                }
                let mut data = Made::new(query, format, self.spool, self.limits)?;
                data.told = Some(told);
                Ok(data)
            }
            made => made,
        }
    }

    fn ran(&self, query: &Query, code: &str, format: Format) -> Result<Made> {
        let limits = self.of_code(query);
        let batches = query.batches(BATCH_ROWS)?;
        let inputs = inputs(&batches.schema())?;
        let bytes = bytes_of(code)?;
        let function = Function::compile(Code::of_bytes(&bytes)?, &inputs)?;
        let out = if function.is_whole() {
            // It has to know how many there are.
            let (all, rows) = waiting(batches, limits.memory)?;
            let mut run = function.start(rows, &limits)?;
            for batch in all {
                push(&mut run, &batch)?;
            }
            run.finish(row_length(query, rows))?
        } else {
            let mut run = function.start(0, &limits)?;
            for batch in batches {
                push(&mut run, &batch?)?;
            }
            run.finish(0)?
        };
        let names: Vec<String> = match function.selects() {
            true => inputs.into_iter().map(|input| input.name).collect(),
            false => vec![inputs.into_iter().next().map(|input| input.name).unwrap_or_default()],
        };
        let source = values::source(names, out)?;
        Made::new(Arc::new(values::all(&source, query)?), format, self.spool, self.limits)
    }

    /// What code may take: of what an ask may take the memory, and half of the time, so that there is time left to give the
    /// data where it takes longer. That half goes by the clock on the wall, as the time of the ask does: on a busy machine
    /// code of which the processor's time is not over yet would else leave none for the data.
    fn of_code(&self, query: &Query) -> sieva_usercode::Limits {
        let usual = sieva_usercode::Limits::default();
        let memory = self.limits.ask_memory.or(self.limits.memory).unwrap_or(u64::MAX);
        sieva_usercode::Limits {
            memory: usual.memory.min(memory),
            time: usual.time,
            elapsed: self.limits.time.map_or(usual.elapsed, |time| time / 2),
            output: usual.output.min(memory),
            cancel: query.cancel_flag(),
        }
    }
}

/// Whether it is not the code that failed.
fn is_of_data(e: &Error) -> bool {
    let kinds = [ErrorKind::Cancelled, ErrorKind::Io, ErrorKind::StaleSource, ErrorKind::FileNotFound];
    kinds.contains(&e.kind())
}

/// All of the data, and how many rows they are.
fn waiting(batches: Batches, most: u64) -> Result<(Vec<RecordBatch>, u64)> {
    let (mut all, mut size, mut rows) = (Vec::new(), 0_u64, 0_u64);
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        size = size.saturating_add(batch.get_array_memory_size() as u64);
        if size > most {
            let message = format!("the data of the code take more than {most} bytes");
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("ask for fewer values, or write a reduction: init, step, finish"));
        }
        all.push(batch);
    }
    Ok((all, rows))
}

/// How many values a row of the array has, where the result is all of one: else 0.
fn row_length(query: &Query, rows: u64) -> u64 {
    let space = query.rows();
    let all: u64 = space.iter().map(|(_, length)| *length).fold(1, u64::saturating_mul);
    match space.last() {
        Some((_, length)) if all == rows => *length,
        _ => 0,
    }
}

/// The columns as code sees them.
fn inputs(schema: &Schema) -> Result<Vec<Input>> {
    let input = |field: &Arc<arrow_schema::Field>| {
        let element = match field.data_type() {
            DataType::Boolean | DataType::UInt8 => Element::U8,
            DataType::Int8 => Element::I8,
            DataType::Int16 => Element::I16,
            DataType::UInt16 => Element::U16,
            DataType::Int32 => Element::I32,
            DataType::UInt32 => Element::U32,
            DataType::Int64 => Element::I64,
            DataType::UInt64 => Element::U64,
            DataType::Float32 => Element::F32,
            DataType::Float64 => Element::F64,
            other => {
                let message =
                    format!("the column '{}' is of type {other}, and code sees numbers", field.name());
                return Err(Error::new(ErrorKind::TypeMismatch, message)
                    .hint("leave it out, or ask for its numbers: raw(time), month(time)"));
            }
        };
        Ok(Input { name: field.name().clone(), element })
    };
    schema.fields().iter().map(input).collect()
}

/// The bytes of a column's values, and which of them are there.
type Column<'b> = (Cow<'b, [u8]>, Option<Vec<u8>>);

/// Hands a batch over.
fn push(run: &mut sieva_usercode::Run, batch: &RecordBatch) -> Result<()> {
    let columns: Vec<Column<'_>> =
        batch.columns().iter().map(|column| bytes(column.as_ref())).collect::<Result<_>>()?;
    let slices: Vec<Slice<'_>> =
        columns.iter().map(|(data, valid)| Slice { data, valid: valid.as_deref() }).collect();
    run.push(&slices)
}

/// The values of a column, and which of them are there.
fn bytes(column: &dyn Array) -> Result<Column<'_>> {
    let valid = column.nulls().map(|nulls| nulls.iter().map(u8::from).collect());
    macro_rules! values {
        ($type:ty) => {
            column.as_primitive_opt::<$type>().map(|of| Cow::Borrowed(of.values().inner().as_slice()))
        };
    }
    let bools = |of: &BooleanArray| Cow::Owned(of.values().iter().map(u8::from).collect());
    let data = match column.data_type() {
        DataType::Boolean => column.as_boolean_opt().map(bools),
        DataType::Int8 => values!(Int8Type),
        DataType::UInt8 => values!(UInt8Type),
        DataType::Int16 => values!(Int16Type),
        DataType::UInt16 => values!(UInt16Type),
        DataType::Int32 => values!(Int32Type),
        DataType::UInt32 => values!(UInt32Type),
        DataType::Int64 => values!(Int64Type),
        DataType::UInt64 => values!(UInt64Type),
        DataType::Float32 => values!(Float32Type),
        DataType::Float64 => values!(Float64Type),
        _ => None,
    };
    match data {
        Some(data) => Ok((data, valid)),
        None => Err(Error::new(ErrorKind::Internal, "a column of another type than its field")),
    }
}
