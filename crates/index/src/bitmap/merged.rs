//! The leaves of the tree: those of the bins, but that the bins of a listed group share one.

use std::ops::Range;

/// Groups of leaves, ascending and disjoint, each of which is one leaf of the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Merged {
    leaves: usize,
    groups: Vec<Range<usize>>,
}

impl Merged {
    pub(super) fn new(leaves: usize, groups: Vec<Range<usize>>) -> Self {
        Self { leaves, groups }
    }

    pub(super) fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    /// The leaves that are listed, ascending.
    pub(super) fn listed(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.groups.iter().cloned().flatten()
    }

    /// The group that a leaf belongs to, if it is listed.
    pub(super) fn group_of(&self, leaf: usize) -> Option<Range<usize>> {
        self.groups.iter().find(|g| g.contains(&leaf)).cloned()
    }

    /// For each leaf of the tree, the leaves that share it.
    pub(super) fn shares(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut groups = self.groups.iter().peekable();
        let mut next = 0;
        std::iter::from_fn(move || {
            if next == self.leaves {
                return None;
            }
            let share = groups.next_if(|g| g.start == next).cloned().unwrap_or(next..next + 1);
            next = share.end;
            Some(share)
        })
    }

    /// The number of leaves of the tree.
    pub(super) fn len(&self) -> usize {
        self.leaves - self.groups.iter().map(|g| g.len() - 1).sum::<usize>()
    }

    /// Rows of the leaves of the tree.
    pub(super) fn counts(&self, of: impl Fn(usize) -> u64) -> Vec<u64> {
        self.shares().map(|share| share.map(&of).sum()).collect()
    }
}
