//! Numbers of any bits one after the other, the most significant bit first.

/// A bit stream; zeros after its end.
pub(super) struct BitStream<'a> {
    bytes: &'a [u8],
    /// The bit that is next.
    at: u64,
}

impl<'a> BitStream<'a> {
    /// The stream of these bytes, from its first bit on.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `n` bits, at most 64.
    pub(super) fn take(&mut self, n: usize) -> u64 {
        let rest = self.bytes.get((self.at / 8) as usize..).unwrap_or(&[]);
        // 64 bits after up to 7 others lie in 9 bytes.
        let word = match rest.first_chunk::<16>() {
            Some(bytes) => u128::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 16];
                bytes[..rest.len()].copy_from_slice(rest);
                u128::from_be_bytes(bytes)
            }
        };
        let word = (word << (self.at % 8) >> 64) as u64;
        self.at += n as u64;
        word.checked_shr(64 - n as u32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_across_bytes_and_after_the_end() {
        let mut stream = BitStream::new(&[0b1010_0110, 0xff, 0]);
        assert_eq!([3, 0, 4, 10].map(|n| stream.take(n)), [0b101, 0, 0b0011, 0b01_1111_1110]);
        assert_eq!((stream.take(64), stream.take(1)), (0, 0));
        let whole: Vec<u8> = (1..=17).collect();
        let mut stream = BitStream::new(&whole);
        assert_eq!(stream.take(64), 0x0102_0304_0506_0708);
        assert_eq!(stream.take(5), 1);
        assert_eq!(stream.take(64), 0x2141_6181_a1c1_e202);
    }
}
