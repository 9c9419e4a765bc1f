//! Bit shuffle: bit 0 of byte 0 of all elements, then bit 1, and so on, eight elements to a byte.
//!
//! Undone in two steps. Eight bit planes make one byte plane by transposing 8x8 bits in 64-bit words (Warren,
//! Hacker's Delight, 2nd ed., section 7-3); the byte planes are then interleaved as in a byte shuffle.

use super::bytes::at_least;
use super::shuffle::unshuffle;

/// Undoes the bit shuffle of whole groups of eight elements: the length is a multiple of `8 * element_size`.
/// `planes` is work space.
pub(super) fn bit_unshuffle(element_size: usize, src: &[u8], dst: &mut [u8], planes: &mut Vec<u8>) {
    assert!(src.len() == dst.len() && src.len().is_multiple_of(8 * element_size.max(1)));
    if src.is_empty() {
        return;
    }
    if element_size == 1 {
        return byte_plane(src, dst);
    }
    let planes = at_least(planes, src.len());
    let plane_len = src.len() / element_size;
    for (bits, plane) in src.chunks_exact(plane_len).zip(planes.chunks_exact_mut(plane_len)) {
        byte_plane(bits, plane);
    }
    unshuffle(element_size, planes, dst);
}

/// Makes one byte plane of eight bit planes that lie one after the other.
fn byte_plane(bits: &[u8], plane: &mut [u8]) {
    let row_len = bits.len() / 8;
    #[cfg(target_arch = "x86_64")]
    let done = sse2::byte_plane(row_len, bits, plane);
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    for (column, out) in plane.chunks_exact_mut(8).enumerate().skip(done) {
        let rows: [u8; 8] = std::array::from_fn(|bit| bits[bit * row_len + column]);
        out.copy_from_slice(&transpose(u64::from_le_bytes(rows)).to_le_bytes());
    }
}

/// Bit j of byte i becomes bit i of byte j.
fn transpose(mut x: u64) -> u64 {
    for (shift, mask) in STEPS {
        let swapped = (x ^ (x >> shift)) & mask;
        x ^= swapped ^ (swapped << shift);
    }
    x
}

/// Distance and mask of the bits that trade places: within 2x2, 4x4 and 8x8 squares.
const STEPS: [(u32, u64); 3] =
    [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)];

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::STEPS;
    use crate::filters::shuffle::sse2::interleave_rows;
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi64x, _mm_setzero_si128, _mm_slli_epi64,
        _mm_srli_epi64, _mm_storeu_si128, _mm_xor_si128,
    };

    /// Does as many columns as fill whole vectors of every bit plane; returns how many.
    pub fn byte_plane(row_len: usize, bits: &[u8], plane: &mut [u8]) -> usize {
        assert!(bits.len() == 8 * row_len && plane.len() == 8 * row_len);
        let vectors = row_len / 16;
        for vector in 0..vectors {
            // SAFETY: row `bit` is read up to bit * row_len + (vector + 1) * 16 <= 8 * row_len = bits.len(), and
            // written are the bytes up to (vector + 1) * 128 <= 8 * row_len = plane.len().
            unsafe {
                let mut rows = [_mm_setzero_si128(); 8];
                for (bit, row) in rows.iter_mut().enumerate() {
                    *row = _mm_loadu_si128(bits.as_ptr().add(bit * row_len + vector * 16).cast());
                }
                for (i, columns) in interleave_rows(rows).into_iter().enumerate() {
                    let out = plane.as_mut_ptr().add(vector * 128 + i * 16);
                    _mm_storeu_si128(out.cast(), transpose(columns));
                }
            }
        }
        vectors * 16
    }

    /// [`super::transpose`] of both words.
    #[inline(always)]
    fn transpose(x: __m128i) -> __m128i {
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            let x = step::<7>(x, _mm_set1_epi64x(STEPS[0].1 as i64));
            let x = step::<14>(x, _mm_set1_epi64x(STEPS[1].1 as i64));
            step::<28>(x, _mm_set1_epi64x(STEPS[2].1 as i64))
        }
    }

    #[inline(always)]
    fn step<const SHIFT: i32>(x: __m128i, mask: __m128i) -> __m128i {
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            let swapped = _mm_and_si128(_mm_xor_si128(x, _mm_srli_epi64::<SHIFT>(x)), mask);
            _mm_xor_si128(x, _mm_xor_si128(swapped, _mm_slli_epi64::<SHIFT>(swapped)))
        }
    }
}

/// The shuffle itself, by its definition, for tests.
#[cfg(test)]
pub(super) fn bit_shuffle(element_size: usize, data: &[u8]) -> Vec<u8> {
    let count = data.len() / element_size;
    let mut out = vec![0; data.len()];
    for i in 0..count {
        for bit in 0..8 * element_size {
            let value = data[i * element_size + bit / 8] >> (bit % 8) & 1;
            out[(bit * count + i) / 8] |= value << (i % 8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_element_sizes_and_lengths_come_back() {
        let data: Vec<u8> = (0..40_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let mut planes = Vec::new();
        for element_size in [1, 2, 3, 4, 5, 8, 12, 16] {
            for groups in [0, 1, 2, 15, 16, 17, 33, 300] {
                let data = &data[..groups * 8 * element_size];
                let mut out = vec![0; data.len()];
                bit_unshuffle(element_size, &bit_shuffle(element_size, data), &mut out, &mut planes);
                assert_eq!(out, data, "{element_size} bytes, {groups} groups");
            }
        }
    }
}
