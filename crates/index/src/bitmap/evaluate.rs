//! ChildRows of a set from the body.
//!
//! A node none of whose leaves is wanted, or all, is not read. So an interval reads the nodes that its ends
//! cut, at most two of a level, which is what the levels of intervals in SDQuery 3.4 and SDS III.A.1 are for.

use std::ops::Range;

use sieva_types::{Error, ErrorKind, KeySet, Result};

use super::expand::{Side, combine};
use super::head::{checksum, corrupt};
use super::reading::{FATES, Reading, Way};
use super::region::{Fate, RegionBitmap};
use super::{gaps, lists, vector};

/// Reads a range of a body's bytes into the vector, which is empty.
pub type Fetch<'a> = dyn FnMut(Range<u64>, &mut Vec<u8>) -> Result<()> + 'a;

/// Scratch memory of evaluations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    reading: Reading,
    /// Bytes fetched: adjacent blocks as one.
    fetched: Vec<Vec<u8>>,
    /// For each node the fetched piece that its vector is in, and the place there.
    places: Vec<(usize, Range<usize>)>,
    /// The same for each list.
    lists: Vec<(usize, Range<usize>)>,
    /// For each leaf of the tree, the number of wanted ones before it; then their number.
    wanted: Vec<u32>,
    pool: Vec<Vec<u64>>,
}

impl RegionBitmap {
    pub(super) fn run(
        &self,
        set: &KeySet,
        fetch: &mut Fetch<'_>,
        scratch: &mut Scratch,
        sure: &mut [u64],
        check: &mut [u64],
    ) -> Result<()> {
        let words = self.rows.div_ceil(64);
        self.plan(set, &mut scratch.reading);
        let checks = scratch.reading.fates.contains(&Fate::Edge);
        if (sure.len() as u64) < words || (checks && (check.len() as u64) < words) {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("{} and {} words for the bits of {} rows", sure.len(), check.len(), self.rows),
            ));
        }
        self.load(fetch, scratch)?;
        for (way, out) in [&mut *sure, &mut *check].into_iter().take(1 + usize::from(checks)).enumerate() {
            let out = &mut out[..words as usize];
            match scratch.reading.ways[way] {
                Way::Tree => self.rows_of(FATES[way], scratch, out)?,
                Way::Lists => {}
                Way::AllBut => fill(out, self.rows),
            }
            self.rows_listed(way, scratch, out)?;
        }
        if checks && !self.merged.groups().is_empty() && sure.iter().zip(&*check).any(|(a, b)| a & b != 0) {
            return Err(corrupt("a row is in two bins"));
        }
        Ok(())
    }

    /// Fetches and verifies the needed blocks, and finds the vectors in them.
    fn load(&self, fetch: &mut Fetch<'_>, scratch: &mut Scratch) -> Result<()> {
        scratch.places.clear();
        if scratch.reading.needed[..self.tree.blocks.len()].contains(&true) {
            scratch.places.resize(self.tree.nodes.len(), (0, 0..0));
        }
        scratch.lists.clear();
        scratch.lists.resize(self.blocks.len() - self.tree.blocks.len(), (0, 0..0));
        let (mut block, mut piece) = (0, 0);
        while block < self.blocks.len() {
            if !scratch.reading.needed[block] {
                block += 1;
                continue;
            }
            let end = scratch.reading.needed[block..]
                .iter()
                .position(|n| !n)
                .map_or(self.blocks.len(), |n| block + n);
            let base = self.blocks[block].start;
            let range = base..self.blocks[end - 1].end;
            if scratch.fetched.len() == piece {
                scratch.fetched.push(Vec::new());
            }
            let bytes = &mut scratch.fetched[piece];
            bytes.clear();
            fetch(range.clone(), bytes)?;
            if bytes.len() as u64 != range.end - range.start {
                return Err(corrupt("the body is cut off"));
            }
            for number in block..end {
                let stored = self.blocks[number];
                let place = (stored.start - base) as usize..(stored.end - base) as usize;
                if checksum(&bytes[place.clone()]) != stored.checksum {
                    return Err(corrupt("a block differs from its checksum"));
                }
                match number.checked_sub(self.tree.blocks.len()) {
                    Some(list) => scratch.lists[list] = (piece, place),
                    None => self.find_vectors(number, place, bytes, piece, &mut scratch.places)?,
                }
            }
            block = end;
            piece += 1;
        }
        Ok(())
    }

    fn find_vectors(
        &self,
        number: usize,
        block_at: Range<usize>,
        bytes: &[u8],
        piece: usize,
        places: &mut [(usize, Range<usize>)],
    ) -> Result<()> {
        let (block, end) = (self.tree.blocks[number], block_at.end);
        let mut rest = &bytes[block_at];
        let nodes = block.first..block.first + block.nodes;
        for (node, place) in self.tree.nodes[nodes.clone()].iter().zip(&mut places[nodes]) {
            let from = end - rest.len();
            vector::take(&mut rest, node.rows).ok_or_else(|| corrupt("a block is cut off"))?;
            *place = (piece, from..end - rest.len());
        }
        if rest.is_empty() { Ok(()) } else { Err(corrupt("a block is too long")) }
    }

    /// Sets or clears the bits of the rows in lists.
    fn rows_listed(&self, way: usize, scratch: &Scratch, out: &mut [u64]) -> Result<()> {
        let reading = &scratch.reading;
        let set = reading.ways[way] != Way::AllBut;
        let mut read = false;
        for (leaf, (piece, place)) in self.merged.listed().zip(&scratch.lists) {
            if !reading.lists(self, way, leaf) {
                continue;
            }
            let list = &scratch.fetched[*piece][place.clone()];
            let mark = if self.by_gaps { gaps::mark } else { lists::mark };
            mark(list, self.rows, self.leaf_rows(leaf), set, out)
                .ok_or_else(|| corrupt("a list contradicts its bin"))?;
            read = true;
        }
        // A row has one bin: what two lists, or a list and the tree, have in common is missing from the whole.
        let found = || (0..reading.fates.len()).filter(|&leaf| reading.fates[leaf] == FATES[way]);
        if read && vector::count_ones(out) != found().map(|leaf| self.leaf_rows(leaf)).sum::<u64>() {
            return Err(corrupt("a row is in two bins"));
        }
        Ok(())
    }

    /// Sets the bits of the rows in the leaves of the tree of a fate.
    fn rows_of(&self, fate: Fate, scratch: &mut Scratch, out: &mut [u64]) -> Result<()> {
        scratch.wanted.clear();
        scratch.wanted.push(0);
        let mut count = 0;
        scratch.wanted.extend(scratch.reading.asked.iter().map(|&f| {
            count += u32::from(f == fate);
            count
        }));
        let walk = Walk {
            region: self,
            wanted: &scratch.wanted,
            fetched: &scratch.fetched,
            places: &scratch.places,
        };
        match walk.uniform(0, self.merged.len() as u32) {
            _ if self.rows == 0 => Ok(()),
            Some(false) => Ok(()),
            Some(true) => {
                fill(out, self.rows);
                Ok(())
            }
            None => walk.node(0, &mut scratch.pool, out),
        }
    }
}

/// Sets the bits of all rows.
fn fill(out: &mut [u64], rows: u64) {
    out.fill(u64::MAX);
    if let Some(last) = out.last_mut() {
        *last = vector::last_mask(rows as usize);
    }
}

/// One pass over the tree.
struct Walk<'a> {
    region: &'a RegionBitmap,
    wanted: &'a [u32],
    fetched: &'a [Vec<u8>],
    places: &'a [(usize, Range<usize>)],
}

impl Walk<'_> {
    /// Whether all of these leaves are wanted, or none; `None` if some are.
    fn uniform(&self, first: u32, end: u32) -> Option<bool> {
        match self.wanted[end as usize] - self.wanted[first as usize] {
            0 => Some(false),
            n if n == end - first => Some(true),
            _ => None,
        }
    }

    /// The wanted rows of a node, as bits over the rows that reach it.
    fn node(&self, number: usize, pool: &mut Vec<Vec<u64>>, out: &mut [u64]) -> Result<()> {
        let node = self.region.tree.nodes[number];
        let left = self.side(node.left(number), (node.first, node.split), node.rows - node.ones, pool)?;
        let right = self.side(node.right(number), (node.split, node.end), node.ones, pool)?;
        let mut words = pool.pop().unwrap_or_default();
        let (piece, place) = &self.places[number];
        let stored = &self.fetched[*piece][place.clone()];
        vector::decode(stored, node.rows as usize, node.ones, &mut words)
            .ok_or_else(|| corrupt("a bit vector contradicts its bins"))?;
        combine(&words, node.rows as usize, left.side(), right.side(), out);
        pool.push(words);
        pool.extend([left, right].into_iter().filter_map(ChildRows::reclaim));
        Ok(())
    }

    fn side(
        &self,
        number: Option<usize>,
        leaves: (u32, u32),
        rows: u64,
        pool: &mut Vec<Vec<u64>>,
    ) -> Result<ChildRows> {
        match (self.uniform(leaves.0, leaves.1), number) {
            (Some(true), _) => Ok(ChildRows::All),
            (None, Some(number)) => {
                let words = (rows as usize).div_ceil(64);
                let mut bits = pool.pop().unwrap_or_default();
                // One word more, which is read but does not count.
                bits.resize(words + 1, 0);
                self.node(number, pool, &mut bits[..words])?;
                Ok(ChildRows::Some(bits))
            }
            // A leaf is uniform, so `None` without a number does not happen.
            _ => Ok(ChildRows::None),
        }
    }
}

/// Wanted rows of a child.
enum ChildRows {
    None,
    All,
    Some(Vec<u64>),
}

impl ChildRows {
    fn side(&self) -> Side<'_> {
        match self {
            ChildRows::None => Side::None,
            ChildRows::All => Side::All,
            ChildRows::Some(bits) => Side::Some(bits),
        }
    }

    fn reclaim(self) -> Option<Vec<u64>> {
        if let ChildRows::Some(bits) = self { Some(bits) } else { None }
    }
}
