//! Types of elements, as both versions spell them.

use serde_json::Value;
use sieva_types::{DType, Endian, Error, ErrorKind, Result};

use crate::json::{self, member};

/// What one element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number or boolean.
    Number(DType),
    /// Text of a fixed number of bytes.
    Bytes,
    /// Text of a fixed number of UTF-32 code units.
    Utf32,
    /// Text of any length, which its codec frames.
    VarText,
    /// 64-bit count of this unit since 1970.
    DateTime(&'static str),
    /// 64-bit count of this unit.
    TimeDelta(&'static str),
}

/// A type of elements with its size in bytes (0 for texts of any length) and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) kind: Kind,
    pub(crate) size: usize,
    pub(crate) endian: Endian,
}

/// The longest text of a fixed length, in bytes.
const MAX_TEXT: usize = 4 << 20;
impl Element {
    /// A number in native byte order.
    fn number(dtype: DType, endian: Endian) -> Self {
        Self { kind: Kind::Number(dtype), size: dtype.size(), endian }
    }

    /// The type that the array shows.
    pub(crate) fn dtype(&self) -> DType {
        match self.kind {
            Kind::Number(dtype) => dtype,
            Kind::Bytes | Kind::Utf32 | Kind::VarText => DType::Str,
            Kind::DateTime(_) | Kind::TimeDelta(_) => DType::I64,
        }
    }

    /// The type as numpy writes it.
    pub(crate) fn numpy(&self) -> String {
        let order = match (self.size, self.endian) {
            (0 | 1, _) => '|',
            (_, Endian::Little) => '<',
            (_, Endian::Big) => '>',
        };
        let size = self.size;
        match self.kind {
            Kind::Number(DType::Bool) => "|b1".into(),
            Kind::Number(dtype) if dtype.is_float() => format!("{order}f{size}"),
            Kind::Number(dtype) if dtype.as_unsigned() == dtype => format!("{order}u{size}"),
            Kind::Number(_) => format!("{order}i{size}"),
            Kind::Bytes => format!("|S{size}"),
            Kind::Utf32 => format!("{order}U{}", size / 4),
            Kind::VarText => "|O".into(),
            Kind::DateTime(unit) => format!("{order}M8[{}]", short(unit)),
            Kind::TimeDelta(unit) => format!("{order}m8[{}]", short(unit)),
        }
    }
}

/// Units of numpy's dates that have a fixed length, with the names that CF uses.
const UNITS: [(&str, &str); 7] = [
    ("ns", "nanoseconds"),
    ("us", "microseconds"),
    ("ms", "milliseconds"),
    ("s", "seconds"),
    ("m", "minutes"),
    ("h", "hours"),
    ("D", "days"),
];

fn short(unit: &str) -> &str {
    UNITS.iter().find(|(_, long)| *long == unit).map_or(unit, |(short, _)| short)
}

/// A date or time difference in steps of `scale` units.
fn date(is_difference: bool, unit: &str, scale: u64, endian: Endian) -> Result<Element> {
    let unit = if unit == "μs" { "us" } else { unit };
    let known = UNITS.iter().find(|(short, _)| *short == unit).filter(|_| scale == 1);
    let Some((_, long)) = known else {
        return Err(unsupported(format!(
            "dates in steps of {scale} {unit}: only single steps from ns to D are read"
        )));
    };
    let kind = if is_difference { Kind::TimeDelta(long) } else { Kind::DateTime(long) };
    Ok(Element { kind, size: 8, endian })
}

pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

/// The element that a text of numpy's means.
pub(crate) fn simple_v2(text: &str) -> Result<Element> {
    let wrong = || unsupported(format!("elements of type '{text}'"));
    let endian = match text.get(..1) {
        Some("<" | "|") => Endian::Little,
        Some(">") => Endian::Big,
        Some("=") => Endian::NATIVE,
        _ => return Err(wrong()),
    };
    let (kind, rest) = (text.get(1..2).ok_or_else(wrong)?, text.get(2..).ok_or_else(wrong)?);
    if let "M" | "m" = kind {
        let step = rest.strip_prefix("8[").and_then(|s| s.strip_suffix(']')).ok_or_else(wrong)?;
        let digits = step.bytes().take_while(u8::is_ascii_digit).count();
        let scale = if digits == 0 { 1 } else { step[..digits].parse().map_err(|_| wrong())? };
        return date(kind == "m", &step[digits..], scale, endian);
    }
    if text == "|O" {
        return Ok(Element { kind: Kind::VarText, size: 0, endian });
    }
    let size: usize = rest.parse().ok().filter(|&n| n <= MAX_TEXT / 4).ok_or_else(wrong)?;
    let number = match (kind, size) {
        ("b", 1) => DType::Bool,
        ("i", 1) => DType::I8,
        ("i", 2) => DType::I16,
        ("i", 4) => DType::I32,
        ("i", 8) => DType::I64,
        ("u", 1) => DType::U8,
        ("u", 2) => DType::U16,
        ("u", 4) => DType::U32,
        ("u", 8) => DType::U64,
        ("f", 2) => DType::F16,
        ("f", 4) => DType::F32,
        ("f", 8) => DType::F64,
        ("S", _) => return Ok(Element { kind: Kind::Bytes, size, endian }),
        ("U", _) => return Ok(Element { kind: Kind::Utf32, size: size * 4, endian }),
        _ => return Err(wrong()),
    };
    Ok(Element::number(number, endian))
}

/// The element that a name of version 3 means.
pub(crate) fn simple_v3(name: &str, configuration: &Value, endian: Endian) -> Result<Element> {
    let bytes = || {
        let given = member(configuration, "length_bytes");
        let size = given.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= MAX_TEXT);
        size.ok_or_else(|| json::wrong(format!("length_bytes of {name}"), "a number of bytes", given))
    };
    let number = match name {
        "bool" => DType::Bool,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "float16" => DType::F16,
        "float32" => DType::F32,
        "float64" => DType::F64,
        "string" | "bytes" | "variable_length_bytes" => {
            return Ok(Element { kind: Kind::VarText, size: 0, endian });
        }
        "null_terminated_bytes" => return Ok(Element { kind: Kind::Bytes, size: bytes()?, endian }),
        "fixed_length_utf32" => {
            let size = bytes()?;
            if size % 4 != 0 {
                return Err(Error::corrupt(format!("UTF-32 texts of {size} bytes")));
            }
            return Ok(Element { kind: Kind::Utf32, size, endian });
        }
        "numpy.datetime64" | "numpy.timedelta64" => {
            let unit = member(configuration, "unit").as_str().unwrap_or("generic");
            let scale = member(configuration, "scale_factor").as_u64().unwrap_or(1);
            return date(name == "numpy.timedelta64", unit, scale, endian);
        }
        _ => return Err(unsupported(format!("elements of type '{name}'"))),
    };
    Ok(Element::number(number, endian))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_numpy() {
        let element = |text: &str| simple_v2(text);
        for text in ["<f4", ">i2", "|b1", "|u1", "|i1", ">f2", "<u8", "|S7", "<U3", ">M8[ns]", "<m8[D]", "|O"]
        {
            assert_eq!(element(text).unwrap().numpy(), text);
        }
        for text in ["<c8", "|V4", "<M8[Y]", "<M8[10ms]", "<i3", "", "<", "f4", "<f99999999999999999999"] {
            assert_eq!(element(text).unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
        }
    }
}
