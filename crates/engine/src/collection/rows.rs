//! Batches of several objects under one schema.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Field, Schema, SchemaRef};
use sieva_types::{Error, ErrorKind, Result};

/// The schema of one object's result for all: without the array that a column is of, which differs.
pub(super) fn common(schema: &Schema) -> SchemaRef {
    let field = |f: &Arc<Field>| {
        let kept: HashMap<String, String> =
            f.metadata().iter().filter(|(k, _)| *k != "array").map(|(k, v)| (k.clone(), v.clone())).collect();
        Field::clone(f).with_metadata(kept)
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// A batch of one object under the common schema.
///
/// # Errors
/// `type-mismatch` for a column of another type.
pub(super) fn conform(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| fit(column, field));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("a record batch could not be made: {e}")))
}

fn fit(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    // A key that an object lacks has no type of its own.
    if column.null_count() == column.len() {
        return Ok(new_null_array(field.data_type(), column.len()));
    }
    let name = field.name();
    let message = format!("'{name}' is {} here and {} in others", column.data_type(), field.data_type());
    Err(Error::new(ErrorKind::TypeMismatch, message)
        .hint(format!("convert it: float64({name}); or ask for the objects of one type only")))
}
