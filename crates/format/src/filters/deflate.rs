//! Deflate with a zlib wrapper (RFC 1950), HDF5 filter 1.

use libdeflater::{DecompressionError, Decompressor};
use sieva_types::{Error, Result};

/// Inflates `input` into the start of `out` and returns the length.
pub(super) fn decode(inflate: &mut Decompressor, input: &[u8], out: &mut [u8]) -> Result<usize> {
    inflate.zlib_decompress(input, out).map_err(|e| match e {
        DecompressionError::BadData => {
            Error::corrupt(format!("deflate: {} stored bytes are damaged or cut off", input.len()))
        }
        DecompressionError::InsufficientSpace => {
            Error::corrupt(format!("deflate: more than the expected {} bytes", out.len()))
        }
    })
}
