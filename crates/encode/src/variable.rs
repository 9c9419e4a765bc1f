//! Columns of a result as variables of a file: names, types, widths, fill values.

use std::collections::HashSet;

use sieva::{Attr, AttrValue, DType, Data, Number, Result, ResultColumns, RowField};

use crate::{attributes, fill};

/// ResultColumns whose texts are measured together.
const MEASURED_ROWS: u64 = 1 << 16;
/// The dimension of the rows.
pub(crate) const OBS: &str = "obs";

/// What a variable holds for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number of this type (never bool, float16 or text).
    Number(DType),
    /// A text of at most so many bytes of UTF-8, NULs behind it.
    Text(usize),
}

/// A variable of a file, one value for each row.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub name: String,
    pub kind: Kind,
    pub attrs: Vec<Attr>,
    /// What stands where there is no value; `None`: there is one in each row, or it is a text.
    pub fill: Option<Number>,
}

impl Variable {
    /// Bytes for each row.
    pub fn width(&self) -> usize {
        match self.kind {
            Kind::Number(dtype) => dtype.size(),
            Kind::Text(width) => width,
        }
    }
}

/// The variables of a result's columns, in their order. Texts are read, once, to know how long they are.
///
/// # Errors
/// Reading errors of texts.
pub(crate) fn variables(rows: &ResultColumns) -> Result<Vec<Variable>> {
    let mut taken = HashSet::from([OBS.to_string()]);
    let each = rows.fields().iter().enumerate();
    each.map(|(i, field)| variable(rows, i, field, &mut taken)).collect()
}

fn variable(
    rows: &ResultColumns,
    index: usize,
    field: &RowField,
    taken: &mut HashSet<String>,
) -> Result<Variable> {
    let name = safe_name(&field.name, taken);
    let mut attrs = attributes::of_field(rows.query(), field);
    let (kind, fill) = match field.dtype {
        DType::Str => {
            attrs.push(attributes::text("_Encoding", "utf-8"));
            (Kind::Text(text_width(rows, index)?), None)
        }
        DType::Bool => {
            attrs.extend(attributes::flag_attrs(DType::I8, vec![0, 1], "false true"));
            (Kind::Number(DType::I8), Some(Number::Int(-1)))
        }
        DType::F16 | DType::F32 => (Kind::Number(DType::F32), Some(Number::Float(f64::NAN))),
        DType::F64 => (Kind::Number(DType::F64), Some(Number::Float(f64::NAN))),
        dtype => {
            let fill = match field.unused {
                _ if !field.may_miss => None,
                None => fill::free(rows, index, dtype)?,
                unused => unused,
            };
            (Kind::Number(dtype), fill)
        }
    };
    if let (Some(fill), Kind::Number(dtype)) = (fill, kind) {
        let value = match fill {
            Number::Int(i) => AttrValue::Ints(dtype, vec![i]),
            Number::Float(f) => AttrValue::Floats(dtype, vec![f]),
        };
        attrs.push(("_FillValue".into(), value));
    }
    Ok(Variable { name, kind, attrs, fill })
}

/// A name that the formats allow and that is not taken yet: without `/` and control characters, beginning with a letter,
/// a digit or `_` (netCDF classic format specification, "name").
fn safe_name(name: &str, taken: &mut HashSet<String>) -> String {
    let plain: String = name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
    let plain = plain.trim();
    let is_start = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let plain = if plain.starts_with(is_start) { plain.to_string() } else { format!("_{plain}") };
    let mut candidate = plain.clone();
    let mut n = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{plain}_{n}");
        n += 1;
    }
    candidate
}

/// Bytes of the longest text of a column, at least 1.
fn text_width(rows: &ResultColumns, index: usize) -> Result<usize> {
    let (mut width, mut at) = (1, 0);
    while at < rows.len() {
        let end = rows.len().min(at + MEASURED_ROWS);
        if let Data::Str(texts) = rows.read(index, at..end, rows.query().threads())?.data {
            width = texts.iter().map(str::len).fold(width, usize::max);
        }
        at = end;
    }
    Ok(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_allowed_and_differ() {
        let mut taken = HashSet::from([OBS.to_string()]);
        let names = ["obs", "g/TEMP", "g_TEMP", "-x", "avg(TEMP * 2)", "höhe", " ", "a\nb"];
        let safe: Vec<String> = names.iter().map(|n| safe_name(n, &mut taken)).collect();
        assert_eq!(safe, ["obs_2", "g_TEMP", "g_TEMP_2", "_-x", "avg(TEMP * 2)", "höhe", "_", "a_b"]);
    }
}
