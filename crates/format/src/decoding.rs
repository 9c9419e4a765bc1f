//! CF decoding: what a stored value means (CF conventions 2.5.1 and 8.1, NUG appendix A).
//!
//! Missing values are compared with the stored value before it is unpacked, as xarray does;
//! `valid_range` is kept but applied only on request; netCDF's default fill values are not applied.

use sieva_types::DType;

use crate::buffer::{narrow_f16, widen_f16};
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
    /// `(scale_factor, add_offset)` of packed data; the value is `stored * scale + offset` in float64. An offset that is
    /// not given is -0.0, which changes no number: 0.0 would make 0.0 of -0.0.
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
            (scale.is_some() || offset.is_some()).then(|| (scale.unwrap_or(1.0), offset.unwrap_or(-0.0)));
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
/// 1e20f and described by a double `missing_value = 1e20` means that very value. A number beyond the type's largest
/// means none: rounded, it would be infinity.
fn fit(n: Number, dtype: DType, stored: DType) -> Option<Number> {
    match (n, stored) {
        (Number::Float(f), _) if f.is_nan() => None,
        (_, DType::F16 | DType::F32 | DType::F64) => {
            let rounded = round(n, stored);
            let is_infinite = matches!(n, Number::Float(f) if f.is_infinite());
            (rounded.is_finite() || is_infinite).then_some(Number::Float(rounded))
        }
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

/// The float of this type that is nearest to `n`; infinity beyond the largest.
fn round(n: Number, to: DType) -> f64 {
    match (n, to) {
        (Number::Float(f), DType::F16) => f64::from(widen_f16(narrow_f16(f))),
        (Number::Int(i), DType::F16) => f64::from(widen_f16(narrow_f16(i as f64))),
        (Number::Float(f), DType::F32) => f64::from(f as f32),
        (Number::Int(i), DType::F32) => f64::from(i as f32),
        (Number::Float(f), _) => f,
        (Number::Int(i), _) => i as f64,
    }
}

fn valid_range(attrs: &[Attr], dtype: DType, stored: DType) -> (Option<Number>, Option<Number>) {
    // A bound beyond the type's largest number still leaves infinity outside.
    let bound = |n: Number| match n {
        Number::Float(f) if stored.is_float() && f.is_finite() => {
            Some(fit(n, dtype, stored).unwrap_or(Number::Float(f)))
        }
        _ => fit(n, dtype, stored),
    };
    let range = numbers(attr(attrs, "valid_range"));
    if let [low, high] = range[..] {
        return (bound(low), bound(high));
    }
    let one = |name| numbers(attr(attrs, name)).first().copied().and_then(bound);
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

    fn missing_of(dtype: DType, value: AttrValue) -> Vec<Number> {
        let attrs = vec![("missing_value".into(), value)];
        Decoding::from_attrs(dtype, &attrs, &mut Vec::new()).missing
    }

    #[test]
    fn a_missing_value_beyond_the_type_is_not_infinity() {
        let double = |f| AttrValue::Floats(DType::F64, vec![f]);
        assert!(missing_of(DType::F32, double(1e300)).is_empty());
        assert!(missing_of(DType::F16, double(-1e20)).is_empty());
        assert_eq!(missing_of(DType::F32, double(f64::INFINITY)), [Number::Float(f64::INFINITY)]);
        assert!(missing_of(DType::F16, ints(i128::from(i64::MAX))).is_empty());
    }

    #[test]
    fn a_valid_range_beyond_the_type_leaves_infinity_outside() {
        let attrs = vec![("valid_range".into(), AttrValue::Floats(DType::F64, vec![-1e300, 1e300]))];
        let valid = Decoding::from_attrs(DType::F32, &attrs, &mut Vec::new()).valid;
        assert_eq!(valid, (Some(Number::Float(-1e300)), Some(Number::Float(1e300))));
    }

    /// numpy.float16(0.1) is 0.0999755859375, and numpy.float16(-9999) is -10000.
    #[test]
    fn a_wide_missing_value_of_halves_is_rounded_to_a_half() {
        let tenth = AttrValue::Floats(DType::F64, vec![0.1]);
        assert_eq!(missing_of(DType::F16, tenth), [Number::Float(0.099_975_585_937_5)]);
        assert_eq!(missing_of(DType::F16, ints(-9999)), [Number::Float(-10000.0)]);
    }

    #[test]
    fn an_offset_that_is_not_given_keeps_the_sign_of_zero() {
        let scale = ("scale_factor".to_string(), AttrValue::Floats(DType::F64, vec![2.0]));
        let packing = |attrs: &[Attr]| {
            let (scale, offset) = Decoding::from_attrs(DType::F32, attrs, &mut Vec::new()).packing.unwrap();
            (-0.0 * scale + offset).is_sign_negative()
        };
        assert!(packing(std::slice::from_ref(&scale)));
        assert!(!packing(&[scale, ("add_offset".into(), AttrValue::Floats(DType::F64, vec![0.0]))]));
    }

    #[test]
    fn a_fractional_fill_of_integers_matches_nothing() {
        let attrs = vec![("_FillValue".into(), AttrValue::Floats(DType::F64, vec![0.5]))];
        assert!(Decoding::from_attrs(DType::I32, &attrs, &mut Vec::new()).missing.is_empty());
    }
}
