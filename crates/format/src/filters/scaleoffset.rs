//! HDF5's scale-offset packing, filter 6: numbers as their distance from the least one, in as few bits as it takes.
//!
//! A chunk is the number of bits of a distance (4 bytes, little-endian), the length of the least number (1 byte) and
//! the least number (16 bytes, of which 8 are used), then one bit stream, most significant bit first. All bits set is
//! the fill value, where there is one. Of floating-point numbers the distances are counted in powers of ten and
//! rounded: decoding follows libhdf5's arithmetic in their own type, so that not a bit differs.
//!
//! libhdf5 takes as many values as the parameters say from a chunk of any length where values take all their bits;
//! here a chunk that is too short is an error.
//!
//! Reference: HDF5 file format specification, version 3.0, section IV.A.2.l for the pipeline; it says nothing of the
//! chunk and the parameters, which are those that libhdf5 writes: what `H5Pset_scaleoffset` is given,
//! completed by the dataset's type and fill value.

use super::bitstream::BitStream;
use super::bytes::{le_u32, length_within, slice};
use sieva_types::{Endian, Error, Result};

const NAME: &str = "scaleoffset";

/// Bytes before the bit stream.
const HEADER: usize = 21;
/// Words of the filter's client data.
const WORDS: usize = 20;

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    /// Floating point, rounded to so many decimal places.
    Float(i32),
    /// Integers in all their bits: the stage does nothing.
    Untouched,
}

/// The parameters of a scale-offset stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleOffset {
    kind: Kind,
    /// Values of a chunk.
    count: u32,
    /// Bytes of a value: 1, 2, 4 or 8.
    size: u32,
    endian: Endian,
    /// Bits of the fill value.
    fill: Option<u64>,
}

impl ScaleOffset {
    /// From the client data of the HDF5 filter: way of scaling, its factor, values of a chunk, class, size, sign and
    /// byte order of their type, whether there is a fill value, and that. None where these cannot be.
    pub(super) fn from_hdf5(client_data: &[u32]) -> Option<Self> {
        let &[scaling, factor, count, class, size, sign, order, has_fill, low, high, ..] = client_data else {
            return None;
        };
        let kind = match (class, scaling, sign, size) {
            (0, 2, 0 | 1, 1 | 2 | 4 | 8) if factor as i32 > 8 * size as i32 => return None,
            (0, 2, 0 | 1, 1 | 2 | 4 | 8) if factor == 8 * size => Kind::Untouched,
            (0, 2, 0, 1 | 2 | 4 | 8) => Kind::Unsigned,
            (0, 2, 1, 1 | 2 | 4 | 8) => Kind::Signed,
            (1, 0, _, 4 | 8) => Kind::Float(factor as i32),
            _ => return None,
        };
        let fill = u64::from(low) | u64::from(high) << 32;
        let endian = if order == 0 { Endian::Little } else { Endian::Big };
        (client_data.len() == WORDS && order <= 1 && has_fill <= 1).then_some(Self {
            kind,
            count,
            size,
            endian,
            fill: (has_fill == 1).then_some(fill),
        })
    }

    /// The client data that [`crate::filters::Filter::from_hdf5`] makes it from again.
    pub(crate) fn to_hdf5(self) -> [u32; WORDS] {
        let (scaling, factor, class, sign) = match self.kind {
            Kind::Unsigned => (2, 0, 0, 0),
            Kind::Signed => (2, 0, 0, 1),
            Kind::Float(decimals) => (0, decimals as u32, 1, 0),
            Kind::Untouched => (2, 8 * self.size, 0, 0),
        };
        let order = u32::from(self.endian == Endian::Big);
        let fill = self.fill.unwrap_or(0);
        let mut words = [0; WORDS];
        words[..8].copy_from_slice(&[
            scaling,
            factor,
            self.count,
            class,
            self.size,
            sign,
            order,
            u32::from(self.fill.is_some()),
        ]);
        (words[8], words[9]) = (fill as u32, (fill >> 32) as u32);
        words
    }

    /// Decodes `input` into the start of `out` and returns the length.
    pub(super) fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        if self.kind == Kind::Untouched {
            return super::filter::copy_through(NAME, input, out, |src, dst| dst.copy_from_slice(src));
        }
        let len = u64::from(self.count) * u64::from(self.size);
        let len = length_within(NAME, "content", len, out.len())?;
        let bits = le_u32(NAME, input, 0)?;
        if bits > 8 * self.size {
            return Err(Error::corrupt(format!("{NAME}: {bits} bits of values of {} bytes", self.size)));
        }
        let stored = usize::from(slice(NAME, input, 4, 1)?[0]).min(8);
        let mut least = [0; 8];
        least[..stored].copy_from_slice(slice(NAME, input, 5, stored)?);
        let packed = (u64::from(self.count) * u64::from(bits)).div_ceil(8);
        let packed = match packed {
            0 => &[],
            packed => slice(NAME, input, HEADER, usize::try_from(packed).unwrap_or(usize::MAX))?,
        };
        let least = u64::from_le_bytes(least);
        match self.size {
            1 => self.values::<1>(bits, least, packed, &mut out[..len]),
            2 => self.values::<2>(bits, least, packed, &mut out[..len]),
            4 => self.values::<4>(bits, least, packed, &mut out[..len]),
            _ => self.values::<8>(bits, least, packed, &mut out[..len]),
        }
        Ok(len)
    }

    /// Unpacks values of `SIZE` bytes, each of them from so many bits.
    fn values<const SIZE: usize>(&self, bits: u32, least: u64, packed: &[u8], out: &mut [u8]) {
        let write = |value: u64, place: &mut [u8]| {
            let bytes = value.to_le_bytes();
            place.copy_from_slice(&bytes[..SIZE]);
            if self.endian == Endian::Big {
                place.reverse();
            }
        };
        let places = out.chunks_exact_mut(SIZE);
        // In all their bits: as they are, little-endian.
        if bits == 8 * self.size {
            for (value, place) in packed.chunks_exact(SIZE).zip(places) {
                place.copy_from_slice(value);
                if self.endian == Endian::Big {
                    place.reverse();
                }
            }
            return;
        }
        let filled = self.fill.map(|fill| ((1 << bits) - 1, fill));
        let fill_or = |distance: u64, value: u64| match filled {
            Some((all, fill)) if distance == all => fill,
            _ => value,
        };
        let mut packed = BitStream::new(packed);
        let distances = std::iter::repeat_with(|| packed.take(bits as usize));
        match (self.kind, SIZE) {
            (Kind::Float(decimals), 4) => {
                let (least, scale) = (f32::from_bits(least as u32), 10_f32.powf(decimals as f32));
                for (distance, place) in distances.zip(places) {
                    let value = distance as f32 / scale + least;
                    write(fill_or(distance, value.to_bits().into()), place);
                }
            }
            (Kind::Float(decimals), _) => {
                let (least, scale) = (f64::from_bits(least), 10_f64.powf(f64::from(decimals)));
                for (distance, place) in distances.zip(places) {
                    let value = distance as f64 / scale + least;
                    write(fill_or(distance, value.to_bits()), place);
                }
            }
            _ => distances.zip(places).for_each(|(distance, place)| {
                write(fill_or(distance, distance.wrapping_add(least)), place);
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEGERS: [u32; WORDS] = [2, 0, 5, 0, 4, 1, 0, 1, (-2_i32) as u32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    fn filter(words: [u32; WORDS]) -> ScaleOffset {
        ScaleOffset::from_hdf5(&words).unwrap()
    }

    fn chunk(bits: u32, least: u64, packed: &[u8]) -> Vec<u8> {
        let mut stored = bits.to_le_bytes().to_vec();
        stored.push(8);
        stored.extend(least.to_le_bytes());
        stored.extend([0; 8]);
        stored.extend(packed);
        stored
    }

    #[test]
    fn parameters_come_back() {
        for words in [
            INTEGERS,
            [2, 0, 7, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0, (-3_i32) as u32, 9, 1, 8, 0, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [2, 64, 9, 0, 8, 0, 0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(filter(words).to_hdf5(), words);
        }
        for (at, wrong) in [(0, 0), (0, 1), (1, 33), (3, 1), (3, 2), (4, 3), (5, 2), (6, 2), (7, 2)] {
            let mut words = INTEGERS;
            words[at] = wrong;
            assert_eq!(ScaleOffset::from_hdf5(&words), None, "{at} {wrong}");
        }
        assert_eq!(ScaleOffset::from_hdf5(&INTEGERS[..19]), None);
    }

    #[test]
    fn distances_and_fill_values_of_every_width() {
        for bits in 0..32_u32 {
            // All ones, zero, one, and ones again.
            let all = (1_u64 << bits) - 1;
            let distances = [all, 0, all & 1, all, 0];
            let mut text: String =
                distances.iter().map(|d| format!("{d:064b}")[64 - bits as usize..].to_owned()).collect();
            text.extend(std::iter::repeat_n('0', (8 - text.len() % 8) % 8));
            let packed: Vec<u8> =
                text.as_bytes().chunks(8).map(|b| b.iter().fold(0, |n, c| n << 1 | (c & 1))).collect();
            let expected: Vec<u8> = distances
                .iter()
                .flat_map(|&d| if d == all { -2_i32 } else { d as i32 - 7 }.to_le_bytes())
                .collect();
            let mut out = [0xaa; 24];
            let stored = chunk(bits, (-7_i64) as u64, &packed);
            assert_eq!(filter(INTEGERS).decode(&stored, &mut out), Ok(20), "{bits}");
            assert_eq!(out[..20], expected, "{bits}");
            assert_eq!(out[20..], [0xaa; 4]);
        }
    }

    #[test]
    fn values_in_all_their_bits_are_no_longer_than_the_chunk() {
        let mut words = INTEGERS;
        words[6] = 1;
        let values: Vec<u8> = (1..=20).collect();
        let mut out = [0; 20];
        filter(words).decode(&chunk(32, 0, &values), &mut out).unwrap();
        assert_eq!(out[..8], [4, 3, 2, 1, 8, 7, 6, 5]);
        let e = filter(words).decode(&chunk(32, 0, &values[..19]), &mut out).unwrap_err();
        assert_eq!(e.to_string(), "scaleoffset: 20 bytes at 21 of 40 stored");
        let e = filter(words).decode(&chunk(33, 0, &values), &mut out).unwrap_err();
        assert_eq!(e.to_string(), "scaleoffset: 33 bits of values of 4 bytes");
        let e = filter(words).decode(&chunk(1, 0, &values), &mut out[..19]).unwrap_err();
        assert_eq!(e.to_string(), "scaleoffset: content of 20 bytes, expected at most 19");
    }
}
