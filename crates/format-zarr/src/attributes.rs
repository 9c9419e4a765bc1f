//! Attributes: JSON values as attributes have them, and what they say of missing values.

use serde_json::{Map, Value};
use sieva_format::schema::{Attr, AttrValue};
use sieva_types::DType;

use crate::array::Array;
use crate::element::{Element, Kind};
use crate::fill;
use crate::item::Member;
use crate::json::shown;

/// What other software keeps among the attributes for itself.
const KEPT_BACK: [&str; 8] = [
    "_ARRAY_DIMENSIONS",
    "_nczarr_attrs",
    "_nczarr_array",
    "_nczarr_group",
    "_nczarr_superblock",
    "_NCZARR_ATTR",
    "_NCZARR_ARRAY",
    "_NCZARR_GROUP",
];

/// Attributes of CF that are numbers, infinite ones included; `_FillValue` is a matter of its own.
const NUMBERS: [&str; 6] =
    ["missing_value", "valid_min", "valid_max", "valid_range", "scale_factor", "add_offset"];

/// The attributes of a group or array.
pub(crate) fn attributes(given: &Map<String, Value>) -> Vec<Attr> {
    let is_shown = |name: &str| !KEPT_BACK.contains(&name);
    given
        .iter()
        .filter(|(name, _)| is_shown(name))
        .map(|(name, v)| (name.clone(), attribute(name, v)))
        .collect()
}

fn attribute(name: &str, value: &Value) -> AttrValue {
    if NUMBERS.contains(&name)
        && let Some(floats) = with_non_finite(value)
    {
        return AttrValue::Floats(DType::F64, floats);
    }
    match value {
        Value::String(text) => AttrValue::Text(text.clone()),
        Value::Array(list) if !list.is_empty() => {
            if let Some(texts) = list.iter().map(Value::as_str).collect::<Option<Vec<_>>>() {
                return AttrValue::Texts(texts.into_iter().map(str::to_owned).collect());
            }
            numbers(list).unwrap_or_else(|| AttrValue::Other(shown(value)))
        }
        one => numbers(std::slice::from_ref(one)).unwrap_or_else(|| AttrValue::Other(shown(value))),
    }
}

/// Numbers of which one at least is NaN or infinite, which JSON has as texts if at all; `None` where `value` is no such.
fn with_non_finite(value: &Value) -> Option<Vec<f64>> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let number = |v: &Value| match v.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => v.as_f64(),
    };
    list.iter().any(Value::is_string).then(|| list.iter().map(number).collect())?
}

fn numbers(list: &[Value]) -> Option<AttrValue> {
    if let Some(bools) = list.iter().map(Value::as_bool).collect::<Option<Vec<_>>>() {
        return Some(AttrValue::Ints(DType::Bool, bools.into_iter().map(i128::from).collect()));
    }
    let whole = |v: &Value| v.as_i64().map(i128::from).or_else(|| v.as_u64().map(i128::from));
    if let Some(ints) = list.iter().map(whole).collect::<Option<Vec<_>>>() {
        let fits = ints.iter().all(|&i| i <= i128::from(i64::MAX));
        return Some(AttrValue::Ints(if fits { DType::I64 } else { DType::U64 }, ints));
    }
    list.iter().map(Value::as_f64).collect::<Option<Vec<_>>>().map(|f| AttrValue::Floats(DType::F64, f))
}

/// The attributes of `member` of `array`: those given, and what follows from type and fill value.
pub(crate) fn of_member(
    given: &Map<String, Value>,
    array: &Array,
    member: &Member,
    fill: &[u8],
) -> Vec<Attr> {
    let mut attrs = attributes(given);
    let element = &member.element;
    match element.kind {
        Kind::DateTime(unit) => {
            set_default(&mut attrs, "units", format!("{unit} since 1970-01-01T00:00:00"));
            set_default(&mut attrs, "calendar", "proleptic_gregorian".into());
        }
        Kind::TimeDelta(unit) => set_default(&mut attrs, "units", unit.into()),
        _ => {}
    }
    // Of a complex number that is missing, one part alone may be that of a number that is not.
    let missing = if member.part.is_some() { None } else { missing(given, array, element, fill) };
    if let Some(missing) = missing {
        attrs.retain(|(name, _)| name != "_FillValue");
        attrs.push(("_FillValue".into(), missing));
    }
    attrs
}

fn set_default(attrs: &mut Vec<Attr>, name: &str, value: String) {
    if !attrs.iter().any(|(n, _)| n == name) {
        attrs.push((name.into(), AttrValue::Text(value)));
    }
}

/// What stands for `_FillValue`: in version 2 the fill value of the array, as xarray has it; in version 3 the
/// attribute, where a float is written as the base64 text of a little-endian float64. Where version 3 has no such
/// attribute and no `missing_value`, a fill value that a writer chose counts as missing, like that of a version 2 twin; the
/// default, zero, does not.
fn missing(given: &Map<String, Value>, array: &Array, element: &Element, fill: &[u8]) -> Option<AttrValue> {
    if matches!(element.kind, Kind::DateTime(_) | Kind::TimeDelta(_)) {
        // "Not a time".
        return Some(AttrValue::Ints(DType::I64, vec![i128::from(i64::MIN)]));
    }
    if array.fill_is_missing {
        return fill::attribute(fill, element);
    }
    let Some(declared) = given.get("_FillValue") else {
        if given.contains_key("missing_value") {
            return None;
        }
        return fill::attribute(fill, element).filter(|v| v.as_f64() != Some(0.0));
    };
    let text = declared.as_str()?;
    let bytes: [u8; 8] = fill::base64(text)?.try_into().ok()?;
    element.dtype().is_float().then(|| AttrValue::Floats(DType::F64, vec![f64::from_le_bytes(bytes)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_all_kinds() {
        let given = json!({"a": "x", "b": [1, 2], "c": [1, 2.5], "d": true, "e": ["p", "q"], "f": {"g": 1}, "h": null,
            "i": [], "j": 18446744073709551615_u64, "_ARRAY_DIMENSIONS": ["t"], "k": "NaN",
            "missing_value": ["-Infinity", 5], "valid_max": "Infinity", "valid_min": "low"});
        let attrs = attributes(given.as_object().unwrap());
        let of = |name: &str| attrs.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        assert_eq!(of("a"), Some(AttrValue::Text("x".into())));
        assert_eq!(of("b"), Some(AttrValue::Ints(DType::I64, vec![1, 2])));
        assert_eq!(of("c"), Some(AttrValue::Floats(DType::F64, vec![1.0, 2.5])));
        assert_eq!(of("d"), Some(AttrValue::Ints(DType::Bool, vec![1])));
        assert_eq!(of("e"), Some(AttrValue::Texts(vec!["p".into(), "q".into()])));
        assert_eq!(of("f"), Some(AttrValue::Other("{\"g\":1}".into())));
        assert_eq!(of("h"), Some(AttrValue::Other("null".into())));
        assert_eq!(of("i"), Some(AttrValue::Other("[]".into())));
        assert_eq!(of("k"), Some(AttrValue::Text("NaN".into())));
        assert_eq!(of("missing_value"), Some(AttrValue::Floats(DType::F64, vec![f64::NEG_INFINITY, 5.0])));
        assert_eq!(of("valid_max"), Some(AttrValue::Floats(DType::F64, vec![f64::INFINITY])));
        assert_eq!(of("valid_min"), Some(AttrValue::Text("low".into())));
        assert_eq!(of("j"), Some(AttrValue::Ints(DType::U64, vec![i128::from(u64::MAX)])));
        assert_eq!(of("_ARRAY_DIMENSIONS"), None);
    }
}
