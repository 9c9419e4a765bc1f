//! What of the body answers a set: blocks of the tree, lists, or both.

use sieva_types::KeySet;

use super::region::{Fate, RegionBitmap};

/// How the rows of a fate are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// From the tree; of groups of which only a part has the fate, from lists.
    #[default]
    Tree,
    /// None of the other leaves has it: from lists alone.
    Lists,
    /// All of the other leaves have it: all rows but those in lists of leaves without it.
    AllBut,
}

/// What is to be read for a set. Of no contents between calls.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The fate of each leaf.
    pub fates: Vec<Fate>,
    /// The fate of each leaf of the tree, `Outside` where it is not asked.
    pub asked: Vec<Fate>,
    /// Of the rows inside, and of those to be looked up.
    pub ways: [Way; 2],
    /// Which blocks are needed: those of the tree, then the lists.
    pub needed: Vec<bool>,
}

/// The fates that rows are looked for of, in the order of [`Reading::ways`].
pub(super) const FATES: [Fate; 2] = [Fate::Inside, Fate::Edge];

impl Reading {
    /// Whether the list of a leaf is read for a fate: its group has it in part, or lists alone tell.
    pub(super) fn lists(&self, region: &RegionBitmap, way: usize, leaf: usize) -> bool {
        let has = self.fates[leaf] == FATES[way];
        match self.ways[way] {
            Way::Lists => has,
            Way::AllBut => !has,
            Way::Tree => has && !region.merged.group_of(leaf).is_some_and(|group| is_one(&self.fates[group])),
        }
    }
}

fn is_one(fates: &[Fate]) -> bool {
    fates.windows(2).all(|pair| pair[0] == pair[1])
}

impl RegionBitmap {
    /// Decides what is read for a set.
    pub(super) fn plan(&self, set: &KeySet, reading: &mut Reading) {
        self.list_fates(set, &mut reading.fates);
        reading.ways = FATES.map(|fate| self.way(fate, &reading.fates));
        reading.asked.clear();
        reading.needed.clear();
        if !reading.ways.contains(&Way::Tree) {
            reading.needed.resize(self.tree.blocks.len(), false);
            self.needed_lists(reading);
            return;
        }
        for share in self.merged.shares() {
            let fates = &reading.fates[share];
            let by_tree =
                |fate: Fate| FATES.iter().zip(reading.ways).any(|(&f, way)| f == fate && way == Way::Tree);
            let fate = if is_one(fates) && by_tree(fates[0]) { fates[0] } else { Fate::Outside };
            reading.asked.push(fate);
        }
        self.needed(&reading.asked, &mut reading.needed);
        self.needed_lists(reading);
    }

    fn needed_lists(&self, reading: &mut Reading) {
        for leaf in self.merged.listed() {
            let read = (0..FATES.len()).any(|way| reading.lists(self, way, leaf));
            reading.needed.push(read);
        }
    }

    /// By the leaves that are not listed; where all are, lists alone tell.
    fn way(&self, fate: Fate, fates: &[Fate]) -> Way {
        if self.merged.groups().is_empty() {
            return Way::Tree;
        }
        let mut has = [false; 2];
        let mut next = 0;
        for group in self.merged.groups() {
            fates[next..group.start].iter().for_each(|&f| has[usize::from(f == fate)] = true);
            next = group.end;
        }
        fates[next..].iter().for_each(|&f| has[usize::from(f == fate)] = true);
        match has {
            [_, false] => Way::Lists,
            [false, true] => Way::AllBut,
            [true, true] => Way::Tree,
        }
    }
}
