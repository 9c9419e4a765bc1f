//! Values of attributes and tags, and their bytes that sort as the values do.

use std::cmp::Ordering;

/// The value of an attribute or a tag.
///
/// Numbers compare as real numbers, whatever their types: 3 equals 3.0, and 2^53 + 1 is greater than 2^53 as a float.
/// A number, a text and a bool never compare with one another, and NaN with nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A signed integer.
    Int(i64),
    /// An integer, for those beyond `i64`.
    UInt(u64),
    /// A float.
    Float(f64),
    /// A text. Compared by its UTF-8 bytes.
    Text(String),
    /// True or false; false is less.
    Bool(bool),
}

/// Bytes of a text that are part of its sorting key. PostgreSQL's index entries hold at most 2700 bytes.
const TEXT_PREFIX: usize = 255;

/// First byte of a sorting key.
pub(crate) const BOOL: u8 = b'b';
/// First byte of a sorting key.
pub(crate) const NUMBER: u8 = b'n';
/// First byte of a sorting key.
pub(crate) const TEXT: u8 = b't';
/// First byte, and only one, of the sorting key of NaN.
pub(crate) const NAN: u8 = b'x';

/// Bytes whose order is that of values of one class; `rest` is what a long text has beyond them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey {
    /// The class, then at most 255 bytes.
    pub head: Vec<u8>,
    /// The rest of a long text; compared where the heads are equal.
    pub rest: Vec<u8>,
}

impl Value {
    /// The order of two values; `None` for values of different classes and for NaN.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        let (a, b) = (self.sort_key(), other.sort_key());
        (a.head[0] == b.head[0] && a.head[0] != NAN).then(|| a.cmp(&b))
    }

    /// Whether it is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Self::Float(x) if x.is_nan())
    }

    /// Whether it is a number that is not NaN.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::UInt(_) | Self::Float(_)) && !self.is_nan()
    }

    /// The sorting key.
    pub(crate) fn sort_key(&self) -> SortKey {
        let head = match self {
            Self::Int(i) => integer_key(i128::from(*i)),
            Self::UInt(u) => integer_key(i128::from(*u)),
            Self::Float(x) if x.is_nan() => vec![NAN],
            Self::Float(x) => number_key(*x, 0),
            Self::Bool(b) => vec![BOOL, u8::from(*b)],
            Self::Text(s) => {
                let bytes = s.as_bytes();
                let split = bytes.len().min(TEXT_PREFIX);
                let mut head = Vec::with_capacity(split + 1);
                head.push(TEXT);
                head.extend_from_slice(&bytes[..split]);
                return SortKey { head, rest: bytes[split..].to_vec() };
            }
        };
        SortKey { head, rest: Vec::new() }
    }
}

/// The key of an integer within the ranges of `i64` and `u64`: the float below it and the distance to it.
fn integer_key(i: i128) -> Vec<u8> {
    let mut below = i as f64;
    if below as i128 > i {
        below = below.next_down();
    }
    // Floats below 2^64 are at most 2^11 apart.
    number_key(below, (i - below as i128) as u16)
}

fn number_key(x: f64, above: u16) -> Vec<u8> {
    let bits = (x + 0.0).to_bits(); // -0.0 becomes 0.0
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    let mut key = Vec::with_capacity(11);
    key.push(NUMBER);
    key.extend_from_slice(&ordered.to_be_bytes());
    if above > 0 {
        key.extend_from_slice(&above.to_be_bytes());
    }
    key
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}

impl From<i32> for Value {
    fn from(v: i32) -> Self {
        Self::Int(i64::from(v))
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Self {
        i64::try_from(v).map_or(Self::UInt(v), Self::Int)
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Self::Float(v)
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Self::Bool(v)
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::Text(v.to_owned())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Self {
        Self::Text(v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(a: &Value, b: &Value) -> Option<Ordering> {
        // Oracle: a float that is an integer is compared as one, another by its floor.
        let int = |v: &Value| match v {
            Value::Int(i) => Some(i128::from(*i)),
            Value::UInt(u) => Some(i128::from(*u)),
            _ => None,
        };
        match (int(a), int(b), a, b) {
            (Some(i), Some(j), _, _) => Some(i.cmp(&j)),
            (Some(i), _, _, Value::Float(x)) => int_float(i, *x),
            (_, Some(j), Value::Float(x), _) => int_float(j, *x).map(Ordering::reverse),
            (_, _, Value::Float(x), Value::Float(y)) => x.partial_cmp(y),
            _ => None,
        }
    }

    fn int_float(i: i128, x: f64) -> Option<Ordering> {
        if x.is_nan() {
            return None;
        }
        if x.abs() >= 1e30 {
            return Some(if x > 0.0 { Ordering::Less } else { Ordering::Greater });
        }
        let floor = x.floor();
        Some(i.cmp(&(floor as i128)).then(if x > floor { Ordering::Less } else { Ordering::Equal }))
    }

    #[test]
    fn numbers_compare_as_real_numbers() {
        let mut values = vec![];
        for base in [0i128, 1, 255, 1 << 52, 1 << 53, 1 << 54, 1 << 62, 1 << 63, (1 << 64) - 1] {
            for d in -1030i128..1030 {
                if d.abs() > 3 && d.abs() < 1020 {
                    continue;
                }
                for i in [base + d, -base + d] {
                    values.extend(i64::try_from(i).map(Value::Int));
                    values.extend(u64::try_from(i).map(Value::UInt));
                    values.push(Value::Float(i as f64));
                    values.push(Value::Float((i as f64).next_up()));
                }
            }
        }
        let odd = [0.5, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE, 5e-324, 153.17];
        values.extend(odd.map(Value::Float));
        for a in &values {
            for b in &values {
                assert_eq!(a.compare(b), exact(a, b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn texts_compare_by_all_of_their_bytes() {
        let long = "x".repeat(300);
        let texts =
            ["", "a", "a\0", "ab", "b", "é", &long[..255], &long[..256], &long, &(long.clone() + "a")];
        for a in texts {
            for b in texts {
                assert_eq!(Value::from(a).compare(&Value::from(b)), Some(a.as_bytes().cmp(b.as_bytes())));
            }
        }
        assert_eq!(Value::from("1").compare(&Value::Int(1)), None);
        assert_eq!(Value::Bool(true).compare(&Value::Int(1)), None);
        assert_eq!(Value::Bool(false).compare(&Value::Bool(true)), Some(Ordering::Less));
    }
}
