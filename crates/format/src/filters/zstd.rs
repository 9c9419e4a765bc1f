//! Zstandard (RFC 8878), HDF5 filter 32015.

use ::zstd::bulk::Decompressor;
use sieva_types::{Error, Result};

/// Decodes all frames of `input` into the start of `out` and returns the length.
pub(super) fn decode(zstd: &mut Decompressor<'static>, input: &[u8], out: &mut [u8]) -> Result<usize> {
    let room = out.len();
    zstd.decompress_to_buffer(input, out).map_err(|e| {
        Error::corrupt(format!("zstd: {} stored bytes for at most {room} decoded: {e}", input.len()))
    })
}

/// A new context.
///
/// # Errors
///
/// When there is no memory for it.
pub(super) fn context() -> Result<Decompressor<'static>> {
    Decompressor::new().map_err(|e| Error::io("zstd: making a context", &e))
}
