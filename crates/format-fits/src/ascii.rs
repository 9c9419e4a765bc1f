//! Fields of ASCII tables (FITS standard 4.0, section 7.2): Fortran formats, numbers as texts.

use sieva_format::decoding::{Decoding, Number};
use sieva_types::{DType, Error, Result};

use crate::card::real;
use crate::scaling::{Given, shift};

/// Characters of the widest field that is read.
pub(crate) const MAX_TEXT: u64 = 64 << 10;
/// What a field of integers that is null is handed out as.
const NULL: i64 = i64::MIN;

/// A numeric field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Whether its numbers are integers.
    pub(crate) is_integer: bool,
    /// Digits after the decimal point, where a number has none.
    pub(crate) decimals: u32,
    /// The text that stands for no value.
    pub(crate) null: Option<String>,
}

/// What a TFORM of an ASCII table says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Format {
    /// A text of so many characters.
    Text(u64),
    /// A number written in so many characters.
    Number(u64, Field),
}

impl Format {
    /// Parses `Aw`, `Iw`, `Fw.d`, `Ew.d` or `Dw.d`.
    pub(crate) fn parse(tform: &str, null: Option<&str>) -> Option<Format> {
        let tform = tform.trim();
        let code = tform.chars().next()?.to_ascii_uppercase();
        let (width, decimals) = match tform.get(1..)?.split_once('.') {
            Some((width, decimals)) => (width, decimals.parse().ok().filter(|&d| d < 100)?),
            None => (tform.get(1..)?, 0),
        };
        let width: u64 = width.trim().parse().ok().filter(|&w| w > 0 && w <= MAX_TEXT)?;
        let null = null.map(|n| n.trim().to_owned());
        match code {
            'A' => Some(Format::Text(width)),
            'I' => Some(Format::Number(width, Field { is_integer: true, decimals: 0, null })),
            'F' | 'E' | 'D' => Some(Format::Number(width, Field { is_integer: false, decimals, null })),
            _ => None,
        }
    }

    /// Characters of the field.
    pub(crate) fn width(&self) -> u64 {
        match self {
            Format::Text(width) | Format::Number(width, _) => *width,
        }
    }
}

impl Field {
    /// The type of its numbers.
    pub(crate) fn dtype(&self) -> DType {
        if self.is_integer { DType::I64 } else { DType::F64 }
    }

    /// What its numbers mean.
    pub(crate) fn decoding(&self, given: Given) -> Decoding {
        let (scale, zero) = (given.scale.unwrap_or(1.0), given.zero.unwrap_or(0.0));
        let packing = (scale != 1.0 || zero != 0.0).then_some((scale, shift(zero)));
        let has_null = self.is_integer && self.null.is_some();
        let missing = has_null.then_some(Number::Int(NULL.into())).into_iter().collect();
        Decoding { packing, missing, ..Decoding::none(self.dtype()) }
    }

    /// The number in `text`, big-endian. A field of spaces is zero (section 7.2.5).
    pub(crate) fn parse(&self, text: &[u8]) -> Result<[u8; 8]> {
        let wrong = || {
            let text = String::from_utf8_lossy(text);
            Error::corrupt(format!("'{text}' in a field of the table is no {}", self.dtype()))
        };
        let trimmed = std::str::from_utf8(text).map_err(|_| wrong())?.trim_matches([' ', '\0']);
        if self.null.as_deref() == Some(trimmed) {
            return Ok(if self.is_integer { NULL.to_be_bytes() } else { f64::NAN.to_be_bytes() });
        }
        if trimmed.is_empty() {
            return Ok([0; 8]);
        }
        if self.is_integer {
            return trimmed.parse::<i64>().map(i64::to_be_bytes).map_err(|_| wrong());
        }
        let number = real(trimmed).ok_or_else(wrong)?;
        let implied = self.decimals > 0 && !trimmed.contains('.');
        let number = if implied { number / 10_f64.powi(self.decimals as i32) } else { number };
        Ok(number.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(tform: &str, null: Option<&str>) -> Field {
        match Format::parse(tform, null) {
            Some(Format::Number(_, field)) => field,
            other => panic!("{tform}: {other:?}"),
        }
    }

    #[test]
    fn formats() {
        assert_eq!(Format::parse("A12", None), Some(Format::Text(12)));
        assert_eq!(Format::parse("I6", None).unwrap().width(), 6);
        assert_eq!(field("F8.3", None).decimals, 3);
        for wrong in ["", "X3", "I", "I0", "F8.x", "A99999999", "é4"] {
            assert_eq!(Format::parse(wrong, None), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_blanks_and_nulls() {
        let f = field("D10.2", Some("---"));
        let value = |text: &str| f64::from_be_bytes(f.parse(text.as_bytes()).unwrap());
        assert_eq!(value(" 1.5D+01 "), 15.0);
        assert_eq!(value(" 125"), 1.25);
        assert_eq!(value("    "), 0.0);
        assert!(value(" --- ").is_nan());
        let i = field("I4", Some("-"));
        assert_eq!(i.parse(b" -12").unwrap(), (-12_i64).to_be_bytes());
        assert_eq!(i.parse(b"   -").unwrap(), i64::MIN.to_be_bytes());
        assert_eq!(i.parse(b"1x").unwrap_err().to_string(), "'1x' in a field of the table is no int64");
    }
}
