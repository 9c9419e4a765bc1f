//! Texts of any length: the number of texts, then each after its length, in 32-bit little-endian integers
//! (`vlen-utf8` and `vlen-bytes` of numcodecs).

use sieva_types::{Error, Result, Texts};

/// The texts of a decoded chunk, which has to hold `count`.
pub(crate) fn parse(bytes: &[u8], count: u64) -> Result<Texts> {
    let mut rest = bytes;
    let given = take_u32(&mut rest)?;
    if u64::from(given) != count || count.saturating_mul(4) > rest.len() as u64 {
        let len = bytes.len();
        return Err(Error::corrupt(format!("{given} texts in {len} bytes, expected {count}")));
    }
    let mut texts = Texts::with_room(given as usize, rest.len() - 4 * given as usize);
    for _ in 0..given {
        let len = take_u32(&mut rest)? as usize;
        let Some((text, after)) = rest.split_at_checked(len) else {
            return Err(Error::corrupt(format!("a text of {len} bytes where {} are left", rest.len())));
        };
        texts.push_bytes(text);
        rest = after;
    }
    Ok(texts)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32> {
    let Some((word, after)) = rest.split_first_chunk::<4>() else {
        return Err(Error::corrupt("texts are cut off"));
    };
    *rest = after;
    Ok(u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_lengths_are_checked() {
        let bytes = b"\x03\0\0\0\x02\0\0\0ab\0\0\0\0\x01\0\0\0\xe9";
        assert_eq!(parse(bytes, 3).unwrap(), ["ab", "", "é"]);
        assert!(parse(bytes, 2).is_err());
        assert!(parse(&bytes[..bytes.len() - 1], 3).is_err());
        assert!(parse(b"\xff\xff\xff\xff", u64::from(u32::MAX)).is_err());
        assert!(parse(b"", 0).is_err());
    }
}
