//! The Fletcher-32 checksum of HDF5, filter 3: four bytes after the data, little-endian.
//!
//! The sum runs over big-endian 16-bit words; an odd last byte is the high byte of a word. HDF5 before 1.6.3
//! swapped the bytes within both halves on little-endian machines, and such files have to stay readable.
//!
//! Reference: Fletcher, J. G. (1982), IEEE Trans. Commun. 30(1), doi:10.1109/TCOM.1982.1095369.

use sieva_types::{Error, Result};

/// Bytes of the checksum.
pub(super) const LEN: usize = 4;

/// Words summed side by side.
const LANES: usize = 16;

/// Rows of lanes before the lane sums could leave 32 bits: 65535 * n * (n + 1) / 2 < 2^32 for n <= 361.
const ROWS: usize = 256;

/// Checks the sum at the end of `stored` and returns the bytes before it.
pub(super) fn verify(stored: &[u8]) -> Result<&[u8]> {
    let Some((data, sum)) = stored.split_last_chunk::<LEN>() else {
        return Err(Error::corrupt(format!("fletcher32: {} stored bytes, expected 4 or more", stored.len())));
    };
    let (given, computed) = (u32::from_le_bytes(*sum), checksum(data));
    let swapped = (computed & 0x00ff_00ff) << 8 | (computed >> 8) & 0x00ff_00ff;
    if given != computed && given != swapped {
        return Err(Error::corrupt(format!(
            "fletcher32: stored sum {given:08x}, computed {computed:08x} over {} bytes",
            data.len()
        )));
    }
    Ok(data)
}

fn checksum(data: &[u8]) -> u32 {
    let (mut sum1, mut sum2) = (0_u64, 0_u64);
    let mut blocks = data.chunks_exact(2 * LANES * ROWS);
    for block in &mut blocks {
        add_block(block, &mut sum1, &mut sum2);
    }
    let rest = blocks.remainder();
    let (lanes, tail) = rest.split_at(rest.len() / (2 * LANES) * (2 * LANES));
    add_block(lanes, &mut sum1, &mut sum2);
    for word in tail.chunks(2) {
        let low = word.get(1).copied().unwrap_or(0);
        sum1 += u64::from(u16::from_be_bytes([word[0], low]));
        sum2 += sum1;
    }
    fold(sum2) << 16 | fold(sum1)
}

/// Adds whole rows of lanes, at most [`ROWS`]. With n words w_i: sum1 += Σ w_i, sum2 += n·sum1 + Σ (n - i)·w_i.
fn add_block(block: &[u8], sum1: &mut u64, sum2: &mut u64) {
    let (mut plain, mut weighted) = ([0_u32; LANES], [0_u32; LANES]);
    for row in block.chunks_exact(2 * LANES) {
        for lane in 0..LANES {
            plain[lane] += u32::from(u16::from_be_bytes([row[2 * lane], row[2 * lane + 1]]));
            weighted[lane] += plain[lane];
        }
    }
    *sum2 += (block.len() / 2) as u64 * *sum1;
    for lane in 0..LANES {
        *sum2 += LANES as u64 * u64::from(weighted[lane]) - lane as u64 * u64::from(plain[lane]);
        *sum1 += u64::from(plain[lane]);
    }
    *sum1 = u64::from(fold(*sum1));
    *sum2 = u64::from(fold(*sum2));
}

/// `sum` modulo 65535 as end-around carries leave it: a multiple above zero is 65535.
fn fold(sum: u64) -> u32 {
    match sum {
        0 => 0,
        _ => ((sum - 1) % 65535 + 1) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, with end-around carries after every word.
    fn plain(data: &[u8]) -> u32 {
        let carry = |sum: u32| (sum & 0xffff) + (sum >> 16);
        let (mut sum1, mut sum2) = (0_u32, 0_u32);
        for word in data.chunks(2) {
            let value = u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
            sum1 = carry(sum1 + value);
            sum2 = carry(sum2 + sum1);
        }
        sum2 << 16 | sum1
    }

    #[test]
    fn lanes_equal_the_definition_for_all_lengths() {
        let data: Vec<u8> = (0..20_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for len in (0..200).chain([8191, 8192, 8193, 8224, 8255, 16_384, 19_999, 20_000]) {
            assert_eq!(checksum(&data[..len]), plain(&data[..len]), "{len}");
        }
        assert_eq!(checksum(&[0xff; 8192 * 2]), plain(&[0xff; 8192 * 2]));
    }

    #[test]
    fn both_byte_orders_are_accepted_and_damage_is_not() {
        let mut stored = b"sieva".to_vec();
        let sum = checksum(&stored).to_le_bytes();
        stored.extend(sum);
        assert_eq!(verify(&stored).unwrap(), b"sieva");
        stored[5..].copy_from_slice(&[sum[1], sum[0], sum[3], sum[2]]);
        assert_eq!(verify(&stored).unwrap(), b"sieva");
        stored[0] ^= 1;
        assert!(verify(&stored).unwrap_err().message().starts_with("fletcher32: stored sum "));
        assert!(verify(&[1, 2, 3]).is_err());
    }
}
