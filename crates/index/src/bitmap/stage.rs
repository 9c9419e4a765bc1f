//! The bit vectors of all nodes, in preorder, before they are put in the order of the body.

use super::binning::Binning;
use super::partition::{Code, partition};
use super::tree::{Block, Tree};
use super::vector;

#[derive(Debug, Default)]
pub(super) struct Stage {
    bytes: Vec<u8>,
    /// Where the vector of each node ends.
    ends: Vec<usize>,
    words: Vec<u64>,
    gaps: Vec<u8>,
    small: [Vec<u8>; 2],
    large: [Vec<u16>; 2],
}

impl Stage {
    /// Encodes the nodes of the tree over these bins.
    pub(super) fn fill(&mut self, tree: &Tree, binning: &Binning) {
        self.bytes.clear();
        self.ends.clear();
        if binning.leaves.len() <= 256 {
            let [mut codes, mut scratch] = std::mem::take(&mut self.small);
            self.encode(tree, binning, &mut codes, &mut scratch);
            self.small = [codes, scratch];
        } else {
            let [mut codes, mut scratch] = std::mem::take(&mut self.large);
            self.encode(tree, binning, &mut codes, &mut scratch);
            self.large = [codes, scratch];
        }
    }

    /// The bytes of a block.
    pub(super) fn block(&self, block: &Block) -> &[u8] {
        let start = block.first.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[block.first + block.nodes - 1]]
    }

    fn encode<C: Code>(&mut self, tree: &Tree, binning: &Binning, codes: &mut Vec<C>, scratch: &mut Vec<C>) {
        codes.clear();
        codes.extend(binning.groups.of.iter().map(|&group| C::new(binning.leaf_of[group as usize])));
        if scratch.len() < codes.len() {
            scratch.resize(codes.len(), C::default());
        }
        // In preorder, a node's rows lie where its parent put them: those of leaves before it, before it.
        let mut starts = Vec::new();
        for (number, node) in tree.nodes.iter().enumerate() {
            let start = if number == 0 { 0 } else { starts.pop().unwrap_or(0) };
            let (rows, ones) = (node.rows as usize, node.ones as usize);
            let own = &mut codes[start..start + rows];
            self.words.resize(rows.div_ceil(64), 0);
            partition(own, C::new(node.split as u16), &mut scratch[..rows], &mut self.words);
            vector::encode(&self.words, rows, ones, &mut self.gaps, &mut self.bytes);
            self.ends.push(self.bytes.len());
            // The next node is the left child if there is one, else the right one, or that of an ancestor.
            if node.right(number).is_some() {
                starts.push(start + rows - ones);
            }
            if node.left(number).is_some() {
                starts.push(start);
            }
        }
    }
}
