//! A reusable, aligned buffer of array elements.

use crate::DType;

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
