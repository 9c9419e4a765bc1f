//! BloscLZ, the codec of Blosc that descends from FastLZ.
//!
//! As LZF, but match lengths go on over as many bytes of 255 as there are, and the distance 8191 + 255
//! escapes to 16 more bits. The first control byte always starts literals.

use super::copy::{copy_literals, copy_match};

/// Longest distance without the escape.
const MAX_DISTANCE: usize = 8191;

/// Decodes `input` into the start of `out`; the length, or None where the stream is damaged.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut control = usize::from(input.first()? & 31);
    let (mut at, mut written) = (1, 0);
    loop {
        if control < 32 {
            copy_literals(input, at, out, written, control + 1)?;
            at += control + 1;
            written += control + 1;
        } else {
            let (len, distance) = read_match(input, &mut at, control)?;
            copy_match(out, written, distance, len)?;
            written += len;
        }
        match input.get(at) {
            Some(&next) => control = usize::from(next),
            None => return Some(written),
        }
        at += 1;
    }
}

/// Length and distance of the match that `control` starts.
fn read_match(input: &[u8], at: &mut usize, control: usize) -> Option<(usize, usize)> {
    let mut next = || {
        let byte = usize::from(*input.get(*at)?);
        *at += 1;
        Some(byte)
    };
    let mut len = (control >> 5) + 2;
    if len == 9 {
        loop {
            let more = next()?;
            len += more;
            if more != 255 {
                break;
            }
        }
    }
    let high = (control & 31) << 8;
    let low = next()?;
    if low == 255 && high == 31 << 8 {
        let far = next()? << 8 | next()?;
        return Some((len, far + MAX_DISTANCE + 1));
    }
    Some((len, high + low + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_matches_and_long_runs() {
        // "ab", then 9 + 255 + 3 bytes from 2 back.
        let stored = [1, b'a', b'b', 7 << 5, 255, 3, 1];
        let mut out = [0; 269];
        assert_eq!(decode(&stored, &mut out), Some(269));
        assert!(out.chunks(2).all(|pair| pair[0] == b'a' && (pair.len() == 1 || pair[1] == b'b')));
        assert_eq!(decode(&stored, &mut [0; 268]), None);
        assert_eq!(decode(&stored[..5], &mut out), None);
        assert_eq!(decode(&[], &mut out), None);
    }
}
