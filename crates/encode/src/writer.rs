//! What a format of results is: its name, and how its bytes are made.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use sieva::{Attr, Error, ErrorKind, Result};

use crate::file_layout::FileLayout;
use crate::spool::failed;
use crate::variable::Variable;

/// A format of results. A new one is a file with a type that implements this, and a line of `WRITERS` in `format.rs`.
pub(crate) trait ResultWriter: Sync {
    /// Its name, in lower case.
    fn name(&self) -> &'static str;

    /// What names of its files end with, without the point; the usual one first.
    fn suffixes(&self) -> &'static [&'static str];

    /// How its bytes are made.
    fn making(&self) -> Making;

    /// Whether it can be written to a pipe, where nothing that was written can be changed.
    fn is_for_pipes(&self) -> bool {
        true
    }
}

/// The way from a result to bytes.
pub(crate) enum Making {
    /// The place of each value is known before one is read, so any part can be made at any time.
    LaidOut {
        /// The layout of a file of so many rows, with these attributes.
        plan: fn(&[Variable], u64, &[Attr]) -> Result<FileLayout>,
        /// Whether a deflated file names its dimension as netCDF-4 does.
        has_dimension: bool,
    },
    /// Row by row, from the first to the last.
    Rows(for<'a> fn(&Schema, Out<'a>) -> Result<Box<dyn RowSink + 'a>>),
}

/// Where the bytes of a format go that is written row by row.
pub struct Out<'a> {
    /// What takes them.
    pub to: Box<dyn Write + Send + 'a>,
    /// Whether it is a pipe. Arrow has a form of its own for those.
    pub is_pipe: bool,
}

/// A file that takes rows, batch after batch. It holds no more of them than its format asks for: Parquet a row group,
/// others a batch.
pub trait RowSink: Send {
    /// Writes the rows of a batch, which has the columns that the sink was made for.
    ///
    /// # Errors
    /// Those of writing; `internal-error` for a batch of other columns.
    fn batch(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes what comes behind the last row, and hands all on. `stats`: a JSON object of what the query did, for JSON.
    ///
    /// # Errors
    /// Those of writing.
    fn finish(self: Box<Self>, stats: Option<&str>) -> Result<()>;
}

/// The error of Arrow's library, or that of the file beneath it.
pub(crate) fn of_arrow(e: ArrowError) -> Error {
    match e {
        ArrowError::IoError(_, e) => failed(&e),
        e => Error::new(ErrorKind::Internal, format!("the result could not be written as Arrow: {e}")),
    }
}
