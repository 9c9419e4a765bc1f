//! RICE_1: differences of neighbours, block by block in a Rice code (FITS standard 4.0, section 10.4.1; Rice, Yeh
//! and Miller 1993, AIAA-93-4541-CP).
//!
//! The first pixel stands in full. Each block of differences begins with a number k, stored plus one: -1 means that
//! all differences are 0, the highest k that they stand in full, any other that each is a unary count of zeros and
//! k low bits. A difference d is folded to 2d or -2d - 1, so that small ones of either sign are small numbers.

use sieva_types::{Error, Result};

use super::bits::Bits;

/// Decodes `pixels` integers of `bytepix` bytes; those of one byte are unsigned, others are signed.
pub(super) fn decode(input: &[u8], pixels: usize, block: usize, bytepix: u32) -> Result<Vec<i32>> {
    let (k_bits, k_full) = match bytepix {
        1 => (3, 6),
        2 => (4, 14),
        4 => (5, 25),
        _ => return Err(Error::corrupt(format!("Rice code of {bytepix} bytes a pixel, expected 1, 2 or 4"))),
    };
    let mut bits = Bits::new(input);
    let mut last = bits.take(8 * bytepix)?;
    let mut out = Vec::with_capacity(pixels);
    while out.len() < pixels {
        let count = block.max(1).min(pixels - out.len());
        let k = bits.take(k_bits)?;
        for _ in 0..count {
            let folded = match k {
                0 => 0,
                k if k - 1 == k_full => bits.take(8 * bytepix)?,
                k => (bits.zeros()? << (k - 1).min(31)) | bits.take(k - 1)?,
            };
            let difference = folded >> 1 ^ (folded & 1).wrapping_neg();
            last = last.wrapping_add(difference);
            out.push(match bytepix {
                1 => i32::from(last as u8),
                2 => i32::from(last as i16),
                _ => last as i32,
            });
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits put together, the highest first.
    #[derive(Default)]
    struct Writer {
        bytes: Vec<u8>,
        used: u32,
    }

    impl Writer {
        fn put(&mut self, value: u32, n: u32) {
            for i in (0..n).rev() {
                if self.used.is_multiple_of(8) {
                    self.bytes.push(0);
                }
                *self.bytes.last_mut().unwrap() |= ((value >> i & 1) as u8) << (7 - self.used % 8);
                self.used += 1;
            }
        }
    }

    fn encode(values: &[i32], block: usize, bytepix: u32, k: u32) -> Vec<u8> {
        let (k_bits, k_full) = [(3, 6), (4, 14), (0, 0), (5, 25)][bytepix as usize - 1];
        let mut w = Writer::default();
        w.put(values[0] as u32, 8 * bytepix);
        let mut last = values[0];
        for chunk in values.chunks(block) {
            let folded: Vec<u32> = chunk
                .iter()
                .map(|&v| {
                    let d = v - last;
                    last = v;
                    if d < 0 { (-2 * d - 1) as u32 } else { 2 * d as u32 }
                })
                .collect();
            if folded.iter().all(|&f| f == 0) {
                w.put(0, k_bits);
                continue;
            }
            w.put(k + 1, k_bits);
            for f in folded {
                if k == k_full {
                    w.put(f, 8 * bytepix);
                } else {
                    (0..f >> k).for_each(|_| w.put(0, 1));
                    w.put(1, 1);
                    w.put(f & ((1 << k) - 1), k);
                }
            }
        }
        w.bytes
    }

    #[test]
    fn what_was_encoded_comes_back() {
        for (bytepix, k, low, high) in
            [(1, 0, 0, 255), (1, 6, 0, 255), (2, 3, -300, 300), (2, 14, -300, 300), (4, 10, -90000, 90000)]
        {
            let values: Vec<i32> = (0..100_i32)
                .map(
                    |i| if i / 8 == 3 { 7 } else { low + (i * 7919 + i * i * 31).rem_euclid(high - low + 1) },
                )
                .collect();
            // Differences in full are taken modulo the width.
            let values: Vec<i32> = if k == 6 { values.iter().map(|v| v % 100).collect() } else { values };
            for block in [8, 16, 32] {
                let coded = encode(&values, block, bytepix, k);
                assert_eq!(decode(&coded, values.len(), block, bytepix).unwrap(), values, "{bytepix} {k}");
            }
        }
    }

    #[test]
    fn damaged_streams_are_errors() {
        let coded = encode(&[5, 900, -4, 17], 4, 2, 2);
        assert!(decode(&coded[..coded.len() - 2], 4, 4, 2).is_err());
        assert!(decode(&[], 1, 32, 4).is_err());
        assert!(decode(&coded, 4, 4, 3).is_err());
        assert_eq!(decode(&[0; 8], 64, 32, 4).unwrap(), [0; 64]);
    }
}
