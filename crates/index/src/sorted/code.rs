//! Codes: the keys of [`sieva_types::keys`] as unsigned 64-bit numbers, with a last one for NaN.

use sieva_types::{DType, keys};

const SIGN: u64 = 1 << 63;

/// The code of a key of `dtype`; codes order as keys do.
pub(super) fn code_of_key(dtype: DType, key: i128) -> u64 {
    match dtype {
        DType::U64 => key as u64,
        _ => key as i64 as u64 ^ SIGN,
    }
}

/// The key that [`code_of_key`] was given.
pub(super) fn key_of_code(dtype: DType, code: u64) -> i128 {
    match dtype {
        DType::U64 => code.into(),
        _ => ((code ^ SIGN) as i64).into(),
    }
}

/// The code of NaN, above those of all other values; `None` for integers, which have no NaN.
pub(super) fn nan_code(dtype: DType) -> Option<u64> {
    match dtype {
        DType::F32 => Some(code_of_key(dtype, i32::MAX.into())),
        DType::F64 => Some(code_of_key(dtype, i64::MAX.into())),
        _ => None,
    }
}

/// The smallest code of `dtype`: codes of types of at most 4 bytes are less than 2^32 above it.
pub(super) fn base_code(dtype: DType) -> u64 {
    code_of_key(dtype, keys::key_range(dtype).0)
}

/// Calls `f` with the number and the code of each of the elements (native byte order) in `bytes`.
#[inline]
pub(super) fn for_each_code(dtype: DType, bytes: &[u8], mut f: impl FnMut(usize, u64)) {
    macro_rules! each {
        ($t:ty, $code:expr) => {
            for (i, raw) in bytes.as_chunks::<{ size_of::<$t>() }>().0.iter().enumerate() {
                f(i, $code(<$t>::from_ne_bytes(*raw)));
            }
        };
    }
    match dtype {
        DType::I8 => each!(i8, |x| i64::from(x) as u64 ^ SIGN),
        DType::I16 => each!(i16, |x| i64::from(x) as u64 ^ SIGN),
        DType::I32 => each!(i32, |x| i64::from(x) as u64 ^ SIGN),
        DType::I64 => each!(i64, |x| x as u64 ^ SIGN),
        DType::U16 => each!(u16, |x| u64::from(x) ^ SIGN),
        DType::U32 => each!(u32, |x| u64::from(x) ^ SIGN),
        DType::U64 => each!(u64, |x| x),
        DType::F32 => each!(f32, f32_code),
        DType::F64 => each!(f64, f64_code),
        DType::Bool | DType::U8 | DType::F16 | DType::Str => each!(u8, |x| u64::from(x) ^ SIGN),
    }
}

/// The code of element `i` of `bytes`, which must hold it.
pub(super) fn code_at(dtype: DType, bytes: &[u8], i: usize) -> u64 {
    let (size, mut code) = (dtype.size(), 0);
    for_each_code(dtype, &bytes[i * size..(i + 1) * size], |_, c| code = c);
    code
}

#[inline(always)]
fn f32_code(x: f32) -> u64 {
    let bits = x.to_bits() as i32;
    let key = bits ^ (((bits >> 31) as u32) >> 1) as i32;
    i64::from(if x.is_nan() { i32::MAX } else { key }) as u64 ^ SIGN
}

#[inline(always)]
fn f64_code(x: f64) -> u64 {
    let bits = x.to_bits() as i64;
    let key = bits ^ (((bits >> 63) as u64) >> 1) as i64;
    (if x.is_nan() { i64::MAX } else { key }) as u64 ^ SIGN
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn codes_are_those_of_keys(raw: [u8; 8], nan: bool) {
            let x = if nan { f64::from_bits(u64::from_ne_bytes(raw) | 0x7ff8 << 48) } else { f64::from_ne_bytes(raw) };
            let want = if x.is_nan() { nan_code(DType::F64).unwrap() } else { code_of_key(DType::F64, keys::f64_key(x)) };
            prop_assert_eq!(code_at(DType::F64, &x.to_ne_bytes(), 0), want);
            let y = x as f32;
            let want = if y.is_nan() { nan_code(DType::F32).unwrap() } else { code_of_key(DType::F32, keys::f32_key(y)) };
            prop_assert_eq!(code_at(DType::F32, &y.to_ne_bytes(), 0), want);
            macro_rules! integers { ($($t:ident $d:ident),*) => {$(
                let x = u64::from_ne_bytes(raw) as $t;
                prop_assert_eq!(code_at(DType::$d, &x.to_ne_bytes(), 0), code_of_key(DType::$d, x.into()));
            )*}}
            integers!(i8 I8, i16 I16, i32 I32, i64 I64, u8 U8, u16 U16, u32 U32, u64 U64);
        }
    }

    #[test]
    fn narrow_codes_fit_32_bits_above_their_base() {
        for dtype in [DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32, DType::F32] {
            let last = nan_code(dtype).unwrap_or_else(|| code_of_key(dtype, keys::key_range(dtype).1));
            assert!(last - base_code(dtype) <= u64::from(u32::MAX), "{dtype}");
        }
        let largest = code_of_key(DType::F32, keys::key_range(DType::F32).1);
        assert!(largest < nan_code(DType::F32).unwrap());
    }
}
