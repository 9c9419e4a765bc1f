//! The shape of the tree over the bins, and the blocks that its nodes are stored in.
//!
//! An alphabetic tree by bisection of weights: a node is split where its two sides differ least in rows.
//! The mean depth of a row is then less than the entropy of the bins plus 2 bits (Horibe, An improved bound
//! for weight-balanced tree, Information and Control 34, 1977; usually it is within a few per cent). The shape
//! follows from the counts alone, so it is not stored. No node is deeper than about 2 log2(rows).
//!
//! Inner nodes are numbered in preorder. A node of more than [`SMALL`] rows is a block of its own, a maximal
//! subtree of at most so many rows is one block. In the body, blocks lie from the lower tail over the root to
//! the upper tail: to the right of the root's block its right subtree, each node before its right child
//! before its left one; mirrored to the left. So the nodes that a condition on a tail needs lie together.

/// Rows of a subtree that is one block.
pub(super) const SMALL: u64 = 8192;

/// An inner node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Its leaves: `first..split` go left (bit 0), `split..end` right (bit 1).
    pub first: u32,
    pub split: u32,
    pub end: u32,
    /// Rows that reach it, and those of them that go right.
    pub rows: u64,
    pub ones: u64,
}

impl Node {
    /// Number of the left child, given its own: `None` where that is a leaf.
    pub(super) fn left(&self, number: usize) -> Option<usize> {
        (self.split - self.first > 1).then_some(number + 1)
    }

    /// As `left`.
    pub(super) fn right(&self, number: usize) -> Option<usize> {
        (self.end - self.split > 1).then_some(number + (self.split - self.first) as usize)
    }
}

/// Nodes that are stored together: so many from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub first: usize,
    pub nodes: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// In preorder.
    pub nodes: Vec<Node>,
    /// In the order of the body.
    pub blocks: Vec<Block>,
}

impl Tree {
    /// The tree over leaves of so many rows, each at least 1, together at most 2^63.
    pub(super) fn new(counts: impl ExactSizeIterator<Item = u64>) -> Self {
        let leaves = counts.len();
        let mut before = Vec::with_capacity(leaves + 1);
        before.push(0);
        let mut sum = 0;
        before.extend(counts.map(|n| {
            sum += n;
            sum
        }));
        let mut tree = Self { nodes: Vec::with_capacity(leaves.saturating_sub(1)), blocks: Vec::new() };
        tree.split(&before, 0, leaves);
        if tree.nodes.is_empty() {
            return tree;
        }
        let root = tree.nodes[0];
        if root.rows > SMALL {
            tree.place(root.left(0), false);
            tree.blocks.reverse();
            tree.blocks.push(Block { first: 0, nodes: 1 });
            tree.place(root.right(0), true);
        } else {
            tree.place(Some(0), true);
        }
        tree
    }

    fn split(&mut self, before: &[u64], first: usize, end: usize) {
        if end - first < 2 {
            return;
        }
        let (from, to) = (before[first], before[end]);
        let middle = from + (to - from) / 2;
        // The first leaf boundary at or above the middle, or the one before it.
        let above = (first + 1 + before[first + 1..end].partition_point(|&n| n < middle)).min(end - 1);
        let uneven = |at: usize| (before[at] - from).abs_diff(to - before[at]);
        let split = if above > first + 1 && uneven(above - 1) <= uneven(above) { above - 1 } else { above };
        self.nodes.push(Node {
            first: first as u32,
            split: split as u32,
            end: end as u32,
            rows: to - from,
            ones: to - before[split],
        });
        self.split(before, first, split);
        self.split(before, split, end);
    }

    fn place(&mut self, number: Option<usize>, upper: bool) {
        let Some(number) = number else { return };
        let node = self.nodes[number];
        if node.rows <= SMALL {
            self.blocks.push(Block { first: number, nodes: (node.end - node.first) as usize - 1 });
            return;
        }
        self.blocks.push(Block { first: number, nodes: 1 });
        let (left, right) = (node.left(number), node.right(number));
        let (near, far) = if upper { (right, left) } else { (left, right) };
        self.place(near, upper);
        self.place(far, upper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn depth(tree: &Tree, number: Option<usize>) -> usize {
        number.map_or(0, |n| {
            let node = tree.nodes[n];
            1 + depth(tree, node.left(n)).max(depth(tree, node.right(n)))
        })
    }

    proptest! {
        #[test]
        fn nodes_and_blocks_cover_the_leaves(counts in proptest::collection::vec(
            prop_oneof![1..4_u64, 1..5000_u64, 1..1_u64 << 25], 0..60)) {
            let tree = Tree::new(counts.iter().copied());
            prop_assert_eq!(tree.nodes.len(), counts.len().saturating_sub(1));
            let mut seen = vec![0; tree.nodes.len()];
            tree.blocks.iter().for_each(|b| (b.first..b.first + b.nodes).for_each(|n| seen[n] += 1));
            prop_assert!(seen.iter().all(|&n| n == 1));
            for (i, node) in tree.nodes.iter().enumerate() {
                let sum = |a: u32, b: u32| counts[a as usize..b as usize].iter().sum::<u64>();
                prop_assert_eq!(node.rows, sum(node.first, node.end));
                prop_assert_eq!(node.ones, sum(node.split, node.end));
                let evenest = (node.first + 1..node.end).min_by_key(|&s| sum(node.first, s).abs_diff(sum(s, node.end)));
                prop_assert_eq!(Some(node.split), evenest);
                if let Some(left) = node.left(i) {
                    prop_assert_eq!((tree.nodes[left].first, tree.nodes[left].end), (node.first, node.split));
                }
                if let Some(right) = node.right(i) {
                    prop_assert_eq!((tree.nodes[right].first, tree.nodes[right].end), (node.split, node.end));
                }
            }
        }
    }

    #[test]
    fn skewed_weights_make_no_deep_tree() {
        let powers: Vec<u64> = (0..31).map(|i| 1 << i).collect();
        let fibonacci: Vec<u64> =
            std::iter::successors(Some((1, 1)), |&(a, b)| Some((b, a + b))).map(|p| p.0).take(43).collect();
        let peak = [vec![1; 30_000], vec![1 << 30], vec![1; 30_000]].concat();
        for counts in [powers, fibonacci, peak] {
            let tree = Tree::new(counts.into_iter());
            assert!(depth(&tree, Some(0)) <= 64);
        }
    }
}
