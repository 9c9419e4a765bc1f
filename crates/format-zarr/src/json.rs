//! Values of metadata documents: parsed, and looked into.

use std::fmt::Display;

use serde_json::{Map, Value};
use sieva_types::{Error, Result};

/// Parses a document. Python's writers put bare `NaN` and `Infinity` into attributes: these are read as texts.
pub(crate) fn parse(key: &str, bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).or_else(|e| {
        let quoted = quote_non_finite(bytes);
        serde_json::from_slice(&quoted).map_err(|_| Error::corrupt(format!("'{key}' is not valid JSON: {e}")))
    })
}

fn quote_non_finite(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    let (mut at, mut in_text) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        let word = [&b"NaN"[..], b"-Infinity", b"Infinity"].into_iter().find(|w| bytes[at..].starts_with(w));
        if let (false, Some(word)) = (in_text, word) {
            out.push(b'"');
            out.extend_from_slice(word);
            out.push(b'"');
            at += word.len();
            continue;
        }
        if in_text && byte == b'\\' {
            out.extend_from_slice(&bytes[at..bytes.len().min(at + 2)]);
            at += 2;
            continue;
        }
        in_text ^= byte == b'"';
        out.push(byte);
        at += 1;
    }
    out
}

/// The object that `value` is.
pub(crate) fn object(value: &Value, what: impl Display) -> Result<&Map<String, Value>> {
    value.as_object().ok_or_else(|| wrong(what, "an object", value))
}

/// The list that `value` is.
pub(crate) fn list(value: &Value, what: impl Display) -> Result<&[Value]> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(what, "a list", value))
}

/// The member `name` of an object, null where it has none.
pub(crate) fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The list of lengths that `value` is.
pub(crate) fn lengths(value: &Value, what: impl Display) -> Result<Vec<u64>> {
    let wrong = || wrong(&what, "a list of lengths", value);
    let list = value.as_array().filter(|l| l.len() <= MAX_RANK).ok_or_else(wrong)?;
    list.iter().map(|n| n.as_u64().filter(|&n| n <= i64::MAX as u64).ok_or_else(wrong)).collect()
}

/// The most dimensions of an array: as many as numpy has, and its limit of nested lists.
const MAX_RANK: usize = 64;

/// What was found where something else was expected.
pub(crate) fn wrong(what: impl Display, expected: &str, given: &Value) -> Error {
    Error::corrupt(format!("{what} is {}, expected {expected}", shown(given)))
}

/// A value in words, cut where it is long.
pub(crate) fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > 80 {
        let end = (0..=76).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// A name with its configuration: `"name"` or `{"name": ..., "configuration": {...}}`.
pub(crate) fn named(value: &Value, what: impl Display) -> Result<(&str, &Value)> {
    let name = value.as_str().or_else(|| member(value, "name").as_str());
    Ok((
        name.ok_or_else(|| wrong(what, "a name with its configuration", value))?,
        member(value, "configuration"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_not_a_number_is_read_and_texts_are_left_alone() {
        let given = br#"{"a": NaN, "b": [-Infinity, "NaN \" Infinity"], "c\\": Infinity}"#;
        let value = parse("x", given).unwrap();
        assert_eq!(value["a"], "NaN");
        assert_eq!(value["b"][0], "-Infinity");
        assert_eq!(value["b"][1], "NaN \" Infinity");
        assert_eq!(value["c\\"], "Infinity");
        assert!(parse("x", b"{\"a\": NaN").is_err());
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(parse("x", "[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn lengths_are_whole_and_not_negative() {
        let lengths_of = |text: &str| lengths(&parse("x", text.as_bytes()).unwrap(), "shape");
        assert_eq!(lengths_of("[0, 3]").unwrap(), [0, 3]);
        for bad in ["[-1]", "[1.5]", "[18446744073709551615]", "3", "[\"1\"]"] {
            assert!(lengths_of(bad).is_err(), "{bad}");
        }
    }
}
