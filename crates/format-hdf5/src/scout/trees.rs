//! Version 2 trees (section III.A.2) and fractal heaps (III.G).

use super::fields::Fields;
use super::{Kind, Search};

/// Bytes of a tree's header, at most.
pub(super) const TREE_LEN: u64 = 64;
/// Bytes of a fractal heap's header, at most.
pub(super) const HEAP_LEN: u64 = 256;
/// Deepest tree that is followed.
const DEPTH_LIMIT: u16 = 16;

/// A node of a tree: what its header says of it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    node_len: u64,
    record_len: u64,
    /// Levels below this node.
    depth: u16,
    /// Records in it.
    records: u64,
    /// For each level from the leaves up, the bytes that count the records of a node and of all below it.
    widths: std::sync::Arc<[(usize, usize)]>,
}

/// An indirect block of a fractal heap: where the addresses of its direct blocks are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Bytes before the first address.
    prefix: usize,
    /// Blocks of a row.
    width: u64,
    rows: u64,
    first_len: u64,
    most_len: u64,
    /// Bytes beside each address of a direct block.
    beside: usize,
}

/// Bytes that a number up to `most` takes.
fn width_of(most: u64) -> usize {
    most.max(1).ilog2() as usize / 8 + 1
}

impl Search<'_> {
    pub(super) fn tree(&mut self, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"BTHD")?;
        fields.skip(2)?;
        let (node_len, record_len) = (fields.number(4)?, fields.number(2)?);
        let depth = fields.number(2)? as u16;
        fields.skip(2)?;
        let root = fields.address()??;
        let records = fields.number(2)?;
        if record_len == 0 || depth > DEPTH_LIMIT {
            return None;
        }
        let widths = self.widths(node_len, record_len, depth)?.into();
        self.push_node(root, Node { node_len, record_len, depth, records, widths });
        Some(())
    }

    /// How many bytes the counts beside a child's address take, for children of each level.
    fn widths(&self, node_len: u64, record_len: u64, depth: u16) -> Option<Vec<(usize, usize)>> {
        let prefix = 10;
        let mut most = node_len.checked_sub(prefix)? / record_len;
        let mut below = most;
        let of_count = width_of(most);
        let mut widths = vec![(of_count, 0)];
        for level in 1..depth {
            let (_, of_total) = widths[usize::from(level) - 1];
            let pointer = (self.sizes.address + of_count + of_total) as u64;
            most = node_len.checked_sub(prefix + pointer)? / (record_len + pointer);
            below = (most + 1).checked_mul(below)?.checked_add(most)?;
            widths.push((of_count, width_of(below)));
        }
        Some(widths)
    }

    fn push_node(&mut self, at: u64, node: Node) {
        let kind = if node.depth == 0 { Kind::Leaf } else { Kind::TreeNode(node.clone()) };
        self.push(at, node.node_len, kind);
    }

    /// The children of an inner node, whose records come first.
    pub(super) fn tree_node(&mut self, node: &Node, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"BTIN")?;
        fields.skip(2)?;
        fields.skip(usize::try_from(node.records.checked_mul(node.record_len)?).ok()?)?;
        let depth = node.depth - 1;
        let &(of_count, of_total) = node.widths.get(usize::from(depth))?;
        for _ in 0..=node.records {
            let child = fields.address()?;
            let records = fields.number(of_count)?;
            fields.skip(of_total)?;
            if let Some(child) = child {
                self.push_node(child, Node { depth, records, ..node.clone() });
            }
        }
        Some(())
    }

    pub(super) fn fractal_heap(&mut self, held: &[u8]) -> Option<()> {
        let (length, address) = (self.sizes.length, self.sizes.address);
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"FRHP")?;
        fields.skip(3)?;
        let filters = fields.number(2)?;
        fields.skip(1 + 4 + length + address + length + address + 8 * length)?;
        let width = fields.number(2)?;
        let (first_len, most_len) = (fields.length()?, fields.length()?);
        let bits = fields.number(2)? as usize;
        fields.skip(2)?;
        let root = fields.address()??;
        let rows = fields.number(2)?;
        let (beside, root_len) = match filters {
            0 => (0, first_len),
            _ => (length + 4, fields.length().unwrap_or(first_len)),
        };
        if rows == 0 {
            self.push(root, root_len, Kind::Leaf);
            return Some(());
        }
        let prefix = 5 + address + bits.div_ceil(8);
        let blocks = Blocks { prefix, width, rows, first_len, most_len, beside };
        self.push_blocks(root, blocks)
    }

    fn push_blocks(&mut self, at: u64, blocks: Blocks) -> Option<()> {
        let entry = (self.sizes.address + blocks.beside) as u64;
        let len = blocks.rows.checked_mul(blocks.width)?.checked_mul(entry)?;
        self.push(at, len.checked_add(blocks.prefix as u64 + 4)?, Kind::HeapBlocks(blocks));
        Some(())
    }

    /// The blocks that an indirect block lists: direct ones row by row, each row's twice as long as the one's before
    /// (the first two are equal), then indirect ones.
    pub(super) fn heap_blocks(&mut self, blocks: Blocks, held: &[u8]) -> Option<()> {
        let mut fields = Fields::new(self.sizes, held);
        fields.expect(b"FHIB")?;
        fields.skip(blocks.prefix.checked_sub(4)?)?;
        for row in 0..blocks.rows {
            let len = blocks.first_len.checked_mul(1_u64.checked_shl((row as u32).saturating_sub(1))?)?;
            let is_direct = len <= blocks.most_len;
            for _ in 0..blocks.width {
                let at = fields.address()?;
                if is_direct {
                    fields.skip(blocks.beside)?;
                }
                let Some(at) = at else { continue };
                if is_direct {
                    self.push(at, len, Kind::Leaf);
                } else {
                    let whole = blocks.first_len.checked_mul(blocks.width)?;
                    let rows = u64::from((len / whole.max(1)).max(1).ilog2()) + 1;
                    self.push_blocks(at, Blocks { rows, ..blocks })?;
                }
            }
        }
        Some(())
    }
}
