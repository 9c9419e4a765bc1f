//! LZF as liblzf writes it, HDF5 filter 32000.
//!
//! A control byte below 32 is followed by that many literals plus one. Any other starts a match: its upper
//! three bits are the length minus two (7: plus the next byte), its lower five and the byte after it the
//! distance minus one.

use super::copy::{copy_literals, copy_match};
use sieva_types::{Error, Result};

/// Decodes `input` into the start of `out` and returns the length.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    decode_all(input, out).ok_or_else(|| {
        Error::corrupt(format!(
            "lzf: {} stored bytes are damaged or hold more than the expected {} bytes",
            input.len(),
            out.len()
        ))
    })
}

fn decode_all(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let (mut at, mut written) = (0, 0);
    while let Some(&control) = input.get(at) {
        let control = usize::from(control);
        at += 1;
        if control < 32 {
            copy_literals(input, at, out, written, control + 1)?;
            at += control + 1;
            written += control + 1;
            continue;
        }
        let mut len = (control >> 5) + 2;
        if len == 9 {
            len += usize::from(*input.get(at)?);
            at += 1;
        }
        let distance = ((control & 31) << 8 | usize::from(*input.get(at)?)) + 1;
        at += 1;
        copy_match(out, written, distance, len)?;
        written += len;
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_overlapping_matches() {
        // "abc", then 9 bytes from 3 back, then 12 bytes from 1 back by the long form.
        let stored = [2, b'a', b'b', b'c', 7 << 5, 0, 2, 7 << 5, 3, 0];
        let mut out = [0; 24];
        assert_eq!(decode(&stored, &mut out).unwrap(), 24);
        assert_eq!(&out, b"abcabcabcabccccccccccccc");
    }

    #[test]
    fn a_match_before_the_start_is_an_error() {
        let e = decode(&[0, b'a', 1 << 5, 1], &mut [0; 8]).unwrap_err();
        assert_eq!(e.to_string(), "lzf: 4 stored bytes are damaged or hold more than the expected 8 bytes");
        assert!(decode(&[31, 1, 2], &mut [0; 64]).is_err());
        assert!(decode(&[3, 1, 2, 3, 4], &mut [0; 3]).is_err());
    }
}
