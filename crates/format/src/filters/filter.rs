//! One stage of a pipeline, as a file describes it.

use super::bitshuffle::Bitshuffle;
use super::checksum::{self, Checksum};
use super::nbit::Nbit;
use super::numbers::Numbers;
use super::pipeline::Tools;
use super::scaleoffset::ScaleOffset;
use super::szip::Szip;
use super::zfp::Zfp;
use super::{
    blosc, blosc2, bzip2, deflate, fletcher32, lz4, lzf, lzma, packbits, pcodec, shuffle, utf32, zstd,
};
use sieva_types::{Endian, Error, ErrorKind, Result};

/// A filter with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// Deflate in a zlib wrapper.
    Deflate,
    /// Byte shuffle.
    Shuffle {
        /// Bytes of an element, at least 1.
        element_size: usize,
    },
    /// Checksum after the data.
    Fletcher32,
    /// Adaptive entropy coding (CCSDS 121.0-B).
    Szip(Szip),
    /// HDF5's packing of types with fewer significant bits than they store.
    Nbit(Nbit),
    /// HDF5's packing of numbers as distances from the least one.
    ScaleOffset(ScaleOffset),
    /// LZF.
    Lzf,
    /// LZ4 in the framing of the HDF5 plug-in.
    Lz4,
    /// Zstandard.
    Zstd,
    /// bzip2.
    Bzip2,
    /// LZMA, as an .xz or .lzma file.
    Lzma,
    /// zfp: numbers, which come out little-endian.
    Zfp(Zfp),
    /// Pcodec: numbers, which come out little-endian.
    Pcodec,
    /// A Blosc chunk of either version.
    Blosc,
    /// A Blosc2 contiguous frame or chunk.
    Blosc2,
    /// Bitshuffle, with or without compression.
    Bitshuffle(Bitshuffle),
    /// Deflate in a gzip wrapper, one member.
    Gzip,
    /// One LZ4 block after its decoded length in four little-endian bytes, as numcodecs writes it.
    Lz4Sized,
    /// Another checksum before or after the data.
    Checksum(Checksum),
    /// Eight booleans to a byte.
    PackBits,
    /// Arithmetic or a change of type.
    Numbers(Numbers),
    /// Texts of a fixed number of UTF-32 code units, read as UTF-8.
    Utf32 {
        /// Bytes of a text, a multiple of four.
        text_size: usize,
        /// Byte order of the code units.
        endian: Endian,
    },
    /// Any other filter, or one whose parameters make no sense. Not decoded here.
    Other {
        /// Number in the HDF5 registry.
        id: u32,
        /// Name in the file, or made from the number where the file has none.
        name: String,
    },
}

impl Filter {
    /// The filter that an HDF5 pipeline message describes by number, client data and (possibly empty) name.
    pub fn from_hdf5(id: u32, client_data: &[u32], name: &str) -> Filter {
        Self::known(id, client_data).unwrap_or_else(|| {
            let name = if name.is_empty() { format!("filter {id}") } else { name.to_owned() };
            Filter::Other { id, name }
        })
    }

    fn known(id: u32, client_data: &[u32]) -> Option<Filter> {
        Some(match id {
            1 => Filter::Deflate,
            2 => {
                let element_size = usize::try_from(*client_data.first()?).ok()?;
                (element_size > 0).then_some(Filter::Shuffle { element_size })?
            }
            3 => Filter::Fletcher32,
            4 => Filter::Szip(Szip::from_hdf5(client_data)?),
            5 => Filter::Nbit(Nbit::from_hdf5(client_data)?),
            6 => Filter::ScaleOffset(ScaleOffset::from_hdf5(client_data)?),
            307 => Filter::Bzip2,
            32000 => Filter::Lzf,
            32001 => Filter::Blosc,
            32004 => Filter::Lz4,
            32008 => Filter::Bitshuffle(Bitshuffle::from_hdf5(client_data)?),
            32013 => Filter::Zfp(Zfp::from_hdf5(client_data)?),
            32015 => Filter::Zstd,
            32026 => Filter::Blosc2,
            _ => return None,
        })
    }

    /// The filter's usual name; for an unknown one the name in the file.
    pub fn name(&self) -> &str {
        match self {
            Filter::Deflate => "deflate",
            Filter::Shuffle { .. } => "shuffle",
            Filter::Fletcher32 => "fletcher32",
            Filter::Szip(_) => "szip",
            Filter::Nbit(_) => "nbit",
            Filter::ScaleOffset(_) => "scaleoffset",
            Filter::Lzf => "lzf",
            Filter::Lz4 => "lz4",
            Filter::Zstd => "zstd",
            Filter::Bzip2 => "bzip2",
            Filter::Lzma => "lzma",
            Filter::Zfp(_) => "zfp",
            Filter::Pcodec => "pcodec",
            Filter::Blosc => "blosc",
            Filter::Blosc2 => "blosc2",
            Filter::Bitshuffle(_) => "bitshuffle",
            Filter::Gzip => "gzip",
            Filter::Lz4Sized => "lz4",
            Filter::Checksum(checksum) => checksum.name(),
            Filter::PackBits => "packbits",
            Filter::Numbers(numbers) => numbers.name(),
            Filter::Utf32 { .. } => "utf-32",
            Filter::Other { name, .. } => name,
        }
    }

    /// Whether data behind this filter can be decoded here.
    pub fn is_supported(&self) -> bool {
        match self {
            Filter::Other { .. } => false,
            Filter::Numbers(numbers) => numbers.is_supported(),
            _ => true,
        }
    }

    /// Bytes that the stage makes of `len` bytes when it is applied, for those where one follows from the other.
    pub(super) fn stored_len(&self, len: usize) -> Option<usize> {
        match self {
            Filter::Shuffle { .. } | Filter::Utf32 { .. } => Some(len),
            Filter::Fletcher32 => len.checked_add(fletcher32::LEN),
            Filter::Checksum(_) => len.checked_add(checksum::LEN),
            Filter::PackBits => Some(packbits::stored_len(len)),
            Filter::Numbers(numbers) => numbers.stored_len(len),
            _ => None,
        }
    }

    /// The data without the checksum that this stage put beside them; `None` of a stage that is no checksum.
    pub(super) fn verified<'a>(&self, stored: &'a [u8]) -> Option<Result<&'a [u8]>> {
        match self {
            Filter::Fletcher32 => Some(fletcher32::verify(stored)),
            Filter::Checksum(checksum) => Some(checksum.verify(stored)),
            _ => None,
        }
    }

    /// Undoes the stage into the start of `out` and returns the length.
    pub(super) fn decode(&self, input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<usize> {
        if let Some(data) = self.verified(input) {
            return copy_through(self.name(), data?, out, |src, dst| dst.copy_from_slice(src));
        }
        match self {
            Filter::Deflate => deflate::decode(tools.inflate(), input, out),
            Filter::Shuffle { element_size } => copy_through(self.name(), input, out, |src, dst| {
                shuffle::unshuffle(*element_size, src, dst);
            }),
            Filter::Szip(szip) => szip.decode(input, out, tools),
            Filter::Nbit(packing) => packing.decode(input, out),
            Filter::ScaleOffset(packing) => packing.decode(input, out),
            Filter::Lzf => lzf::decode(input, out),
            Filter::Lz4 => lz4::decode(input, out),
            Filter::Zstd => zstd::decode(tools.zstd()?, input, out),
            Filter::Bzip2 => bzip2::decode(input, out),
            Filter::Lzma => lzma::decode(input, out),
            Filter::Zfp(zfp) => zfp.decode(input, out),
            Filter::Pcodec => pcodec::decode(input, out),
            Filter::Blosc => blosc::decode(input, out, tools),
            Filter::Blosc2 => blosc2::decode(input, out, tools),
            Filter::Bitshuffle(bitshuffle) => bitshuffle.decode(input, out, tools),
            Filter::Gzip => deflate::decode_gzip(tools.inflate(), input, out),
            Filter::Lz4Sized => lz4::decode_sized(input, out),
            Filter::PackBits => packbits::decode(input, out),
            Filter::Numbers(numbers) => numbers.decode(input, out),
            Filter::Utf32 { text_size, endian } => utf32::decode(*text_size, *endian, input, out),
            Filter::Fletcher32 | Filter::Checksum(_) | Filter::Other { .. } => Err(self.unavailable()),
        }
    }

    fn unavailable(&self) -> Error {
        Error::new(ErrorKind::FilterUnavailable, format!("no decoder for the filter '{}'", self.name()))
    }
}

/// Runs a stage whose output is as long as its input.
pub(super) fn copy_through(
    name: &str,
    input: &[u8],
    out: &mut [u8],
    stage: impl FnOnce(&[u8], &mut [u8]),
) -> Result<usize> {
    let len = super::bytes::length_within(name, "content", input.len() as u64, out.len())?;
    stage(input, &mut out[..len]);
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_client_data_of_the_registry() {
        assert_eq!(Filter::from_hdf5(1, &[4], "deflate"), Filter::Deflate);
        assert_eq!(Filter::from_hdf5(2, &[8], ""), Filter::Shuffle { element_size: 8 });
        assert_eq!(Filter::from_hdf5(32026, &[], "").name(), "blosc2");
        assert_eq!(Filter::from_hdf5(5, &[8, 0, 9, 1, 4, 0, 31, 0], "").name(), "nbit");
    }

    #[test]
    fn senseless_parameters_are_not_supported() {
        for (id, client_data) in
            [(2, &[0][..]), (2, &[]), (5, &[]), (32008, &[0, 3, 0, 0, 2]), (32008, &[0, 3, 4, 7])]
        {
            let filter = Filter::from_hdf5(id, client_data, "");
            assert!(!filter.is_supported(), "{id} {client_data:?}");
        }
        assert_eq!(Filter::from_hdf5(32013, &[], "zfp").name(), "zfp");
        assert_eq!(Filter::from_hdf5(40000, &[], "").name(), "filter 40000");
    }
}
