//! A reusable, aligned buffer of array elements.

use crate::{DType, Error, ErrorKind, Result, large};

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

/// The bytes of elements, to be written.
pub fn bytes_of_mut<T: Element>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: `T` has no padding and takes every bit pattern; borrowed uniquely.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// So many zeros, where the length comes from a file or a caller: what the system cannot give is an error.
///
/// # Errors
/// `memory-limit`.
pub fn try_zeros(len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    try_resize(&mut bytes, len)?;
    Ok(bytes)
}

/// Makes `bytes` so long, zeros added at the end: see [`try_zeros`].
///
/// # Errors
/// `memory-limit`.
pub fn try_resize(bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    bytes.try_reserve_exact(len.saturating_sub(bytes.len())).map_err(|_| too_much(len))?;
    bytes.resize(len, 0);
    Ok(())
}

fn too_much(len: usize) -> Error {
    Error::new(ErrorKind::MemoryLimit, format!("the system has no {len} bytes of memory at once"))
        .hint("ask for less at once")
}

/// Bytes aligned for every element type. Growing keeps the capacity, so a worker allocates once.
#[derive(Debug, Default)]
pub struct Buffer {
    words: Vec<u64>,
    len: usize,
}

impl Buffer {
    /// `len` bytes of zeros.
    pub fn zeros(len: usize) -> Self {
        Self { words: large::zeros(len.div_ceil(8)), len }
    }

    /// Bytes that it has memory for.
    pub fn capacity(&self) -> usize {
        8 * self.words.capacity()
    }

    /// The same, where the length comes from a file or a caller: what the system cannot give is an error.
    ///
    /// # Errors
    /// `memory-limit`.
    pub fn try_zeros(len: usize) -> Result<Self> {
        let words = large::try_zeros(len.div_ceil(8)).ok_or_else(|| too_much(len))?;
        Ok(Self { words, len })
    }

    /// Makes it `len` bytes long; the contents are unspecified (old bytes or zeros).
    pub fn resize(&mut self, len: usize) {
        let words = len.div_ceil(8);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        self.len = len;
    }

    /// The same, where the length comes from a file or a caller: what the system cannot give is an error.
    ///
    /// # Errors
    /// `memory-limit`.
    pub fn try_resize(&mut self, len: usize) -> Result<()> {
        let words = len.div_ceil(8);
        self.words.try_reserve_exact(words.saturating_sub(self.words.len())).map_err(|_| too_much(len))?;
        self.resize(len);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_as_bytes() {
        let mut values = [1.0_f32, -0.0];
        bytes_of_mut(&mut values)[4..].copy_from_slice(&2.5_f32.to_ne_bytes());
        assert_eq!(values, [1.0, 2.5]);
        assert_eq!(bytes_of_mut::<f64>(&mut []).len(), 0);
        assert_eq!(Buffer::zeros(5).bytes(), [0; 5]);
    }

    #[test]
    fn what_the_system_cannot_give_is_an_error() {
        let mut buffer = Buffer::default();
        buffer.try_resize(10).unwrap();
        assert_eq!(buffer.bytes().len(), 10);
        let e = buffer.try_resize(usize::MAX / 4).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
        assert_eq!(buffer.bytes().len(), 10);
        assert_eq!(try_zeros(3).unwrap(), [0, 0, 0]);
        assert!(try_zeros(usize::MAX / 4).unwrap_err().message().contains("no 4611686018427387903 bytes"));
    }
}
