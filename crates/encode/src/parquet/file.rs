//! Row groups, one after the other.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Schema;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use sieva::{Error, ErrorKind, Result};

use super::columns;
use super::types::schema_of;
use crate::writer::{Out, RowSink, of_arrow};

/// Rows of a row group at least, unless the result or memory ends first.
const GROUP_ROWS: usize = 1 << 20;
/// Bytes in memory that end a row group.
const GROUP_BYTES: usize = 64 << 20;
/// Where readers of Arrow look for the schema that the columns had, with what is said of them (units, names).
const ARROW_SCHEMA: &str = "ARROW:schema";

struct Groups<'a> {
    file: SerializedFileWriter<Box<dyn Write + Send + 'a>>,
    /// Rows of the group that is not written yet.
    held: Vec<RecordBatch>,
}

/// Begins a file.
pub(super) fn begin<'a>(schema: &Schema, out: Out<'a>) -> Result<Box<dyn RowSink + 'a>> {
    let columns = schema_of(schema)?;
    // The fastest level: results are sent while they are made.
    let level = ZstdLevel::try_new(1).map_err(of_parquet)?;
    let properties = WriterProperties::builder()
        .set_created_by(format!("sieva {}", sieva::VERSION))
        .set_key_value_metadata(Some(vec![KeyValue::new(ARROW_SCHEMA.into(), arrow_schema(schema)?)]))
        .set_compression(Compression::ZSTD(level))
        .build();
    let file = SerializedFileWriter::new(out.to, columns, Arc::new(properties)).map_err(of_parquet)?;
    Ok(Box::new(Groups { file, held: Vec::new() }))
}

/// The message that begins an Arrow stream, in base64, as Arrow's own libraries write it into Parquet.
fn arrow_schema(schema: &Schema) -> Result<String> {
    let mut bytes = Vec::new();
    StreamWriter::try_new(&mut bytes, schema).map_err(of_arrow)?;
    Ok(STANDARD.encode(bytes))
}

impl Groups<'_> {
    fn group(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group().map_err(of_parquet)?;
        let fields = self.held.first().map_or(0, RecordBatch::num_columns);
        for field in 0..fields {
            columns::write(&mut group, self.held.iter().map(|batch| batch.column(field)))?;
        }
        group.close().map_err(of_parquet)?;
        self.held.clear();
        Ok(())
    }
}

impl RowSink for Groups<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.held.push(batch.clone());
        let is_full = self.held.iter().map(RecordBatch::num_rows).sum::<usize>() >= GROUP_ROWS
            || self.held.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() >= GROUP_BYTES;
        if is_full { self.group() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>, _stats: Option<&str>) -> Result<()> {
        self.group()?;
        self.file.close().map(|_| ()).map_err(of_parquet)
    }
}

pub(super) fn of_parquet(e: ParquetError) -> Error {
    match e {
        ParquetError::External(e) => Error::new(ErrorKind::Io, format!("cannot write the result: {e}")),
        e => Error::new(ErrorKind::Internal, format!("the result could not be written as Parquet: {e}")),
    }
}
