//! Results as bytes that travel: the file with its number of rows, its name and its format.

use sieva::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::encoded::{EncodeOptions, Encoded};
use crate::format::Format;

const MAGIC: [u8; 4] = *b"SVRS";
const VERSION: u8 = 1;
/// Magic number, version, checksum; rows, id, length of the format's name.
const HEAD: usize = 4 + 1 + 8;
const FIXED: usize = 8 + 32 + 1;

impl Encoded {
    /// How many bytes [`Encoded::to_bytes`] gives.
    ///
    /// # Errors
    /// As [`Encoded::size`].
    pub fn bytes_len(&self) -> Result<u64> {
        Ok(self.size()?.saturating_add((HEAD + FIXED + self.format().name().len()) as u64))
    }

    /// The result as bytes, from which another process makes it without the source. All of it is held in memory.
    ///
    /// # Errors
    /// As [`Encoded::read_at`]; `memory-limit` where it is more than memory can have.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (name, length, mut out) = (self.format().name(), self.bytes_len()?, Vec::new());
        let room = usize::try_from(length).ok().filter(|&room| out.try_reserve_exact(room).is_ok());
        let room = room.ok_or_else(|| {
            let message = format!("a result of {length} bytes does not fit into memory");
            Error::new(ErrorKind::MemoryLimit, message).hint("take it where it was made, part by part")
        })?;
        out.extend_from_slice(&MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.rows().to_le_bytes());
        out.extend_from_slice(self.id().as_bytes());
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        let begin = out.len();
        out.resize(room, 0);
        self.read_at(0, &mut out[begin..])?;
        let sum = xxh3_64(&out[HEAD..]);
        out[5..HEAD].copy_from_slice(&sum.to_le_bytes());
        Ok(out)
    }

    /// The result that [`Encoded::to_bytes`] gave. Its file is written to the directory that `options` name, without a name.
    ///
    /// # Errors
    /// `corrupt-file` for bytes that are no result, damaged, or of another version; `memory-limit` beyond the limit of that
    /// directory; `io-error`.
    pub fn from_bytes(bytes: &[u8], options: &EncodeOptions) -> Result<Self> {
        let damaged = |what: &str| {
            Error::new(ErrorKind::CorruptFile, format!("the bytes of a result are damaged: {what}"))
                .hint("send it again: what it was sent through has changed or cut it off")
        };
        let (head, body) =
            bytes.split_at_checked(HEAD).ok_or_else(|| damaged("they are fewer than a head"))?;
        if !head.starts_with(&MAGIC) {
            return Err(damaged("they do not begin with SVRS"));
        }
        if head[4] != VERSION {
            return Err(damaged(&format!("their version is {}, this program knows {VERSION}", head[4])));
        }
        if head[5..] != xxh3_64(body).to_le_bytes() {
            return Err(damaged("their checksum is another"));
        }
        let short = || damaged("they end too early");
        let (fixed, rest) = body.split_at_checked(FIXED).ok_or_else(short)?;
        let (rows, id) = fixed.split_first_chunk::<8>().ok_or_else(short)?;
        let (&length, id) = id.split_last().ok_or_else(short)?;
        let (name, file) = rest.split_at_checked(length.into()).ok_or_else(short)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| damaged("a name is no text"));
        let format = Format::named(&text(name)?)?;
        Self::received(format, u64::from_le_bytes(*rows), text(id)?, file, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_received() {
        let options = EncodeOptions::default();
        let format = Format::named("csv").unwrap();
        let made =
            Encoded::received(format, 3, "0123456789abcdef".repeat(2), b"a\n1\n2\n3\n", &options).unwrap();
        let bytes = made.to_bytes().unwrap();
        assert_eq!(made.bytes_len().unwrap(), bytes.len() as u64);
        let read = Encoded::from_bytes(&bytes, &options).unwrap();
        assert_eq!((read.rows(), read.id(), read.format(), read.size().unwrap()), (3, made.id(), format, 8));
        let mut file = [0; 20];
        assert_eq!(read.read_at(2, &mut file).unwrap(), 6);
        assert_eq!(&file[..6], b"1\n2\n3\n");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            for wrong in [&damaged[..], &bytes[..at]] {
                let e = Encoded::from_bytes(wrong, &options).err().unwrap();
                assert_eq!(e.kind(), ErrorKind::CorruptFile, "{at}: {e}");
            }
        }
        let little = EncodeOptions { spool_limit: 7, ..options };
        let e = Encoded::from_bytes(&bytes, &little).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    }
}
