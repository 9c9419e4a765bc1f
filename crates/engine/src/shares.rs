//! A box cut by where its bytes lie: what processes share out among themselves when they read together.

use sieva_types::{Bx, DType, Result};

use crate::open::Source;

/// A part of a box, within one stripe and one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxPart {
    /// The server that has it; 0 where none is known.
    pub server: u32,
    /// The number of the stripe; 0 where none is known.
    pub stripe: u64,
    /// The number of the block in C order: a chunk, or some rows of what is not chunked.
    pub block: u64,
    /// The elements.
    pub bx: Bx,
}

impl Source {
    /// Cuts a box by servers and stripes, where these are known, and by blocks: chunks, else runs in C order whose decoded
    /// values take `most` bytes or less. Parts of one array have server, stripe and block in common, or no element: who
    /// reads all parts of a unit (server, stripe, block) reads what nobody else does, and no chunk is decoded by two.
    ///
    /// An element that a border of stripes cuts belongs to the stripe of its first byte; so does a chunk.
    ///
    /// # Errors
    /// Of reading where the array lies.
    pub fn parts_of_box(&self, array: usize, bx: &Bx, most: u64) -> Result<Vec<BoxPart>> {
        let info = &self.schema().arrays[array];
        let size = if info.dtype == DType::Str { 64 } else { info.decoding.decoded().size() as u64 };
        let chunk = info.storage.chunk_shape.as_ref().and_then(|c| c.get(..info.shape.len()));
        let block = block_of(&info.shape, chunk, size, most);
        let mut parts = Vec::new();
        for (server, stripe, bx) in self.shares(array, bx)? {
            cut(&info.shape, &block, &bx, |block, bx| parts.push(BoxPart { server, stripe, block, bx }));
        }
        Ok(parts)
    }

    /// What each stripe has of a box; the whole of no known one for texts, what was never written in part, and elements
    /// that are no byte ranges of one file.
    fn shares(&self, array: usize, bx: &Bx) -> Result<Vec<(u32, u64, Bx)>> {
        let info = &self.schema().arrays[array];
        let unknown = vec![(0, 0, bx.clone())];
        if bx.is_empty() {
            return Ok(Vec::new());
        }
        // Characters of texts are a dimension of their own where they lie; one server has all there is.
        if info.dtype == DType::Str || self.striping().servers() < 2 {
            return Ok(unknown);
        }
        if self.reader().layout(array)?.extent.len() != bx.rank() {
            return Ok(unknown);
        }
        let Some(set) = self.sub_correlation(array)? else { return Ok(unknown) };
        let shares: Vec<_> = set.of_box(bx).filter(|share| share.is_first).collect();
        // What was never written lies nowhere.
        if shares.iter().map(|share| share.bx.len()).sum::<u64>() != bx.len() {
            return Ok(unknown);
        }
        Ok(shares.into_iter().map(|share| (share.server, share.stripe, share.bx)).collect())
    }
}

/// The shape of the blocks of an array: its chunks, else runs in C order of at most `most` bytes, or one value.
fn block_of(shape: &[u64], chunk: Option<&[u64]>, size: u64, most: u64) -> Vec<u64> {
    if let Some(chunk) = chunk {
        return chunk.iter().map(|&n| n.max(1)).collect();
    }
    let mut left = (most / size.max(1)).max(1);
    let mut block = vec![1; shape.len()];
    for (own, &n) in block.iter_mut().zip(shape).rev() {
        *own = n.clamp(1, left);
        left /= n.max(1);
        if left == 0 {
            break;
        }
    }
    block
}

/// Tells the number of each block that a box touches, and what the box has of it, in C order.
fn cut(shape: &[u64], block: &[u64], bx: &Bx, mut tell: impl FnMut(u64, Bx)) {
    let first: Vec<u64> = bx.start.iter().zip(block).map(|(s, b)| s / b).collect();
    let last: Vec<u64> = (0..bx.rank()).map(|d| (bx.end(d) - 1) / block[d]).collect();
    let mut at = first.clone();
    loop {
        let number = at.iter().zip(shape).zip(block).fold(0, |n, ((c, &s), &b)| n * s.div_ceil(b) + c);
        let start: Vec<u64> = (0..bx.rank()).map(|d| bx.start[d].max(at[d] * block[d])).collect();
        let counts = (0..bx.rank()).map(|d| bx.end(d).min((at[d] + 1) * block[d]) - start[d]).collect();
        tell(number, Bx::new(start, counts));
        let Some(axis) = (0..at.len()).rev().find(|&d| at[d] < last[d]) else { return };
        at[axis] += 1;
        at[axis + 1..].copy_from_slice(&first[axis + 1..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_chunks_or_of_bounded_size() {
        assert_eq!(block_of(&[100, 10, 10], None, 4, 800), [2, 10, 10]);
        assert_eq!(block_of(&[100, 10, 10], None, 4, 150), [1, 3, 10]);
        assert_eq!(block_of(&[100, 10, 10], None, 4, 1), [1, 1, 1]);
        assert_eq!(block_of(&[0, 3], None, 8, 1000), [1, 3]);
        assert_eq!(block_of(&[], None, 8, 1), [0_u64; 0]);
        assert_eq!(block_of(&[100, 10], Some(&[7, 3]), 4, 1), [7, 3]);
    }

    #[test]
    fn parts_tile_a_box_within_blocks() {
        let shape = [5, 7, 4];
        for block in [[1, 1, 1], [2, 3, 4], [5, 7, 4], [3, 2, 3]] {
            for (start, counts) in [([0, 0, 0], [5, 7, 4]), ([1, 2, 3], [3, 5, 1]), ([4, 6, 0], [1, 1, 4])] {
                let bx = Bx::new(start.to_vec(), counts.to_vec());
                let mut marked = vec![0; 5 * 7 * 4];
                let mut numbers = Vec::new();
                cut(&shape, &block, &bx, |number, part| {
                    numbers.push(number);
                    for i in 0..140_u64 {
                        let at = [i / 28, i / 4 % 7, i % 4];
                        if (0..3).all(|d| (part.start[d]..part.end(d)).contains(&at[d])) {
                            marked[i as usize] += 1;
                            let grid = [0, 1, 2].map(|d: usize| shape[d].div_ceil(block[d]));
                            let own = [0, 1, 2].map(|d: usize| at[d] / block[d]);
                            assert_eq!(number, (own[0] * grid[1] + own[1]) * grid[2] + own[2]);
                        }
                    }
                });
                for i in 0..140_u64 {
                    let at = [i / 28, i / 4 % 7, i % 4];
                    let inside = (0..3).all(|d| (bx.start[d]..bx.end(d)).contains(&at[d]));
                    assert_eq!(marked[i as usize], u64::from(inside), "{block:?} {bx:?} {at:?}");
                }
                assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{block:?} {bx:?}");
            }
        }
        let mut scalars = Vec::new();
        cut(&[], &[], &Bx::new(vec![], vec![]), |number, part| scalars.push((number, part.len())));
        assert_eq!(scalars, [(0, 1)]);
    }
}
