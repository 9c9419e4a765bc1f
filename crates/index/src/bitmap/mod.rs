//! Bitmap indexes: which rows of a region have a value in a set, without the values.
//!
//! The values of a region are put into bins ([`Bin`]), each with the smallest and the greatest value in it. A
//! bin inside of a set of values has its rows in the result, a bin outside has none, the rows of a bin that the
//! set cuts are to be looked up in the data. Bins follow the decimal numbers that people write in conditions
//! (see the module `binning`), so a condition with a constant of few digits cuts no bin.
//!
//! The bin of each row is kept in a binary tree over the bins in their order: each inner node has a bit for
//! each row that reaches it, 0 where its bin is to the left, 1 where it is to the right. This is a wavelet tree
//! (Grossi, Gupta & Vitter, High-order entropy-compressed text indexes, SODA 2003) of a weight-balanced shape,
//! whose size is near the entropy of the bins. It takes the place of a bit vector for each bin with coarser
//! levels above (SDQuery 3.4, SDS III.A.1): an interval of values reads the nodes that its ends cut and no
//! others, the rarer its rows are, the shorter the vectors on their way. Rare bins at the ends have lists of their rows
//! beside the tree (see the module `lists`).
//!
//! An index is a *head* (bins; lengths and checksums of blocks) and a *body* (blocks of bit vectors), of which
//! an evaluation fetches what it needs. The format is described in `docs/reference/bitmap-format.md`.

mod binning;
mod decimal;
mod evaluate;
mod expand;
mod extremes;
mod gaps;
mod groups;
mod head;
mod lists;
mod merged;
mod ordinal;
mod partition;
mod reading;
mod region;
mod stage;
#[cfg(test)]
mod tests;
mod tree;
mod varint;
mod vector;

use sieva_types::{KeySet, Result};

use crate::Elements;
pub use evaluate::Fetch;
pub use region::{Bin, RegionBitmap};

/// Rows of a region at most.
pub const MAX_ROWS: u64 = 1 << 31;

/// Memory that is reused from region to region. Of no contents between calls.
#[derive(Debug, Default)]
pub struct Workspace {
    narrow: Vec<u32>,
    wide: Vec<u64>,
    binning: binning::Binning,
    stage: stage::Stage,
    scratch: evaluate::Scratch,
}

/// Rows of a region that a set of values takes in, as far as bins tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// Rows whose value is in the set.
    pub inside: u64,
    /// Rows in bins that the set cuts: their values must be looked up.
    pub edge: u64,
}

/// Appends the index of a region: the head (bins and blocks) and the body (bit vectors).
///
/// `missing` are the missing values of the array; they do not share bins with present ones. Conditions with
/// constants of `precision` significant decimal digits will be answered without looking values up (unless the
/// region has more bins than are kept, about 4096).
///
/// Regions of more than [`MAX_ROWS`] elements have no index: nothing is appended, and an empty head does not
/// parse.
pub fn build(
    elements: Elements<'_>,
    missing: &KeySet,
    precision: u32,
    ws: &mut Workspace,
    head: &mut Vec<u8>,
    body: &mut Vec<u8>,
) {
    let rows = elements.len() as u64;
    let Some(scale) = ordinal::Scale::of(elements.dtype()).filter(|_| rows <= MAX_ROWS) else { return };
    ordinal::ordinals(elements, &mut ws.narrow, &mut ws.wide);
    if ws.wide.is_empty() {
        ws.binning.make(&ws.narrow, &scale, missing, precision);
    } else {
        ws.binning.make(&ws.wide, &scale, missing, precision);
    }
    let leaves = &ws.binning.leaves;
    let listed = lists::choose(leaves, rows, ws.binning.runs());
    let merged = merged::Merged::new(leaves.len(), listed);
    head::put_bins(rows, leaves, &merged, &scale, head);
    let tree = tree::Tree::new(merged.counts(|leaf| leaves[leaf].1.count).into_iter());
    ws.stage.fill(&tree, &ws.binning, &merged);
    let blocks = tree.blocks.iter().map(|block| ws.stage.block(block));
    for bytes in blocks.chain(ws.stage.lists()) {
        head::put_block(bytes, head);
        body.extend_from_slice(bytes);
    }
}

impl RegionBitmap {
    /// Sets the bits (bit i % 64 of word i / 64 for row i) of the rows whose value is surely in the set in
    /// `sure`, and of those to be looked up in `check`. Both have at least a word per 64 rows and come zeroed; `check` may be
    /// empty where no row is to be looked up ([`RegionBitmap::edge`]).
    ///
    /// `fetch` reads a range of the body's bytes into the vector that it is given, which is empty. It is
    /// called for as few ranges as adjacent blocks allow, which hold [`RegionBitmap::cost`] bytes together.
    ///
    /// # Errors
    /// Those of `fetch`; `corrupt-index` where the body is not the one that the head was made with;
    /// `invalid-value` where `sure` or `check` is too short. What was set in them then is of no meaning.
    pub fn evaluate(
        &self,
        set: &KeySet,
        fetch: &mut Fetch<'_>,
        ws: &mut Workspace,
        sure: &mut [u64],
        check: &mut [u64],
    ) -> Result<()> {
        self.run(set, fetch, &mut ws.scratch, sure, check)
    }
}
