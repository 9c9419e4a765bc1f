//! A reusable, aligned buffer of array elements.

use sieva_types::DType;

/// Plain numeric types that a buffer can be viewed as.
///
/// # Safety
/// Implementors have no padding and are valid for every bit pattern.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The matching dtype.
    const DTYPE: DType;
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => {$(
        // SAFETY: a primitive number without padding; every bit pattern is a value of it.
        unsafe impl Element for $t { const DTYPE: DType = DType::$d; }
    )*};
}
element!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64, f32 => F32, f64 => F64);

/// Bytes aligned for every element type. Growing keeps the capacity, so a worker allocates once.
#[derive(Debug, Default)]
pub struct Buffer {
    words: Vec<u64>,
    len: usize,
}

impl Buffer {
    /// Makes it `len` bytes long; the contents are unspecified (old bytes or zeros).
    pub fn resize(&mut self, len: usize) {
        let words = len.div_ceil(8);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        self.len = len;
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `words` holds at least `len` initialised bytes, and u8 has no alignment or validity demands.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }

    /// Its bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.len) }
    }

    /// Its contents as elements of `T`; trailing bytes that do not fill one are left out.
    pub fn as_slice<T: Element>(&self) -> &[T] {
        // SAFETY: the storage is 8-aligned, `T` is at most 8 bytes and valid for every bit pattern.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.len / size_of::<T>()) }
    }

    /// Its contents as elements of `T`, to be written.
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.len / size_of::<T>()) }
    }
}

/// Reverses the bytes of each element of `size` bytes.
pub fn swap_bytes(bytes: &mut [u8], size: usize) {
    fn swap<const N: usize>(bytes: &mut [u8]) {
        for element in bytes.as_chunks_mut::<N>().0 {
            element.reverse();
        }
    }
    match size {
        2 => swap::<2>(bytes),
        4 => swap::<4>(bytes),
        8 => swap::<8>(bytes),
        _ => {}
    }
}

/// IEEE binary16 to binary32, exactly.
pub fn widen_f16(h: u16) -> f32 {
    let sign = u32::from(h >> 15) << 31;
    let (exponent, mantissa) = (u32::from(h >> 10) & 0x1f, u32::from(h) & 0x3ff);
    match exponent {
        0 => {
            let tiny = mantissa as f32 * f32::from_bits(0x3380_0000); // 2^-24
            f32::from_bits(tiny.to_bits() | sign)
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | (mantissa << 13)),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_widens_exactly() {
        for (h, f) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
        ] {
            assert_eq!(widen_f16(h), f);
        }
        assert!(widen_f16(0x7e00).is_nan());
        assert_eq!(widen_f16(0xfc00), f32::NEG_INFINITY);
        assert!(widen_f16(0x8000).is_sign_negative());
    }

    #[test]
    fn a_buffer_is_viewed_as_any_type() {
        let mut b = Buffer::default();
        b.resize(10);
        b.as_mut_slice::<i16>().copy_from_slice(&[1, -2, 3, -4, 5]);
        assert_eq!(b.as_slice::<i16>()[4], 5);
        assert_eq!(b.as_slice::<u64>().len(), 1);
        swap_bytes(b.bytes_mut(), 2);
        assert_eq!(b.as_slice::<i16>()[0], 256);
    }
}
