//! LZ4 in the framing of the HDF5 plug-in, filter 32004.
//!
//! | offset | size | meaning (big-endian) |
//! |---|---|---|
//! | 0 | 8 | decoded bytes |
//! | 8 | 4 | decoded bytes of a block; the last may be shorter |
//! | 12 | | per block: 4 bytes of stored length, then an LZ4 block, or the raw bytes where both lengths agree |

use super::bytes::{be_u32, be_u64, le_u32, length_within, slice};
use super::copy::{copy_literals, copy_match};
use sieva_types::{Error, Result};

const NAME: &str = "lz4";

/// Decodes `input` into the start of `out` and returns the length.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let total = length_within(NAME, "content", be_u64(NAME, input, 0)?, out.len())?;
    let block_len = be_u32(NAME, input, 8)? as usize;
    if block_len == 0 && total > 0 {
        return Err(Error::corrupt("lz4: blocks of 0 bytes"));
    }
    let mut at = 12;
    for block in out[..total].chunks_mut(block_len.max(1)) {
        let stored_len = be_u32(NAME, input, at)? as usize;
        let stored = slice(NAME, input, at + 4, stored_len)?;
        at += 4 + stored_len;
        if stored_len == block.len() {
            block.copy_from_slice(stored);
        } else {
            decode_block(NAME, stored, block)?;
        }
    }
    Ok(total)
}

/// Decodes the one block of `input`, which begins with its decoded length, and returns that length.
pub(super) fn decode_sized(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let len = length_within(NAME, "content", le_u32(NAME, input, 0)?.into(), out.len())?;
    decode_block(NAME, &input[4..], &mut out[..len])?;
    Ok(len)
}

/// Decodes one bare LZ4 block that has to fill `out`.
pub(super) fn decode_block(codec: &str, stored: &[u8], out: &mut [u8]) -> Result<()> {
    match decode_sequences(stored, out) {
        Some(len) if len == out.len() => Ok(()),
        Some(len) => {
            Err(Error::corrupt(format!("{codec}: LZ4 block of {len} bytes, expected {}", out.len())))
        }
        None => Err(Error::corrupt(format!(
            "{codec}: LZ4 block of {} stored bytes is damaged or holds more than the expected {} bytes",
            stored.len(),
            out.len()
        ))),
    }
}

/// A sequence is a token (upper half: literals, lower half: match length - 4), more bytes of a length of 15,
/// literals, a 16-bit distance, more bytes of the match length. The last sequence ends after its literals.
fn decode_sequences(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let (mut at, mut written) = (0, 0);
    loop {
        let token = usize::from(*input.get(at)?);
        at += 1;
        let literals = read_length(input, &mut at, token >> 4)?;
        copy_literals(input, at, out, written, literals)?;
        at += literals;
        written += literals;
        if at == input.len() {
            return Some(written);
        }
        let distance = input.get(at..at + 2)?;
        let distance = usize::from(u16::from_le_bytes([distance[0], distance[1]]));
        at += 2;
        let len = read_length(input, &mut at, token & 15)? + 4;
        copy_match(out, written, distance, len)?;
        written += len;
    }
}

/// A length of which the token holds `start`; 15 goes on over as many bytes of 255 as there are, and one other.
#[inline(always)]
fn read_length(input: &[u8], at: &mut usize, start: usize) -> Option<usize> {
    let mut len = start;
    if start == 15 {
        loop {
            let more = *input.get(*at)?;
            *at += 1;
            len += usize::from(more);
            if more != 255 {
                break;
            }
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(data: &[u8], block_len: usize) -> Vec<u8> {
        let mut stored = (data.len() as u64).to_be_bytes().to_vec();
        stored.extend((block_len as u32).to_be_bytes());
        for block in data.chunks(block_len) {
            let mut packed = lz4_flex::block::compress(block);
            if packed.len() >= block.len() {
                packed = block.to_vec();
            }
            stored.extend((packed.len() as u32).to_be_bytes());
            stored.extend(packed);
        }
        stored
    }

    #[test]
    fn blocks_come_back_packed_and_raw() {
        let mut data = vec![7_u8; 1000];
        data.extend((0..=255).rev());
        let mut out = vec![0; data.len()];
        assert_eq!(decode(&framed(&data, 300), &mut out).unwrap(), data.len());
        assert_eq!(out, data);
    }

    #[test]
    fn a_block_after_its_length_comes_back() {
        let data: Vec<u8> = (0..500_u32).map(|i| (i % 7) as u8).collect();
        let mut stored = (data.len() as u32).to_le_bytes().to_vec();
        stored.extend(lz4_flex::block::compress(&data));
        let mut out = vec![0; 600];
        assert_eq!(decode_sized(&stored, &mut out).unwrap(), 500);
        assert_eq!(out[..500], data);
        assert!(decode_sized(&stored, &mut out[..499]).is_err());
        assert!(decode_sized(&stored[..3], &mut out).is_err());
    }

    #[test]
    fn lengths_are_checked() {
        let stored = framed(&[1; 100], 40);
        let e = decode(&stored, &mut [0; 99]).unwrap_err();
        assert_eq!(e.to_string(), "lz4: content of 100 bytes, expected at most 99");
        assert!(decode(&stored[..stored.len() - 1], &mut [0; 100]).is_err());
        let mut zero = stored;
        zero[8..12].fill(0);
        assert_eq!(decode(&zero, &mut [0; 100]).unwrap_err().to_string(), "lz4: blocks of 0 bytes");
    }
}
