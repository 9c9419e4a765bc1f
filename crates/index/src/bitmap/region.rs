//! A parsed head, and what it tells without the body.

use std::ops::Range;

use sieva_types::{DType, KeySet, Result};

use super::merged::Merged;
use super::reading::Reading;
use super::tree::Tree;
use super::{Cover, head};

/// Rows for each byte of the tree that is read: a condition on a tail reads about two bits of each row.
const TREE_ROWS: u64 = 4;
/// Bytes of a row in a list, at the most about.
const LISTED_BYTES: u64 = 2;

/// Rows of a region whose values lie close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Key of the smallest value in it.
    pub low: i128,
    /// Key of the greatest value in it.
    pub high: i128,
    /// Its rows, at least one.
    pub count: u64,
    /// Whether its values are missing ones (then all are).
    pub missing: bool,
}

/// Bytes `start..end` of the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredBlock {
    pub start: u64,
    pub end: u64,
    pub checksum: u32,
}

/// The bitmap index of a region, without its body.
#[derive(Clone, Debug)]
pub struct RegionBitmap {
    pub(super) rows: u64,
    pub(super) nan: u64,
    pub(super) missing: usize,
    pub(super) bins: Vec<Bin>,
    pub(super) merged: Merged,
    pub(super) tree: Tree,
    /// Those of the tree, then the lists.
    pub(super) blocks: Vec<StoredBlock>,
    /// Whether lists are of gaps.
    pub(super) by_gaps: bool,
}

/// What a set does with a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Outside,
    Inside,
    Edge,
}

impl RegionBitmap {
    /// Reads a head whose integrity the caller has verified. `body_len` is the length of the body in bytes,
    /// `dtype` the type of the array.
    ///
    /// # Errors
    /// `corrupt-index` where the head contradicts itself, the type or the length of the body.
    pub fn parse(head: &[u8], body_len: u64, dtype: DType) -> Result<Self> {
        head::parse(head, body_len, dtype)
    }

    /// Number of elements of the region.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of elements that are NaN; they are in no bin of [`RegionBitmap::bins`].
    pub fn nan(&self) -> u64 {
        self.nan
    }

    /// Bins of the missing values, then those of the present ones; both ascending and disjoint.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Numbers of rows whose value is in the set for sure, and of those to be looked up.
    pub fn cover(&self, set: &KeySet) -> Cover {
        let mut cover = Cover::default();
        self.fates(set, |leaves, fate| {
            let rows: u64 = leaves.map(|leaf| self.leaf_rows(leaf)).sum();
            match fate {
                Fate::Outside => {}
                Fate::Inside => cover.inside += rows,
                Fate::Edge => cover.edge += rows,
            }
        });
        cover
    }

    /// Number of rows to be looked up: those of [`Cover::edge`], without counting the others.
    pub fn edge(&self, set: &KeySet) -> u64 {
        let mut edge = 0;
        self.fates(set, |leaves, fate| {
            if fate == Fate::Edge {
                edge += leaves.map(|leaf| self.leaf_rows(leaf)).sum::<u64>();
            }
        });
        edge
    }

    /// Number of rows to be looked up, as [`RegionBitmap::edge`], and about the bytes that [`RegionBitmap::evaluate`] would
    /// fetch, without finding out which.
    pub fn outlook(&self, set: &KeySet) -> (u64, u64) {
        let (mut edge, mut listed, mut others) = (0, 0, false);
        self.fates(set, |leaves, fate| {
            let first_other = leaves.clone().find(|&leaf| self.merged.group_of(leaf).is_none());
            others |= first_other.is_some();
            let rows: u64 = leaves.map(|leaf| self.leaf_rows(leaf)).sum();
            listed += rows;
            if fate == Fate::Edge {
                edge += rows;
            }
        });
        let bytes = if others { self.rows / TREE_ROWS } else { listed * LISTED_BYTES };
        (edge, bytes)
    }

    /// Bytes of the body that [`RegionBitmap::evaluate`] would fetch.
    pub fn cost(&self, set: &KeySet) -> u64 {
        let mut reading = Reading::default();
        self.plan(set, &mut reading);
        self.blocks.iter().zip(reading.needed).filter(|b| b.1).map(|(b, _)| b.end - b.start).sum()
    }

    pub(super) fn leaves(&self) -> usize {
        self.bins.len() + usize::from(self.nan > 0)
    }

    pub(super) fn leaf_rows(&self, leaf: usize) -> u64 {
        match leaf.checked_sub(usize::from(self.nan > 0)) {
            Some(bin) => self.bins[bin].count,
            None => self.nan,
        }
    }

    /// The fate of each leaf.
    pub(super) fn list_fates(&self, set: &KeySet, fates: &mut Vec<Fate>) {
        fates.clear();
        fates.resize(self.leaves(), Fate::Outside);
        self.fates(set, |leaves, fate| fates[leaves].fill(fate));
    }

    /// Tells the leaves inside of the set and those that it cuts, each once.
    fn fates(&self, set: &KeySet, mut tell: impl FnMut(Range<usize>, Fate)) {
        let first = usize::from(self.nan > 0);
        if set.nan {
            tell(0..first, Fate::Inside);
        }
        let (missing, present) = self.bins.split_at(self.missing);
        for (bins, offset) in [(missing, first), (present, first + missing.len())] {
            let mut next = 0;
            let mut ranges = set.ranges.iter().copied().peekable();
            while let Some((low, mut high)) = ranges.next() {
                // Intervals that touch are one.
                while let Some(more) = ranges.next_if(|r| r.0 <= high.saturating_add(1)) {
                    high = high.max(more.1);
                }
                let mut from = next + bins[next..].partition_point(|b| b.high < low);
                let mut to = from + bins[from..].partition_point(|b| b.low <= high);
                next = to;
                if from < to && bins[from].low < low {
                    tell(offset + from..offset + from + 1, Fate::Edge);
                    from += 1;
                }
                if from < to && bins[to - 1].high > high {
                    to -= 1;
                    tell(offset + to..offset + to + 1, Fate::Edge);
                }
                tell(offset + from..offset + to, Fate::Inside);
            }
        }
    }

    /// Which blocks of the tree hold a node whose leaves do not share one fate.
    pub(super) fn needed(&self, fates: &[Fate], needed: &mut Vec<bool>) {
        needed.clear();
        // Ends of the runs of equal fates: a node is needed if one lies within it.
        let cuts: Vec<u32> =
            (1..fates.len()).filter(|&i| fates[i] != fates[i - 1]).map(|i| i as u32).collect();
        needed.extend(self.tree.blocks.iter().map(|block| {
            // The first node of a block spans all others.
            let root = self.tree.nodes[block.first];
            let at = cuts.partition_point(|&cut| cut <= root.first);
            cuts.get(at).is_some_and(|&cut| cut < root.end)
        }));
    }
}
