//! Little-endian fields of hostile bytes, read front to back.

use sieva_types::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

/// An error of kind `corrupt-index`.
pub(super) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::CorruptIndex, message)
}

/// Whether `bytes` have this checksum; `what` names them in the error.
pub(super) fn verify(bytes: &[u8], checksum: u64, what: &str) -> Result<()> {
    if xxh3_64(bytes) == checksum {
        return Ok(());
    }
    Err(corrupt(format!("{what} does not match its checksum")))
}

/// What is not yet read of some bytes.
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next `n` bytes.
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(|| corrupt("a directory ends too early"))?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i128(&mut self) -> Result<i128> {
        self.array().map(i128::from_le_bytes)
    }

    /// The next `n` numbers. Grows with what is there, whatever `n` claims.
    pub(super) fn u64s(&mut self, n: usize) -> Result<Vec<u64>> {
        (0..n).map(|_| self.u64()).collect()
    }

    /// Whether all is read.
    pub(super) fn finish(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(corrupt("a directory goes on past its end")) }
    }
}
