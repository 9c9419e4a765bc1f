//! Checked reads of integers and slices from stored bytes.

use sieva_types::{Error, Result};

/// `len` bytes at `at`.
pub(super) fn slice<'a>(codec: &str, input: &'a [u8], at: usize, len: usize) -> Result<&'a [u8]> {
    at.checked_add(len)
        .and_then(|end| input.get(at..end))
        .ok_or_else(|| Error::corrupt(format!("{codec}: {len} bytes at {at} of {} stored", input.len())))
}

fn array<const N: usize>(codec: &str, input: &[u8], at: usize) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    bytes.copy_from_slice(slice(codec, input, at, N)?);
    Ok(bytes)
}

/// The big-endian 32-bit integer at `at`.
pub(super) fn be_u32(codec: &str, input: &[u8], at: usize) -> Result<u32> {
    array(codec, input, at).map(u32::from_be_bytes)
}

/// The big-endian 64-bit integer at `at`.
pub(super) fn be_u64(codec: &str, input: &[u8], at: usize) -> Result<u64> {
    array(codec, input, at).map(u64::from_be_bytes)
}

/// The little-endian 32-bit integer at `at`.
pub(super) fn le_u32(codec: &str, input: &[u8], at: usize) -> Result<u32> {
    array(codec, input, at).map(u32::from_le_bytes)
}

/// A length from a file, which has to fit into the `room` there is.
pub(super) fn length_within(codec: &str, what: &str, given: u64, room: usize) -> Result<usize> {
    match usize::try_from(given) {
        Ok(len) if len <= room => Ok(len),
        _ => Err(Error::corrupt(format!("{codec}: {what} of {given} bytes, expected at most {room}"))),
    }
}

/// The first `len` bytes of `buffer`, which grows if it is shorter. Their content is arbitrary.
pub(super) fn at_least(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_past_the_end_are_errors() {
        assert_eq!(be_u32("x", &[0, 0, 1, 2], 0).unwrap(), 258);
        assert_eq!(le_u32("x", &[9, 2, 1, 0, 0], 1).unwrap(), 258);
        let e = be_u64("x", &[0; 9], 2).unwrap_err();
        assert_eq!(e.to_string(), "x: 8 bytes at 2 of 9 stored");
        assert!(slice("x", &[0; 4], usize::MAX, 2).is_err());
    }
}
