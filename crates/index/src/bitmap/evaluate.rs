//! Rows of a set from the body.
//!
//! A node none of whose leaves is wanted, or all, is not read. So an interval reads the nodes that its ends
//! cut, at most two of a level, which is what the levels of intervals in SDQuery 3.4 and SDS III.A.1 are for.

use std::ops::Range;

use sieva_types::{Error, ErrorKind, KeySet, Result};

use super::expand::{Side, combine};
use super::head::{checksum, corrupt};
use super::region::{Fate, RegionBitmap};
use super::vector;

/// Reads a range of a body's bytes into the vector, which is empty.
pub type Fetch<'a> = dyn FnMut(Range<u64>, &mut Vec<u8>) -> Result<()> + 'a;

/// Scratch memory of evaluations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    fates: Vec<Fate>,
    needed: Vec<bool>,
    /// Bytes fetched: adjacent blocks as one.
    fetched: Vec<Vec<u8>>,
    /// For each node the fetched piece that its vector is in, and the place there.
    places: Vec<(usize, Range<usize>)>,
    /// For each leaf, the number of wanted ones before it; then their number.
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
        if (sure.len() as u64) < words || (check.len() as u64) < words {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("{} and {} words for the bits of {} rows", sure.len(), check.len(), self.rows),
            ));
        }
        self.list_fates(set, &mut scratch.fates);
        self.needed(&scratch.fates, &mut scratch.needed);
        self.load(fetch, scratch)?;
        for (fate, out) in [(Fate::Inside, sure), (Fate::Edge, check)] {
            self.rows_of(fate, scratch, &mut out[..words as usize])?;
        }
        Ok(())
    }

    /// Fetches and verifies the needed blocks, and finds the vectors in them.
    fn load(&self, fetch: &mut Fetch<'_>, scratch: &mut Scratch) -> Result<()> {
        scratch.places.clear();
        scratch.places.resize(self.tree.nodes.len(), (0, 0..0));
        let (mut block, mut piece) = (0, 0);
        while block < self.blocks.len() {
            if !scratch.needed[block] {
                block += 1;
                continue;
            }
            let end =
                scratch.needed[block..].iter().position(|n| !n).map_or(self.blocks.len(), |n| block + n);
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
                self.find_vectors(number, base, bytes, piece, &mut scratch.places)?;
            }
            block = end;
            piece += 1;
        }
        Ok(())
    }

    fn find_vectors(
        &self,
        number: usize,
        base: u64,
        bytes: &[u8],
        piece: usize,
        places: &mut [(usize, Range<usize>)],
    ) -> Result<()> {
        let (stored, block) = (self.blocks[number], self.tree.blocks[number]);
        let (start, end) = ((stored.start - base) as usize, (stored.end - base) as usize);
        let mut rest = &bytes[start..end];
        if checksum(rest) != stored.checksum {
            return Err(corrupt("a block differs from its checksum"));
        }
        let nodes = block.first..block.first + block.nodes;
        for (node, place) in self.tree.nodes[nodes.clone()].iter().zip(&mut places[nodes]) {
            let from = end - rest.len();
            vector::take(&mut rest, node.rows).ok_or_else(|| corrupt("a block is cut off"))?;
            *place = (piece, from..end - rest.len());
        }
        if rest.is_empty() { Ok(()) } else { Err(corrupt("a block is too long")) }
    }

    /// Sets the bits of the rows in the leaves of a fate.
    fn rows_of(&self, fate: Fate, scratch: &mut Scratch, out: &mut [u64]) -> Result<()> {
        scratch.wanted.clear();
        scratch.wanted.push(0);
        let mut count = 0;
        scratch.wanted.extend(scratch.fates.iter().map(|&f| {
            count += u32::from(f == fate);
            count
        }));
        let walk = Walk {
            region: self,
            wanted: &scratch.wanted,
            fetched: &scratch.fetched,
            places: &scratch.places,
        };
        match walk.uniform(0, self.leaves() as u32) {
            _ if self.rows == 0 => Ok(()),
            Some(false) => Ok(()),
            Some(true) => {
                out.fill(u64::MAX);
                out[out.len() - 1] = vector::last_mask(self.rows as usize);
                Ok(())
            }
            None => walk.node(0, &mut scratch.pool, out),
        }
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
        pool.extend([left, right].into_iter().filter_map(Rows::reclaim));
        Ok(())
    }

    fn side(
        &self,
        number: Option<usize>,
        leaves: (u32, u32),
        rows: u64,
        pool: &mut Vec<Vec<u64>>,
    ) -> Result<Rows> {
        match (self.uniform(leaves.0, leaves.1), number) {
            (Some(true), _) => Ok(Rows::All),
            (None, Some(number)) => {
                let words = (rows as usize).div_ceil(64);
                let mut bits = pool.pop().unwrap_or_default();
                // One word more, which is read but does not count.
                bits.resize(words + 1, 0);
                self.node(number, pool, &mut bits[..words])?;
                Ok(Rows::Some(bits))
            }
            // A leaf is uniform, so `None` without a number does not happen.
            _ => Ok(Rows::None),
        }
    }
}

/// Wanted rows of a child.
enum Rows {
    None,
    All,
    Some(Vec<u64>),
}

impl Rows {
    fn side(&self) -> Side<'_> {
        match self {
            Rows::None => Side::None,
            Rows::All => Side::All,
            Rows::Some(bits) => Side::Some(bits),
        }
    }

    fn reclaim(self) -> Option<Vec<u64>> {
        if let Rows::Some(bits) = self { Some(bits) } else { None }
    }
}
