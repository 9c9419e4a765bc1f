//! Attributes: from stored bytes to values.

use std::collections::HashSet;

use sieva_format::Warnings;
use sieva_format::schema::{Attr, AttrValue};

use crate::header::RawAttr;
use crate::nctype::NcType;

/// The attributes of `owner`; a second one of a name is left out and said.
pub(crate) fn attributes(raw: &[RawAttr], owner: &str, warnings: &mut Warnings) -> Vec<Attr> {
    let mut seen = HashSet::new();
    let mut attrs = Vec::new();
    for attr in raw {
        if seen.insert(attr.name.as_str()) {
            attrs.push((attr.name.clone(), value(attr)));
        } else {
            warnings
                .push(|| format!("{owner} has two attributes '{}': the second one is left out", attr.name));
        }
    }
    attrs
}

/// The fill value of a variable of type `xtype`, as it is stored: its `_FillValue` where that is one value of
/// the type, else netCDF's default.
pub(crate) fn fill(attrs: &[RawAttr], xtype: NcType) -> Vec<u8> {
    match attrs.iter().find(|a| a.name == "_FillValue") {
        Some(a) if a.xtype == xtype && a.bytes.len() == xtype.size() => a.bytes.clone(),
        _ => xtype.default_fill(),
    }
}

fn value(attr: &RawAttr) -> AttrValue {
    let bytes = &attr.bytes;
    let ints = |v| AttrValue::Ints(attr.xtype.dtype(), v);
    let floats = |v| AttrValue::Floats(attr.xtype.dtype(), v);
    match attr.xtype {
        NcType::Char => AttrValue::Text(text(bytes)),
        NcType::Byte => ints(numbers(bytes, |b| i8::from_be_bytes(b).into())),
        NcType::Short => ints(numbers(bytes, |b| i16::from_be_bytes(b).into())),
        NcType::Int => ints(numbers(bytes, |b| i32::from_be_bytes(b).into())),
        NcType::UByte => ints(numbers(bytes, |b| u8::from_be_bytes(b).into())),
        NcType::UShort => ints(numbers(bytes, |b| u16::from_be_bytes(b).into())),
        NcType::UInt => ints(numbers(bytes, |b| u32::from_be_bytes(b).into())),
        NcType::Int64 => ints(numbers(bytes, |b| i64::from_be_bytes(b).into())),
        NcType::UInt64 => ints(numbers(bytes, |b| u64::from_be_bytes(b).into())),
        NcType::Float => floats(numbers(bytes, |b| f32::from_be_bytes(b).into())),
        NcType::Double => floats(numbers(bytes, f64::from_be_bytes)),
    }
}

fn numbers<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).filter_map(|b| b.try_into().ok()).map(number).collect()
}

/// A text without the NULs that C programs write after it; bytes that are not UTF-8 are taken as Latin-1.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
    match std::str::from_utf8(&bytes[..end]) {
        Ok(s) => s.to_string(),
        Err(_) => bytes[..end].iter().map(|&b| char::from(b)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use sieva_types::DType;

    use super::*;

    fn raw(name: &str, xtype: NcType, bytes: &[u8]) -> RawAttr {
        RawAttr { name: name.into(), xtype, bytes: bytes.to_vec() }
    }

    #[test]
    fn numbers_keep_type_and_count() {
        assert_eq!(
            value(&raw("a", NcType::Short, &[0xff, 0xfe, 1, 0])),
            AttrValue::Ints(DType::I16, vec![-2, 256])
        );
        assert_eq!(value(&raw("a", NcType::Byte, &[0x80])), AttrValue::Ints(DType::I8, vec![-128]));
        assert_eq!(
            value(&raw("a", NcType::UInt64, &[0xff; 8])),
            AttrValue::Ints(DType::U64, vec![u64::MAX.into()])
        );
        let tenth = value(&raw("a", NcType::Float, &0.1_f32.to_be_bytes()));
        assert_eq!(tenth, AttrValue::Floats(DType::F32, vec![f64::from(0.1_f32)]));
        assert_eq!(value(&raw("a", NcType::Double, &[])), AttrValue::Floats(DType::F64, vec![]));
    }

    #[test]
    fn texts_lose_trailing_nuls_only() {
        assert_eq!(text(b"m s-1\0\0"), "m s-1");
        assert_eq!(text(b" a\0b "), " a\0b ");
        assert_eq!(text(b"\xc2\xb0C"), "°C");
        assert_eq!(text(b"\xb0C"), "°C");
        assert_eq!(text(b""), "");
    }

    #[test]
    fn a_fill_value_must_be_one_value_of_the_type() {
        let short = |bytes: &[u8]| vec![raw("_FillValue", NcType::Short, bytes)];
        assert_eq!(fill(&short(&[1, 2]), NcType::Short), [1, 2]);
        assert_eq!(fill(&short(&[1, 2, 3, 4]), NcType::Short), [0x80, 0x01]);
        assert_eq!(fill(&short(&[1, 2]), NcType::Int), [0x80, 0, 0, 1]);
        assert_eq!(fill(&[], NcType::Char), [0]);
    }

    #[test]
    fn a_repeated_name_is_left_out_and_said() {
        let attrs = [raw("units", NcType::Char, b"K"), raw("units", NcType::Char, b"C")];
        let mut warnings = Warnings::default();
        let kept = attributes(&attrs, "variable 'T'", &mut warnings);
        assert_eq!(kept, [("units".to_string(), AttrValue::Text("K".into()))]);
        assert_eq!(
            warnings.into_vec(),
            ["variable 'T' has two attributes 'units': the second one is left out"]
        );
    }
}
