//! An array in the words of Zarr v2: `.zarray` and `.zattrs`.
//!
//! Specification: Zarr storage specification, version 2; attributes as xarray reads them.

use std::fmt::Write;

use sieva_types::{DType, Endian};

use super::{base64, json};
use crate::decoding::{Decoding, Number};
use crate::filters::Filter;
use crate::layout::Layout;
use crate::schema::{ArrayInfo, Attr, AttrValue, Schema};

/// Attributes by which libraries keep house; they say nothing of the data.
const HOUSEKEEPING: [&str; 9] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_nc3_strict",
    "_ARRAY_DIMENSIONS",
];

/// Attributes of CF that say what stored values mean.
const MEANING: [&str; 5] = ["_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"];

/// The stored type as numpy writes it, of elements of `size` bytes.
pub fn dtype(layout: &Layout, size: u64) -> String {
    let order = if layout.endian == Endian::Big { '>' } else { '<' };
    match layout.dtype {
        DType::Bool => "|b1".into(),
        DType::I8 => "|i1".into(),
        DType::U8 => "|u1".into(),
        DType::Str => format!("|S{size}"),
        DType::I16 | DType::I32 | DType::I64 => format!("{order}i{size}"),
        DType::U16 | DType::U32 | DType::U64 => format!("{order}u{size}"),
        DType::F16 | DType::F32 | DType::F64 => format!("{order}f{size}"),
    }
}

/// A filter as numcodecs configures it; `None` where it has none that reads the same bytes.
pub fn codec(filter: &Filter) -> Option<String> {
    Some(match filter {
        Filter::Deflate => r#"{"id":"zlib","level":1}"#.into(),
        Filter::Shuffle { element_size } => format!(r#"{{"id":"shuffle","elementsize":{element_size}}}"#),
        Filter::Fletcher32 => r#"{"id":"fletcher32"}"#.into(),
        Filter::Zstd => r#"{"id":"zstd","level":3}"#.into(),
        Filter::Bzip2 => r#"{"id":"bz2","level":9}"#.into(),
        // A Blosc chunk says itself how it was made.
        Filter::Blosc => r#"{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1,"blocksize":0}"#.into(),
        // LZ4 and Bitshuffle of HDF5 have framings of their own.
        _ => return None,
    })
}

/// A fill value in the JSON of the specification; `None` where it has none.
pub fn fill(layout: &Layout, size: u64) -> Option<String> {
    let mut bytes = layout.fill.clone();
    if layout.dtype == DType::Str {
        bytes.resize(usize::try_from(size).ok()?, 0);
        return Some(format!("\"{}\"", base64::encode(&bytes)));
    }
    if layout.endian == Endian::Big {
        bytes.reverse();
    }
    if layout.dtype == DType::Bool {
        return Some((bytes.first()? != &0).to_string());
    }
    if layout.dtype.is_float() {
        return Some(float_text(little_float(layout.dtype, &bytes)?));
    }
    let mut wide = [0; 16];
    let negative = matches!(layout.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
        && bytes.last().is_some_and(|b| b & 0x80 != 0);
    wide.fill(if negative { 0xff } else { 0 });
    wide.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Some(i128::from_le_bytes(wide).to_string())
}

/// A float as a fill value: those that JSON lacks are texts there.
pub fn float_text(value: f64) -> String {
    let mut text = String::new();
    json::float(&mut text, value);
    if value.is_finite() { text } else { format!("\"{text}\"") }
}

fn little_float(dtype: DType, bytes: &[u8]) -> Option<f64> {
    Some(match dtype {
        DType::F16 => f64::from(crate::buffer::widen_f16(u16::from_le_bytes(bytes.try_into().ok()?))),
        DType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        _ => f64::from_le_bytes(bytes.try_into().ok()?),
    })
}

/// The value of `_FillValue` where it is one number of the stored type, as it stands in `.zarray`: xarray takes it from
/// there. One that is of no such type stays an attribute: Zarr readers fail on it.
pub fn declared_fill(array: &ArrayInfo) -> Option<(String, Number)> {
    match crate::schema::attr(&array.attrs, "_FillValue")? {
        AttrValue::Ints(_, v) if v.len() == 1 && holds(array.dtype, v[0]) => {
            Some((v[0].to_string(), Number::Int(v[0])))
        }
        AttrValue::Floats(_, v) if v.len() == 1 && array.dtype.is_float() => {
            Some((float_text(v[0]), Number::Float(v[0])))
        }
        _ => None,
    }
}

/// Whether an integer is a value of a type.
fn holds(dtype: DType, value: i128) -> bool {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool | DType::Str => false,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            (-(1_i128 << (bits - 1))..1_i128 << (bits - 1)).contains(&value)
        }
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0..1_i128 << bits).contains(&value),
        DType::F16 | DType::F32 | DType::F64 => true,
    }
}

/// `.zarray`.
pub fn array(shape: &[u64], chunks: &[u64], dtype: &str, fill: Option<&str>, codecs: &[String]) -> String {
    let mut out = String::from("{\"zarr_format\":2,\"shape\":");
    let number = |out: &mut String, n: &u64| out.push_str(&n.to_string());
    json::list(&mut out, shape, number);
    out.push_str(",\"chunks\":");
    json::list(&mut out, chunks, number);
    let fill = fill.unwrap_or("null");
    let _ = write!(out, ",\"dtype\":\"{dtype}\",\"order\":\"C\",\"fill_value\":{fill},\"compressor\":null");
    out.push_str(",\"filters\":");
    match codecs {
        [] => out.push_str("null"),
        codecs => json::list(&mut out, codecs, |out, codec| out.push_str(codec)),
    }
    out.push('}');
    out
}

/// `.zattrs` of an array: its attributes, those that say what its stored values mean among them, and the names of its
/// dimensions.
pub fn array_attrs(schema: &Schema, array: &ArrayInfo, drop_fill: bool) -> String {
    let told = meaning(array);
    let kept: Vec<&Attr> =
        array.attrs.iter().filter(|(name, _)| !(drop_fill && name == "_FillValue")).collect();
    let kept: Vec<&Attr> = match &told {
        None => kept,
        Some(told) => {
            kept.into_iter().filter(|(name, _)| !MEANING.contains(&name.as_str())).chain(told).collect()
        }
    };
    let dims: Vec<&str> =
        array.dims.iter().filter_map(|&d| schema.dims.get(d)).map(|d| d.name.as_str()).collect();
    attrs(&kept, Some(&dims))
}

/// What stored values mean in the words of CF, where the attributes do not say it: other formats have words of their own
/// (FITS: BSCALE, BZERO, BLANK).
fn meaning(array: &ArrayInfo) -> Option<Vec<Attr>> {
    let told = Decoding::from_attrs(array.dtype, &array.attrs, &mut Vec::new());
    let meant = &array.decoding;
    if (told.stored, told.packing, &told.missing) == (meant.stored, meant.packing, &meant.missing) {
        return None;
    }
    let mut attrs = Vec::new();
    if let Some((scale, offset)) = meant.packing {
        attrs.push(("scale_factor".into(), AttrValue::Floats(DType::F64, vec![scale])));
        // One that is not given is -0.0.
        if offset.to_bits() != (-0.0_f64).to_bits() {
            attrs.push(("add_offset".into(), AttrValue::Floats(DType::F64, vec![offset])));
        }
    }
    if meant.stored != array.dtype {
        let unsigned = (meant.stored == array.dtype.as_unsigned()).to_string();
        attrs.push(("_Unsigned".into(), AttrValue::Text(unsigned)));
    }
    let ints: Vec<i128> =
        meant.missing.iter().filter_map(|n| if let Number::Int(i) = n { Some(*i) } else { None }).collect();
    let floats: Vec<f64> =
        meant.missing.iter().filter_map(|n| if let Number::Float(f) = n { Some(*f) } else { None }).collect();
    if !ints.is_empty() {
        attrs.push(("missing_value".into(), AttrValue::Ints(meant.stored, ints)));
    } else if !floats.is_empty() {
        attrs.push(("missing_value".into(), AttrValue::Floats(meant.stored, floats)));
    }
    Some(attrs)
}

/// `.zattrs` of a group.
pub fn group_attrs(attributes: &[Attr]) -> String {
    attrs(&attributes.iter().collect::<Vec<_>>(), None)
}

fn attrs(attributes: &[&Attr], dims: Option<&[&str]>) -> String {
    let mut out = String::from("{");
    let name_of = |out: &mut String, name: &str| {
        if out.len() > 1 {
            out.push(',');
        }
        json::text(out, name);
        out.push(':');
    };
    for (name, value) in attributes {
        if matches!(value, AttrValue::Other(_)) || HOUSEKEEPING.contains(&name.as_str()) {
            continue;
        }
        name_of(&mut out, name);
        write_value(&mut out, value);
    }
    if let Some(dims) = dims {
        name_of(&mut out, "_ARRAY_DIMENSIONS");
        json::list(&mut out, dims, |out, name| json::text(out, name));
    }
    out.push('}');
    out
}

fn write_value(out: &mut String, value: &AttrValue) {
    let int = |out: &mut String, v: &i128| out.push_str(&v.to_string());
    match value {
        AttrValue::Text(text) | AttrValue::Other(text) => json::text(out, text),
        AttrValue::Texts(texts) => json::list(out, texts, |out, text| json::text(out, text)),
        AttrValue::Ints(DType::Bool, v) if v.len() == 1 => {
            out.push_str(if v[0] == 0 { "false" } else { "true" })
        }
        AttrValue::Ints(_, v) if v.len() == 1 => int(out, &v[0]),
        AttrValue::Ints(_, v) => json::list(out, v, int),
        AttrValue::Floats(_, v) if v.len() == 1 => json::float(out, v[0]),
        AttrValue::Floats(_, v) => json::list(out, v, |out, &f| json::float(out, f)),
    }
}
