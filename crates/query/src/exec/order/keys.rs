//! Values as keys: for groups, for DISTINCT and for ORDER BY.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicBool;

use sieva_types::Result as Answer;

use crate::bind::OrderKey;
use crate::exec::fetch::column::Column;
use crate::values::{Scalar, Values, Vector};

/// A value that can be hashed and ordered. Zeros of either sign are one key; missing is a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A condition.
    Bool(bool),
    /// An integer of any type.
    Int(i128),
    /// A float by its order-preserving bits.
    Float(i64),
    /// Text.
    Str(String),
    /// Missing; after all values.
    Missing,
}

impl Key {
    /// The key of a value.
    pub fn of(value: Scalar) -> Key {
        match value {
            Scalar::Null | Scalar::Histogram { .. } => Self::Missing,
            Scalar::Bool(b) => Self::Bool(b),
            Scalar::I64(i) => Self::Int(i.into()),
            Scalar::U64(u) => Self::Int(u.into()),
            Scalar::F64(f) => Self::Float(float_bits(f)),
            Scalar::Str(s) => Self::Str(s),
        }
    }

    /// The keys of a column.
    pub fn of_column(column: &Column) -> Answer<Vec<Key>> {
        let n = column.len();
        let vector = column.clone().into_vector()?;
        Ok((0..n).map(|i| Self::of(vector.scalar(i))).collect())
    }
}

/// The key of a value without its text.
fn plain(value: &Scalar) -> Result<Key, &str> {
    match value {
        Scalar::Str(s) => Err(s),
        Scalar::Null | Scalar::Histogram { .. } => Ok(Key::Missing),
        Scalar::Bool(b) => Ok(Key::Bool(*b)),
        Scalar::I64(i) => Ok(Key::Int((*i).into())),
        Scalar::U64(u) => Ok(Key::Int((*u).into())),
        Scalar::F64(f) => Ok(Key::Float(float_bits(*f))),
    }
}

/// Hashes a value as the key that it is.
pub(in crate::exec) fn hash_key(value: &Scalar, hasher: &mut impl Hasher) {
    match plain(value) {
        Ok(key) => key.hash(hasher),
        Err(text) => text.hash(hasher),
    }
}

/// Whether two values are one key.
pub(in crate::exec) fn is_same_key(a: &Scalar, b: &Scalar) -> bool {
    plain(a) == plain(b)
}

/// The order of two values as keys: missing is behind all values.
pub(in crate::exec) fn compare_keys(a: &Scalar, b: &Scalar) -> Ordering {
    match (plain(a), plain(b)) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        (Err(a), Err(b)) => a.cmp(b),
        (Ok(key), Err(_)) => {
            if key == Key::Missing {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Err(_), Ok(key)) => {
            if key == Key::Missing {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    }
}

/// The bits of a float, in the order of its values; zeros of either sign have the same.
pub(in crate::exec) fn float_bits(f: f64) -> i64 {
    let f = if f == 0.0 { 0.0 } else { f };
    let bits = f.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Keeps of `order` the first of rows that are equal in all columns.
///
/// # Errors
/// `internal-error` where lengths disagree.
pub fn retain_distinct(columns: &[Column], order: &mut Vec<usize>) -> Answer<()> {
    let keys = columns.iter().map(Key::of_column).collect::<Answer<Vec<_>>>()?;
    let mut seen = std::collections::HashSet::new();
    order.retain(|&i| seen.insert(keys.iter().map(|k| k[i].clone()).collect::<Vec<_>>()));
    Ok(())
}

/// The rows `0..n` in the order of `keys`, whose values are `vectors`; rows that are equal keep their order.
pub fn order_by(keys: &[OrderKey], vectors: &[Vector], n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    if keys.is_empty() {
        return order;
    }
    order.sort_by(|&a, &b| compare(keys, vectors, a, b));
    order
}

/// Rows that are sorted between two looks at whether the query was stopped.
const SORTED_AT_ONCE: usize = 1 << 18;

/// Sorts rows, equal ones in the order that they have, until `cancel` is set: parts of them, then twice as large ones, which
/// are two that are in order already.
///
/// # Errors
/// `cancelled`.
pub(in crate::exec) fn sort_rows(
    rows: &mut [usize],
    cancel: &AtomicBool,
    order: impl Fn(usize, usize) -> Ordering,
) -> Answer<()> {
    let mut width = SORTED_AT_ONCE;
    loop {
        for part in rows.chunks_mut(width) {
            crate::exec::pool::check(cancel)?;
            part.sort_by(|&a, &b| order(a, b));
        }
        if width >= rows.len() {
            return Ok(());
        }
        width *= 2;
    }
}

/// The order of two rows.
pub(in crate::exec) fn compare(keys: &[OrderKey], vectors: &[Vector], a: usize, b: usize) -> Ordering {
    let mut each = keys.iter().zip(vectors).map(|(key, vector)| compare_rows(key, vector, a, b));
    each.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn compare_rows(key: &OrderKey, vector: &Vector, a: usize, b: usize) -> Ordering {
    match (vector.is_valid(a), vector.is_valid(b)) {
        (false, false) => Ordering::Equal,
        (true, false) => {
            if key.nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (false, true) => {
            if key.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (true, true) => {
            let order = match &vector.values {
                Values::Bool(v) => v[a].cmp(&v[b]),
                Values::I64(v) => v[a].cmp(&v[b]),
                Values::U64(v) => v[a].cmp(&v[b]),
                Values::F64(v) => float_bits(v[a]).cmp(&float_bits(v[b])),
                Values::Str(v) => v[a].cmp(&v[b]),
            };
            if key.descending { order.reverse() } else { order }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::Value;

    #[test]
    fn rows_are_sorted_in_parts_as_at_once() {
        let key = |i: usize| i.wrapping_mul(2_654_435_761) % 1000;
        for n in [0, 5, SORTED_AT_ONCE, 3 * SORTED_AT_ONCE + 17] {
            let (mut rows, mut want) = ((0..n).collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
            sort_rows(&mut rows, &AtomicBool::new(false), |a, b| key(a).cmp(&key(b))).unwrap();
            want.sort_by_key(|&i| key(i));
            assert!(rows == want, "{n}");
        }
        assert!(sort_rows(&mut [2, 1], &AtomicBool::new(true), |a, b| a.cmp(&b)).is_err());
    }

    #[test]
    fn missing_values_go_where_they_are_asked_to() {
        let vector = Vector::new(Values::F64(vec![2.0, f64::NAN, -1.0, 0.0, -0.0]), None).unwrap();
        let key = |descending, nulls_first| OrderKey { value: Value::Key(0), descending, nulls_first };
        let sorted = |k| order_by(&[k], std::slice::from_ref(&vector), 5);
        assert_eq!(sorted(key(false, false)), [2, 3, 4, 0, 1]);
        assert_eq!(sorted(key(true, false)), [0, 3, 4, 2, 1]);
        assert_eq!(sorted(key(false, true)), [1, 2, 3, 4, 0]);
    }
}
