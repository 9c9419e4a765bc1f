//! From a tile's compressed bytes to its pixels, in native byte order.

use sieva_types::{DType, Error, Result};

use super::dither::{self, Quantum};
use super::spec::{Codec, Dither};
use super::{hcompress, plio, rice};

/// What a codec makes.
pub(super) enum Decoded {
    /// Big-endian numbers of so many bytes each.
    Bytes(Vec<u8>, usize),
    /// Integers.
    Ints(Vec<i32>),
    /// Wide integers.
    Wide(Vec<i64>),
}

/// Decodes a tile of `pixels` pixels of at most `size` bytes.
pub(super) fn decode(codec: Codec, input: Vec<u8>, pixels: usize, size: usize) -> Result<Decoded> {
    Ok(match codec {
        Codec::Plain => bytes(input, pixels)?,
        Codec::Gzip => bytes(gunzip(&input, pixels, size)?, pixels)?,
        Codec::ShuffledGzip => match bytes(gunzip(&input, pixels, size)?, pixels)? {
            Decoded::Bytes(planes, size) => {
                let at = |i: usize| planes[i % size * pixels + i / size];
                Decoded::Bytes((0..planes.len()).map(at).collect(), size)
            }
            other => other,
        },
        Codec::Rice { block, bytepix } => Decoded::Ints(rice::decode(&input, pixels, block, bytepix)?),
        Codec::Plio => Decoded::Ints(plio::decode(&input, pixels)?),
        Codec::Hcompress { smooth } => Decoded::Wide(hcompress::decode(&input, pixels, smooth)?),
    })
}

fn gunzip(input: &[u8], pixels: usize, size: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; pixels.saturating_mul(size.max(4))];
    let len = libdeflater::Decompressor::new()
        .gzip_decompress(input, &mut out)
        .map_err(|e| Error::corrupt(format!("a tile in gzip cannot be decoded: {e}")))?;
    out.truncate(len);
    Ok(out)
}

/// Bytes of numbers, whose size follows from their length.
fn bytes(bytes: Vec<u8>, pixels: usize) -> Result<Decoded> {
    let size = bytes.len() / pixels.max(1);
    if ![1, 2, 4, 8].contains(&size) || size * pixels != bytes.len() {
        let len = bytes.len();
        return Err(Error::corrupt(format!("a tile of {pixels} pixels decodes to {len} bytes")));
    }
    Ok(Decoded::Bytes(bytes, size))
}

impl Decoded {
    /// The integers, one by one.
    fn for_each(&self, mut f: impl FnMut(&mut dyn Iterator<Item = i64>)) {
        match self {
            Self::Ints(v) => f(&mut v.iter().map(|&i| i64::from(i))),
            Self::Wide(v) => f(&mut v.iter().copied()),
            Self::Bytes(v, 1) => f(&mut v.iter().map(|&b| i64::from(b))),
            Self::Bytes(v, 2) => f(&mut be(v).map(|b: [u8; 2]| i16::from_be_bytes(b).into())),
            Self::Bytes(v, 4) => f(&mut be(v).map(|b: [u8; 4]| i32::from_be_bytes(b).into())),
            Self::Bytes(v, _) => f(&mut be(v).map(i64::from_be_bytes)),
        }
    }

    /// Pixels of the stored type, with the sign bit flipped where that is meant.
    pub(super) fn stored(self, dtype: DType, flip_sign: bool) -> Result<Vec<u8>> {
        let size = dtype.size();
        let mut out = match self {
            Self::Bytes(mut bytes, n) if n == size => {
                if cfg!(target_endian = "little") {
                    bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
                }
                bytes
            }
            Self::Bytes(_, n) if dtype.is_float() => {
                return Err(Error::corrupt(format!("a tile of {dtype} decodes to {n} bytes a pixel")));
            }
            ints => narrowed(&ints, size),
        };
        if flip_sign {
            let high = if cfg!(target_endian = "little") { size - 1 } else { 0 };
            out.chunks_exact_mut(size).for_each(|e| e[high] ^= 0x80);
        }
        Ok(out)
    }

    /// Pixels of floating-point numbers that were quantised.
    pub(super) fn dequantised(&self, dtype: DType, q: Quantum, dither: Dither, tile: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.for_each(|ints| match dtype {
            DType::F32 => {
                dither::values(ints, q, dither, tile, |v| out.extend_from_slice(&(v as f32).to_ne_bytes()));
            }
            _ => dither::values(ints, q, dither, tile, |v| out.extend_from_slice(&v.to_ne_bytes())),
        });
        out
    }
}

fn be<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.chunks_exact(N).filter_map(|b| b.try_into().ok())
}

fn narrowed(ints: &Decoded, size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    ints.for_each(|ints| match size {
        1 => out.extend(ints.map(|i| i as u8)),
        2 => ints.for_each(|i| out.extend_from_slice(&(i as i16).to_ne_bytes())),
        4 => ints.for_each(|i| out.extend_from_slice(&(i as i32).to_ne_bytes())),
        _ => ints.for_each(|i| out.extend_from_slice(&i.to_ne_bytes())),
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_by_their_length() {
        let two = decode(Codec::Plain, vec![0xff, 0xfe, 0, 3], 2, 4).unwrap();
        assert_eq!(two.stored(DType::I32, false).unwrap(), [-2_i32, 3].map(i32::to_ne_bytes).concat());
        assert!(decode(Codec::Plain, vec![0; 5], 2, 4).is_err());
        assert!(decode(Codec::Gzip, vec![1, 2, 3], 2, 4).is_err());
        let short = decode(Codec::Plain, vec![0; 4], 2, 4).unwrap();
        assert!(short.stored(DType::F32, false).is_err());
    }

    #[test]
    fn a_flipped_sign_is_an_offset_of_half_the_range() {
        let ints = Decoded::Ints(vec![-32768, 0, 32767]);
        let expected = [0_u16, 32768, 65535].map(u16::to_ne_bytes).concat();
        assert_eq!(ints.stored(DType::I16, true).unwrap(), expected);
    }
}
