//! CF decoding: what a stored value means (CF conventions 2.5.1 and 8.1, NUG appendix A).
//!
//! Missing values are compared with the stored value before it is unpacked, as xarray does;
//! `valid_range` is kept but applied only on request; netCDF's default fill values are not applied.

use sieva_types::DType;

use crate::schema::{Attr, AttrValue, attr};

/// A number as an attribute holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i128),
    /// A floating-point number.
    Float(f64),
}

/// How stored values become values.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoding {
    /// The stored type after `_Unsigned` has been honoured.
    pub stored: DType,
    /// `(scale_factor, add_offset)` of packed data; the value is `stored * scale + offset` in float64.
    pub packing: Option<(f64, f64)>,
    /// Stored values that mean "missing" (besides NaN).
    pub missing: Vec<Number>,
    /// `valid_range` / `valid_min`, `valid_max` in stored units, inclusive.
    pub valid: (Option<Number>, Option<Number>),
}

impl Decoding {
    /// No decoding at all.
    pub fn none(dtype: DType) -> Self {
        Self { stored: dtype, packing: None, missing: Vec::new(), valid: (None, None) }
    }

    /// The decoding that `attrs` ask for; what cannot be honoured is said in `warnings`.
    pub fn from_attrs(dtype: DType, attrs: &[Attr], warnings: &mut Vec<String>) -> Self {
        if matches!(dtype, DType::Str | DType::Bool) {
            return Self::none(dtype);
        }
        let stored = match attr(attrs, "_Unsigned").and_then(AttrValue::as_text) {
            Some(t) if t.eq_ignore_ascii_case("true") => dtype.as_unsigned(),
            Some(t) if t.eq_ignore_ascii_case("false") => dtype.as_signed(),
            _ => dtype,
        };
        let number = |name: &str, warnings: &mut Vec<String>| match attr(attrs, name) {
            Some(AttrValue::Text(t)) => {
                warnings.push(format!("{name} = \"{t}\" is text, not a number: ignored"));
                None
            }
            Some(AttrValue::Other(what)) => {
                warnings.push(format!("{name} cannot be read ({what}): ignored"));
                None
            }
            other => other.and_then(AttrValue::as_f64),
        };
        let (scale, offset) = (number("scale_factor", warnings), number("add_offset", warnings));
        let packing =
            (scale.is_some() || offset.is_some()).then(|| (scale.unwrap_or(1.0), offset.unwrap_or(0.0)));
        let mut missing = Vec::new();
        for name in ["_FillValue", "missing_value"] {
            for n in numbers(attr(attrs, name)).into_iter().filter_map(|n| fit(n, dtype, stored)) {
                if !missing.contains(&n) {
                    missing.push(n);
                }
            }
        }
        Self { stored, packing, missing, valid: valid_range(attrs, dtype, stored) }
    }

    /// The type of decoded values: float64 for packed data, else the stored type.
    pub fn decoded(&self) -> DType {
        if self.packing.is_some() { DType::F64 } else { self.stored }
    }
}

fn numbers(value: Option<&AttrValue>) -> Vec<Number> {
    match value {
        Some(AttrValue::Ints(_, v)) => v.iter().map(|&i| Number::Int(i)).collect(),
        Some(AttrValue::Floats(_, v)) => v.iter().map(|&f| Number::Float(f)).collect(),
        _ => Vec::new(),
    }
}

/// `n` as a value of the stored type, `None` where no stored value can equal it.
///
/// A float attribute wider than the data is rounded to the data's type: a float32 array written with
/// 1e20f and described by a double `missing_value = 1e20` means that very value.
fn fit(n: Number, dtype: DType, stored: DType) -> Option<Number> {
    match (n, stored) {
        (Number::Float(f), _) if f.is_nan() => None,
        (Number::Float(f), DType::F32) => Some(Number::Float(f64::from(f as f32))),
        (Number::Float(f), DType::F64 | DType::F16) => Some(Number::Float(f)),
        (Number::Int(i), DType::F32) => Some(Number::Float(f64::from(i as f32))),
        (Number::Int(i), DType::F64 | DType::F16) => Some(Number::Float(i as f64)),
        (Number::Float(f), _) => (f.fract() == 0.0 && f.abs() < 1e30)
            .then_some(Number::Int(f as i128))
            .and_then(|n| fit(n, dtype, stored)),
        (Number::Int(i), _) => {
            // `_FillValue = -1` of a signed type read as unsigned means the same bits: 65535.
            let width = 8 * stored.size() as u32;
            let i = if stored != dtype && i < 0 && stored == dtype.as_unsigned() {
                i + (1_i128 << width)
            } else {
                i
            };
            let i = if stored != dtype && stored == dtype.as_signed() && i >= 1_i128 << (width - 1) {
                i - (1_i128 << width)
            } else {
                i
            };
            Some(Number::Int(i))
        }
    }
}

fn valid_range(attrs: &[Attr], dtype: DType, stored: DType) -> (Option<Number>, Option<Number>) {
    let range = numbers(attr(attrs, "valid_range"));
    if let [low, high] = range[..] {
        return (fit(low, dtype, stored), fit(high, dtype, stored));
    }
    let one = |name| numbers(attr(attrs, name)).first().copied().and_then(|n| fit(n, dtype, stored));
    (one("valid_min"), one("valid_max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(v: i128) -> AttrValue {
        AttrValue::Ints(DType::I16, vec![v])
    }

    #[test]
    fn unsigned_fill_is_the_same_bits() {
        let attrs = vec![
            ("_Unsigned".into(), AttrValue::Text("true".into())),
            ("_FillValue".into(), ints(-1)),
            ("scale_factor".into(), AttrValue::Floats(DType::F32, vec![0.5])),
        ];
        let d = Decoding::from_attrs(DType::I16, &attrs, &mut Vec::new());
        assert_eq!(d.stored, DType::U16);
        assert_eq!(d.missing, [Number::Int(65535)]);
        assert_eq!(d.packing, Some((0.5, 0.0)));
        assert_eq!(d.decoded(), DType::F64);
    }

    #[test]
    fn a_textual_scale_factor_is_ignored_and_said() {
        let attrs = vec![("scale_factor".into(), AttrValue::Text("0.005".into()))];
        let mut warnings = Vec::new();
        let d = Decoding::from_attrs(DType::I16, &attrs, &mut warnings);
        assert!(d.packing.is_none() && d.missing.is_empty());
        assert_eq!(warnings, ["scale_factor = \"0.005\" is text, not a number: ignored"]);
    }

    #[test]
    fn a_wide_missing_value_is_rounded_to_the_data() {
        let attrs = vec![("missing_value".into(), AttrValue::Floats(DType::F64, vec![1e20]))];
        let d = Decoding::from_attrs(DType::F32, &attrs, &mut Vec::new());
        assert_eq!(d.missing, [Number::Float(f64::from(1e20_f32))]);
    }

    #[test]
    fn a_fractional_fill_of_integers_matches_nothing() {
        let attrs = vec![("_FillValue".into(), AttrValue::Floats(DType::F64, vec![0.5]))];
        assert!(Decoding::from_attrs(DType::I32, &attrs, &mut Vec::new()).missing.is_empty());
    }
}
