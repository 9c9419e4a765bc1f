//! HCOMPRESS_1: an H-transform whose coefficients are coded bit plane by bit plane as quadtrees (FITS standard 4.0,
//! section 10.4.4; White 1992, "High-performance compression of astronomical images").
//!
//! | bytes | meaning |
//! |---|---|
//! | 2 | DD 99 |
//! | 4, 4 | lengths of the slow and the fast axis |
//! | 4 | scale by which coefficients were divided |
//! | 8 | sum of all pixels: the first coefficient |
//! | 3 | bit planes of the quadrants: smooth, mixed, diagonal |
//! | ... | bits of the quadrants, then signs |

use sieva_types::{Error, Result};

use super::bits::Bits;
use super::hinverse;

const MAGIC: [u8; 2] = [0xdd, 0x99];
const HEADER: usize = 25;
/// A coefficient takes at most so many bits.
const MAX_PLANES: u8 = 61;

/// Decodes a tile of `pixels` pixels.
pub(super) fn decode(input: &[u8], pixels: usize, smooth: bool) -> Result<Vec<i64>> {
    let (header, body) =
        input.split_at_checked(HEADER).ok_or_else(|| Error::corrupt("H-compressed data cut off"))?;
    if header[..2] != MAGIC {
        return Err(Error::corrupt(format!(
            "H-compressed data begin with {:02x?}, expected dd 99",
            &header[..2]
        )));
    }
    let int = |at: usize| i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (nx, ny, scale) = (int(2), int(6), int(10));
    let lengths = usize::try_from(nx).ok().zip(usize::try_from(ny).ok());
    let lengths = lengths.filter(|(nx, ny)| nx.checked_mul(*ny) == Some(pixels) && pixels > 0);
    let Some((nx, ny)) = lengths else {
        return Err(Error::corrupt(format!(
            "H-compressed data of {nx} x {ny} pixels, the tile has {pixels}"
        )));
    };
    let mut sum = [0; 8];
    sum.copy_from_slice(&header[14..22]);
    let planes = [header[22], header[23], header[24]];
    if planes.iter().any(|&p| p > MAX_PLANES) {
        return Err(Error::corrupt(format!("H-compressed data of {planes:?} bit planes")));
    }
    let mut a = coefficients(body, nx, ny, planes)?;
    a[0] = i64::from_be_bytes(sum);
    if scale > 1 {
        a.iter_mut().for_each(|c| *c = c.wrapping_mul(scale.into()));
    }
    hinverse::inverse(&mut a, nx, ny, smooth.then_some(scale.into()));
    Ok(a)
}

/// The coefficients but the first.
fn coefficients(body: &[u8], nx: usize, ny: usize, planes: [u8; 3]) -> Result<Vec<i64>> {
    let mut a = vec![0_i64; nx * ny];
    let mut bits = Bits::new(body);
    let (low_x, low_y) = (nx.div_ceil(2), ny.div_ceil(2));
    for (start, qx, qy, planes) in [
        (0, low_x, low_y, planes[0]),
        (low_y, low_x, ny / 2, planes[1]),
        (ny * low_x, nx / 2, low_y, planes[1]),
        (ny * low_x + low_y, nx / 2, ny / 2, planes[2]),
    ] {
        if qx > 0 && qy > 0 {
            quadrant(&mut bits, &mut a[start..], ny, qx, qy, planes)?;
        }
    }
    if bits.take(4)? != 0 {
        return Err(Error::corrupt("H-compressed data: the bit planes do not end where they should"));
    }
    bits.align();
    for c in a.iter_mut().filter(|c| **c != 0) {
        if bits.take(1)? == 1 {
            *c = -*c;
        }
    }
    Ok(a)
}

/// One quadrant of `qx` rows at stride `n` and `qy` columns.
fn quadrant(bits: &mut Bits, a: &mut [i64], n: usize, qx: usize, qy: usize, planes: u8) -> Result<()> {
    let levels = usize::BITS - (qx.max(qy) - 1).leading_zeros();
    let mut codes = vec![0_u8; qx.div_ceil(2) * qy.div_ceil(2)];
    for plane in (0..planes).rev() {
        match bits.take(4)? {
            0 => {
                for code in &mut codes {
                    *code = bits.take(4)? as u8;
                }
            }
            0xf => expand_tree(bits, &mut codes, qx, qy, levels)?,
            other => {
                return Err(Error::corrupt(format!("H-compressed data: a bit plane of format {other}")));
            }
        }
        insert_plane(&codes, a, n, qx, qy, plane);
    }
    Ok(())
}

/// Reads a quadtree: a code of 4 bits says which quarters have anything in them, level by level.
fn expand_tree(bits: &mut Bits, codes: &mut Vec<u8>, qx: usize, qy: usize, levels: u32) -> Result<()> {
    // The lengths at a level: half of those below, rounded up.
    let at = |len: usize, level: u32| len.div_ceil(1 << level);
    let mut parents = vec![code(bits)? as u8];
    for level in (1..levels).rev() {
        let (nx, ny) = (at(qx, level), at(qy, level));
        let parent_ny = ny.div_ceil(2);
        let mut children = vec![0_u8; nx * ny];
        // Backwards, as they were written.
        for i in (0..nx).rev() {
            for j in (0..ny).rev() {
                let parent = parents[i / 2 * parent_ny + j / 2];
                if parent >> (3 - 2 * (i % 2) - j % 2) & 1 == 1 {
                    children[i * ny + j] = code(bits)? as u8;
                }
            }
        }
        parents = children;
    }
    *codes = parents;
    Ok(())
}

/// Sets bit `plane` of the coefficients that the codes of 2 x 2 of them name.
fn insert_plane(codes: &[u8], a: &mut [i64], n: usize, qx: usize, qy: usize, plane: u8) {
    let codes_y = qy.div_ceil(2);
    for i in 0..qx {
        let row = &mut a[i * n..i * n + qy];
        let codes = &codes[i / 2 * codes_y..][..codes_y];
        for (j, c) in row.iter_mut().enumerate() {
            let bit = codes[j / 2] >> (3 - 2 * (i % 2) - j % 2) & 1;
            *c |= i64::from(bit) << plane;
        }
    }
}

/// One code of 4 bits in the fixed Huffman code.
fn code(bits: &mut Bits) -> Result<u32> {
    let mut c = bits.take(3)?;
    if c < 4 {
        return Ok(1 << c);
    }
    c = c << 1 | bits.take(1)?;
    match c {
        8 => return Ok(3),
        9 => return Ok(5),
        10 => return Ok(10),
        11 => return Ok(12),
        12 => return Ok(15),
        _ => c = c << 1 | bits.take(1)?,
    }
    match c {
        26 => return Ok(6),
        27 => return Ok(7),
        28 => return Ok(9),
        29 => return Ok(11),
        30 => return Ok(13),
        _ => c = c << 1 | bits.take(1)?,
    }
    Ok(if c == 62 { 0 } else { 14 })
}
