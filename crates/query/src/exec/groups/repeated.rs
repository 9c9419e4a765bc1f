//! A key of groups that are a grid of keys: not held for each, as it follows from the group's number.

use std::ops::Range;

use sieva_types::{Result, Texts, large};

use super::columns::taken;
use crate::mask::Mask;
use crate::values::{Values, Vector};

/// A key of all groups of a table.
#[derive(Clone, Debug)]
pub enum KeyValues {
    /// One for each.
    Each(Vector),
    /// Each of these `within` times in a row, and all of that again, up to so many groups.
    Repeated {
        /// The different ones, in order.
        values: Vector,
        /// How many groups in a row have the same.
        within: usize,
        /// How many groups there are.
        len: usize,
    },
}

impl KeyValues {
    /// Those of some groups in a row.
    ///
    /// # Errors
    /// `internal-error` where lengths disagree.
    pub(super) fn range(&self, rows: Range<usize>) -> Result<Vector> {
        let (values, within) = match self {
            Self::Each(values) => return range_of(values, rows),
            Self::Repeated { values, within, .. } => (values, *within),
        };
        let place = |i| (rows.start + i) / within % values.len();
        let valid = values.valid.as_ref().map(|v| Mask::from_fn(rows.len(), |i| v.get(place(i))));
        let all = match &values.values {
            Values::Bool(v) => Values::Bool(repeated(v, within, &rows)),
            Values::I64(v) => Values::I64(repeated(v, within, &rows)),
            Values::U64(v) => Values::U64(repeated(v, within, &rows)),
            Values::F64(v) => Values::F64(repeated(v, within, &rows)),
            Values::Str(v) => Values::Str(repeated_texts(v, within, rows)),
        };
        Vector::new(all, valid)
    }

    /// Those of some groups.
    ///
    /// # Errors
    /// As [`KeyValues::range`].
    pub(super) fn take(&self, groups: &[usize]) -> Result<Vector> {
        match self {
            Self::Each(values) => taken(values, groups),
            Self::Repeated { values, within, .. } => {
                let n = values.len().max(1);
                taken(values, &groups.iter().map(|g| g / within % n).collect::<Vec<_>>())
            }
        }
    }

    /// Those of all groups.
    ///
    /// # Errors
    /// As [`KeyValues::range`].
    pub(super) fn all(&self) -> Result<Vector> {
        match self {
            Self::Each(values) => Ok(values.clone()),
            Self::Repeated { len, .. } => self.range(0..*len),
        }
    }

    /// Bytes that they take.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Each(values) | Self::Repeated { values, .. } => values.memory_bytes(),
        }
    }
}

/// Some rows of a column that are in a row.
pub(super) fn range_of(vector: &Vector, rows: Range<usize>) -> Result<Vector> {
    let valid = vector.valid.as_ref().map(|v| v.slice(rows.clone()));
    let values = match &vector.values {
        Values::Bool(v) => Values::Bool(v[rows].to_vec()),
        Values::I64(v) => Values::I64(large::copy_of(&v[rows])),
        Values::U64(v) => Values::U64(large::copy_of(&v[rows])),
        Values::F64(v) => Values::F64(large::copy_of(&v[rows])),
        Values::Str(v) => Values::Str(v.slice(rows)),
    };
    Vector::new(values, valid)
}

/// Of each value `within` times in a row, and all of that again and again, those in `rows`.
fn repeated<T: Clone>(values: &[T], within: usize, rows: &Range<usize>) -> Vec<T> {
    let (mut all, mut at) = (large::with_room(rows.len()), rows.start);
    while at < rows.end {
        let (place, skipped) = (at / within % values.len(), at % within);
        if within == 1 {
            let n = (values.len() - place).min(rows.end - at);
            all.extend_from_slice(&values[place..place + n]);
            at += n;
        } else {
            let n = (within - skipped).min(rows.end - at);
            all.extend(std::iter::repeat_n(values[place].clone(), n));
            at += n;
        }
    }
    all
}

/// As [`repeated`].
fn repeated_texts(texts: &Texts, within: usize, rows: Range<usize>) -> Texts {
    texts.take(rows.map(|i| i / within % texts.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Scalar;

    #[test]
    fn repeated_texts_are_those_of_each_group() {
        let values = Vector::new(Values::Str(Texts::from_iter(["b", "", "é"])), None).unwrap();
        let key = KeyValues::Repeated { values, within: 2, len: 12 };
        let part = key.range(3..11).unwrap();
        assert_eq!(part.values, Values::Str(Texts::from_iter(["", "é", "é", "b", "b", "", "", "é"])));
    }

    #[test]
    fn repeated_keys_are_those_of_each_group() {
        for within in [1, 3, 4] {
            let values =
                Vector::new(Values::I64(vec![5, 7, 6]), Some(Mask::from(&[true, false, true][..]))).unwrap();
            let len = 3 * within * 2;
            let key = KeyValues::Repeated { values, within, len };
            let all = key.all().unwrap();
            let expected = |g: usize| [Scalar::I64(5), Scalar::Null, Scalar::I64(6)][g / within % 3].clone();
            assert_eq!(all.len(), len);
            assert!((0..len).all(|g| all.scalar(g) == expected(g)));
            for first in 0..len {
                let part = key.range(first..len.min(first + 5)).unwrap();
                assert!((0..part.len()).all(|i| part.scalar(i) == expected(first + i)));
            }
            let some = key.take(&[len - 1, 0, 2]).unwrap();
            assert!([len - 1, 0, 2].iter().enumerate().all(|(i, &g)| some.scalar(i) == expected(g)));
        }
    }
}
