//! Whether a plan that came from elsewhere is of the arrays of a source.

use std::collections::BTreeSet;

use sieva_format::schema::Schema;
use sieva_plan::{Column, ColumnKind, Plan};
use sieva_types::Result;

use super::columns::{dimension, stored_type, type_of};
use crate::bind::{Meaning, Parts, RowSpace, resolve, stored_domain};

/// What keeps a plan from being of this schema's arrays, if something does: its columns are not those of its names, or
/// they do not line up as the plan has it.
///
/// # Errors
/// `unknown-array` and the like where its arrays are not there; `unaligned-dimensions` where they do not line up.
pub fn misfit(schema: &Schema, plan: &Plan, valid_range: bool, cross: bool) -> Result<Option<String>> {
    let scan = &plan.scan;
    let (mut arrays, mut dims) = (Vec::new(), Vec::new());
    for column in &scan.columns {
        if column.kind == ColumnKind::Position {
            dims.push(dimension(schema, &column.path)?);
            continue;
        }
        if column.kind.is_of_object() {
            return Ok(Some(format!("'{}' is of the objects of a collection", column.path)));
        }
        match resolve(schema, &column.path)? {
            Meaning::Array(i) if schema.arrays[i].path == column.path => {
                let domain = stored_domain(
                    &schema.arrays[i],
                    column.kind == ColumnKind::Stored,
                    valid_range && column.kind == ColumnKind::Value,
                )?;
                let here = type_of(stored_type(&domain));
                if here != column.value_type {
                    let (there, here) = (column.value_type.name(), here.name());
                    return Ok(Some(format!("'{}' is {there} there, and {here} here", column.path)));
                }
                arrays.push(i);
            }
            _ => return Ok(Some(format!("'{}' is something else here", column.path))),
        }
    }
    let cross = cross || scan.cross;
    let (rows, axes) = RowSpace::of(schema, &Parts { base: &[], arrays: &arrays, dims: &dims, cross })?;
    let path = |dim: usize| schema.dims[dim].path.as_str();
    let here: BTreeSet<&str> = rows.dims.iter().map(|&d| path(d)).collect();
    if here != scan.rows.iter().map(String::as_str).collect() {
        let (there, here) = (scan.rows.join(", "), here.into_iter().collect::<Vec<_>>().join(", "));
        return Ok(Some(format!("rows are ({there}) there, and ({here}) here")));
    }
    let mut own = axes.into_iter();
    for column in &scan.columns {
        let axes = match column.kind {
            ColumnKind::Position => {
                rows.axis(dimension(schema, &column.path)?).into_iter().collect::<Vec<_>>()
            }
            _ => own.next().unwrap_or_default(),
        };
        let here: Vec<&str> = axes.into_iter().map(|a| path(rows.dims[a])).collect();
        if here != column.dims {
            return Ok(Some(along(column, &here)));
        }
    }
    Ok(None)
}

fn along(column: &Column, here: &[&str]) -> String {
    format!("'{}' is along ({}) there, and ({}) here", column.path, column.dims.join(", "), here.join(", "))
}
