//! Deflate with a zlib wrapper (RFC 1950), HDF5 filter 1, and with a gzip wrapper (RFC 1952).

use libdeflater::{DecompressionError, Decompressor};
use sieva_types::{Error, Result};

/// Inflates `input` into the start of `out` and returns the length.
pub(super) fn decode(inflate: &mut Decompressor, input: &[u8], out: &mut [u8]) -> Result<usize> {
    inflate.zlib_decompress(input, out).map_err(|e| failed("deflate", e, input.len(), out.len()))
}

/// The same of a gzip member.
pub(super) fn decode_gzip(inflate: &mut Decompressor, input: &[u8], out: &mut [u8]) -> Result<usize> {
    inflate.gzip_decompress(input, out).map_err(|e| failed("gzip", e, input.len(), out.len()))
}

fn failed(codec: &str, e: DecompressionError, stored: usize, room: usize) -> Error {
    match e {
        DecompressionError::BadData => {
            Error::corrupt(format!("{codec}: {stored} stored bytes are damaged or cut off"))
        }
        DecompressionError::InsufficientSpace => {
            Error::corrupt(format!("{codec}: more than the expected {room} bytes"))
        }
    }
}
