//! Eight booleans to a byte, the first in the highest bit, after one byte that counts the unused bits at the end
//! (the codec `packbits` of numcodecs).

use sieva_types::{Error, Result};

/// Stored bytes of `len` booleans.
pub(super) fn stored_len(len: usize) -> usize {
    len.div_ceil(8) + 1
}

/// Unpacks `input` into the start of `out`, one byte of 0 or 1 per boolean, and returns their number.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let Some((&unused, packed)) = input.split_first() else {
        return Err(Error::corrupt("packbits: no stored bytes, expected 1 or more"));
    };
    let bits = packed.len().saturating_mul(8);
    let count = bits.checked_sub(usize::from(unused)).filter(|_| unused < 8);
    let Some(count) = count else {
        return Err(Error::corrupt(format!("packbits: {unused} unused bits of {bits}")));
    };
    let count = super::bytes::length_within("packbits", "content", count as u64, out.len())?;
    for (i, value) in out[..count].iter_mut().enumerate() {
        *value = packed[i / 8] >> (7 - i % 8) & 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_from_the_highest_on() {
        let mut out = [9; 16];
        assert_eq!(decode(&[6, 0b1010_0001, 0b1100_0000], &mut out).unwrap(), 10);
        assert_eq!(out[..10], [1, 0, 1, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(stored_len(10), 3);
        assert_eq!(decode(&[0], &mut out).unwrap(), 0);
    }

    #[test]
    fn counts_that_do_not_fit_are_refused() {
        for bad in [&[][..], &[1], &[8, 0], &[0, 0, 0, 0]] {
            assert!(decode(bad, &mut [0; 16]).is_err(), "{bad:?}");
        }
    }
}
