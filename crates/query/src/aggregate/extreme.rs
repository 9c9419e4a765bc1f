//! Least and greatest values, of their own type.

use crate::values::{Scalar, ValueType};

/// Lanes of the bulk loops, for the compiler to keep in vector registers.
const LANES: usize = 16;

/// The least or the greatest value so far.
#[derive(Clone, Debug)]
pub(super) struct Extreme {
    is_greatest: bool,
    best: Best,
}

#[derive(Clone, Debug)]
enum Best {
    Bool(Option<bool>),
    I64(Option<i64>),
    U64(Option<u64>),
    F64(Option<f64>),
    Str(Option<String>),
}

impl Extreme {
    pub(super) fn new(input: ValueType, is_greatest: bool) -> Self {
        let best = match input {
            ValueType::Bool => Best::Bool(None),
            ValueType::I64 => Best::I64(None),
            ValueType::U64 => Best::U64(None),
            ValueType::F64 => Best::F64(None),
            ValueType::Str => Best::Str(None),
        };
        Self { is_greatest, best }
    }

    pub(super) fn add_bool(&mut self, x: bool) {
        if let Best::Bool(best) = &mut self.best {
            *best = Some(best.map_or(x, |b| if self.is_greatest { b | x } else { b & x }));
        }
    }

    pub(super) fn add_i64s(&mut self, values: &[i64]) {
        if let Best::I64(best) = &mut self.best {
            merge_ordered(best, bulk(values, self.is_greatest), self.is_greatest);
        }
    }

    pub(super) fn add_u64s(&mut self, values: &[u64]) {
        if let Best::U64(best) = &mut self.best {
            merge_ordered(best, bulk(values, self.is_greatest), self.is_greatest);
        }
    }

    pub(super) fn add_f64s(&mut self, values: &[f64]) {
        if let Best::F64(best) = &mut self.best {
            merge_floats(best, bulk_floats(values, self.is_greatest), self.is_greatest);
        }
    }

    pub(super) fn add_str(&mut self, x: &str) {
        let Best::Str(best) = &mut self.best else { return };
        if best.as_deref().is_none_or(|b| if self.is_greatest { x > b } else { x < b }) {
            *best = Some(x.to_owned());
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        match other.best {
            Best::Bool(Some(x)) => self.add_bool(x),
            Best::I64(Some(x)) => self.add_i64s(&[x]),
            Best::U64(Some(x)) => self.add_u64s(&[x]),
            Best::F64(Some(x)) => self.add_f64s(&[x]),
            Best::Str(Some(x)) => self.add_str(&x),
            _ => {}
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        if let Best::Str(Some(s)) = &self.best { s.capacity() } else { 0 }
    }

    pub(super) fn finish(self) -> Scalar {
        match self.best {
            Best::Bool(Some(x)) => Scalar::Bool(x),
            Best::I64(Some(x)) => Scalar::I64(x),
            Best::U64(Some(x)) => Scalar::U64(x),
            Best::F64(Some(x)) => Scalar::F64(x),
            Best::Str(Some(x)) => Scalar::Str(x),
            _ => Scalar::Null,
        }
    }
}

fn merge_ordered<T: Ord>(best: &mut Option<T>, found: Option<T>, is_greatest: bool) {
    *best = match (best.take(), found) {
        (Some(a), Some(b)) => Some(if is_greatest { a.max(b) } else { a.min(b) }),
        (a, b) => a.or(b),
    };
}

fn bulk<T: Ord + Copy>(values: &[T], is_greatest: bool) -> Option<T> {
    if is_greatest { values.iter().copied().max() } else { values.iter().copied().min() }
}

/// Between zeros the sign decides, so that the order of the values does not matter.
fn merge_floats(best: &mut Option<f64>, found: Option<f64>, is_greatest: bool) {
    let Some(x) = found else { return };
    let is_better = best.is_none_or(|b| match is_greatest {
        true => x > b || (x == b && b.is_sign_negative()),
        false => x < b || (x == b && x.is_sign_negative()),
    });
    if is_better {
        *best = Some(x);
    }
}

fn bulk_floats(values: &[f64], is_greatest: bool) -> Option<f64> {
    let best = if is_greatest {
        lanes(values, |a, b| if b > a { b } else { a })
    } else {
        lanes(values, |a, b| if b < a { b } else { a })
    }?;
    if best != 0.0 {
        return Some(best);
    }
    // The comparisons above take both zeros for equal; only now their signs are looked at.
    let decisive = if is_greatest { 0.0_f64 } else { -0.0 };
    let has_decisive = values.iter().any(|x| x.to_bits() == decisive.to_bits());
    Some(if has_decisive { decisive } else { -decisive })
}

fn lanes(values: &[f64], better: impl Fn(f64, f64) -> f64) -> Option<f64> {
    let (&first, _) = values.split_first()?;
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    let mut best = [first; LANES];
    for chunk in chunks {
        for (lane, &x) in best.iter_mut().zip(chunk) {
            *lane = better(*lane, x);
        }
    }
    best.iter().chain(rest).copied().reduce(better)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f64], is_greatest: bool) -> f64 {
        bulk_floats(values, is_greatest).unwrap()
    }

    #[test]
    fn signs_of_zeros_do_not_depend_on_order() {
        for values in [[0.0, -0.0], [-0.0, 0.0]] {
            assert!(floats(&values, false).is_sign_negative());
            assert!(floats(&values, true).is_sign_positive());
            let mut one_by_one = Extreme::new(ValueType::F64, false);
            values.iter().for_each(|&x| one_by_one.add_f64s(&[x]));
            assert!(matches!(one_by_one.finish(), Scalar::F64(x) if x.is_sign_negative()));
        }
        assert!(floats(&[0.0, 1.0], false).is_sign_positive());
        assert!(floats(&[-0.0, -1.0], true).is_sign_negative());
    }

    #[test]
    fn every_position_is_looked_at() {
        for n in [1, 15, 16, 17, 50] {
            for at in 0..n {
                let mut values = vec![0.5; n];
                values[at] = -1.0;
                assert_eq!((floats(&values, false), n), (-1.0, n));
                values[at] = f64::INFINITY;
                assert_eq!(floats(&values, true), f64::INFINITY);
            }
        }
    }
}
