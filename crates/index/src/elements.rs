//! The elements of a region, as a typed slice.

use sieva_types::keys::{f32_key, f64_key};
use sieva_types::{Buffer, DType, KeySet};

/// Stored elements in native byte order; bool as bytes 0 and 1, float16 widened to float32.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the types name themselves
pub enum Elements<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
}

impl<'a> Elements<'a> {
    /// The elements in `buffer`, of an array of `dtype`; `None` for texts.
    pub fn new(dtype: DType, buffer: &'a Buffer) -> Option<Self> {
        Some(match dtype {
            DType::I8 => Self::I8(buffer.as_slice()),
            DType::I16 => Self::I16(buffer.as_slice()),
            DType::I32 => Self::I32(buffer.as_slice()),
            DType::I64 => Self::I64(buffer.as_slice()),
            DType::Bool | DType::U8 => Self::U8(buffer.as_slice()),
            DType::U16 => Self::U16(buffer.as_slice()),
            DType::U32 => Self::U32(buffer.as_slice()),
            DType::U64 => Self::U64(buffer.as_slice()),
            DType::F16 | DType::F32 => Self::F32(buffer.as_slice()),
            DType::F64 => Self::F64(buffer.as_slice()),
            DType::Str => return None,
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        crate::each!(self, v => v.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type that the keys of the elements are those of.
    pub fn dtype(&self) -> DType {
        match self {
            Self::I8(_) => DType::I8,
            Self::I16(_) => DType::I16,
            Self::I32(_) => DType::I32,
            Self::I64(_) => DType::I64,
            Self::U8(_) => DType::U8,
            Self::U16(_) => DType::U16,
            Self::U32(_) => DType::U32,
            Self::U64(_) => DType::U64,
            Self::F32(_) => DType::F32,
            Self::F64(_) => DType::F64,
        }
    }

    /// The key of element `i`; `None` where it is NaN, or there is none.
    pub fn key(&self, i: usize) -> Option<i128> {
        match self {
            Self::F32(v) => v.get(i).filter(|x| !x.is_nan()).map(|&x| f32_key(x)),
            Self::F64(v) => v.get(i).filter(|x| !x.is_nan()).map(|&x| f64_key(x)),
            Self::I8(v) => v.get(i).map(|&x| x.into()),
            Self::I16(v) => v.get(i).map(|&x| x.into()),
            Self::I32(v) => v.get(i).map(|&x| x.into()),
            Self::I64(v) => v.get(i).map(|&x| x.into()),
            Self::U8(v) => v.get(i).map(|&x| x.into()),
            Self::U16(v) => v.get(i).map(|&x| x.into()),
            Self::U32(v) => v.get(i).map(|&x| x.into()),
            Self::U64(v) => v.get(i).map(|&x| x.into()),
        }
    }

    /// The bytes of the elements.
    pub fn bytes(&self) -> &'a [u8] {
        crate::each!(self, v => {
            // SAFETY: numbers without padding, viewed as the bytes that they take.
            unsafe { std::slice::from_raw_parts(v.as_ptr().cast(), size_of_val(*v)) }
        })
    }
}

/// The hash by which content is told from other content: xxh3, 64 bits.
pub fn content_hash(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// The elements whose values are in `set`, a bit each, found one by one: for checking what is faster.
pub fn members(elements: Elements<'_>, set: &KeySet) -> Vec<u64> {
    let mut words = vec![0; elements.len().div_ceil(64)];
    for i in 0..elements.len() {
        let inside = elements.key(i).map_or(set.nan, |k| set.contains(k));
        words[i / 64] |= u64::from(inside) << (i % 64);
    }
    words
}

/// Evaluates an expression with `$v` bound to the slice that an [`Elements`] holds.
#[macro_export]
#[doc(hidden)]
macro_rules! each {
    ($elements:expr, $v:ident => $body:expr) => {
        match $elements {
            $crate::Elements::I8($v) => $body,
            $crate::Elements::I16($v) => $body,
            $crate::Elements::I32($v) => $body,
            $crate::Elements::I64($v) => $body,
            $crate::Elements::U8($v) => $body,
            $crate::Elements::U16($v) => $body,
            $crate::Elements::U32($v) => $body,
            $crate::Elements::U64($v) => $body,
            $crate::Elements::F32($v) => $body,
            $crate::Elements::F64($v) => $body,
        }
    };
}
