//! Tables: one array per column (FITS standard 4.0, sections 7.2 and 7.3).
//!
//! All columns of a table share its dimension of rows. What a cell holds besides adds dimensions: the repeat count,
//! or those of TDIM in reversed order.

use std::sync::Arc;

use sieva_format::decoding::Decoding;
use sieva_format::layout::Placement;
use sieva_format::schema::{Attr, AttrValue, GroupInfo, Naming, StorageInfo};
use sieva_types::DType;

use crate::ascii::{Format, MAX_TEXT};
use crate::blocks::{Blocks, Transform, rows_per_block};
use crate::builder::{Builder, Fetch, NewArray, Planned, chunked_layout, numpy_name, plain_layout};
use crate::card::Value;
use crate::header::{Header, is_structural};
use crate::names::{Unique, sanitised};
use crate::scaling::{Given, scaling};
use crate::scan::Hdu;
use crate::tform::{Tform, tdim};

/// Keywords that describe a column.
const COLUMN_KEYWORDS: [&str; 16] = [
    "TTYPE", "TFORM", "TUNIT", "TNULL", "TSCAL", "TZERO", "TDISP", "TDIM", "TBCOL", "TDMIN", "TDMAX",
    "TLMIN", "TLMAX", "TCOMM", "TUCD", "TCTYP",
];
/// Columns of a table: TFIELDS goes up to this.
const MAX_FIELDS: u64 = 999;

/// A column as its keywords tell it.
struct Column {
    /// Offset of its first byte in a row.
    offset: u64,
    /// Bytes of it in a row that are read.
    item: u64,
    /// The dimensions of a cell, outermost first.
    cell: Vec<u64>,
    /// Bytes of an element.
    element_size: usize,
    /// The type that is stored.
    stored: DType,
    /// What elements mean.
    decoding: Decoding,
    /// What is done to items.
    transform: Transform,
}

/// A table HDU while its columns are added.
struct Table<'a> {
    hdu: &'a Hdu,
    group: String,
    row_bytes: u64,
    rows: u64,
    row_dim: usize,
}

/// Adds the columns of a table; `is_text` for ASCII tables.
pub(crate) fn add_table(builder: &mut Builder, hdu: &Hdu, group: String, is_text: bool) {
    let header = &hdu.header;
    let [row_bytes, rows] = hdu.axes[..] else {
        builder.leave_out(group, format!("a table of {} axes, expected 2", hdu.axes.len()));
        return;
    };
    let fields = header.int("TFIELDS").and_then(|n| u64::try_from(n).ok()).filter(|&n| n <= MAX_FIELDS);
    let Some(fields) = fields else {
        builder.leave_out(group, format!("a table whose TFIELDS is {:?}", header.get("TFIELDS")));
        return;
    };
    let attrs = header.attrs(|name| !is_structural(name) && column_of(name, fields).is_none());
    builder.schema.groups.push(GroupInfo { path: group.clone(), attrs });
    let (names, attrs) = names_and_attrs(header, fields);
    let mut row = String::from("row");
    while names.contains(&row) {
        row.push('_');
    }
    let row_dim = builder.dim(&group, row, rows, Naming::File);
    let mut table = Table { hdu, group, row_bytes, rows, row_dim };
    let mut offset = 0;
    for (n, (name, attrs)) in (1..=fields).zip(names.into_iter().zip(attrs)) {
        let column = if is_text {
            text_column(header, n, row_bytes)
        } else {
            let before = offset;
            match next_offset(header, n, &mut offset, row_bytes) {
                Ok(form) => binary_column(header, n, before, &form),
                Err(reason) => Err(reason),
            }
        };
        table.add(builder, &name, attrs, column);
    }
}

/// The column that a keyword describes.
fn column_of(keyword: &str, fields: u64) -> Option<(&str, u64)> {
    let stem = keyword.trim_end_matches(|c: char| c.is_ascii_digit());
    let n: u64 = keyword[stem.len()..].parse().ok()?;
    (COLUMN_KEYWORDS.contains(&stem) && (1..=fields).contains(&n)).then_some((stem, n))
}

/// The names of all columns, each once, and their attributes.
fn names_and_attrs(header: &Header, fields: u64) -> (Vec<String>, Vec<Vec<Attr>>) {
    let mut attrs = vec![Vec::new(); fields as usize];
    for (keyword, value) in header.keywords() {
        let Some((stem, n)) = column_of(keyword, fields) else { continue };
        let of = &mut attrs[n as usize - 1];
        match value {
            _ if matches!(stem, "TTYPE" | "TFORM" | "TDIM" | "TBCOL") => {}
            Value::Text(unit) if stem == "TUNIT" => of.push(("units".into(), AttrValue::Text(unit.clone()))),
            _ => of.push((stem.into(), value.to_attr())),
        }
    }
    let mut unique = Unique::default();
    let names = (1..=fields).map(|n| {
        let name = header.text(&format!("TTYPE{n}")).map(sanitised).filter(|name| !name.is_empty());
        unique.name(name.unwrap_or_else(|| format!("col{n}")), 2)
    });
    (names.collect(), attrs)
}

/// The form of binary column `n`; moves `offset` behind it.
fn next_offset(header: &Header, n: u64, offset: &mut u64, row_bytes: u64) -> Result<Tform, String> {
    let text = header.text(&format!("TFORM{n}")).unwrap_or_default();
    let Some(form) = Tform::parse(text).filter(|_| *offset <= row_bytes) else {
        // Where this column ends, and so where all others begin, is unknown.
        *offset = u64::MAX;
        return Err(format!(
            "TFORM{n} is '{text}', which is no form of a column; so are those after such a one"
        ));
    };
    *offset += form.bytes();
    if *offset > row_bytes {
        *offset = u64::MAX;
        return Err(format!("the column ends beyond the row of {row_bytes} bytes"));
    }
    Ok(form)
}

fn given(header: &Header, n: u64) -> Given {
    let float = |stem: &str| header.float(&format!("{stem}{n}"));
    Given { scale: float("TSCAL"), zero: float("TZERO"), blank: header.int(&format!("TNULL{n}")) }
}

/// A column of a binary table, or why there is none.
fn binary_column(header: &Header, n: u64, offset: u64, form: &Tform) -> Result<Column, String> {
    let Some(stored) = form.dtype() else {
        return Err(match form.code {
            'P' | 'Q' => "a column of arrays of different lengths, which is not supported".into(),
            _ => "a column of complex numbers, which is not supported".into(),
        });
    };
    let dims = header.text(&format!("TDIM{n}")).and_then(|text| tdim(text, form.repeat));
    let mut column = Column {
        offset,
        item: form.bytes(),
        cell: Vec::new(),
        element_size: stored.size(),
        stored,
        decoding: Decoding::none(stored),
        transform: Transform::Keep,
    };
    if stored == DType::Str {
        let lengths = dims.or_else(|| form.text_width().map(|w| vec![w, form.repeat / w]));
        let lengths = lengths.unwrap_or_else(|| vec![form.repeat]);
        if lengths[0] > MAX_TEXT {
            return Err(format!("texts of {} characters, at most {MAX_TEXT} can be read", lengths[0]));
        }
        column.element_size = lengths[0] as usize;
        column.cell = lengths[1..].iter().rev().copied().collect();
        column.item = lengths.iter().product();
        return Ok(column);
    }
    column.cell = match dims {
        Some(lengths) => lengths.into_iter().rev().collect(),
        None if form.repeat == 1 => Vec::new(),
        None => vec![form.repeat],
    };
    let elements: u64 = column.cell.iter().product();
    match form.code {
        'X' => column.transform = Transform::Bits(elements as usize),
        'L' => (column.transform, column.item) = (Transform::Logical, elements),
        _ => {
            let scaled = scaling(stored, given(header, n));
            column.item = elements * stored.size() as u64;
            if scaled.flip_sign {
                column.transform = Transform::FlipSign(stored.size());
            }
            column.decoding = scaled.decoding;
        }
    }
    Ok(column)
}

/// A column of an ASCII table, or why there is none.
fn text_column(header: &Header, n: u64, row_bytes: u64) -> Result<Column, String> {
    let text = header.text(&format!("TFORM{n}")).unwrap_or_default();
    let null = header.text(&format!("TNULL{n}"));
    let format =
        Format::parse(text, null).ok_or_else(|| format!("TFORM{n} is '{text}', which is no form"))?;
    let start = header.int(&format!("TBCOL{n}")).and_then(|b| u64::try_from(b).ok()).filter(|&b| b > 0);
    let offset = start.ok_or_else(|| format!("TBCOL{n} does not say where the column begins"))? - 1;
    let item = format.width();
    if offset.checked_add(item).is_none_or(|end| end > row_bytes) {
        return Err(format!("the column ends beyond the row of {row_bytes} characters"));
    }
    let column = |stored: DType, element_size, decoding, transform| Column {
        offset,
        item,
        cell: Vec::new(),
        element_size,
        stored,
        decoding,
        transform,
    };
    Ok(match format {
        Format::Text(width) => {
            column(DType::Str, width as usize, Decoding::none(DType::Str), Transform::Keep)
        }
        Format::Number(_, field) => {
            column(field.dtype(), 8, field.decoding(given(header, n)), Transform::Number(field))
        }
    })
}

impl Table<'_> {
    fn add(&mut self, builder: &mut Builder, name: &str, attrs: Vec<Attr>, column: Result<Column, String>) {
        let path = format!("{}/{name}", self.group);
        let column = match column {
            Ok(column) => column,
            Err(reason) => return builder.leave_out(path, reason),
        };
        if !builder.has_room() {
            return;
        }
        let mut dims = vec![self.row_dim];
        dims.extend(builder.phony_dims(&self.group, &column.cell));
        let mut shape = vec![self.rows];
        shape.extend(&column.cell);
        let dtype = column.decoding.stored;
        let layout = plain_layout(dtype, column.element_size, shape);
        let start = self.hdu.data_start.saturating_add(column.offset);
        let is_empty = layout.extent.contains(&0) || column.element_size == 0;
        let storage = StorageInfo {
            layout: "record",
            chunk_shape: None,
            filters: Vec::new(),
            stored_type: numpy_name(column.stored, column.element_size),
            stored_bytes: Some(self.rows.saturating_mul(column.item)),
            offset: Some(start),
        };
        let is_whole = column.item == self.row_bytes && matches!(column.transform, Transform::Keep);
        let (layout, fetch) = if is_empty {
            (layout, Fetch::Direct)
        } else if is_whole {
            (
                sieva_format::layout::Layout { placement: Placement::Direct { offset: start }, ..layout },
                Fetch::Direct,
            )
        } else {
            let per_block = rows_per_block(self.row_bytes, self.rows);
            let mut chunk_shape = layout.extent.clone();
            chunk_shape[0] = per_block;
            let layout = chunked_layout(layout, chunk_shape);
            let blocks = Blocks {
                start,
                stride: self.row_bytes,
                item: column.item,
                rows: self.rows,
                rows_per_block: per_block,
                block_bytes: layout.chunk_bytes,
                transform: column.transform,
            };
            (layout, Fetch::Blocks(blocks))
        };
        let planned = Planned { layout: Ok(Arc::new(layout)), fetch };
        let alias = format!("hdu{}/{name}", self.hdu.number);
        builder.add(NewArray { path, alias, dims, attrs, decoding: column.decoding, storage, planned });
    }
}

/// Whether a keyword describes a column of any table.
pub(crate) fn is_column_keyword(name: &str) -> bool {
    column_of(name, MAX_FIELDS).is_some()
}
