//! From the first byte of a file to the headers of all its HDUs (header and data units).
//!
//! Headers come in blocks of 2880 bytes; data follow, padded to whole blocks. Data are skipped by the size that
//! their header tells, so that a file of few HDUs costs few reads however large it is.

use sieva_format::Warnings;
use sieva_store::RangedRead;
use sieva_types::{Error, ErrorKind, Result};

use crate::header::Header;

/// Bytes of a block.
pub(crate) const BLOCK: u64 = 2880;
/// Bytes of headers that are read of one file. What they say takes some times as much in memory.
const MAX_HEADERS: u64 = 64 << 20;
/// The longest single header.
const MAX_HEADER: u64 = 16 << 20;
/// HDUs of one file that are listed.
const MAX_HDUS: usize = 65536;
/// Bytes that are read at once for headers, from a local file and from far away.
const NEAR_READ: u64 = 6 * BLOCK;
const FAR_READ: u64 = 23 * BLOCK;
/// Dimensions of an array.
pub(crate) const MAX_RANK: usize = 32;

/// One header and data unit.
#[derive(Debug)]
pub(crate) struct Hdu {
    /// Its number in the file, the primary one being 0.
    pub(crate) number: usize,
    /// Its header.
    pub(crate) header: Header,
    /// Offset of its first byte of data.
    pub(crate) data_start: u64,
    /// Bytes of data without padding.
    pub(crate) data_len: u64,
    /// Lengths of its axes as they are written: fastest first.
    pub(crate) axes: Vec<u64>,
    /// Bits of an element, negative for floating-point numbers.
    pub(crate) bitpix: i32,
}

/// Reads all headers. What is damaged ends the list, with a warning, unless it is the first header.
pub(crate) fn scan(store: &dyn RangedRead, warnings: &mut Warnings) -> Result<Vec<Hdu>> {
    let mut blocks = Blocks { store, held: Vec::new(), start: 0, read: 0 };
    let mut hdus: Vec<Hdu> = Vec::new();
    let mut at = 0_u64;
    while at < store.len() {
        let number = hdus.len();
        if number == MAX_HDUS || blocks.read > MAX_HEADERS {
            warnings.push(|| format!("only the first {number} HDUs are listed: the file has more"));
            break;
        }
        let hdu = match read_hdu(&mut blocks, at, number) {
            Ok(Some(hdu)) => hdu,
            Ok(None) => {
                warnings.push(|| format!("what follows HDU {} from offset {at} on is no HDU", number - 1));
                break;
            }
            Err(e) if number == 0 || e.kind() == ErrorKind::Io => return Err(e),
            Err(e) => {
                warnings.push(|| format!("HDU {number} and what follows it are left out: {e}"));
                break;
            }
        };
        let end = hdu.data_start.saturating_add(hdu.data_len);
        if end > store.len() {
            let len = store.len();
            warnings.push(|| {
                format!("HDU {number} ends at offset {end}, the file at {len}: reading what is missing fails")
            });
        }
        at = end.div_ceil(BLOCK).saturating_mul(BLOCK);
        hdus.push(hdu);
    }
    Ok(hdus)
}

/// The HDU that begins at `at`, `None` where what begins there is none.
fn read_hdu(blocks: &mut Blocks, at: u64, number: usize) -> Result<Option<Hdu>> {
    let mut header = Header::default();
    let mut offset = at;
    loop {
        if offset - at >= MAX_HEADER {
            let message = format!("the header of HDU {number} is longer than {MAX_HEADER} bytes");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let first = offset == at;
        let Some(block) = blocks.at(offset)? else {
            if first && number > 0 {
                return Ok(None);
            }
            let message = format!("the header of HDU {number} has no END before the end of the file");
            return Err(Error::corrupt(message).hint("the file was cut off: copy it again"));
        };
        if first && number > 0 && !block.starts_with(b"XTENSION") {
            return Ok(None);
        }
        if first && number == 0 && !block.starts_with(b"SIMPLE  =") {
            let message = "not a FITS file: it does not begin with SIMPLE  =";
            return Err(Error::new(ErrorKind::UnknownFormat, message));
        }
        offset += BLOCK;
        if header.add_block(block) {
            break;
        }
    }
    let (bitpix, axes) = shape(&header).map_err(|e| e.at(format!("HDU {number}")))?;
    let data_len = data_len(&header, bitpix, &axes).map_err(|e| e.at(format!("HDU {number}")))?;
    Ok(Some(Hdu { number, header, data_start: offset, data_len, axes, bitpix }))
}

fn shape(header: &Header) -> Result<(i32, Vec<u64>)> {
    let wrong = |name: &str, expected: &str| match header.get(name) {
        Some(value) => Error::corrupt(format!("{name} is {value:?}, expected {expected}")),
        None => Error::corrupt(format!("{name} is missing, expected {expected}")),
    };
    let bitpix = header.int("BITPIX").and_then(|b| i32::try_from(b).ok());
    let bitpix = bitpix
        .filter(|b| [8, 16, 32, 64, -32, -64].contains(b))
        .ok_or_else(|| wrong("BITPIX", "8, 16, 32, 64, -32 or -64"))?;
    let rank = header.int("NAXIS").filter(|n| (0..=999).contains(n));
    let rank = rank.ok_or_else(|| wrong("NAXIS", "0 to 999"))?;
    let axes = (1..=rank).map(|i| {
        let name = format!("NAXIS{i}");
        let len = header.int(&name).and_then(|n| u64::try_from(n).ok());
        len.filter(|&n| n <= i64::MAX as u64).ok_or_else(|| wrong(&name, "0 or more"))
    });
    Ok((bitpix, axes.collect::<Result<_>>()?))
}

/// Bytes of data: |BITPIX| / 8 · GCOUNT · (PCOUNT + NAXIS1 · ... · NAXISn); NAXIS1 = 0 of random groups left out.
fn data_len(header: &Header, bitpix: i32, axes: &[u64]) -> Result<u64> {
    if axes.is_empty() {
        return Ok(0);
    }
    let count = |name: &str, default: i128| {
        let n = header.int(name).unwrap_or(default);
        u64::try_from(n).map_err(|_| Error::corrupt(format!("{name} is {n}, expected 0 or more")))
    };
    let groups = is_random_groups(header, axes);
    let counted = if groups { &axes[1..] } else { axes };
    // An axis of no length makes the product 0 whatever the others say.
    let product = if counted.contains(&0) {
        Some(0)
    } else {
        counted.iter().try_fold(1_u64, |n, &len| n.checked_mul(len))
    };
    let (pcount, gcount) = (count("PCOUNT", 0)?, count("GCOUNT", 1)?);
    product
        .and_then(|n| n.checked_add(pcount)?.checked_mul(gcount))
        .and_then(|n| n.checked_mul(u64::from(bitpix.unsigned_abs() / 8)))
        .filter(|&n| n < 1 << 62)
        .ok_or_else(|| Error::corrupt("its axes make more than 2^62 bytes of data"))
}

/// Whether an HDU holds random groups (section 6).
pub(crate) fn is_random_groups(header: &Header, axes: &[u64]) -> bool {
    axes.first() == Some(&0) && header.is_true("GROUPS")
}

/// Blocks of a file, read several at once.
struct Blocks<'a> {
    store: &'a dyn RangedRead,
    held: Vec<u8>,
    start: u64,
    read: u64,
}

impl Blocks<'_> {
    /// The block at `offset`, `None` where the file does not hold all of it.
    fn at(&mut self, offset: u64) -> Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(BLOCK).filter(|&end| end <= self.store.len()) else {
            return Ok(None);
        };
        if offset < self.start || end > self.start + self.held.len() as u64 {
            let want = if self.store.is_remote() { FAR_READ } else { NEAR_READ };
            self.held.resize(want.min(self.store.len() - offset) as usize, 0);
            self.start = offset;
            self.store.read_exact_at(offset, &mut self.held)?;
        }
        self.read += BLOCK;
        let from = (offset - self.start) as usize;
        Ok(self.held.get(from..from + BLOCK as usize))
    }
}
