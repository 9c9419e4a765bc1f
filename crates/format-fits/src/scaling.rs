//! From stored numbers to values: BSCALE, BZERO and BLANK of images, TSCAL, TZERO and TNULL of columns
//! (FITS standard 4.0, sections 4.4.2.5, 5.3 and 7.3.2).
//!
//! FITS has no unsigned integers of 16, 32 and 64 bits, and no signed bytes. By convention (table 11) they are
//! stored with an offset of half their range, which is what flipping the sign bit does. Such data are of the
//! integer type that is meant, exact also beyond 2^53. Any other scale makes float64, as CF packing does.

use sieva_format::decoding::{Decoding, Number};
use sieva_types::DType;

/// Scale and offset as a header gives them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    /// BSCALE or TSCALn.
    pub(crate) scale: Option<f64>,
    /// BZERO or TZEROn.
    pub(crate) zero: Option<f64>,
    /// BLANK or TNULLn, in stored units.
    pub(crate) blank: Option<i128>,
}

/// What stored numbers mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scaling {
    /// The type of an element once the sign bit is right.
    pub(crate) dtype: DType,
    /// Whether the sign bit of stored elements is to be flipped.
    pub(crate) flip_sign: bool,
    /// The rest.
    pub(crate) decoding: Decoding,
}

/// The meaning of elements stored as `stored`.
pub(crate) fn scaling(stored: DType, given: Given) -> Scaling {
    let (scale, zero) = (given.scale.unwrap_or(1.0), given.zero.unwrap_or(0.0));
    let meant = if scale == 1.0 { other_sign(stored, zero) } else { None };
    let dtype = meant.unwrap_or(stored);
    let offset = if meant.is_some() { zero as i128 } else { 0 };
    let packing = (meant.is_none() && (scale != 1.0 || zero != 0.0)).then_some((scale, shift(zero)));
    let blank = given.blank.filter(|&b| stored.is_integer() && holds(stored, b));
    let missing = blank.map(|b| Number::Int(b + offset)).into_iter().collect();
    let decoding = Decoding { stored: dtype, packing, missing, valid: (None, None) };
    Scaling { dtype, flip_sign: meant.is_some(), decoding }
}

/// What is added to scaled numbers: nothing at all where it is zero, so that -0.0 stays what it is.
pub(crate) fn shift(zero: f64) -> f64 {
    if zero == 0.0 { -0.0 } else { zero }
}

/// The integer of the other signedness, where `zero` is the offset that stands for it.
fn other_sign(stored: DType, zero: f64) -> Option<DType> {
    let (half, meant) = match stored {
        DType::U8 => (-128.0, DType::I8),
        DType::I16 => (32768.0, DType::U16),
        DType::I32 => (2_147_483_648.0, DType::U32),
        DType::I64 => (9_223_372_036_854_775_808.0, DType::U64),
        _ => return None,
    };
    (zero == half).then_some(meant)
}

/// Whether an integer type holds a number.
fn holds(dtype: DType, number: i128) -> bool {
    let bits = 8 * dtype.size() as u32;
    let (low, high) = match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, 1_i128 << bits),
        _ => (-(1_i128 << (bits - 1)), 1_i128 << (bits - 1)),
    };
    (low..high).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(scale: f64, zero: f64, blank: Option<i128>) -> Given {
        Given { scale: Some(scale), zero: Some(zero), blank }
    }

    #[test]
    fn half_the_range_means_the_other_sign() {
        let s = scaling(DType::I16, given(1.0, 32768.0, Some(-32768)));
        assert_eq!((s.dtype, s.flip_sign, s.decoding.packing), (DType::U16, true, None));
        assert_eq!(s.decoding.missing, [Number::Int(0)]);
        assert_eq!(scaling(DType::I64, given(1.0, 2_f64.powi(63), None)).dtype, DType::U64);
        assert_eq!(scaling(DType::U8, given(1.0, -128.0, None)).dtype, DType::I8);
    }

    #[test]
    fn any_other_scale_is_packing() {
        let s = scaling(DType::I16, given(0.5, 32768.0, Some(7)));
        assert_eq!((s.dtype, s.flip_sign), (DType::I16, false));
        assert_eq!(s.decoding.packing, Some((0.5, 32768.0)));
        assert_eq!(s.decoding.missing, [Number::Int(7)]);
        assert_eq!(scaling(DType::F32, given(1.0, 1.0, None)).decoding.packing, Some((1.0, 1.0)));
        assert_eq!(scaling(DType::I32, Given::default()).decoding, Decoding::none(DType::I32));
    }

    #[test]
    fn a_blank_that_no_element_can_hold_is_none() {
        assert!(scaling(DType::U8, given(1.0, 0.0, Some(-1))).decoding.missing.is_empty());
        assert!(scaling(DType::F32, given(1.0, 0.0, Some(1))).decoding.missing.is_empty());
    }
}
