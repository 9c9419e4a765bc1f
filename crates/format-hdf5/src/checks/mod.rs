//! What libhdf5 believes of a damaged file, held against the file before libhdf5 reads it.
//!
//! The library trusts the headers of its indexes: how many records a node has, how long it is, how many elements an
//! array. With wrong ones it writes and reads out of bounds, takes gigabytes, or goes on for ever, and none of that can be
//! stopped from the outside. So the driver shows each block to these checks first. They look at no more than
//! libhdf5 is about to read, but for the inner nodes of trees; what they do not know they let pass.

mod arrays;
mod fractal;
mod headers;
mod mappings;
mod trees;

use sieva_types::Result;

use crate::bytes::FileBytes;
use crate::ffi::Token;
use crate::heaps::{Heaps, Sizes, Window};

/// Signature and version of a global heap collection; libhdf5 does not look at the three bytes after them. It asks
/// for these as for raw data, so that the kind of bytes does not tell.
const GLOBAL_HEAP: [u8; 5] = *b"GCOL\x01";

/// What libhdf5 says that it reads (`H5FD_mem_t`).
pub(crate) mod kind {
    use std::ffi::c_int;

    /// `H5FD_MEM_BTREE`: nodes of trees.
    pub(crate) const TREE: c_int = 2;
    /// `H5FD_MEM_DRAW`: values of datasets (and global heaps).
    pub(crate) const RAW_DATA: c_int = 3;
    /// `H5FD_MEM_LHEAP`: what is asked for is (part of) a local heap, or a block of a newer one.
    pub(crate) const LOCAL_HEAP: c_int = 5;
    /// `H5FD_MEM_OHDR`: headers, of objects and of indexes.
    pub(crate) const HEADER: c_int = 6;
}

/// The checks of one file, and what they remember of it.
#[derive(Debug)]
pub(crate) struct Checks {
    heaps: Heaps,
    trees: trees::Trees,
    sizes: Sizes,
}

/// A look at one structure: the file, how wide its numbers are, and where its addresses count from.
pub(crate) struct Look<'a> {
    window: Window<'a>,
    sizes: Sizes,
    base: u64,
}

impl Checks {
    /// The checks of a file, as its superblock describes it.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn of(bytes: &FileBytes) -> Result<Self> {
        let sizes = Sizes::of(bytes)?;
        Ok(Self { heaps: Heaps::new(sizes), trees: trees::Trees::default(), sizes })
    }

    /// What is wrong with the structure that `head`, at `address`, is the beginning of. Addresses in it count from `base`.
    ///
    /// # Errors
    /// Those of the storage: what could not be looked at must not be read.
    pub(crate) fn wrong(
        &mut self,
        bytes: &FileBytes,
        of: std::ffi::c_int,
        address: u64,
        head: &[u8],
        base: u64,
    ) -> Result<Option<&'static str>> {
        let (Self { heaps, trees, sizes }, look) = (self, |sizes: &Sizes| Look::new(bytes, *sizes, base));
        let signature = head.first_chunk::<4>();
        match (of, signature) {
            (kind::LOCAL_HEAP, Some(b"HEAP")) => heaps.check_local(bytes, address, base),
            (kind::TREE, Some(b"TREE")) => look(sizes).finish(|look| trees.node(look, address)),
            (kind::TREE, Some(b"BTHD")) => look(sizes).finish(|look| trees::new_tree(look, address, trees)),
            (kind::HEADER, Some(b"FRHP")) => look(sizes).finish(|look| fractal::heap(look, address)),
            (kind::HEADER, Some(b"FAHD")) => {
                look(sizes).finish(|look| arrays::fixed(look, address, trees.index(address)))
            }
            (kind::HEADER, Some(b"EAHD")) => {
                look(sizes).finish(|look| arrays::extensible(look, address, trees.index(address)))
            }
            (kind::HEADER, Some(b"OHDR" | [1, 0, ..])) => {
                headers::object(bytes, *sizes, base, address, trees)
            }
            (_, Some(b"MDCI")) if of != kind::RAW_DATA => {
                // Its entries would come from there, where nobody looks at them.
                Ok(Some("it keeps an image of a metadata cache (`h5repack` makes a file without)"))
            }
            (_, Some(_)) if head.starts_with(&GLOBAL_HEAP) => heaps.check_global(bytes, address),
            _ => Ok(None),
        }
    }
}

impl<'a> Look<'a> {
    fn new(bytes: &'a FileBytes, sizes: Sizes, base: u64) -> Self {
        Self { window: Window::new(bytes), sizes, base }
    }

    /// What `check` finds, unless the storage failed on the way.
    fn finish<T>(mut self, check: impl FnOnce(&mut Self) -> T) -> Result<T> {
        let found = check(&mut self);
        self.window.finish(found)
    }

    /// Bytes of the file.
    fn len(&self) -> u64 {
        self.window.len()
    }

    /// A number of up to 8 bytes.
    fn number(&mut self, at: u64, width: usize) -> Option<u64> {
        self.window.number(at, width)
    }

    /// A length as wide as the file has them.
    fn length(&mut self, at: u64) -> Option<u64> {
        self.number(at, self.sizes.length)
    }

    /// Where something lies in the file; `Some(None)` for nowhere.
    fn place(&mut self, at: u64) -> Option<Option<u64>> {
        let address = self.number(at, self.sizes.address)?;
        let nowhere = u64::MAX >> (64 - 8 * self.sizes.address as u32);
        if address == nowhere { Some(None) } else { self.base.checked_add(address).map(Some) }
    }
}

/// The first address in a list of variable length; `item` is its number of addresses, the address of a heap collection, and
/// the number of an object in it.
///
/// # Errors
/// Those of the storage.
pub(crate) fn first_address(bytes: &FileBytes, item: &[u8]) -> Result<Option<Token>> {
    let sizes = Sizes::of(bytes)?;
    let number = |part: &[u8]| part.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    let (len, rest) = item.split_at(4.min(item.len()));
    let (heap, index) = rest.split_at(sizes.address.min(rest.len()));
    let (len, heap, index) = (number(len), number(heap), number(index));
    if len == 0 || heap == 0 {
        return Ok(None);
    }
    Look::new(bytes, sizes, sizes.start).finish(|look| {
        let heap = heap.checked_add(look.base)?;
        let (at, size) = mappings::object(look, heap, index)?;
        let address = look.number(at, look.sizes.address)?;
        (size >= look.sizes.address as u64).then(|| Token::from_address(address))
    })
}

/// Fields of a structure, one after the other.
struct Cursor<'l, 'a> {
    look: &'l mut Look<'a>,
    at: u64,
}

impl Cursor<'_, '_> {
    fn number(&mut self, width: usize) -> Option<u64> {
        let number = self.look.number(self.at, width)?;
        self.at += width as u64;
        Some(number)
    }

    fn length(&mut self) -> Option<u64> {
        self.number(self.look.sizes.length)
    }

    fn place(&mut self) -> Option<Option<u64>> {
        let place = self.look.place(self.at)?;
        self.at += self.look.sizes.address as u64;
        Some(place)
    }

    fn skip(&mut self, bytes: u64) {
        self.at = self.at.saturating_add(bytes);
    }
}

/// Bytes that numbers up to `most` take.
fn width_of(most: u64) -> usize {
    most.max(1).ilog2() as usize / 8 + 1
}

/// What a structure that reaches past the end of the file is.
const CUT_OFF: &str = "the header of an index reaches past the end of the file";
