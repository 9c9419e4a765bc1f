//! Fill values in all their spellings, as the bytes of one decoded element.

use serde_json::Value;
use sieva_format::buffer::{narrow_f16, widen_f16};
use sieva_format::schema::AttrValue;
use sieva_types::{DType, Endian, Result};

use crate::element::{Element, Kind};
use crate::item::{Item, Member};
use crate::json::wrong;

/// The bytes of `member`'s fill value where the array's is `value`, in the byte order of its elements; texts as
/// UTF-8, padded with zeros. None given means zeros.
pub(crate) fn bytes(value: &Value, item: &Item, member: &Member) -> Result<Vec<u8>> {
    if member.name.is_empty() {
        return element(value, &member.element);
    }
    match value {
        // Of complex numbers, each part.
        Value::Array(parts) if member.part.is_some() => {
            let part = member.part.and_then(|n| parts.get(n)).filter(|_| parts.len() == 2);
            let part = part.ok_or_else(|| wrong("fill_value", "two parts of a complex number", value))?;
            element(part, &member.element)
        }
        Value::String(text) => {
            let whole = base64(text).filter(|b| b.len() == item.size);
            let whole = whole.ok_or_else(|| wrong("fill_value", "the bytes of an item in base64", value))?;
            let end = member.offset + member.element.size;
            Ok(whole.get(member.offset..end).map_or_else(Vec::new, <[u8]>::to_vec))
        }
        Value::Object(_) => {
            let inner = member.name.split('.').try_fold(value, |value, name| match (value, member.part) {
                (Value::Array(parts), Some(n)) => parts.get(n),
                _ => value.get(name),
            });
            element(inner.unwrap_or(&Value::Null), &member.element)
        }
        Value::Null => element(value, &member.element),
        number if number.as_f64() == Some(0.0) => element(&Value::Null, &member.element),
        other => Err(wrong("fill_value", "the bytes of an item in base64", other)),
    }
}

/// The fill value as the attribute `_FillValue` would hold it; `None` of texts and booleans.
pub(crate) fn attribute(bytes: &[u8], of: &Element) -> Option<AttrValue> {
    let dtype = of.dtype();
    let fold = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
    let bits = match of.endian {
        Endian::Big => bytes.iter().fold(0, fold),
        Endian::Little => bytes.iter().rev().fold(0, fold),
    };
    let signed = |width: u32| i128::from((bits << (64 - width)).cast_signed() >> (64 - width));
    Some(match dtype {
        DType::Bool | DType::Str => return None,
        DType::F16 => AttrValue::Floats(dtype, vec![f64::from(widen_f16(bits as u16))]),
        DType::F32 => AttrValue::Floats(dtype, vec![f64::from(f32::from_bits(bits as u32))]),
        DType::F64 => AttrValue::Floats(dtype, vec![f64::from_bits(bits)]),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            AttrValue::Ints(dtype, vec![signed(8 * dtype.size() as u32)])
        }
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => AttrValue::Ints(dtype, vec![i128::from(bits)]),
    })
}

fn element(value: &Value, of: &Element) -> Result<Vec<u8>> {
    match of.kind {
        Kind::VarText => Ok(Vec::new()),
        Kind::Bytes => text_bytes(value, of.size),
        Kind::Utf32 => utf8(value, of.size),
        Kind::Number(dtype) => Ok(ordered(number(value, dtype)?, dtype.size(), of.endian)),
        Kind::DateTime(_) | Kind::TimeDelta(_) => {
            let bits = if value == "NaT" { i64::MIN.cast_unsigned() } else { number(value, DType::I64)? };
            Ok(ordered(bits, 8, of.endian))
        }
    }
}

fn ordered(bits: u64, size: usize, endian: Endian) -> Vec<u8> {
    match endian {
        Endian::Little => bits.to_le_bytes()[..size].to_vec(),
        Endian::Big => bits.to_be_bytes()[8 - size..].to_vec(),
    }
}

/// The bits of a number.
fn number(value: &Value, dtype: DType) -> Result<u64> {
    let bad = || wrong("fill_value", &format!("a value of type {dtype}"), value);
    if value.is_null() {
        return Ok(0);
    }
    if dtype.is_float() {
        return float(value, dtype).ok_or_else(bad);
    }
    let n = match value {
        Value::Bool(b) => i128::from(*b),
        Value::Number(n) => {
            let whole = n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from));
            let float = || n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e20).map(|f| f as i128);
            whole.or_else(float).ok_or_else(bad)?
        }
        _ => return Err(bad()),
    };
    let width = 8 * dtype.size() as u32;
    let (low, high) = match dtype {
        DType::Bool => (0, 1),
        _ if dtype.as_unsigned() == dtype => (0, (1_i128 << width) - 1),
        _ => (-(1_i128 << (width - 1)), (1_i128 << (width - 1)) - 1),
    };
    if n < low || n > high {
        return Err(bad());
    }
    Ok(n as u64)
}

fn float(value: &Value, dtype: DType) -> Option<u64> {
    let f = match value {
        Value::String(text) => match text.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            hex => {
                let digits = hex.strip_prefix("0x").filter(|d| d.len() == 2 * dtype.size())?;
                return u64::from_str_radix(digits, 16).ok();
            }
        },
        other => other.as_f64()?,
    };
    Some(match dtype {
        DType::F16 => u64::from(narrow_f16(f)),
        // Of the not-a-numbers that which numpy has.
        DType::F32 if f.is_nan() => u64::from(f32::NAN.to_bits()),
        DType::F32 => u64::from((f as f32).to_bits()),
        _ => f.to_bits(),
    })
}

fn text_bytes(value: &Value, size: usize) -> Result<Vec<u8>> {
    let mut out = match value {
        Value::String(text) => {
            base64(text).filter(|b| b.len() <= size).unwrap_or_else(|| text.as_bytes().to_vec())
        }
        Value::Array(list) => list.iter().filter_map(|n| u8::try_from(n.as_u64()?).ok()).collect(),
        Value::Null => Vec::new(),
        n if n.as_f64() == Some(0.0) => Vec::new(),
        other => return Err(wrong("fill_value", "a text in base64", other)),
    };
    if out.len() > size {
        return Err(wrong("fill_value", &format!("a text of at most {size} bytes"), value));
    }
    out.resize(size, 0);
    Ok(out)
}

fn utf8(value: &Value, size: usize) -> Result<Vec<u8>> {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Null => "",
        n if n.as_f64() == Some(0.0) => "",
        other => return Err(wrong("fill_value", "a text", other)),
    };
    if text.chars().count() > size / 4 {
        return Err(wrong("fill_value", &format!("a text of at most {} characters", size / 4), value));
    }
    let mut out = text.as_bytes().to_vec();
    out.resize(size, 0);
    Ok(out)
}

/// The bytes that a text stands for in base64 (RFC 4648, section 4); `None` where it does not.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for &digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fill(dtype: &str, value: Value) -> Result<Vec<u8>> {
        let item = Item::parse_v2(&json!(dtype)).unwrap();
        bytes(&value, &item, &item.members[0])
    }

    #[test]
    fn spellings_of_floats() {
        assert_eq!(fill("<f4", json!("NaN")).unwrap(), 0x7fc0_0000_u32.to_le_bytes());
        assert_eq!(fill(">f4", json!("0x7fc00001")).unwrap(), 0x7fc0_0001_u32.to_be_bytes());
        assert_eq!(fill("<f8", json!("-Infinity")).unwrap(), f64::NEG_INFINITY.to_le_bytes());
        assert_eq!(fill("<f8", json!(null)).unwrap(), [0; 8]);
        assert_eq!(fill("<f4", json!(1.0000000200408773e20)).unwrap(), 1.0e20_f32.to_le_bytes());
        assert_eq!(fill("<f8", json!(-0.0)).unwrap(), (-0.0_f64).to_le_bytes());
        assert!(fill("<f8", json!("0x7fc00000")).is_err());
    }

    #[test]
    fn integers_keep_to_their_range() {
        assert_eq!(fill(">i2", json!(-2)).unwrap(), [0xff, 0xfe]);
        assert_eq!(fill("<u8", json!(u64::MAX)).unwrap(), [0xff; 8]);
        assert_eq!(fill("<i4", json!(7.0)).unwrap(), [7, 0, 0, 0]);
        assert_eq!(fill("<M8[ns]", json!("NaT")).unwrap(), i64::MIN.to_le_bytes());
        for (dtype, value) in
            [("|u1", json!(256)), ("|u1", json!(-1)), ("<i4", json!(0.5)), ("<i4", json!("a"))]
        {
            assert!(fill(dtype, value).is_err());
        }
    }

    #[test]
    fn texts_and_compounds_are_base64() {
        assert_eq!(fill("|S5", json!("YWJj")).unwrap(), b"abc\0\0");
        assert_eq!(fill("<U2", json!("é")).unwrap(), "é\0\0\0\0\0\0".as_bytes());
        assert!(fill("<U2", json!("abc")).is_err());
        let item = Item::parse_v2(&json!([["a", "<u2"], ["b", "|S1"]])).unwrap();
        assert_eq!(bytes(&json!("AQJ6"), &item, &item.members[0]).unwrap(), [1, 2]);
        assert_eq!(bytes(&json!("AQJ6"), &item, &item.members[1]).unwrap(), b"z");
        assert!(bytes(&json!("AQI="), &item, &item.members[1]).is_err());
    }

    #[test]
    fn complex_numbers_have_two_parts() {
        let item = Item::parse_v2(&json!("<c8")).unwrap();
        let fill = |value: Value, part: usize| bytes(&value, &item, &item.members[part]);
        let float = |f: f32| f.to_le_bytes().to_vec();
        assert_eq!(fill(json!([1.5, "NaN"]), 0).unwrap(), float(1.5));
        assert_eq!(fill(json!([1.5, "NaN"]), 1).unwrap(), float(f32::NAN));
        assert_eq!(fill(json!(["-Infinity", "0x40000000"]), 1).unwrap(), float(2.0));
        for zero in [json!(null), json!(0), json!(0.0), json!([0.0, 0.0])] {
            assert_eq!(fill(zero, 1).unwrap(), float(0.0));
        }
        assert_eq!(fill(json!("AADAPwAAAEA="), 1).unwrap(), float(2.0));
        assert!(fill(json!([1.0]), 0).is_err() && fill(json!(2.0), 0).is_err());
        let item = Item::parse_v3(
            &json!({"name": "struct", "configuration": {"fields": [["z", "complex64"]]}}),
            Endian::Little,
        )
        .unwrap();
        assert_eq!(bytes(&json!({"z": [1.0, 2.0]}), &item, &item.members[1]).unwrap(), float(2.0));
    }

    #[test]
    fn base64_of_all_lengths() {
        let known = [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("AAAAAAAA+H8=", &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f]),
        ];
        for (text, bytes) in known {
            assert_eq!(base64(text).unwrap(), bytes);
        }
        for bad in ["Z", "Zg=", "Z===", "Zm9*", "===="] {
            assert_eq!(base64(bad), None, "{bad}");
        }
    }
}
