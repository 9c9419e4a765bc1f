//! A look at the raw bytes of object headers, for the damage that libhdf5 does not notice itself.
//!
//! An old-style group keeps the names of its links in a local heap. If two groups of a damaged file point to the
//! same heap data, libhdf5 finds them in its cache as the first group's and leaves the second one's pointer
//! null. The address of the heap data is therefore read here, and compared by the walk.

use std::os::unix::fs::FileExt;
use std::path::Path;

use hdf5_metno_sys::h5f::H5Fget_create_plist;
use hdf5_metno_sys::h5p::{H5Pget_sizes, H5Pget_userblock};
use sieva_types::{Error, Result};

use crate::ffi::{self, Handle, call};

const SYMBOL_TABLE: u16 = 0x11;
const CONTINUATION: u16 = 0x10;
/// Most blocks of one object header that are looked at.
const BLOCK_LIMIT: usize = 256;
/// Largest block of an object header that is looked at.
const BLOCK_SIZE_LIMIT: u64 = 16 << 20;

/// The bytes of an HDF5 file, addressed as its structures do.
#[derive(Debug)]
pub(crate) struct RawFile {
    file: std::fs::File,
    base: u64,
    address_size: usize,
    length_size: usize,
}

/// One version of object headers differs from the other in how a message begins.
#[derive(Clone, Copy)]
struct MessageShape {
    header: usize,
    is_old: bool,
}

impl RawFile {
    /// The raw bytes of the file that `handle` has open.
    pub(crate) fn open(path: &Path, handle: &Handle) -> Result<Self> {
        let what = "cannot look at the file";
        let file = std::fs::File::open(path).map_err(|e| Error::io(what, &e))?;
        // SAFETY: called under the lock with an open file.
        let creation = ffi::open(what, || unsafe { H5Fget_create_plist(handle.id()) })?;
        let (mut base, mut address_size, mut length_size) = (0, 0, 0);
        // SAFETY: as above; the pointers are to locals.
        call(what, || unsafe { H5Pget_userblock(creation.id(), &mut base) })?;
        // SAFETY: as above.
        call(what, || unsafe { H5Pget_sizes(creation.id(), &mut address_size, &mut length_size) })?;
        Ok(Self { file, base, address_size, length_size })
    }

    /// The address of the local heap data of the group whose header is at `address`, where it has one.
    pub(crate) fn name_heap(&self, address: u64) -> Result<Option<u64>> {
        let Some(message) = self.symbol_table(address) else { return Ok(None) };
        let Some(heap) = self.number(&message, self.address_size, self.address_size) else { return Ok(None) };
        // Signature, version, three reserved bytes; size and free list; then the address.
        let Some(prefix) = self.bytes(heap, 8 + 2 * self.length_size + self.address_size) else {
            return Ok(None);
        };
        let undefined = u64::MAX >> (64 - 8 * self.address_size.clamp(1, 8));
        Ok(self
            .number(&prefix, 8 + 2 * self.length_size, self.address_size)
            .filter(|&data| data != undefined))
    }

    /// `len` bytes at `offset` from the start of the file, user block included.
    pub(crate) fn bytes_at(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let what = || format!("{len} bytes at offset {offset}");
        let there = self.file.metadata().map_err(|e| Error::io(what(), &e))?.len();
        if offset.checked_add(len).is_none_or(|end| end > there) {
            return Err(Error::corrupt(format!("{} reach past the end of the file ({there} bytes)", what())));
        }
        let mut out = vec![0; len as usize];
        self.file.read_exact_at(&mut out, offset).map_err(|e| Error::io(what(), &e))?;
        Ok(out)
    }

    /// The body of a header's symbol table message. What cannot be read is left to libhdf5's own checks.
    fn symbol_table(&self, address: u64) -> Option<Vec<u8>> {
        let start = self.bytes(address, 16)?;
        let (shape, first) = if start.starts_with(b"OHDR") {
            let flags = start[5];
            let fixed = 6 + if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 };
            let width = 1 << (flags & 3);
            let size = self.number(&self.bytes(address, fixed + width)?, fixed, width)?;
            let shape = MessageShape { header: if flags & 4 != 0 { 6 } else { 4 }, is_old: false };
            (shape, (address.checked_add((fixed + width) as u64)?, size))
        } else {
            let size = self.number(&start, 8, 4)?;
            (MessageShape { header: 8, is_old: true }, (address.checked_add(16)?, size))
        };
        let mut blocks = vec![first];
        let mut i = 0;
        while let Some(&(at, size)) = blocks.get(i).filter(|_| i < BLOCK_LIMIT) {
            i += 1;
            if size > BLOCK_SIZE_LIMIT {
                return None;
            }
            let block = self.bytes(at, size as usize)?;
            if let Some(message) = self.scan(&block, shape, &mut blocks) {
                return Some(message);
            }
        }
        None
    }

    /// Looks through one block of messages; adds the blocks that it continues in.
    fn scan(&self, block: &[u8], shape: MessageShape, blocks: &mut Vec<(u64, u64)>) -> Option<Vec<u8>> {
        let mut at = 0;
        while let Some(header) = block.get(at..at + shape.header) {
            let (kind, size) = if shape.is_old {
                (u16::from_le_bytes([header[0], header[1]]), u16::from_le_bytes([header[2], header[3]]))
            } else {
                (u16::from(header[0]), u16::from_le_bytes([header[1], header[2]]))
            };
            at += shape.header;
            let body = block.get(at..at + usize::from(size))?;
            at += usize::from(size);
            if kind == SYMBOL_TABLE {
                return Some(body.to_vec());
            }
            if kind == CONTINUATION {
                let next = self.number(body, 0, self.address_size)?;
                let len = self.number(body, self.address_size, self.length_size)?;
                // Newer blocks begin with a signature and end with a checksum.
                blocks.push(if shape.is_old {
                    (next, len)
                } else {
                    (next.checked_add(4)?, len.checked_sub(8)?)
                });
            }
        }
        None
    }

    fn bytes(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; len];
        self.file.read_exact_at(&mut out, self.base.checked_add(address)?).ok()?;
        Some(out)
    }

    /// The little-endian number of `width` bytes at `at`.
    fn number(&self, bytes: &[u8], at: usize, width: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(width)?)?;
        Some(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }
}
