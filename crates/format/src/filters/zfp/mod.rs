//! zfp: blocks of 4 values along each of up to four dimensions, lossy or reversible, as HDF5's filter 32013 (H5Z-ZFP) and
//! the codec `zfpy` of numcodecs have it.
//!
//! A header tells type, shape and mode: magic and the codec's version (4 bytes), the field (52 bits), the mode (12 bits,
//! or 64). In HDF5 it is the filter's client data, else it stands before the blocks. Decoding follows libzfp's
//! arithmetic, so that not a bit differs; unlike libzfp it does not read past the end of a chunk.

mod block;
mod order;

use super::bytes::length_within;
use block::{Bits, MOST, Value};
use sieva_types::{Error, Result};

const NAME: &str = "zfp";
const MAGIC: u64 = u32::from_le_bytes(*b"zfp\x05") as u64;
/// Least exponent of a block in all modes but the reversible one, which has the one below it.
const LEAST_EXPONENT: i32 = -1074;
/// Most bits of a block where none are given.
const MOST_BITS: u32 = 16658;
/// Words of HDF5's client data: the version of its filter and the header.
const WORDS: usize = 10;

/// A zfp stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zfp {
    /// The client data of the HDF5 filter, whose header is in them; empty where it is before the blocks.
    words: Vec<u32>,
}

/// How many bits a block may take, and how many planes of them count.
#[derive(Clone, Copy, Debug)]
struct Mode {
    least_bits: u32,
    most_bits: u32,
    most_planes: u32,
    least_exponent: i32,
}

impl Mode {
    fn is_reversible(&self) -> bool {
        self.least_exponent < LEAST_EXPONENT
    }

    fn read(bits: &mut Bits<'_>) -> Option<Self> {
        let variable =
            Self { least_bits: 1, most_bits: MOST_BITS, most_planes: 64, least_exponent: LEAST_EXPONENT };
        let mode = match bits.take(12) as u32 {
            rate @ ..2048 => Self { least_bits: rate + 1, most_bits: rate + 1, ..variable },
            precision @ ..2176 => Self { most_planes: precision - 2047, ..variable },
            2176 => Self { least_exponent: LEAST_EXPONENT - 1, ..variable },
            accuracy @ ..4095 => Self { least_exponent: accuracy as i32 - 2177 + LEAST_EXPONENT, ..variable },
            _ => Self {
                least_bits: bits.take(15) as u32 + 1,
                most_bits: bits.take(15) as u32 + 1,
                most_planes: bits.take(7) as u32 + 1,
                least_exponent: bits.take(15) as i32 - 16495,
            },
        };
        (mode.least_bits <= mode.most_bits && mode.most_planes <= 64).then_some(mode)
    }
}

/// The types of values.
#[derive(Clone, Copy, Debug)]
enum Type {
    I32,
    I64,
    F32,
    F64,
}

/// What a header says.
struct Header {
    dtype: Type,
    /// Lengths, that of the fastest dimension first; 1 where there is none.
    shape: [usize; 4],
    rank: usize,
    mode: Mode,
}

impl Header {
    fn read(bits: &mut Bits<'_>) -> Option<Self> {
        if bits.take(32) != MAGIC {
            return None;
        }
        let dtype = [Type::I32, Type::I64, Type::F32, Type::F64][bits.take(2) as usize];
        let rank = bits.take(2) as usize + 1;
        let width = 48 / rank as u32;
        let mut shape = [1; 4];
        for length in &mut shape[..rank] {
            *length = usize::try_from(bits.take(width) + 1).ok()?;
        }
        let mode = Mode::read(bits)?;
        (!bits.is_past_end()).then_some(Self { dtype, shape, rank, mode })
    }

    fn decode(&self, bits: &mut Bits<'_>, out: &mut [u8]) -> Result<usize> {
        match self.dtype {
            Type::I32 => self.values(bits, out, i32::to_le_bytes),
            Type::I64 => self.values(bits, out, i64::to_le_bytes),
            Type::F32 => self.values(bits, out, f32::to_le_bytes),
            Type::F64 => self.values(bits, out, f64::to_le_bytes),
        }
    }

    fn values<T: Value + Default, const SIZE: usize>(
        &self,
        bits: &mut Bits<'_>,
        out: &mut [u8],
        bytes: fn(T) -> [u8; SIZE],
    ) -> Result<usize> {
        let len = self.shape.iter().fold(SIZE as u64, |n, &length| n.saturating_mul(length as u64));
        let len = length_within(NAME, "content", len, out.len())?;
        let [nx, ny, nz, nw] = self.shape;
        let mut block = [T::default(); MOST];
        let block = &mut block[..1 << (2 * self.rank)];
        for (w, z, y, x) in corners(self.shape) {
            T::block(bits, &self.mode, self.rank, block);
            if bits.is_past_end() {
                return Err(Error::corrupt(format!("{NAME}: the chunk ends within its blocks")));
            }
            let rows = (w..nw.min(w + 4)).flat_map(|w| (z..nz.min(z + 4)).map(move |z| (w, z)));
            for (w, z, y) in rows.flat_map(|(w, z)| (y..ny.min(y + 4)).map(move |y| (w, z, y))) {
                let row = ((w % 4 * 4 + z % 4) * 4 + y % 4) * 4;
                let start = (((w * nz + z) * ny + y) * nx + x) * SIZE;
                let places = out[start..].chunks_exact_mut(SIZE).take(4.min(nx - x));
                places.zip(&block[row..]).for_each(|(place, &value)| place.copy_from_slice(&bytes(value)));
            }
        }
        Ok(len)
    }
}

/// The first positions of all blocks, along the slowest dimension first.
fn corners([nx, ny, nz, nw]: [usize; 4]) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let planes = (0..nw).step_by(4).flat_map(move |w| (0..nz).step_by(4).map(move |z| (w, z)));
    let rows = planes.flat_map(move |(w, z)| (0..ny).step_by(4).map(move |y| (w, z, y)));
    rows.flat_map(move |(w, z, y)| (0..nx).step_by(4).map(move |x| (w, z, y, x)))
}

impl Zfp {
    /// With the header before the blocks.
    pub fn with_header() -> Self {
        Self { words: Vec::new() }
    }

    /// From the client data of the HDF5 filter; none where no header of the codec's version is in them.
    pub(super) fn from_hdf5(client_data: &[u32]) -> Option<Self> {
        let zfp = Self { words: client_data.to_vec() };
        (2..=WORDS).contains(&client_data.len()).then(|| zfp.stored_header())??;
        Some(zfp)
    }

    /// The client data that [`crate::filters::Filter::from_hdf5`] makes it from again.
    pub(crate) fn to_hdf5(&self) -> &[u32] {
        &self.words
    }

    /// The header in the client data. Words of a writer of the other byte order have no magic.
    fn stored_header(&self) -> Option<Header> {
        let bytes: Vec<u8> = self.words.iter().skip(1).flat_map(|word| word.to_le_bytes()).collect();
        Header::read(&mut Bits::new(&bytes))
    }

    /// Decodes `input` into the start of `out` and returns the length.
    pub(super) fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut bits = Bits::new(input);
        let header = match self.words.is_empty() {
            true => Header::read(&mut bits),
            false => self.stored_header(),
        };
        let header = header.ok_or_else(|| Error::corrupt(format!("{NAME}: no header of version 5")))?;
        header.decode(&mut bits, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What zfpy 1.0.1 makes of `(numpy.arange(30.).reshape(6, 5) ** 2 / 7)`, reversibly.
    const REVERSIBLE: &str = "7a667005470000500000008815b0471088810231642a0ec4c490a938101343a6e2404c0c998a033131642a0e\
        c4c490a938101343a6e2404c0c390015500e120862131146631b7863218856ac3ac5dc0a982313291022014aa042010428810a0510a004\
        2a14408012a85000014aa042010428810a0510a0042a14408012a850442002408932e06d43a4c040a8450930c93885a8c20b4c324e21aa\
        f002938c53882abcc024e314a20a2f30c93885a8c20b4c324e21aaf002938c53882abcc0a4e39568eebf2b03da36540a91082540a04002\
        84488102091022050a244088142890002152a0400284488102091022050a244088142a154a0000";

    fn bytes(hex: &str) -> Vec<u8> {
        let pair = |p: &[u8]| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap();
        hex.as_bytes().chunks(2).map(pair).collect()
    }

    #[test]
    fn a_stream_of_zfpy_comes_back() {
        let stored = bytes(REVERSIBLE);
        let expected: Vec<u8> =
            (0..30).flat_map(|n| (f64::from(n) * f64::from(n) / 7.0).to_le_bytes()).collect();
        let mut out = vec![0xaa; 248];
        assert_eq!(Zfp::with_header().decode(&stored, &mut out), Ok(240));
        assert_eq!((&out[..240], &out[240..]), (&expected[..], &[0xaa; 8][..]));
        let e = Zfp::with_header().decode(&stored, &mut out[..239]).unwrap_err();
        assert_eq!(e.to_string(), "zfp: content of 240 bytes, expected at most 239");
        for cut in 0..stored.len() - 8 {
            assert!(Zfp::with_header().decode(&stored[..cut], &mut out).is_err(), "{cut}");
        }
    }

    #[test]
    fn headers_in_client_data_come_back_and_others_are_none() {
        let header = bytes(&REVERSIBLE[..24]);
        let words: Vec<u32> =
            [1].into_iter().chain(header.as_chunks().0.iter().map(|w| u32::from_le_bytes(*w))).collect();
        let zfp = Zfp::from_hdf5(&words).unwrap();
        assert_eq!(Zfp::from_hdf5(zfp.to_hdf5()), Some(zfp.clone()));
        let mut out = vec![0; 240];
        assert_eq!(zfp.decode(&bytes(&REVERSIBLE[24..]), &mut out), Ok(240));
        assert_eq!(out[8..16], (1.0_f64 / 7.0).to_le_bytes());
        for wrong in [&words[..3], &[], &[1, 2, 3, 4, 5]] {
            assert_eq!(Zfp::from_hdf5(wrong), None, "{wrong:?}");
        }
    }
}
