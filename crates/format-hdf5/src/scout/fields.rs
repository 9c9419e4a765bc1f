//! Fields of the file's structures, one after the other.

/// How wide fields are, and how large the nodes of old trees: what the superblock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Where the file begins; addresses count from here.
    pub(super) base: u64,
    /// Bytes of an address.
    pub(super) address: usize,
    /// Bytes of a length.
    pub(super) length: usize,
    /// Half the most symbols of a symbol node.
    pub(super) symbols: u64,
    /// Half the most children of a node in a group's tree.
    pub(super) group_children: u64,
    /// Half the most children of a node in a tree of chunks.
    pub(super) chunk_children: u64,
    /// Bytes of a page of the file; 0 where it is not managed in pages.
    pub(super) page: u64,
}

impl Sizes {
    /// The offset of an address in the file; `None` for the address that stands for nothing.
    pub(super) fn absolute(&self, address: u64) -> Option<u64> {
        let none = u64::MAX >> (64 - 8 * self.address as u32);
        if address == none { None } else { self.base.checked_add(address) }
    }
}

/// A cursor over bytes. Past their end everything is `None`.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    sizes: &'a Sizes,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(sizes: &'a Sizes, bytes: &'a [u8]) -> Self {
        Self { sizes, rest: bytes }
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn skip(&mut self, len: usize) -> Option<()> {
        self.take(len).map(|_| ())
    }

    /// Goes on only where these bytes stand.
    pub(super) fn expect(&mut self, signature: &[u8]) -> Option<()> {
        (self.take(signature.len())? == signature).then_some(())
    }

    /// A little-endian number of up to 8 bytes.
    pub(super) fn number(&mut self, width: usize) -> Option<u64> {
        let mut number = [0; 8];
        number.get_mut(..width)?.copy_from_slice(self.take(width)?);
        Some(u64::from_le_bytes(number))
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    /// Bytes of a length.
    pub(super) fn length_width(&self) -> u64 {
        self.sizes.length as u64
    }

    pub(super) fn length(&mut self) -> Option<u64> {
        self.number(self.sizes.length)
    }

    /// An offset in the file: `Some(None)` where nothing is there.
    pub(super) fn address(&mut self) -> Option<Option<u64>> {
        let address = self.number(self.sizes.address)?;
        Some(self.sizes.absolute(address))
    }

    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }
}
