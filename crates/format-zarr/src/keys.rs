//! Keys of chunks: the position of a chunk in the grid as the name of an object.

use serde_json::Value;
use sieva_types::Result;

use crate::element::unsupported;
use crate::json::{self, member, wrong};

/// How the key of a chunk is made of its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkKeys {
    /// Path of the array, with a slash at its end where it has one.
    array: String,
    /// What is put before the first position: `c` and the separator in version 3.
    has_prefix: bool,
    separator: char,
}

impl ChunkKeys {
    /// Those of a version 2 array.
    pub(crate) fn v2(path: &str, separator: &Value) -> Result<Self> {
        Ok(Self { array: directory(path), has_prefix: false, separator: parse_separator(separator, '.')? })
    }

    /// Those that `chunk_key_encoding` asks for.
    pub(crate) fn v3(path: &str, encoding: &Value) -> Result<Self> {
        let (name, configuration) = json::named(encoding, "chunk_key_encoding")?;
        let (has_prefix, default) = match name {
            "default" => (true, '/'),
            "v2" => (false, '.'),
            other => return Err(unsupported(format!("chunk_key_encoding '{other}'"))),
        };
        let separator = parse_separator(member(configuration, "separator"), default)?;
        Ok(Self { array: directory(path), has_prefix, separator })
    }

    /// The key of the chunk at `position`.
    pub(crate) fn key(&self, position: &[u64]) -> String {
        let mut key = self.array.clone();
        if self.has_prefix {
            key.push('c');
        } else if position.is_empty() {
            key.push('0');
        }
        for (d, i) in position.iter().enumerate() {
            if d > 0 || self.has_prefix {
                key.push(self.separator);
            }
            key.push_str(&i.to_string());
        }
        key
    }
}

fn directory(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}/") }
}

fn parse_separator(given: &Value, default: char) -> Result<char> {
    match given.as_str() {
        Some(".") => Ok('.'),
        Some("/") => Ok('/'),
        None if given.is_null() => Ok(default),
        _ => Err(wrong("the separator of chunk keys", "\".\" or \"/\"", given)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The examples of the two specifications.
    #[test]
    fn keys_of_both_versions() {
        let v2 = ChunkKeys::v2("a/b", &json!(null)).unwrap();
        assert_eq!((v2.key(&[1, 23, 45]), v2.key(&[])), ("a/b/1.23.45".into(), "a/b/0".into()));
        assert_eq!(ChunkKeys::v2("", &json!("/")).unwrap().key(&[1, 2]), "1/2");
        let v3 = |encoding: Value| ChunkKeys::v3("", &encoding).unwrap();
        let default = v3(json!({"name": "default"}));
        assert_eq!((default.key(&[1, 23, 45]), default.key(&[])), ("c/1/23/45".into(), "c".into()));
        assert_eq!(v3(json!({"name": "default", "configuration": {"separator": "."}})).key(&[1, 2]), "c.1.2");
        assert_eq!(v3(json!({"name": "v2"})).key(&[1, 2]), "1.2");
        assert!(ChunkKeys::v3("", &json!({"name": "other"})).is_err());
        assert!(ChunkKeys::v2("", &json!("../")).is_err());
    }
}
