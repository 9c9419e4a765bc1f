//! The keys of groups, a column of each.

use std::collections::HashMap;

use crate::exec::order::keys::{hash_key, is_same_key};
use crate::mask::Mask;
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_types::{Result, Texts};
use std::hash::{BuildHasher, Hasher, RandomState};

use super::seeded::Seeded;

/// One key of all groups.
#[derive(Clone, Debug)]
pub(super) enum KeyColumn {
    /// Of one type, with those that are missing.
    Typed(Values, Mask),
    /// Of several sources that have it in different types, with the bytes of texts among them.
    Mixed(Vec<Scalar>, u64),
}

impl Default for KeyColumn {
    fn default() -> Self {
        Self::Typed(Values::F64(Vec::new()), Mask::default())
    }
}

/// Runs `$body` with `$v` bound to the vector inside, or `$texts` with texts.
macro_rules! each_type {
    ($values:expr, $v:ident => $body:expr, $texts:expr) => {
        match $values {
            Values::Bool($v) => $body,
            Values::I64($v) => $body,
            Values::U64($v) => $body,
            Values::F64($v) => $body,
            Values::Str($v) => $texts,
        }
    };
}

impl KeyColumn {
    fn len(&self) -> usize {
        match self {
            Self::Typed(_, valid) => valid.len(),
            Self::Mixed(v, _) => v.len(),
        }
    }

    /// Adds a key.
    ///
    /// # Errors
    /// `memory-limit` where the system has no room for a text.
    pub(super) fn push(&mut self, key: Scalar) -> Result<()> {
        // As in `plain_zeros`.
        let key = if let Scalar::F64(x) = key { Scalar::F64(x + 0.0) } else { key };
        if let (Self::Typed(values, valid), Some(of)) = (&mut *self, key.value_type())
            && values.value_type() != of
        {
            if !valid.none() {
                let all: Vec<Scalar> = (0..self.len()).map(|i| self.scalar(i)).collect();
                let texts = all.iter().map(text_bytes).sum();
                *self = Self::Mixed(all, texts);
            } else {
                // Nothing but missing ones so far: they are of any type.
                let room = each_type!(values, v => v.capacity() - v.len(), v.room());
                *values = Values::zeros(of, valid.len());
                reserve(values, room)?;
            }
        }
        let (values, valid) = match self {
            Self::Typed(values, valid) => (values, valid),
            Self::Mixed(all, texts) => {
                *texts += text_bytes(&key);
                all.push(key);
                return Ok(());
            }
        };
        valid.push(key != Scalar::Null);
        match (values, key) {
            (Values::Bool(v), Scalar::Bool(x)) => v.push(x),
            (Values::I64(v), Scalar::I64(x)) => v.push(x),
            (Values::U64(v), Scalar::U64(x)) => v.push(x),
            (Values::F64(v), Scalar::F64(x)) => v.push(x),
            (Values::Str(v), Scalar::Str(x)) => {
                v.reserve_exact(0, grown(v, x.len()))?;
                v.push(&x);
            }
            (values, _) => each_type!(values, v => v.push(Default::default()), v.push("")),
        }
        Ok(())
    }

    /// Makes room for so many more.
    ///
    /// # Errors
    /// `memory-limit` where the system has none for texts.
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        match self {
            Self::Typed(values, valid) => {
                reserve(values, more)?;
                valid.reserve_exact(more);
            }
            Self::Mixed(v, _) => v.reserve_exact(more),
        }
        Ok(())
    }

    /// The key of a group.
    pub(super) fn scalar(&self, i: usize) -> Scalar {
        match self {
            Self::Mixed(v, _) => v[i].clone(),
            Self::Typed(_, valid) if !valid.get(i) => Scalar::Null,
            Self::Typed(values, _) => match values {
                Values::Bool(v) => Scalar::Bool(v[i]),
                Values::I64(v) => Scalar::I64(v[i]),
                Values::U64(v) => Scalar::U64(v[i]),
                Values::F64(v) => Scalar::F64(v[i]),
                Values::Str(v) => Scalar::Str(v[i].to_owned()),
            },
        }
    }

    /// Whether a group's key is this one.
    pub(super) fn is(&self, i: usize, key: &Scalar) -> bool {
        match (self, key) {
            (Self::Typed(Values::Str(v), valid), Scalar::Str(x)) => valid.get(i) && v[i] == **x,
            (Self::Typed(Values::I64(v), valid), Scalar::I64(x)) => valid.get(i) && v[i] == *x,
            _ => is_same_key(&self.scalar(i), key),
        }
    }

    /// Bytes of a key, texts left out.
    pub(super) fn key_bytes(&self) -> u64 {
        match self {
            Self::Typed(Values::Bool(_), _) => 2,
            Self::Typed(Values::Str(_), _) => size_of::<i32>() as u64 + 1,
            Self::Typed(..) => 9,
            Self::Mixed(..) => size_of::<Scalar>() as u64,
        }
    }

    /// Bytes of the texts.
    pub(super) fn text_bytes(&self) -> u64 {
        match self {
            Self::Typed(Values::Str(v), _) => v.bytes_capacity() as u64,
            Self::Typed(..) => 0,
            Self::Mixed(_, texts) => *texts,
        }
    }

    /// The most bytes more that the text of a key takes: where its place gets larger, old and new are held for a moment.
    pub(super) fn text_growth(&self, key: &Scalar) -> u64 {
        match (self, key) {
            (Self::Typed(Values::Str(v), _), Scalar::Str(x)) => match grown(v, x.len()) {
                0 => 0,
                more => (v.bytes_capacity() + more) as u64,
            },
            _ => text_bytes(key),
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

/// Makes room for so many values more and no others.
fn reserve(values: &mut Values, more: usize) -> Result<()> {
    each_type!(values, v => v.reserve_exact(more), v.reserve_exact(more, 0)?);
    Ok(())
}

/// Bytes that the place of texts is made larger by for one more of so many bytes: by a quarter at least, as all places
/// of groups are.
fn grown(texts: &Texts, more: usize) -> usize {
    let len = texts.as_str().len();
    if texts.bytes_capacity() - len >= more { 0 } else { more.max(len / 4).max(64) }
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
        Values::Str(v) => Values::Str(v.take(order.iter().copied())),
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
    fn number<K: std::hash::Hash + Eq, S: BuildHasher + Default>(
        n: usize,
        key: impl Fn(usize) -> Option<K>,
    ) -> (Vec<u32>, Vec<usize>) {
        let (mut known, mut missing): (HashMap<K, u32, S>, _) = (HashMap::default(), u32::MAX);
        let mut first = Vec::new();
        let codes = (0..n).map(|i| {
            let code = match key(i) {
                Some(key) => known.entry(key).or_insert(u32::MAX),
                None => &mut missing,
            };
            if *code == u32::MAX {
                *code = first.len() as u32;
                first.push(i);
            }
            *code
        });
        (codes.collect(), first)
    }
    type Numbers = Seeded;
    type OfTexts = RandomState;
    if values.is_constant() {
        return (vec![0; n], (0..n.min(1)).collect());
    }
    let there = |i: usize| values.is_valid(i);
    match &values.values {
        Values::Bool(v) => number::<_, Numbers>(n, |i| there(i).then(|| u8::from(v[i]))),
        Values::I64(v) => {
            in_range(&v[..n], there).unwrap_or_else(|| number::<_, Numbers>(n, |i| there(i).then(|| v[i])))
        }
        Values::U64(v) => number::<_, Numbers>(n, |i| there(i).then(|| v[i])),
        Values::Str(v) => number::<_, OfTexts>(n, |i| there(i).then(|| &v[i])),
        Values::F64(v) => {
            let bits = |x: f64| if x == 0.0 { 0 } else { x.to_bits() };
            number::<_, Numbers>(n, |i| there(i).then(|| bits(v[i])))
        }
    }
}

/// The same of integers that lie so near to one another that a table has a place for each.
fn in_range(values: &[i64], there: impl Fn(usize) -> bool) -> Option<(Vec<u32>, Vec<usize>)> {
    let low = *values.iter().min()?;
    let width = values.iter().max()?.checked_sub(low).and_then(|w| usize::try_from(w).ok())?;
    if width > 2 * values.len() {
        return None;
    }
    // The last place is that of missing ones, whatever stands there.
    let mut known = vec![u32::MAX; width + 2];
    let mut first = Vec::new();
    let codes = values.iter().enumerate().map(|(i, &x)| {
        let code = &mut known[if there(i) { (x - low) as usize } else { width + 1 }];
        if *code == u32::MAX {
            *code = first.len() as u32;
            first.push(i);
        }
        *code
    });
    Some((codes.collect(), first))
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
                ValueType::Str => return texts_of(scalars),
            }
        };
    }
    let (values, valid) = values!(Bool, I64, U64, F64);
    Vector::new(values, Mask::from(&valid[..]).unless_all())
}

/// Those that are texts; the others are missing.
fn texts_of(scalars: impl Iterator<Item = Scalar>) -> Result<Vector> {
    let (mut texts, mut valid) = (Texts::with_room(scalars.size_hint().0, 0), Vec::new());
    for scalar in scalars {
        let text = if let Scalar::Str(text) = &scalar { Some(&**text) } else { None };
        valid.push(text.is_some());
        texts.push(text.unwrap_or_default());
    }
    Vector::new(Values::Str(texts), Mask::from(&valid[..]).unless_all())
}

/// Bytes of a key's text.
fn text_bytes(key: &Scalar) -> u64 {
    if let Scalar::Str(text) = key { text.len() as u64 } else { 0 }
}

/// Hashes the keys of a group.
pub(super) fn hash_keys(keys: &[Scalar], hasher: &mut impl Hasher) {
    keys.iter().for_each(|value| hash_key(value, hasher));
}
