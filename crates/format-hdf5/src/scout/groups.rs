//! Groups of the old kind (sections III.A to III.D) and the global heap (III.E).

use super::fields::Fields;
use super::objects::HEADER_GUESS;
use super::{Kind, Piece, Search};

/// Bytes that are read of a local heap before its length is known; libhdf5 takes as many.
pub(super) const HEAP_GUESS: u64 = 512;
/// Bytes of most collections of the global heap.
pub(super) const COLLECTION: u64 = 4096;

impl Search<'_> {
    /// Bytes of a node in a group's tree.
    pub(super) fn group_node_len(&self) -> u64 {
        let (address, length) = (self.sizes.address as u64, self.sizes.length as u64);
        let children = 2 * self.sizes.group_children;
        8 + 2 * address + (children + 1) * length + children * address
    }

    fn symbol_node_len(&self) -> u64 {
        8 + 2 * self.sizes.symbols * (2 * self.sizes.address as u64 + 24)
    }

    /// A node in a group's tree: keys and children take turns.
    pub(super) fn group_node(&mut self, held: &[u8]) -> Option<()> {
        let (level, count, mut fields) = self.node(held, 0)?;
        for _ in 0..count {
            fields.length()?;
            let Some(child) = fields.address()? else { continue };
            if level > 0 {
                self.push(child, self.group_node_len(), Kind::GroupNode);
            } else {
                self.push(child, self.symbol_node_len(), Kind::SymbolNode);
            }
        }
        Some(())
    }

    /// The level of a version 1 tree's node, the number of its children, and what follows.
    pub(super) fn node<'a>(&self, held: &'a [u8], kind: u8) -> Option<(u8, u64, Fields<'a>)>
    where
        Self: 'a,
    {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"TREE")?;
        if fields.byte()? != kind {
            return None;
        }
        let level = fields.byte()?;
        let count = fields.number(2)?;
        fields.skip(2 * self.sizes.address)?;
        Some((level, count, fields))
    }

    pub(super) fn symbol_node(&mut self, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"SNOD")?;
        fields.skip(2)?;
        for _ in 0..fields.number(2)? {
            fields.skip(self.sizes.address)?;
            if let Some(header) = fields.address()? {
                self.push(header, HEADER_GUESS, Kind::Header);
            }
            fields.skip(24)?;
        }
        Some(())
    }

    pub(super) fn local_heap(&mut self, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"HEAP")?;
        fields.skip(4)?;
        let len = fields.length()?;
        fields.length()?;
        self.push(fields.address()??, len, Kind::Leaf);
        Some(())
    }

    pub(super) fn global_heap(&mut self, piece: &Piece, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"GCOL")?;
        fields.skip(4)?;
        let len = fields.length()?;
        if len > piece.len {
            self.push(piece.at, len, Kind::Leaf);
        }
        Some(())
    }
}
