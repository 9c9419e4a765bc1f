//! The layout message (section IV.A.2.i) and the indexes of chunks (III.A.1, VII).

use super::fields::Fields;
use super::{ChunkForm, DataPlace, Kind, Search};

/// Bytes of an array's header, at most.
const ARRAY_HEADER: u64 = 128;

/// What the header of an extensible array says (VII.D).
#[derive(Clone, Copy, Debug)]
pub(super) struct Extensible {
    element: u64,
    /// Bits of the largest number of elements.
    bits: u32,
    /// Elements in the index block itself.
    in_block: u64,
    /// Elements of the smallest data block.
    least: u64,
    /// Addresses of data blocks in the smallest super block.
    least_blocks: u64,
    /// Elements of a page of a data block.
    page: u64,
}

/// Follows a layout to its index of chunks.
pub(super) fn layout(search: &mut Search, fields: &mut Fields) -> Option<()> {
    const CHUNKED: u8 = 2;
    let version = fields.byte()?;
    if version < 3 {
        let rank = fields.byte()?;
        let class = fields.byte()?;
        fields.skip(5)?;
        return if class == CHUNKED { chunk_tree(search, fields.address()?, rank) } else { None };
    }
    if fields.byte()? != CHUNKED {
        return None;
    }
    if version == 3 {
        let rank = fields.byte()?;
        return chunk_tree(search, fields.address()?, rank);
    }
    fields.skip(1)?;
    let (rank, width) = (fields.byte()?, fields.byte()?);
    fields.skip(usize::from(rank) * usize::from(width))?;
    match fields.byte()? {
        3 => {
            fields.skip(1)?;
            search.push(fields.address()??, ARRAY_HEADER, Kind::FixedArray);
        }
        4 => {
            fields.skip(5)?;
            search.push(fields.address()??, ARRAY_HEADER, Kind::Extensible);
        }
        5 => {
            fields.skip(6)?;
            search.push(fields.address()??, super::trees::TREE_LEN, Kind::Tree);
        }
        // A single chunk, or chunks in a row: the message holds all.
        _ => {}
    }
    Some(())
}

/// The mappings of virtual data, which lie in the global heap.
pub(super) fn virtual_mapping(search: &mut Search, fields: &mut Fields) -> Option<()> {
    const VIRTUAL: u8 = 3;
    if fields.byte()? >= 4 && fields.byte()? == VIRTUAL {
        search.push(fields.address()??, super::groups::COLLECTION, Kind::GlobalHeap);
    }
    Some(())
}

/// What a layout leads to, where that is more than bytes.
pub(super) fn data_place(fields: &mut Fields) -> Option<Option<DataPlace>> {
    const CHUNKED: u8 = 2;
    const VIRTUAL: u8 = 3;
    let version = fields.byte()?;
    let old_tree = |root: Option<u64>, rank: u8| {
        Some(root.map(|root| DataPlace::OldTree { root, key: 8 + 8 * u64::from(rank) }))
    };
    if version < 3 {
        let (rank, class) = (fields.byte()?, fields.byte()?);
        fields.skip(5)?;
        return if class == CHUNKED { old_tree(fields.address()?, rank) } else { Some(None) };
    }
    match (fields.byte()?, version) {
        (CHUNKED, 3) => {
            let rank = fields.byte()?;
            old_tree(fields.address()?, rank)
        }
        (CHUNKED, _) => new_index(fields, version),
        (VIRTUAL, 4..) => {
            let Some(heap) = fields.address()? else { return Some(None) };
            Some(Some(DataPlace::Mappings { heap, index: fields.number(4)? }))
        }
        _ => Some(None),
    }
}

/// The index of chunks that a newer layout leads to.
fn new_index(fields: &mut Fields, version: u8) -> Option<Option<DataPlace>> {
    fields.skip(1)?;
    // The bytes of an item count as a dimension.
    let (rank, width) = (fields.byte()?, usize::from(fields.byte()?));
    let mut bytes = 1_u64;
    for _ in 0..rank {
        bytes = bytes.saturating_mul(fields.number(width)?);
    }
    let skipped = match fields.byte()? {
        3 => 1,
        4 => 5,
        5 => 6,
        // A single chunk, or chunks in a row: the message holds all.
        _ => return Some(None),
    };
    fields.skip(skipped)?;
    let of_bytes = 1 + (u64::from(bytes.max(1).ilog2()) + 8) / 8;
    let len_width = if version > 4 { fields.length_width() } else { of_bytes.min(8) };
    let chunks = ChunkForm { dims: u64::from(rank.checked_sub(1)?), len_width };
    Some(fields.address()?.map(|at| DataPlace::Index { at, chunks }))
}

/// The root of a version 1 tree; `rank` counts the item's bytes as a dimension, as the file does.
fn chunk_tree(search: &mut Search, root: Option<u64>, rank: u8) -> Option<()> {
    let key = 8 + 8 * usize::from(rank);
    search.push(root?, search.chunk_node_len(key), Kind::ChunkNode(key));
    Some(())
}

impl Search<'_> {
    fn chunk_node_len(&self, key: usize) -> u64 {
        let (address, key) = (self.sizes.address as u64, key as u64);
        let children = 2 * self.sizes.chunk_children;
        8 + 2 * address + (children + 1) * key + children * address
    }

    /// A node in a tree of chunks; the children of the lowest are chunks.
    pub(super) fn chunk_node(&mut self, key: usize, held: &[u8]) -> Option<()> {
        let (level, count, mut fields) = self.node(held, 1)?;
        for _ in 0..if level == 0 { 0 } else { count } {
            fields.skip(key)?;
            if let Some(child) = fields.address()? {
                let len = self.chunk_node_len(key);
                self.push(child, len, if level == 1 { Kind::Leaf } else { Kind::ChunkNode(key) });
            }
        }
        Some(())
    }

    /// A fixed array (VII.C): its header, then all elements in one block.
    pub(super) fn fixed_array(&mut self, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"FAHD")?;
        fields.skip(2)?;
        let element = fields.number(1)?;
        let page = 1_u64.checked_shl(fields.number(1)? as u32)?;
        let elements = fields.length()?;
        let block = fields.address()??;
        let pages = elements.div_ceil(page);
        let sums = 4_u64.checked_mul(pages)?;
        let len = elements.checked_mul(element)?.checked_add(sums)?.checked_add(pages / 8 + 32)?;
        self.push(block, len, Kind::Leaf);
        Some(())
    }

    pub(super) fn extensible(&mut self, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"EAHD")?;
        fields.skip(2)?;
        let mut byte = || fields.number(1);
        let (element, bits, in_block, least, least_blocks) = (byte()?, byte()?, byte()?, byte()?, byte()?);
        let page = 1_u64.checked_shl(byte()? as u32)?;
        fields.skip(6 * self.sizes.length)?;
        let block = fields.address()??;
        let array = Extensible {
            element,
            bits: bits as u32,
            in_block,
            least: least.max(1),
            least_blocks: least_blocks.max(1),
            page,
        };
        let entries = 2 * array.least_blocks + 2 * u64::from(array.bits);
        let len = 32 + in_block * element + entries * self.sizes.address as u64;
        self.push(block, len, Kind::ExtensibleBlock(array));
        Some(())
    }

    /// The index block: elements, data blocks of the first super blocks, then further super blocks.
    pub(super) fn extensible_block(&mut self, array: Extensible, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"EAIB")?;
        fields.skip(2 + self.sizes.address)?;
        fields.skip(usize::try_from(array.in_block * array.element).ok()?)?;
        let here = 2 * array.least_blocks.ilog2();
        for number in 0..here {
            let (blocks, elements) = array.super_block(number)?;
            for _ in 0..blocks {
                if let Some(at) = fields.address()? {
                    self.push(at, array.data_len(elements)?, Kind::Leaf);
                }
            }
        }
        for number in here..=array.bits.checked_sub(array.least.ilog2())? {
            let at = fields.address()?;
            let (blocks, elements) = array.super_block(number)?;
            let bits = array.page_bits(elements).checked_mul(blocks)?;
            let len = blocks.checked_mul(self.sizes.address as u64)?.checked_add(bits)?.checked_add(40)?;
            if let Some(at) = at {
                self.push(at, len, Kind::ExtensibleSuper(array, number));
            }
        }
        Some(())
    }

    pub(super) fn extensible_super(&mut self, array: Extensible, number: u32, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"EASB")?;
        fields.skip(2 + self.sizes.address + array.bits.div_ceil(8) as usize)?;
        let (blocks, elements) = array.super_block(number)?;
        fields.skip(usize::try_from(array.page_bits(elements).checked_mul(blocks)?).ok()?)?;
        for _ in 0..blocks {
            if let Some(at) = fields.address()? {
                self.push(at, array.data_len(elements)?, Kind::Leaf);
            }
        }
        Some(())
    }
}

impl Extensible {
    /// Data blocks of a super block, and elements of each.
    fn super_block(&self, number: u32) -> Option<(u64, u64)> {
        let blocks = 1_u64.checked_shl(number / 2)?;
        let elements = self.least.checked_mul(1_u64.checked_shl(number.div_ceil(2))?)?;
        Some((blocks, elements))
    }

    /// Bytes of the bits that tell which pages of a data block were written.
    fn page_bits(&self, elements: u64) -> u64 {
        if elements > self.page { (elements / self.page).div_ceil(8) } else { 0 }
    }

    /// Bytes of a data block, its checksums included.
    fn data_len(&self, elements: u64) -> Option<u64> {
        let pages = if elements > self.page { elements / self.page } else { 0 };
        elements.checked_mul(self.element)?.checked_add(pages.checked_mul(4)?)?.checked_add(32)
    }
}
