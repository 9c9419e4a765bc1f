//! The positions of a tile on their way from the thread that found them to the selection.
//!
//! Where a tile is one run of the row space within a block of the selection, which regions of an index mostly are, they are
//! packed at once: what is left to do in order, by one thread, is little.

use sieva_types::{Bx, PositionBlock};

use crate::exec::select::bands::run_of;
use crate::mask::Mask;

/// Which positions of a tile were found.
pub(in crate::exec) enum Picked {
    /// Those of a mask over the tile.
    Mask(Mask),
    /// Those of a block of the row space.
    Block(PositionBlock),
}

impl Picked {
    /// Those of a mask over the tile `bx` of rows of a shape.
    pub(in crate::exec) fn of(mask: Mask, shape: &[u64], bx: &Bx) -> Self {
        let block = run_of(shape, bx).and_then(|start| PositionBlock::new(start, mask.words()));
        block.map_or(Self::Mask(mask), Self::Block)
    }

    /// The bytes that they take.
    pub(in crate::exec) fn bytes(&self) -> u64 {
        match self {
            Self::Mask(mask) => mask.len() as u64 / 8,
            Self::Block(block) => block.memory_bytes(),
        }
    }
}
