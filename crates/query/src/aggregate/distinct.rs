//! Counting different values.

use crate::values::ValueType;
use std::collections::HashSet;

/// The different values so far.
#[derive(Clone, Debug)]
pub(super) enum Distinct {
    /// By their bits: all values of a state are of one type.
    Numbers(HashSet<u64>),
    /// With the bytes that the texts take.
    Texts(HashSet<String>, usize),
}

impl Distinct {
    pub(super) fn new(input: ValueType) -> Self {
        match input {
            ValueType::Str => Self::Texts(HashSet::new(), 0),
            _ => Self::Numbers(HashSet::new()),
        }
    }

    pub(super) fn add_bits(&mut self, bits: u64) {
        if let Self::Numbers(set) = self {
            set.insert(bits);
        }
    }

    pub(super) fn add_f64(&mut self, x: f64) {
        // Both zeros are one number.
        self.add_bits(if x == 0.0 { 0 } else { x.to_bits() });
    }

    pub(super) fn add_str(&mut self, x: &str) {
        let Self::Texts(set, bytes) = self else { return };
        if !set.contains(x) {
            *bytes += x.len();
            set.insert(x.to_owned());
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Numbers(to), Self::Numbers(from)) => to.extend(from),
            (to @ Self::Texts(..), Self::Texts(from, _)) => from.iter().for_each(|x| to.add_str(x)),
            _ => {}
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Numbers(set) => set.len(),
            Self::Texts(set, _) => set.len(),
        }
    }

    /// Bytes on the heap, near enough: the table keeps an eighth of its places free, and a byte for each.
    pub(super) fn heap_bytes(&self) -> usize {
        let table = |capacity: usize, entry: usize| capacity / 7 * 8 * (entry + 1);
        match self {
            Self::Numbers(set) => table(set.capacity(), size_of::<u64>()),
            Self::Texts(set, bytes) => table(set.capacity(), size_of::<String>()) + bytes,
        }
    }
}
