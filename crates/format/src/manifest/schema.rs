//! A schema as bytes, and back.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use sieva_types::wire::{Reader, Writer};
use sieva_types::{Error, Result};

use crate::decoding::{Decoding, Number};
use crate::schema::{ArrayInfo, Attr, AttrValue, Dimension, GroupInfo, Naming, Schema, StorageInfo};

/// Writes all of `schema`; what `layout` writes of an array stands beside it. Groups, dimensions and arrays are behind
/// their lengths: a reader of few passes over the others.
pub fn write(w: &mut Writer, schema: &Schema, mut layout: impl FnMut(&mut Writer, usize)) {
    w.text(&schema.format);
    w.list(&schema.groups, |w, group| {
        w.text(&group.path);
        w.framed(|w| write_attrs(w, &group.attrs));
    });
    w.list(&schema.dims, |w, dim| w.framed(|w| write_dimension(w, dim)));
    let mut number = 0..schema.arrays.len();
    w.list(&schema.arrays, |w, array| {
        w.text(&array.path);
        w.framed(|w| write_array(w, array));
        w.framed(|w| layout(w, number.next().unwrap_or_default()));
    });
    w.list(&schema.aliases, |w, (path, array)| {
        w.text(path);
        w.uint(*array as u64);
    });
    w.list(&schema.left_out, |w, (path, e)| {
        w.text(path);
        w.error(e);
    });
    w.list(&schema.warnings, |w, text| w.text(text));
}

/// Reads a schema, and by `layout` what stands beside each array; `check::schema` says whether it makes sense.
pub fn read<L>(
    r: &mut Reader<'_>,
    mut layout: impl FnMut(&mut Reader<'_>, &ArrayInfo) -> Result<L>,
) -> Result<(Schema, Vec<L>)> {
    let format = r.text()?;
    let groups = r.list(|r| Ok(GroupInfo { path: r.text()?, attrs: r.framed(read_attrs)? }))?;
    let dims = r.list(|r| r.framed(read_dimension))?;
    let arrays = r.list(|r| {
        let path = r.text()?;
        let array = r.framed(|r| read_array(r, path))?;
        let layout = r.framed(|r| layout(r, &array))?;
        Ok((array, layout))
    })?;
    let (arrays, layouts) = arrays.into_iter().unzip();
    let aliases = r.list(|r| Ok((r.text()?, r.index()?)))?;
    let (left_out, warnings) = (read_left_out(r)?, r.list(Reader::text)?);
    Ok((Schema { format, groups, dims, arrays, aliases, left_out, warnings }, layouts))
}

/// As [`read`], of version 1: nothing is behind its length, and layouts stand behind the schema.
pub fn read_unframed<L>(
    r: &mut Reader<'_>,
    mut layout: impl FnMut(&mut Reader<'_>, &ArrayInfo) -> Result<L>,
) -> Result<(Schema, Vec<L>)> {
    let schema = Schema {
        format: r.text()?,
        groups: r.list(|r| Ok(GroupInfo { path: r.text()?, attrs: read_attrs(r)? }))?,
        dims: r.list(read_dimension)?,
        arrays: r.list(|r| {
            let path = r.text()?;
            read_array(r, path)
        })?,
        aliases: r.list(|r| Ok((r.text()?, r.index()?)))?,
        left_out: read_left_out(r)?,
        warnings: r.list(Reader::text)?,
    };
    let mut arrays = schema.arrays.iter();
    let layouts = r.list(|r| match arrays.next() {
        Some(array) => layout(r, array),
        None => Err(r.damaged("more layouts than arrays")),
    })?;
    if layouts.len() < schema.arrays.len() {
        return Err(r.damaged("fewer layouts than arrays"));
    }
    Ok((schema, layouts))
}

pub(super) fn read_left_out(r: &mut Reader<'_>) -> Result<Vec<(String, Error)>> {
    r.list(|r| Ok((r.text()?, r.error()?)))
}

fn write_dimension(w: &mut Writer, dim: &Dimension) {
    w.text(&dim.name);
    w.text(&dim.path);
    w.uint(dim.len);
    w.byte(u8::from(dim.unlimited) | (dim.naming as u8) << 1);
    w.option(dim.coordinate, |w, c| w.uint(c as u64));
}

pub(super) fn read_dimension(r: &mut Reader<'_>) -> Result<Dimension> {
    let (name, path, len, flags) = (r.text()?, r.text()?, r.uint()?, r.byte()?);
    let naming = Naming::from_code(flags >> 1).ok_or_else(|| r.damaged("a dimension of an unknown kind"))?;
    let coordinate = r.option(Reader::index)?;
    Ok(Dimension { name, path, len, unlimited: flags & 1 != 0, naming, coordinate })
}

fn write_array(w: &mut Writer, array: &ArrayInfo) {
    w.dtype(array.dtype);
    w.indices(&array.dims);
    w.uints(&array.shape);
    write_attrs(w, &array.attrs);
    w.list(&array.enum_names, |w, (value, name)| {
        w.int(*value);
        w.text(name);
    });
    write_decoding(w, &array.decoding);
    write_storage(w, &array.storage);
    w.indices(&array.coordinates);
}

pub(super) fn read_array(r: &mut Reader<'_>, path: String) -> Result<ArrayInfo> {
    Ok(ArrayInfo {
        path,
        dtype: r.dtype()?,
        dims: r.indices()?,
        shape: r.uints()?,
        attrs: read_attrs(r)?,
        enum_names: r.list(|r| Ok((r.int()?, r.text()?)))?,
        decoding: read_decoding(r)?,
        storage: read_storage(r)?,
        coordinates: r.indices()?,
    })
}

fn write_attrs(w: &mut Writer, attrs: &[Attr]) {
    w.list(attrs, |w, (name, value)| {
        w.text(name);
        match value {
            AttrValue::Text(text) => {
                w.byte(0);
                w.text(text);
            }
            AttrValue::Texts(texts) => {
                w.byte(1);
                w.list(texts, |w, text| w.text(text));
            }
            AttrValue::Ints(dtype, values) => {
                w.byte(2);
                w.dtype(*dtype);
                w.list(values, |w, &v| w.int(v));
            }
            AttrValue::Floats(dtype, values) => {
                w.byte(3);
                w.dtype(*dtype);
                w.list(values, |w, &v| w.float(v));
            }
            AttrValue::Other(text) => {
                w.byte(4);
                w.text(text);
            }
        }
    });
}

pub(super) fn read_attrs(r: &mut Reader<'_>) -> Result<Vec<Attr>> {
    r.list(|r| {
        let name = r.text()?;
        let value = match r.byte()? {
            0 => AttrValue::Text(r.text()?),
            1 => AttrValue::Texts(r.list(Reader::text)?),
            2 => AttrValue::Ints(r.dtype()?, r.list(Reader::int)?),
            3 => AttrValue::Floats(r.dtype()?, r.list(Reader::float)?),
            4 => AttrValue::Other(r.text()?),
            other => return Err(r.damaged(format!("{other} is no kind of attribute"))),
        };
        Ok((name, value))
    })
}

fn write_decoding(w: &mut Writer, decoding: &Decoding) {
    w.dtype(decoding.stored);
    w.option(decoding.packing, |w, (scale, offset)| {
        w.float(scale);
        w.float(offset);
    });
    w.list(&decoding.missing, |w, &n| write_number(w, n));
    w.option(decoding.valid.0, write_number);
    w.option(decoding.valid.1, write_number);
}

fn read_decoding(r: &mut Reader<'_>) -> Result<Decoding> {
    Ok(Decoding {
        stored: r.dtype()?,
        packing: r.option(|r| Ok((r.float()?, r.float()?)))?,
        missing: r.list(read_number)?,
        valid: (r.option(read_number)?, r.option(read_number)?),
    })
}

fn write_number(w: &mut Writer, number: Number) {
    match number {
        Number::Int(i) => {
            w.byte(0);
            w.int(i);
        }
        Number::Float(f) => {
            w.byte(1);
            w.float(f);
        }
    }
}

fn read_number(r: &mut Reader<'_>) -> Result<Number> {
    match r.byte()? {
        0 => Ok(Number::Int(r.int()?)),
        1 => Ok(Number::Float(r.float()?)),
        other => Err(r.damaged(format!("{other} is no kind of number"))),
    }
}

fn write_storage(w: &mut Writer, storage: &StorageInfo) {
    w.text(storage.layout);
    w.option(storage.chunk_shape.as_deref(), Writer::uints);
    w.list(&storage.filters, |w, name| w.text(name));
    w.text(&storage.stored_type);
    w.option(storage.stored_bytes, Writer::uint);
    w.option(storage.offset, Writer::uint);
}

fn read_storage(r: &mut Reader<'_>) -> Result<StorageInfo> {
    Ok(StorageInfo {
        layout: layout_name(&r.text()?),
        chunk_shape: r.option(Reader::uints)?,
        filters: r.list(Reader::text)?,
        stored_type: r.text()?,
        stored_bytes: r.option(Reader::uint)?,
        offset: r.option(Reader::uint)?,
    })
}

/// The names that readers use most.
const LAYOUTS: [&str; 7] = ["", "contiguous", "chunked", "compact", "record", "virtual", "external"];
/// How many other ones are kept for the life of the process, and how long they may be.
const MAX_OTHERS: usize = 64;
const MAX_OTHER_LEN: usize = 32;

/// A layout's name for ever: schemas hold static ones. Others than the usual are kept once each, up to a limit that
/// no reader of ours comes near; what is beyond (a hostile manifest) is called `other`.
fn layout_name(name: &str) -> &'static str {
    if let Some(known) = LAYOUTS.into_iter().find(|&l| l == name) {
        return known;
    }
    static OTHERS: OnceLock<Mutex<BTreeSet<&'static str>>> = OnceLock::new();
    let others = OTHERS.get_or_init(Mutex::default);
    let mut others = others.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = others.get(name) {
        return known;
    }
    if others.len() >= MAX_OTHERS || name.len() > MAX_OTHER_LEN {
        return "other";
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    others.insert(kept);
    kept
}
