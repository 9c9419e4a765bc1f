//! Bits of a stream, the highest bit of a byte first.

use sieva_types::{Error, Result};

/// A position in a stream of bits.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Next byte to take.
    at: usize,
    /// Bits taken and not yet used, in the lowest `held` bits.
    window: u64,
    held: u32,
}

impl<'a> Bits<'a> {
    /// The bits of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, window: 0, held: 0 }
    }

    /// Holds at least `n` bits (32 at most), as far as there are.
    fn fill(&mut self, n: u32) -> Result<()> {
        while self.held < n {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(Error::corrupt("the compressed data end before the tile does"));
            };
            self.window = self.window << 8 | u64::from(byte);
            self.at += 1;
            self.held += 8;
        }
        Ok(())
    }

    /// The next `n` bits, 32 at most.
    pub(super) fn take(&mut self, n: u32) -> Result<u32> {
        self.fill(n)?;
        self.held -= n;
        Ok((self.window >> self.held & ((1 << n) - 1)) as u32)
    }

    /// The number of zeros before the next one, which is taken too.
    pub(super) fn zeros(&mut self) -> Result<u32> {
        let mut zeros = 0_u32;
        loop {
            self.fill(1)?;
            let ahead = self.window & ((1 << self.held) - 1);
            if ahead != 0 {
                let leading = ahead.leading_zeros() - (64 - self.held);
                self.held -= leading + 1;
                return Ok(zeros.saturating_add(leading));
            }
            zeros = zeros.saturating_add(self.held);
            self.held = 0;
        }
    }

    /// Goes on at the next whole byte.
    pub(super) fn align(&mut self) {
        self.held -= self.held % 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_zeros_and_bytes() {
        let mut bits = Bits::new(&[0b1010_0000, 0, 0b0001_1111, 0xff, 0xff, 0xff, 7]);
        assert_eq!(bits.take(3).unwrap(), 0b101);
        assert_eq!(bits.zeros().unwrap(), 5 + 8 + 3);
        assert_eq!(bits.take(2).unwrap(), 3);
        bits.align();
        assert_eq!(bits.take(32).unwrap(), 0xffff_ff07);
        assert!(bits.take(1).is_err() && bits.zeros().is_err());
    }
}
