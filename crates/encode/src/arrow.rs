//! Arrow IPC: the file format, which can be mapped, of the batches of the result.

use std::io::Write;

use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use sieva::{Batches, Error, ErrorKind, Result};

use crate::spool::failed;

/// Writes all batches; gives the number of rows.
///
/// # Errors
/// Reading errors, and those of writing.
pub(crate) fn write(batches: Batches, out: &mut impl Write) -> Result<u64> {
    let mut file = FileWriter::try_new(out, &batches.schema()).map_err(of_arrow)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        file.write(&batch).map_err(of_arrow)?;
    }
    file.finish().map_err(of_arrow)?;
    Ok(rows)
}

fn of_arrow(e: ArrowError) -> Error {
    match e {
        ArrowError::IoError(_, e) => failed(&e),
        e => Error::new(ErrorKind::Internal, format!("the result could not be written as Arrow: {e}")),
    }
}
