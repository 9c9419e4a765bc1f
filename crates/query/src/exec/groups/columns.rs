//! The keys of groups, a column of each.

use std::collections::HashMap;

use crate::exec::order::keys::{hash_key, is_same_key};
use crate::mask::Mask;
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_types::Result;
use std::hash::Hasher;

/// One key of all groups.
#[derive(Clone, Debug)]
pub(super) enum KeyColumn {
    /// Of one type, with those that are missing.
    Typed(Values, Mask),
    /// Of several sources that have it in different types.
    Mixed(Vec<Scalar>),
}

impl Default for KeyColumn {
    fn default() -> Self {
        Self::Typed(Values::F64(Vec::new()), Mask::default())
    }
}

macro_rules! each_type {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            Values::Bool($v) => $body,
            Values::I64($v) => $body,
            Values::U64($v) => $body,
            Values::F64($v) => $body,
            Values::Str($v) => $body,
        }
    };
}

impl KeyColumn {
    fn len(&self) -> usize {
        match self {
            Self::Typed(_, valid) => valid.len(),
            Self::Mixed(v) => v.len(),
        }
    }

    /// Adds a key.
    pub(super) fn push(&mut self, key: Scalar) {
        // As in `plain_zeros`.
        let key = if let Scalar::F64(x) = key { Scalar::F64(x + 0.0) } else { key };
        if let (Self::Typed(values, valid), Some(of)) = (&mut *self, key.value_type())
            && values.value_type() != of
        {
            if !valid.none() {
                *self = Self::Mixed((0..self.len()).map(|i| self.scalar(i)).collect());
            } else {
                // Nothing but missing ones so far: they are of any type.
                let room = each_type!(values, v => v.capacity() - v.len());
                *values = Values::zeros(of, valid.len());
                each_type!(values, v => v.reserve_exact(room));
            }
        }
        let (values, valid) = match self {
            Self::Typed(values, valid) => (values, valid),
            Self::Mixed(all) => return all.push(key),
        };
        valid.push(key != Scalar::Null);
        match (values, key) {
            (Values::Bool(v), Scalar::Bool(x)) => v.push(x),
            (Values::I64(v), Scalar::I64(x)) => v.push(x),
            (Values::U64(v), Scalar::U64(x)) => v.push(x),
            (Values::F64(v), Scalar::F64(x)) => v.push(x),
            (Values::Str(v), Scalar::Str(x)) => v.push(x),
            (values, _) => each_type!(values, v => v.push(Default::default())),
        }
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        match self {
            Self::Typed(values, valid) => {
                each_type!(values, v => v.reserve_exact(more));
                valid.reserve_exact(more);
            }
            Self::Mixed(v) => v.reserve_exact(more),
        }
    }

    /// The key of a group.
    pub(super) fn scalar(&self, i: usize) -> Scalar {
        match self {
            Self::Mixed(v) => v[i].clone(),
            Self::Typed(_, valid) if !valid.get(i) => Scalar::Null,
            Self::Typed(values, _) => match values {
                Values::Bool(v) => Scalar::Bool(v[i]),
                Values::I64(v) => Scalar::I64(v[i]),
                Values::U64(v) => Scalar::U64(v[i]),
                Values::F64(v) => Scalar::F64(v[i]),
                Values::Str(v) => Scalar::Str(v[i].clone()),
            },
        }
    }

    /// Whether a group's key is this one.
    pub(super) fn is(&self, i: usize, key: &Scalar) -> bool {
        match (self, key) {
            (Self::Typed(Values::Str(v), valid), Scalar::Str(x)) => valid.get(i) && v[i] == *x,
            (Self::Typed(Values::I64(v), valid), Scalar::I64(x)) => valid.get(i) && v[i] == *x,
            _ => is_same_key(&self.scalar(i), key),
        }
    }

    /// Bytes of a key, texts left out.
    pub(super) fn key_bytes(&self) -> u64 {
        match self {
            Self::Typed(Values::Bool(_), _) => 2,
            Self::Typed(Values::Str(_), _) => size_of::<String>() as u64 + 1,
            Self::Typed(..) => 9,
            Self::Mixed(_) => size_of::<Scalar>() as u64,
        }
    }

    /// The keys of the groups in `order`, as a column of this type.
    pub(super) fn into_vector(self, order: &[usize], of: Option<ValueType>) -> Result<Vector> {
        let of = of.unwrap_or(ValueType::F64);
        match &self {
            Self::Typed(values, valid) if values.value_type() == of => {
                Vector::new(picked(values, order), valid.take(order).unless_all())
            }
            _ => from_scalars(order.iter().map(|&i| self.scalar(i)), Some(of)),
        }
    }
}

/// The values at some places.
pub(super) fn picked(values: &Values, order: &[usize]) -> Values {
    fn pick<T: Clone>(v: &[T], order: &[usize]) -> Vec<T> {
        order.iter().map(|&i| v[i].clone()).collect()
    }
    match values {
        Values::Bool(v) => Values::Bool(pick(v, order)),
        Values::I64(v) => Values::I64(pick(v, order)),
        Values::U64(v) => Values::U64(pick(v, order)),
        Values::F64(v) => Values::F64(pick(v, order)),
        Values::Str(v) => Values::Str(pick(v, order)),
    }
}

/// The rows of a column at some places.
pub(super) fn taken(vector: &Vector, places: &[usize]) -> Result<Vector> {
    let valid = vector.valid.as_ref().map(|v| v.take(places));
    Vector::new(picked(&vector.values, places), valid)
}

/// The numbers of the first `n` values in the order in which they come, and the place of the first of each; missing is one
/// value, and so are both zeros.
pub(super) fn numbered(values: &Vector, n: usize) -> (Vec<u32>, Vec<usize>) {
    fn number<K: std::hash::Hash + Eq>(n: usize, key: impl Fn(usize) -> Option<K>) -> (Vec<u32>, Vec<usize>) {
        let (mut known, mut first): (HashMap<Option<K>, u32>, _) = (HashMap::new(), Vec::new());
        let codes = (0..n).map(|i| {
            *known.entry(key(i)).or_insert_with(|| {
                first.push(i);
                first.len() as u32 - 1
            })
        });
        (codes.collect(), first)
    }
    if values.is_constant() {
        return (vec![0; n], (0..n.min(1)).collect());
    }
    let there = |i: usize| values.is_valid(i);
    match &values.values {
        Values::Bool(v) => number(n, |i| there(i).then(|| v[i])),
        Values::I64(v) => number(n, |i| there(i).then(|| v[i])),
        Values::U64(v) => number(n, |i| there(i).then(|| v[i])),
        Values::Str(v) => number(n, |i| there(i).then(|| v[i].as_str())),
        Values::F64(v) => number(n, |i| there(i).then(|| if v[i] == 0.0 { 0 } else { v[i].to_bits() })),
    }
}

/// Keys of which no zero has a sign: which of both was first would depend on how the rows are cut.
pub(super) fn plain_zeros(mut keys: Vector) -> Vector {
    if let Values::F64(v) = &mut keys.values {
        v.iter_mut().for_each(|x| *x += 0.0);
    }
    keys
}

/// A column of single values of one type; those of another are missing.
pub(super) fn from_scalars(
    scalars: impl Iterator<Item = Scalar>,
    value_type: Option<ValueType>,
) -> Result<Vector> {
    fn column<T: Default>(
        scalars: impl Iterator<Item = Scalar>,
        pick: impl Fn(Scalar) -> Option<T>,
    ) -> (Vec<T>, Vec<bool>) {
        scalars.map(|s| pick(s).map_or((T::default(), false), |v| (v, true))).unzip()
    }
    macro_rules! values {
        ($($kind:ident),*) => {
            match value_type.unwrap_or(ValueType::F64) {
                $(ValueType::$kind => {
                    let (v, valid) = column(scalars, |s| if let Scalar::$kind(x) = s { Some(x) } else { None });
                    (Values::$kind(v), valid)
                })*
            }
        };
    }
    let (values, valid) = values!(Bool, I64, U64, F64, Str);
    Vector::new(values, Mask::from(&valid[..]).unless_all())
}

/// Bytes of a key's text.
pub(super) fn text_bytes(key: &Scalar) -> u64 {
    if let Scalar::Str(text) = key { text.capacity() as u64 } else { 0 }
}

/// Hashes the keys of a group.
pub(super) fn hash_keys(keys: &[Scalar], hasher: &mut impl Hasher) {
    keys.iter().for_each(|value| hash_key(value, hasher));
}
