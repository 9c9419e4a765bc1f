//! HDF5's nbit packing, filter 5: of every number its significant bits only.
//!
//! A chunk is one bit stream, most significant bit first, of the items one after the other and of each item's numbers
//! in the order of the parameters; bits that are not significant come out as zeros. The parameters repeat the
//! dataset's type: numbers with their precision and offset, blocks, compounds, and bytes that are kept as they are.
//!
//! libhdf5 reads as many bits as the parameters ask for from a chunk of any length; here a chunk that is too short is an
//! error, and so are parameters that describe other items than the chunk has.
//!
//! Reference: HDF5 file format specification, version 3.0, section IV.A.2.l for the pipeline; the chunk and the
//! parameters are those that libhdf5 writes for `H5Pset_nbit`.

use super::bitstream::BitStream;
use super::bytes::{length_within, slice};
use sieva_types::{Endian, Result};

const NAME: &str = "nbit";
/// Deepest nesting of types within the parameters.
const DEPTH_LIMIT: usize = 32;

/// The parameters of an nbit stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nbit {
    client_data: Vec<u32>,
    /// Items of a chunk.
    count: u64,
    /// What an item is; `None` where all bits are significant and the stage does nothing.
    item: Option<Type>,
}

/// What the parameters say of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Type {
    Number { size: usize, endian: Endian, precision: usize, offset: usize },
    Block { size: usize, item: Box<Type> },
    Compound { size: usize, members: Vec<(usize, Type)> },
    Bytes { size: usize },
}

impl Nbit {
    /// From the client data of the HDF5 filter: their number, whether there is nothing to do, items of a chunk, and
    /// the type of the items. None where these cannot be.
    pub(super) fn from_hdf5(client_data: &[u32]) -> Option<Self> {
        let &[words, untouched, count, ref rest @ ..] = client_data else { return None };
        let item = match untouched {
            0 => Some(Type::parse(&mut rest.iter().map(|&word| word as usize), 0)?),
            _ => None,
        };
        (words as usize == client_data.len()).then(|| Self {
            client_data: client_data.to_vec(),
            count: count.into(),
            item,
        })
    }

    /// The client data that [`crate::filters::Filter::from_hdf5`] makes it from again.
    pub(crate) fn to_hdf5(&self) -> &[u32] {
        &self.client_data
    }

    /// Decodes `input` into the start of `out` and returns the length.
    pub(super) fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let Some(item) = &self.item else {
            return super::filter::copy_through(NAME, input, out, |src, dst| dst.copy_from_slice(src));
        };
        let len = length_within(NAME, "content", self.count.saturating_mul(item.size() as u64), out.len())?;
        let bits = item.bits().and_then(|bits| bits.checked_mul(self.count));
        let packed = bits.and_then(|bits| usize::try_from(bits.div_ceil(8)).ok());
        let mut packed = BitStream::new(slice(NAME, input, 0, packed.unwrap_or(usize::MAX))?);
        let out = &mut out[..len];
        out.fill(0);
        match item {
            &Type::Number { size, endian, precision, offset } if size <= 8 => {
                for place in out.chunks_exact_mut(size) {
                    put(packed.take(precision) << offset, endian, place);
                }
            }
            _ => out.chunks_exact_mut(item.size().max(1)).for_each(|place| item.unpack(&mut packed, place)),
        }
        Ok(len)
    }
}

impl Type {
    /// The type that comes next, if it is one whose parts fit into it.
    fn parse(words: &mut impl Iterator<Item = usize>, depth: usize) -> Option<Self> {
        if depth > DEPTH_LIMIT {
            return None;
        }
        let (class, size) = (words.next()?, words.next()?);
        match class {
            1 => {
                let endian = match words.next()? {
                    0 => Endian::Little,
                    1 => Endian::Big,
                    _ => return None,
                };
                let (precision, offset) = (words.next()?, words.next()?);
                (precision > 0 && precision + offset <= 8 * size).then_some(Type::Number {
                    size,
                    endian,
                    precision,
                    offset,
                })
            }
            2 => {
                let item = Box::new(Type::parse(words, depth + 1)?);
                (item.size() > 0 && size % item.size() == 0).then_some(Type::Block { size, item })
            }
            3 => {
                let mut members = Vec::new();
                // More bytes than the compound has cannot be wanted: what is asked for stays in proportion to it.
                let mut left = size;
                for _ in 0..words.next()? {
                    let offset = words.next()?;
                    let member = Type::parse(words, depth + 1)?;
                    left = left.checked_sub(member.size())?;
                    if member.size() == 0 || offset + member.size() > size {
                        return None;
                    }
                    members.push((offset, member));
                }
                Some(Type::Compound { size, members })
            }
            4 => Some(Type::Bytes { size }),
            _ => None,
        }
    }

    /// Bytes of an item.
    fn size(&self) -> usize {
        match *self {
            Type::Number { size, .. }
            | Type::Block { size, .. }
            | Type::Compound { size, .. }
            | Type::Bytes { size } => size,
        }
    }

    /// Bits that an item is packed into.
    fn bits(&self) -> Option<u64> {
        match self {
            Type::Number { precision, .. } => Some(*precision as u64),
            Type::Block { size, item } => item.bits()?.checked_mul((size / item.size()) as u64),
            Type::Compound { members, .. } => {
                members.iter().try_fold(0_u64, |bits, (_, member)| bits.checked_add(member.bits()?))
            }
            Type::Bytes { size } => Some(8 * *size as u64),
        }
    }

    /// Unpacks one item into `out`, which is zeros.
    fn unpack(&self, packed: &mut BitStream, out: &mut [u8]) {
        match self {
            &Type::Number { size, endian, precision, offset } if size <= 8 => {
                put(packed.take(precision) << offset, endian, &mut out[..size]);
            }
            &Type::Number { size, endian, precision, offset } => {
                // From the most significant bit down, a byte's share at a time.
                let mut end = offset + precision;
                while end > offset {
                    let byte = (end - 1) / 8;
                    let start = offset.max(8 * byte);
                    let place = if endian == Endian::Little { byte } else { size - 1 - byte };
                    out[place] = (packed.take(end - start) << (start - 8 * byte)) as u8;
                    end = start;
                }
            }
            Type::Block { size, item } => {
                out[..*size].chunks_exact_mut(item.size()).for_each(|place| item.unpack(packed, place));
            }
            Type::Compound { members, .. } => {
                for (offset, member) in members {
                    let place = &mut out[*offset..offset + member.size()];
                    // Members of a damaged type may lie upon one another.
                    place.fill(0);
                    member.unpack(packed, place);
                }
            }
            Type::Bytes { size } => out[..*size].iter_mut().for_each(|byte| *byte = packed.take(8) as u8),
        }
    }
}

/// Writes a number of as many bytes as `place` has.
fn put(value: u64, endian: Endian, place: &mut [u8]) {
    place.copy_from_slice(&value.to_le_bytes()[..place.len()]);
    if endian == Endian::Big {
        place.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(client_data: &[u32], bits: &str, len: usize) -> Vec<u8> {
        let bits: Vec<u8> = bits.bytes().filter(|b| *b != b' ').map(|b| b & 1).collect();
        let packed: Vec<u8> =
            bits.chunks(8).map(|c| c.iter().fold(0, |n, b| n << 1 | b) << (8 - c.len())).collect();
        let mut out = vec![0xaa; len + 3];
        let filter = Nbit::from_hdf5(client_data).unwrap();
        assert_eq!(filter.to_hdf5(), client_data);
        assert_eq!(filter.decode(&packed, &mut out), Ok(len));
        assert_eq!(out[len..], [0xaa; 3]);
        let e = filter.decode(&packed[..packed.len() - 1], &mut out).unwrap_err();
        assert!(e.message().starts_with("nbit: "), "{e}");
        let e = filter.decode(&packed, &mut out[..len - 1]).unwrap_err();
        assert!(e.message().contains("expected at most"), "{e}");
        out.truncate(len);
        out
    }

    #[test]
    fn numbers_take_their_place_in_either_order() {
        // 10 bits from bit 3 on, of 16.
        let (low, high) = (0b0001_0000, 0b0001_0110);
        let bits = "1011000010 0000000001";
        assert_eq!(decoded(&[8, 0, 2, 1, 2, 0, 10, 3], bits, 4), [low, high, 8, 0]);
        assert_eq!(decoded(&[8, 0, 2, 1, 2, 1, 10, 3], bits, 4), [high, low, 0, 8]);
    }

    #[test]
    fn numbers_longer_than_a_word() {
        // 68 bits from bit 6 on, of 80: two in byte 0, 64 in bytes 1 to 8, two in byte 9.
        let bits = format!("10{}01", "11110000".repeat(8));
        let little = [0x40, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0x02];
        assert_eq!(decoded(&[8, 0, 1, 1, 10, 0, 68, 6], &bits, 10), little);
        let big: Vec<u8> = little.iter().rev().copied().collect();
        assert_eq!(decoded(&[8, 0, 1, 1, 10, 1, 68, 6], &bits, 10), big);
    }

    #[test]
    fn compounds_blocks_and_plain_bytes() {
        // A 5-bit number, and two plain bytes three times, at 2; twice.
        let client_data = [15, 0, 2, 3, 8, 2, 0, 1, 2, 0, 5, 0, 2, 2, 6, 4, 2];
        let client_data: Vec<u32> = [&[17], &client_data[1..]].concat();
        let item = |first: &str| format!("{first} {}", "00000001 00000010 ".repeat(3));
        let out = decoded(&client_data, &(item("10001") + &item("00011")), 16);
        assert_eq!(out, [17, 0, 1, 2, 1, 2, 1, 2, 3, 0, 1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn senseless_parameters() {
        for client_data in [
            &[][..],
            &[8, 0, 200],
            &[9, 0, 200, 1, 4, 0, 31, 0],
            // More bits than the number has; none; an order that is none; a class that is none.
            &[8, 0, 200, 1, 4, 0, 31, 2],
            &[8, 0, 200, 1, 4, 0, 0, 0],
            &[8, 0, 200, 1, 4, 2, 31, 0],
            &[5, 0, 200, 5, 4],
            // Blocks of nothing, and of items that do not fill them.
            &[7, 0, 1, 2, 8, 4, 0],
            &[7, 0, 1, 2, 8, 4, 3],
            // A member beyond its compound; members that are more than it.
            &[9, 0, 1, 3, 4, 1, 2, 4, 3],
            &[12, 0, 1, 3, 4, 2, 0, 4, 3, 1, 4, 3],
        ] {
            assert_eq!(Nbit::from_hdf5(client_data), None, "{client_data:?}");
        }
    }

    #[test]
    fn nothing_to_do() {
        let filter = Nbit::from_hdf5(&[8, 1, 200, 1, 4, 0, 32, 0]).unwrap();
        let mut out = [0; 4];
        assert_eq!(filter.decode(&[1, 2, 3], &mut out), Ok(3));
        assert_eq!(out, [1, 2, 3, 0]);
    }
}
