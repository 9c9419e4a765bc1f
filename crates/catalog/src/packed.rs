//! Attributes of an object, and other small things, as bytes: see `docs/reference/catalog.md`.

use sieva_types::{Error, Result};

use crate::value::Value;

/// An attribute or tag: number of its key, whether it is a tag, value.
pub(crate) type Entry = (i64, bool, Value);

const TAG: u8 = 0x80;

fn put_count(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a value: a byte of its type, with `flag`, and what the type holds.
fn put_value(out: &mut Vec<u8>, value: &Value, flag: u8) {
    match value {
        Value::Int(i) => {
            out.push(flag);
            put_count(out, (*i as u64) << 1 ^ (*i >> 63) as u64);
        }
        Value::UInt(u) => {
            out.push(1 | flag);
            put_count(out, *u);
        }
        Value::Float(x) => {
            out.push(2 | flag);
            out.extend_from_slice(&x.to_bits().to_le_bytes());
        }
        Value::Text(s) => {
            out.push(3 | flag);
            put_count(out, s.len() as u64);
            out.extend_from_slice(s.as_bytes());
        }
        Value::Bool(b) => out.push((4 + u8::from(*b)) | flag),
    }
}

/// The bytes of a shape.
pub(crate) fn shape(shape: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    shape.iter().for_each(|&n| put_count(&mut out, n));
    out
}

/// The bytes of values.
pub(crate) fn values(values: &[&Value]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|v| put_value(&mut out, v, 0));
    out
}

/// The bytes of attributes and tags.
pub(crate) fn entries(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, is_tag, value) in entries {
        put_count(&mut out, *key as u64);
        put_value(&mut out, value, if *is_tag { TAG } else { 0 });
    }
    out
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn damaged() -> Error {
        Error::corrupt("attributes of an object in the catalog are damaged").hint("register its source anew")
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or_else(Self::damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn count(&mut self) -> Result<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(Self::damaged())
    }

    fn value(&mut self) -> Result<(Value, bool)> {
        let code = self.byte()?;
        let value = match code & !TAG {
            0 => {
                let n = self.count()?;
                Value::Int((n >> 1) as i64 ^ -((n & 1) as i64))
            }
            1 => Value::UInt(self.count()?),
            2 => {
                let bytes = self.take(8)?.try_into().map_err(|_| Self::damaged())?;
                Value::Float(f64::from_bits(u64::from_le_bytes(bytes)))
            }
            3 => {
                let len = usize::try_from(self.count()?).map_err(|_| Self::damaged())?;
                let text = std::str::from_utf8(self.take(len)?).map_err(|_| Self::damaged())?;
                Value::Text(text.to_owned())
            }
            4 => Value::Bool(false),
            5 => Value::Bool(true),
            _ => return Err(Self::damaged()),
        };
        Ok((value, code & TAG != 0))
    }
}

/// The shape that bytes hold.
pub(crate) fn read_shape(bytes: &[u8]) -> Result<Vec<u64>> {
    let mut reader = Reader(bytes);
    let mut shape = Vec::new();
    while !reader.0.is_empty() {
        shape.push(reader.count()?);
    }
    Ok(shape)
}

/// The values that bytes hold.
pub(crate) fn read_values(bytes: &[u8]) -> Result<Vec<Value>> {
    let mut reader = Reader(bytes);
    let mut values = Vec::new();
    while !reader.0.is_empty() {
        values.push(reader.value()?.0);
    }
    Ok(values)
}

/// The attributes and tags that bytes hold.
pub(crate) fn read_entries(bytes: &[u8]) -> Result<Vec<Entry>> {
    let mut reader = Reader(bytes);
    let mut entries = Vec::new();
    while !reader.0.is_empty() {
        let key = i64::try_from(reader.count()?).map_err(|_| Reader::damaged())?;
        let (value, is_tag) = reader.value()?;
        entries.push((key, is_tag, value));
    }
    Ok(entries)
}

/// The value that counts of a key: the tag, where both are there.
pub(crate) fn value_of(entries: &[Entry], key: i64) -> Option<&Value> {
    let of_key = || entries.iter().filter(move |e| e.0 == key);
    of_key().find(|e| e.1).or_else(|| of_key().next()).map(|e| &e.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_come_back_bit_for_bit() {
        let values = [
            Value::Int(i64::MIN),
            Value::Int(i64::MAX),
            Value::Int(-1),
            Value::UInt(u64::MAX),
            Value::Float(-0.0),
            Value::Float(f64::from_bits(0x7ff8_0000_0000_1234)),
            Value::Text("a\0é".into()),
            Value::Bool(true),
        ];
        let entries: Vec<Entry> =
            values.iter().enumerate().map(|(i, v)| (i as i64 * 100, i % 2 == 0, v.clone())).collect();
        let back = read_entries(&super::entries(&entries)).unwrap();
        assert_eq!(format!("{back:?}"), format!("{entries:?}"));
        let bits = |e: &Entry| if let Value::Float(x) = e.2 { x.to_bits() } else { 0 };
        assert!(back.iter().map(bits).eq(entries.iter().map(bits)));
        assert_eq!(read_shape(&shape(&[0, 127, 128, u64::MAX])).unwrap(), [0, 127, 128, u64::MAX]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(entries) = read_entries(&bytes) {
                let again = format!("{:?}", read_entries(&super::entries(&entries)).unwrap());
                prop_assert_eq!(again, format!("{entries:?}"));
            }
        }
    }
}
