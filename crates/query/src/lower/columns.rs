//! The columns of a plan's scan: the row space, the arrays in use, and what each column is of them.

use sieva_format::schema::Schema;
use sieva_plan::{Column, ColumnKind, Scan, Type};
use sieva_types::Result;

use super::{Answer, LowerOptions, not_of_these};
use crate::bind::{BoundArray, RowSpace, Value, bound_array};
use crate::raw::StoredDomain;
use crate::values::{Scalar, Shape, ValueType, Vector};

/// The rows of a scan, its arrays in the order in which its columns name them, and what its columns are.
pub(super) fn of_scan(
    schema: &Schema,
    scan: &Scan,
    options: &LowerOptions<'_>,
) -> Result<(RowSpace, Vec<BoundArray>, Vec<Value>)> {
    let dims = scan.rows.iter().map(|path| dimension(schema, path)).collect::<Result<Vec<_>>>()?;
    let mut named = Vec::new();
    for column in scan.columns.iter().filter(|c| c.kind == ColumnKind::Position) {
        let [along] = axes(scan, column)[..] else {
            return Err(not_of_these(format!(
                "positions along '{}' are along {:?}",
                column.path, column.dims
            )));
        };
        named.push((dimension(schema, &column.path)?, dims[along]));
    }
    let rows = RowSpace::given(schema, dims, named)?;
    let mut arrays: Vec<BoundArray> = Vec::new();
    let mut columns = Vec::with_capacity(scan.columns.len());
    let mut constants = options.constants.iter();
    for column in &scan.columns {
        let raw = match column.kind {
            ColumnKind::Position => {
                columns.push(Value::Position { dim: dimension(schema, &column.path)? });
                continue;
            }
            ColumnKind::Key | ColumnKind::Object | ColumnKind::Source => {
                let known = constants.next().ok_or_else(|| {
                    not_of_these(format!("'{}' is of the objects of a collection", column.path))
                })?;
                columns.push(constant(known)?);
                continue;
            }
            ColumnKind::Stored => true,
            ColumnKind::Value => false,
        };
        let array = array(schema, scan, column, &rows, options.valid_range, &mut arrays)?;
        let own = &arrays[array];
        let domain = if raw { &own.raw_domain } else { &own.domain };
        let (wanted, found) = (column.value_type, type_of(stored_type(domain)));
        if wanted != found && wanted != Type::Any {
            let (wanted, found) = (wanted.name(), found.name());
            return Err(not_of_these(format!("'{}' is {wanted} there, and {found} here", column.path)));
        }
        columns.push(Value::Array { array, raw });
    }
    Ok((rows, arrays, columns))
}

/// A column that is one value for all rows.
fn constant(known: &Answer) -> Result<Value> {
    Ok(match known {
        Answer::Known(Scalar::Null, Some(t)) => Value::Constant(Vector::missing(*t, Shape::Constant)),
        Answer::Known(value, _) => Value::Constant(Vector::constant(value)?),
        Answer::Unknown(Some(t)) => Value::Unknown(*t),
        Answer::Unknown(None) => Value::Constant(Vector::constant(&Scalar::Null)?),
    })
}

/// The number of a column's array among those in use, added if need be.
fn array(
    schema: &Schema,
    scan: &Scan,
    column: &Column,
    rows: &RowSpace,
    valid_range: bool,
    arrays: &mut Vec<BoundArray>,
) -> Result<usize> {
    let path = &column.path;
    let Some(index) = schema.array(path) else {
        return Err(not_of_these(format!("there is no array '{path}'")));
    };
    let axes = axes(scan, column);
    let own = schema.arrays[index].dims.iter().map(|&d| schema.dims[d].len);
    if !own.eq(axes.iter().map(|&a| rows.shape[a])) {
        let message = format!("'{path}' is along ({}) there, and not here", column.dims.join(", "));
        return Err(not_of_these(message));
    }
    match arrays.iter().position(|a| a.index == index) {
        Some(known) if arrays[known].axes == axes => Ok(known),
        Some(_) => Err(not_of_these(format!("'{path}' lies along other dimensions as it is stored"))),
        None => {
            arrays.push(BoundArray { axes, ..bound_array(schema, index, valid_range)? });
            Ok(arrays.len() - 1)
        }
    }
}

/// The rows' axes of a column's dimensions.
fn axes(scan: &Scan, column: &Column) -> Vec<usize> {
    column.dims.iter().filter_map(|d| scan.rows.iter().position(|r| r == d)).collect()
}

pub(super) fn dimension(schema: &Schema, path: &str) -> Result<usize> {
    let found = schema.dims.iter().position(|d| d.path == path);
    found.ok_or_else(|| not_of_these(format!("there is no dimension '{path}'")))
}

/// The type that an array's values have in expressions.
pub(super) fn stored_type(domain: &StoredDomain) -> ValueType {
    if domain.packing().is_some() { ValueType::F64 } else { ValueType::of(domain.dtype()) }
}

/// The same, as plans tell it.
pub(crate) fn type_of(value_type: ValueType) -> Type {
    match value_type {
        ValueType::Bool => Type::Bool,
        ValueType::I64 => Type::Int64,
        ValueType::U64 => Type::UInt64,
        ValueType::F64 => Type::Float64,
        ValueType::Str => Type::Text,
    }
}
