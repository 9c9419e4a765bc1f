//! Values as keys: for groups, for DISTINCT and for ORDER BY.

use std::cmp::Ordering;

use sieva_types::Result;

use super::column::Column;
use crate::bind::OrderKey;
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

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + if let Self::Str(s) = self { s.capacity() } else { 0 }
    }

    /// The keys of a column.
    pub fn of_column(column: &Column) -> Result<Vec<Key>> {
        let n = column.len();
        let vector = column.clone().into_vector()?;
        Ok((0..n).map(|i| Self::of(vector.scalar(i))).collect())
    }
}

fn float_bits(f: f64) -> i64 {
    let f = if f == 0.0 { 0.0 } else { f };
    let bits = f.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Keeps of `order` the first of rows that are equal in all columns.
///
/// # Errors
/// `internal-error` where lengths disagree.
pub fn retain_distinct(columns: &[Column], order: &mut Vec<usize>) -> Result<()> {
    let keys = columns.iter().map(Key::of_column).collect::<Result<Vec<_>>>()?;
    let mut seen = std::collections::HashSet::new();
    order.retain(|&i| seen.insert(keys.iter().map(|k| k[i].clone()).collect::<Vec<_>>()));
    Ok(())
}

/// The rows `0..n` in the order of `keys`, whose values are `vectors`; rows that are equal keep their order.
pub fn order_by(keys: &[OrderKey], vectors: &[Vector], n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| {
        let each = keys.iter().zip(vectors).map(|(key, vector)| compare_rows(key, vector, a, b));
        each.fold(Ordering::Equal, Ordering::then)
    });
    order
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
    fn missing_values_go_where_they_are_asked_to() {
        let vector = Vector::new(Values::F64(vec![2.0, f64::NAN, -1.0, 0.0, -0.0]), None).unwrap();
        let key = |descending, nulls_first| OrderKey { value: Value::Key(0), descending, nulls_first };
        let sorted = |k| order_by(&[k], std::slice::from_ref(&vector), 5);
        assert_eq!(sorted(key(false, false)), [2, 3, 4, 0, 1]);
        assert_eq!(sorted(key(true, false)), [0, 3, 4, 2, 1]);
        assert_eq!(sorted(key(false, true)), [1, 2, 3, 4, 0]);
    }
}
