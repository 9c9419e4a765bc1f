//! Checksums of four bytes, little-endian, before or after the data: CRC-32, CRC-32C, Adler-32 and lookup3, as Zarr codecs.
//!
//! CRC-32C is that of the Zarr v3 core codec `crc32c` (RFC 3720, appendix B.4); the others are those of RFC 1952 and
//! RFC 1950, as `numcodecs` writes them.

use sieva_types::{Error, Result, lookup3};

/// Bytes of the checksum.
pub(super) const LEN: usize = 4;

/// How the sum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumKind {
    /// CRC-32 of RFC 1952.
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// Adler-32 of RFC 1950.
    Adler32,
    /// Bob Jenkins' lookup3, from an initial value on.
    Lookup3(u32),
}

/// A checksum and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// How it is computed.
    pub kind: ChecksumKind,
    /// Before the data instead of after them.
    pub at_start: bool,
}

impl Checksum {
    /// The codec's name.
    pub fn name(self) -> &'static str {
        match self.kind {
            ChecksumKind::Crc32 => "crc32",
            ChecksumKind::Crc32c => "crc32c",
            ChecksumKind::Adler32 => "adler32",
            ChecksumKind::Lookup3(_) => "jenkins_lookup3",
        }
    }

    /// Checks the sum and returns the data without it.
    pub(super) fn verify(self, stored: &[u8]) -> Result<&[u8]> {
        let parts = match self.at_start {
            true => stored.split_first_chunk::<LEN>().map(|(sum, data)| (data, sum)),
            false => stored.split_last_chunk::<LEN>(),
        };
        let Some((data, sum)) = parts else {
            let message = format!("{}: {} stored bytes, expected 4 or more", self.name(), stored.len());
            return Err(Error::corrupt(message));
        };
        let (given, computed) = (u32::from_le_bytes(*sum), self.compute(data));
        if given != computed {
            return Err(Error::corrupt(format!(
                "{}: stored sum {given:08x}, computed {computed:08x} over {} bytes",
                self.name(),
                data.len()
            )));
        }
        Ok(data)
    }

    fn compute(self, data: &[u8]) -> u32 {
        match self.kind {
            ChecksumKind::Crc32 => libdeflater::crc32(data),
            ChecksumKind::Crc32c => crc32c::crc32c(data),
            ChecksumKind::Adler32 => libdeflater::adler32(data),
            ChecksumKind::Lookup3(initial) => lookup3(data, initial),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values that the catalogue of CRC algorithms and RFC 1950 give for "123456789" and "Wikipedia".
    #[test]
    fn known_sums_before_and_after_the_data() {
        let known = [
            (ChecksumKind::Crc32, &b"123456789"[..], 0xcbf4_3926_u32),
            (ChecksumKind::Crc32c, b"123456789", 0xe306_9283),
            (ChecksumKind::Adler32, b"Wikipedia", 0x11e6_0398),
            (ChecksumKind::Lookup3(1), b"Four score and seven years ago", 0xcd62_8161),
        ];
        for (kind, data, sum) in known {
            let before = [&sum.to_le_bytes()[..], data].concat();
            let after = [data, &sum.to_le_bytes()[..]].concat();
            assert_eq!(Checksum { kind, at_start: true }.verify(&before).unwrap(), data);
            assert_eq!(Checksum { kind, at_start: false }.verify(&after).unwrap(), data);
            assert!(Checksum { kind, at_start: true }.verify(&after).is_err());
            assert!(Checksum { kind, at_start: false }.verify(&after[..3]).is_err());
        }
    }
}
