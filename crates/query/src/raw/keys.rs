//! What the stored values of an array mean, and the bisection that finds those which satisfy a comparison.

use std::cmp::Ordering;

use sieva_format::decoding::{Decoding, Number};
use sieva_types::keys::key_range;
use sieva_types::{DType, Error, ErrorKind, KeySet, Result};

use super::order::{compare_exact, value_of_key};

/// A comparison of a value with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the six comparisons name themselves
pub enum Comparison {
    Less,
    LessEqual,
    Equal,
    NotEqual,
    GreaterEqual,
    Greater,
}

impl Comparison {
    /// The comparison that holds where this one does not (missing values aside).
    pub fn negated(self) -> Self {
        match self {
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::GreaterEqual => Self::Less,
            Self::Greater => Self::LessEqual,
        }
    }

    /// The comparison with its sides exchanged: `5 < x` is `x > 5`.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::GreaterEqual => Self::LessEqual,
            Self::Greater => Self::Less,
            same => same,
        }
    }
}

/// The stored values of one array and what they mean.
#[derive(Clone, Debug)]
pub struct StoredDomain {
    dtype: DType,
    packing: Option<(f64, f64)>,
    /// Stored values that mean "missing", NaN included.
    missing: KeySet,
}

impl StoredDomain {
    /// The domain of an array with this decoding. `valid_range` makes stored values outside of the
    /// array's valid range missing too.
    ///
    /// # Errors
    /// `invalid-value` where `scale_factor` or `add_offset` is not a finite number.
    pub fn new(decoding: &Decoding, valid_range: bool) -> Result<Self> {
        let mut domain = Self { dtype: decoding.stored, packing: decoding.packing, missing: KeySet::EMPTY };
        if let Some((scale, offset)) = decoding.packing
            && !(scale.is_finite() && offset.is_finite())
        {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("scale_factor = {scale} and add_offset = {offset} are not both finite numbers"),
            )
            .hint("raw(name) gives the stored values"));
        }
        let mut missing = KeySet { ranges: Vec::new(), nan: decoding.stored.is_float() };
        for &m in &decoding.missing {
            missing = missing.union(&domain.stored_where(Comparison::Equal, m));
        }
        if valid_range {
            if let Some(low) = decoding.valid.0 {
                missing = missing.union(&domain.stored_where(Comparison::Less, low));
            }
            if let Some(high) = decoding.valid.1 {
                missing = missing.union(&domain.stored_where(Comparison::Greater, high));
            }
        }
        if let Some((0.0, _)) = decoding.packing
            && decoding.stored.is_float()
        {
            // inf * 0 is NaN, hence missing.
            for infinity in [f64::NEG_INFINITY, f64::INFINITY] {
                missing = missing.union(&domain.stored_where(Comparison::Equal, Number::Float(infinity)));
            }
        }
        domain.missing = missing;
        Ok(domain)
    }

    /// The stored type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// `(scale, offset)` of packed data.
    pub fn packing(&self) -> Option<(f64, f64)> {
        self.packing
    }

    /// The stored values that mean "missing".
    pub fn missing(&self) -> &KeySet {
        &self.missing
    }

    /// The stored values that mean something.
    pub fn present(&self) -> KeySet {
        let (low, high) = key_range(self.dtype);
        KeySet::interval(low, high).difference(&self.missing)
    }

    /// The stored values whose decoded value satisfies `value <op> literal`.
    pub fn satisfying(&self, op: Comparison, literal: Number) -> KeySet {
        let (scale, offset) = self.packing.unwrap_or((1.0, 0.0));
        let found = match self.packing {
            None => self.bisect(op, |stored| compare_exact(stored, literal), false),
            Some(_) => {
                self.bisect(op, |stored| compare_exact(decode(stored, scale, offset), literal), scale < 0.0)
            }
        };
        found.difference(&self.missing)
    }

    /// The stored values that satisfy `stored <op> literal`, missing ones not left out.
    pub fn stored_where(&self, op: Comparison, literal: Number) -> KeySet {
        self.bisect(op, |stored| compare_exact(stored, literal), false)
    }

    fn bisect(&self, op: Comparison, order: impl Fn(Number) -> Option<Ordering>, falling: bool) -> KeySet {
        let (low, high) = key_range(self.dtype);
        if low > high || order(value_of_key(self.dtype, (low + high) / 2)).is_none() {
            return KeySet::EMPTY;
        }
        // The first key whose order relative to the literal is past `until`.
        let first = |until: &dyn Fn(Ordering) -> bool| {
            let (mut a, mut b) = (low, high + 1);
            while a < b {
                let middle = a + (b - a) / 2;
                // NaN arises only at infinities of a zero scale, which are cut out later.
                let past = order(value_of_key(self.dtype, middle)).is_none_or(until);
                if past { b = middle } else { a = middle + 1 }
            }
            a
        };
        let (equal_from, after) = if falling {
            (first(&|o| o != Ordering::Greater), first(&|o| o == Ordering::Less))
        } else {
            (first(&|o| o != Ordering::Less), first(&|o| o == Ordering::Greater))
        };
        let (before, beyond) = (KeySet::interval(low, equal_from - 1), KeySet::interval(after, high));
        let equal = KeySet::interval(equal_from, after - 1);
        let (less, greater) = if falling { (beyond, before) } else { (before, beyond) };
        match op {
            Comparison::Less => less,
            Comparison::LessEqual => less.union(&equal),
            Comparison::Equal => equal,
            Comparison::NotEqual => less.union(&greater),
            Comparison::GreaterEqual => greater.union(&equal),
            Comparison::Greater => greater,
        }
    }
}

/// The decoded value of a packed one: two roundings, as numpy does it.
fn decode(stored: Number, scale: f64, offset: f64) -> Number {
    let raw = match stored {
        Number::Int(i) => i as f64,
        Number::Float(f) => f,
    };
    Number::Float(raw * scale + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sieva_types::keys::{f32_key, f64_key};

    fn domain(stored: DType, packing: Option<(f64, f64)>, missing: Vec<Number>) -> StoredDomain {
        StoredDomain::new(&Decoding { stored, packing, missing, valid: (None, None) }, false).unwrap()
    }

    #[test]
    fn a_float32_is_compared_as_a_real_number() {
        let d = domain(DType::F32, None, vec![]);
        let set = d.satisfying(Comparison::Greater, Number::Float(1.7));
        // 1.7f32 is 1.7000000476837158, greater than 1.7.
        assert_eq!(set.ranges, [(f32_key(1.7), f32_key(f32::INFINITY))]);
        assert!(d.satisfying(Comparison::Equal, Number::Float(1.7)).is_empty());
    }

    #[test]
    fn zeros_are_equal_whatever_their_sign() {
        let d = domain(DType::F64, None, vec![]);
        assert_eq!(d.satisfying(Comparison::Equal, Number::Int(0)).ranges, [(f64_key(-0.0), f64_key(0.0))]);
    }

    #[test]
    fn a_fill_value_is_cut_out() {
        let d = domain(DType::I16, None, vec![Number::Int(7)]);
        assert_eq!(d.satisfying(Comparison::Greater, Number::Float(4.5)).ranges, [(5, 6), (8, 32767)]);
        assert_eq!(d.missing().ranges, [(7, 7)]);
        assert!(d.satisfying(Comparison::Equal, Number::Int(7)).is_empty());
    }

    #[test]
    fn a_nan_literal_satisfies_nothing() {
        let d = domain(DType::F64, None, vec![]);
        assert!(d.satisfying(Comparison::NotEqual, Number::Float(f64::NAN)).is_empty());
    }

    #[test]
    fn a_zero_scale_makes_all_one_value() {
        let d = domain(DType::F32, Some((0.0, 3.0)), vec![]);
        let all = d.satisfying(Comparison::Equal, Number::Int(3));
        assert_eq!(all.ranges, [(f32_key(f32::MIN), f32_key(f32::MAX))]);
        assert!(d.satisfying(Comparison::Greater, Number::Int(3)).is_empty());
    }

    proptest! {
        #[test]
        fn intervals_agree_with_decoding(scale in prop_oneof![-3.0..3.0_f64, Just(0.0), Just(0.01)],
                                         offset in -400.0..400.0_f64, literal in -500.0..500.0_f64) {
            let d = domain(DType::I8, Some((scale, offset)), vec![Number::Int(-99)]);
            for (op, holds) in [
                (Comparison::Less, (|v, l| v < l) as fn(f64, f64) -> bool),
                (Comparison::LessEqual, |v, l| v <= l), (Comparison::Equal, |v, l| v == l),
                (Comparison::NotEqual, |v, l| v != l), (Comparison::GreaterEqual, |v, l| v >= l),
                (Comparison::Greater, |v, l| v > l),
            ] {
                for literal in [literal, 5.0 * scale + offset] {
                    let set = d.satisfying(op, Number::Float(literal));
                    for raw in i8::MIN..=i8::MAX {
                        let inside = set.ranges.iter().any(|r| r.0 <= raw.into() && i128::from(raw) <= r.1);
                        let value = f64::from(raw) * scale + offset;
                        prop_assert_eq!(inside, raw != -99 && holds(value, literal), "{} {:?} {}", raw, op, literal);
                    }
                }
            }
        }
    }
}
