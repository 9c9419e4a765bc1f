//! Columns as Parquet declares them. All may miss values.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{Type, TypePtr};
use sieva::{Error, ErrorKind, Result};

use super::file::of_parquet;

/// The schema of a file.
///
/// # Errors
/// `unsupported` for a type that no result has.
pub(super) fn schema_of(schema: &Schema) -> Result<TypePtr> {
    let fields = schema.fields().iter().map(|f| column(f)).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("schema").with_fields(fields).build().map(Arc::new).map_err(of_parquet)
}

fn column(field: &Field) -> Result<TypePtr> {
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
        DataType::Utf8 | DataType::LargeUtf8 => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        DataType::Timestamp(..) => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::MICROS))),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|f| column(f)).collect::<Result<Vec<_>>>()?;
            return group(field.name(), Repetition::OPTIONAL, None, fields);
        }
        DataType::List(item) => return list(field.name(), item),
        other => {
            let message = format!("column '{}' of Arrow's type {other} has no type in Parquet", field.name());
            return Err(Error::new(ErrorKind::Unsupported, message).hint("take it as Arrow"));
        }
    };
    let built = Type::primitive_type_builder(field.name(), physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build();
    built.map(Arc::new).map_err(of_parquet)
}

/// A list in its three levels (Parquet format, "LogicalTypes.md", section "Lists").
fn list(name: &str, item: &Field) -> Result<TypePtr> {
    let element = column(&item.clone().with_name("element"))?;
    let repeated = group("list", Repetition::REPEATED, None, vec![element])?;
    group(name, Repetition::OPTIONAL, Some(LogicalType::List), vec![repeated])
}

fn group(
    name: &str,
    repetition: Repetition,
    logical: Option<LogicalType>,
    fields: Vec<TypePtr>,
) -> Result<TypePtr> {
    let built = Type::group_type_builder(name)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .with_fields(fields)
        .build();
    built.map(Arc::new).map_err(of_parquet)
}
