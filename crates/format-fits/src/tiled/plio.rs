//! PLIO_1: run lengths of the levels of a mask (FITS standard 4.0, section 10.4.3: IRAF pixel lists).
//!
//! A list of 16-bit words: a header, then instructions of 4 bits with 12 bits of data.
//!
//! | code | name | does |
//! |---|---|---|
//! | 0 | ZN | so many zeros |
//! | 1 | SH | sets the high value: data, and the next word times 4096 |
//! | 2, 3 | IH, DH | raises or lowers the high value |
//! | 4 | HN | so many pixels of the high value |
//! | 5 | PN | so many less one zeros, then one pixel of the high value |
//! | 6, 7 | IS, DS | raises or lowers the high value, then one pixel of it |

use sieva_types::{Error, Result};

/// Decodes a list into `pixels` integers; what the list does not reach is 0.
pub(super) fn decode(input: &[u8], pixels: usize) -> Result<Vec<i32>> {
    let words: Vec<i16> = input.chunks_exact(2).map(|w| i16::from_be_bytes([w[0], w[1]])).collect();
    let (first, end) = body(&words)?;
    let mut out = vec![0; pixels];
    let (mut at, mut high) = (0_usize, 1_i32);
    let mut list = words.get(first..end).unwrap_or_default().iter();
    while at < pixels
        && let Some(&word) = list.next()
    {
        if word < 0 {
            return Err(Error::corrupt(format!("the pixel list holds the instruction {word}")));
        }
        let data = i32::from(word & 0xfff);
        let run = at..at.saturating_add(data as usize).min(pixels);
        match word >> 12 {
            0 => at += data as usize,
            1 => {
                let next = list.next().ok_or_else(|| Error::corrupt("the pixel list is cut off"))?;
                high = i32::from(*next).wrapping_shl(12).wrapping_add(data);
            }
            2 => high = high.wrapping_add(data),
            3 => high = high.wrapping_sub(data),
            4 => {
                out[run].fill(high);
                at += data as usize;
            }
            5 => {
                at += data as usize;
                if data > 0 && at <= pixels {
                    out[at - 1] = high;
                }
            }
            code => {
                high = if code == 6 { high.wrapping_add(data) } else { high.wrapping_sub(data) };
                out[at] = high;
                at += 1;
            }
        }
    }
    Ok(out)
}

/// Where the instructions begin and end, in words. The older header takes 3 words, the newer one tells its own length
/// and has a length of two words.
fn body(words: &[i16]) -> Result<(usize, usize)> {
    let word = |i: usize| words.get(i).copied().ok_or_else(|| Error::corrupt("the pixel list is cut off"));
    let (first, len) = if word(2)? > 0 {
        (3, i64::from(word(2)?))
    } else {
        (i64::from(word(1)?), (i64::from(word(4)?) << 15) + i64::from(word(3)?))
    };
    match (usize::try_from(first), usize::try_from(len)) {
        (Ok(first), Ok(len)) if len <= words.len() => Ok((first, len.max(first))),
        _ => {
            let given = words.len();
            Err(Error::corrupt(format!("the pixel list tells a length of {len} words, {given} are stored")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(instructions: &[(i16, i16)]) -> Vec<u8> {
        let mut words = vec![0, 7, -100, 0, 0, 0, 0];
        words.extend(instructions.iter().map(|(code, data)| code << 12 | data));
        words[3] = words.len() as i16;
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    #[test]
    fn every_instruction() {
        let coded = list(&[(0, 2), (4, 2), (2, 4), (5, 3), (6, 2), (7, 3), (1, 5), (0, 1), (3, 1), (4, 9)]);
        // SH takes the next word as the high part: 1 * 4096 + 5, then one is taken off.
        assert_eq!(decode(&coded, 12).unwrap(), [0, 0, 1, 1, 0, 0, 5, 7, 4, 4100, 4100, 4100]);
        assert_eq!(decode(&list(&[(4, 2)]), 4).unwrap(), [1, 1, 0, 0]);
    }

    #[test]
    fn damaged_lists_are_errors() {
        assert!(decode(&[0; 4], 4).is_err());
        assert!(decode(&list(&[(1, 5)]), 4).is_err());
        let mut long = list(&[(4, 2)]);
        long[6] = 0x7f;
        let e = decode(&long, 4).unwrap_err();
        assert!(e.message().starts_with("the pixel list tells a length of 325"), "{e}");
        let mut negative = list(&[(4, 2)]);
        let at = negative.len() - 2;
        negative[at] = 0x80;
        assert!(decode(&negative, 4).is_err());
    }
}
