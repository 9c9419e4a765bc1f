//! The bit vectors of all nodes, in preorder, before they are put in the order of the body.

use super::binning::Binning;
use super::lists;
use super::merged::Merged;
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
    /// For each leaf, that of the tree, and the number of its list.
    of_leaf: Vec<(u16, Option<u16>)>,
    /// Rows of each listed leaf.
    places: Vec<Vec<u32>>,
    lists: Vec<Vec<u8>>,
}

impl Stage {
    /// Encodes the nodes of the tree over these bins, and the lists of those that are listed.
    pub(super) fn fill(&mut self, tree: &Tree, binning: &Binning, merged: &Merged) {
        self.bytes.clear();
        self.ends.clear();
        self.of_leaf.clear();
        let shares = merged.shares().enumerate();
        self.of_leaf.extend(shares.flat_map(|(number, share)| share.map(move |_| (number as u16, None))));
        merged.listed().enumerate().for_each(|(list, leaf)| self.of_leaf[leaf].1 = Some(list as u16));
        self.list(binning, merged);
        if merged.len() <= 256 {
            let [mut codes, mut scratch] = std::mem::take(&mut self.small);
            self.encode(tree, binning, &mut codes, &mut scratch);
            self.small = [codes, scratch];
        } else {
            let [mut codes, mut scratch] = std::mem::take(&mut self.large);
            self.encode(tree, binning, &mut codes, &mut scratch);
            self.large = [codes, scratch];
        }
    }

    fn list(&mut self, binning: &Binning, merged: &Merged) {
        let lists = merged.listed().count();
        self.places.resize_with(lists, Vec::new);
        self.lists.resize_with(lists, Vec::new);
        self.places.iter_mut().for_each(Vec::clear);
        if lists == 0 {
            return;
        }
        for (row, &group) in binning.groups.of.iter().enumerate() {
            if let Some(list) = self.of_leaf[binning.leaf_of[group as usize] as usize].1 {
                self.places[list as usize].push(row as u32);
            }
        }
        for (places, list) in self.places.iter().zip(&mut self.lists) {
            list.clear();
            lists::put(places, binning.groups.of.len() as u64, list);
        }
    }

    /// The bytes of each list.
    pub(super) fn lists(&self) -> impl Iterator<Item = &[u8]> {
        self.lists.iter().map(Vec::as_slice)
    }

    /// The bytes of a block.
    pub(super) fn block(&self, block: &Block) -> &[u8] {
        let start = block.first.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[block.first + block.nodes - 1]]
    }

    fn encode<C: Code>(&mut self, tree: &Tree, binning: &Binning, codes: &mut Vec<C>, scratch: &mut Vec<C>) {
        codes.clear();
        let leaf = |group: u32| self.of_leaf[binning.leaf_of[group as usize] as usize].0;
        codes.extend(binning.groups.of.iter().map(|&group| C::new(leaf(group))));
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
