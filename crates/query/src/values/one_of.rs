//! Whether values are among constants: looked up, however many those are.

use std::cmp::Ordering;
use std::collections::HashSet;

use sieva_format::decoding::Number;
use sieva_types::{Error, ErrorKind, Result};

use super::{Values, Vector};
use crate::raw::compare_exact;

/// Constants of one class, ready to be looked up.
#[derive(Clone, Debug)]
pub enum Constants {
    /// Texts.
    Texts(HashSet<String>),
    /// Numbers in ascending order, none of them NaN.
    Numbers(Vec<Number>),
}

impl Constants {
    /// Numbers in any order; NaN is equal to nothing.
    pub fn of_numbers(mut numbers: Vec<Number>) -> Self {
        numbers.retain(|n| !matches!(n, Number::Float(f) if f.is_nan()));
        numbers.sort_unstable_by(|a, b| compare_exact(*a, *b).unwrap_or(Ordering::Equal));
        Self::Numbers(numbers)
    }

    /// For each value whether it is one of them; missing where it is.
    ///
    /// # Errors
    /// `type-mismatch` for values of another class.
    pub fn hold(&self, values: &Vector) -> Result<Vector> {
        let found: Vec<bool> = match (self, &values.values) {
            (Self::Texts(known), Values::Str(v)) => v.iter().map(|x| known.contains(x)).collect(),
            (Self::Numbers(_), Values::Bool(v)) => each(v, |&x| self.has(Number::Int(x.into()))),
            (Self::Numbers(_), Values::I64(v)) => each(v, |&x| self.has(Number::Int(x.into()))),
            (Self::Numbers(_), Values::U64(v)) => each(v, |&x| self.has(Number::Int(x.into()))),
            (Self::Numbers(_), Values::F64(v)) => each(v, |&x| self.has(Number::Float(x))),
            _ => return Err(Error::new(ErrorKind::TypeMismatch, "IN of values of another type")),
        };
        Ok(Vector::new(Values::Bool(found), values.valid.clone())?.after(&[values]))
    }

    fn has(&self, x: Number) -> bool {
        let Self::Numbers(known) = self else { return false };
        let order = |k: &Number| compare_exact(*k, x).unwrap_or(Ordering::Greater);
        known.binary_search_by(order).is_ok()
    }
}

fn each<T>(values: &[T], has: impl Fn(&T) -> bool) -> Vec<bool> {
    values.iter().map(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_as_real_numbers() {
        let big = 1_i128 << 53;
        let constants = Constants::of_numbers(vec![
            Number::Int(big + 1),
            Number::Float(0.5),
            Number::Float(f64::NAN),
            Number::Int(3),
            Number::Float(-0.0),
        ]);
        let found = |v: Values| match constants.hold(&Vector::new(v, None).unwrap()).unwrap().values {
            Values::Bool(b) => b,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            found(Values::F64(vec![0.5, 3.0, 0.0, big as f64, 1.0])),
            [true, true, true, false, false]
        );
        let ints = vec![big as i64, big as i64 + 1, 3, 0];
        assert_eq!(found(Values::I64(ints)), [false, true, true, true]);
        assert_eq!(found(Values::U64(vec![u64::MAX, 3])), [false, true]);
        assert_eq!(found(Values::Bool(vec![false, true])), [true, false]);
        let missing = Vector::new(Values::F64(vec![3.0]), Some(crate::mask::Mask::zeros(1))).unwrap();
        assert!(!constants.hold(&missing).unwrap().is_valid(0));
    }
}
