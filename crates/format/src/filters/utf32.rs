//! Fixed-length texts of UTF-32 code units (numpy's `U`), made UTF-8 in the same number of bytes: a character takes
//! at most four bytes in either, and what is left is filled with zeros.

use sieva_types::{Endian, Error, Result};

/// Decodes texts of `text_size` bytes from `input` into the start of `out` and returns the length.
pub(super) fn decode(text_size: usize, endian: Endian, input: &[u8], out: &mut [u8]) -> Result<usize> {
    let len = super::bytes::length_within("utf-32", "content", input.len() as u64, out.len())?;
    if text_size == 0 || !text_size.is_multiple_of(4) || !len.is_multiple_of(text_size) {
        return Err(Error::corrupt(format!("utf-32: {len} bytes of texts of {text_size} bytes")));
    }
    for (text, place) in input.chunks_exact(text_size).zip(out[..len].chunks_exact_mut(text_size)) {
        let mut written = 0;
        for unit in text.chunks_exact(4) {
            let character = character(unit, endian)?;
            written += character.encode_utf8(&mut place[written..]).len();
        }
        place[written..].fill(0);
    }
    Ok(len)
}

fn character(unit: &[u8], endian: Endian) -> Result<char> {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(unit);
    let code = match endian {
        Endian::Little => u32::from_le_bytes(bytes),
        Endian::Big => u32::from_be_bytes(bytes),
    };
    char::from_u32(code).ok_or_else(|| Error::corrupt(format!("utf-32: {code:#x} is no character")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_width() {
        let stored: Vec<u8> =
            ['é', '\0', '漢', '😀'].iter().flat_map(|&c| (c as u32).to_be_bytes()).collect();
        let mut out = [7; 16];
        assert_eq!(decode(8, Endian::Big, &stored, &mut out).unwrap(), 16);
        assert_eq!(&out[..2], "é".as_bytes());
        assert_eq!(out[2..8], [0; 6]);
        assert_eq!(&out[8..15], "漢😀".as_bytes());
        assert!(decode(8, Endian::Little, &stored, &mut out).is_err());
        assert!(decode(6, Endian::Big, &stored, &mut out).is_err());
    }
}
