//! How many positions of a set lie below each of its blocks, so that one is found by its number, or its number by it,
//! without counting through all that come before.

use std::sync::OnceLock;

use roaring::RoaringBitmap;

use super::set::{Part, Piece};

/// log2 of the number of positions in a block, which is a container of a bitmap.
const BLOCK_BITS: u32 = 16;

/// The counts, made when they are first wanted. They follow from the set, so that they do not make sets differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks(OnceLock<Vec<Block>>);

impl PartialEq for Ranks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A block in which something is selected, or a piece of which everything is.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Its first position.
    base: u64,
    /// Positions of the set below it.
    before: u64,
    /// The number of its piece.
    piece: usize,
}

impl Ranks {
    /// The position of which `rank` positions of the set lie below; `rank` is less than their number.
    pub(super) fn select(&self, pieces: &[Piece], rank: u64) -> Option<u64> {
        let blocks = self.blocks(pieces);
        let block = blocks.get(blocks.partition_point(|b| b.before <= rank).checked_sub(1)?)?;
        let within = rank - block.before;
        let piece = &pieces[block.piece];
        match &piece.part {
            Part::Full => Some(block.base + within),
            Part::Bits(bits) => {
                let first = (block.base - piece.base()) as u32;
                // The lowest offset up to which there are more than `within`.
                let (mut low, mut high) = (0, (1 << BLOCK_BITS) - 1);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if bits.range_cardinality(first..=first + middle) > within {
                        high = middle;
                    } else {
                        low = middle + 1;
                    }
                }
                Some(block.base + u64::from(low))
            }
        }
    }

    /// The number of positions below `position`.
    pub(super) fn rank(&self, pieces: &[Piece], position: u64) -> u64 {
        let blocks = self.blocks(pieces);
        let Some(number) = blocks.partition_point(|b| b.base <= position).checked_sub(1) else { return 0 };
        let block = blocks[number];
        let next = blocks.get(number + 1).map_or_else(|| pieces.iter().map(|p| p.len).sum(), |b| b.before);
        let within = match &pieces[block.piece].part {
            Part::Full => position - block.base,
            Part::Bits(_) if position - block.base >= 1 << BLOCK_BITS => return next,
            Part::Bits(bits) => {
                let first = (block.base - pieces[block.piece].base()) as u32;
                bits.range_cardinality(first..first + (position - block.base) as u32)
            }
        };
        (block.before + within).min(next)
    }

    fn blocks(&self, pieces: &[Piece]) -> &[Block] {
        self.0.get_or_init(|| {
            let (mut blocks, mut before) = (Vec::new(), 0);
            for (piece, p) in pieces.iter().enumerate() {
                match &p.part {
                    Part::Full => {
                        blocks.push(Block { base: p.base(), before, piece });
                        before += p.len;
                    }
                    Part::Bits(bits) => {
                        for (first, n) in filled(bits) {
                            blocks.push(Block { base: p.base() + u64::from(first), before, piece });
                            before += n;
                        }
                    }
                }
            }
            blocks
        })
    }
}

/// The first position of each block in which something is selected, and how many are.
fn filled(bits: &RoaringBitmap) -> impl Iterator<Item = (u32, u64)> + '_ {
    let mut rest = Some(bits.iter());
    std::iter::from_fn(move || {
        let first = rest.as_mut()?.next()? >> BLOCK_BITS << BLOCK_BITS;
        let last = first | ((1 << BLOCK_BITS) - 1);
        match last.checked_add(1) {
            Some(next) => rest.as_mut()?.advance_to(next),
            None => rest = None,
        }
        Some((first, bits.range_cardinality(first..=last)))
    })
}
