//! Heads of bitmaps, read a block at a time and kept within bounds.

use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sieva_store::Counters;
use sieva_types::Result;

use super::segment::{Block, Segment};

/// Bytes of heads that are kept for an array.
const KEPT: u64 = 64 << 20;

/// The verified head of a region's bitmap.
#[derive(Clone, Debug)]
pub struct Head {
    block: Arc<Vec<u8>>,
    range: Range<usize>,
    /// Bytes of the body.
    pub body_len: u64,
}

impl Deref for Head {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.block[self.range.clone()]
    }
}

/// A block of heads in one of the segments of an array.
#[derive(Debug)]
pub(super) struct HeadBlock {
    pub(super) segment: Arc<Segment>,
    block: Block,
    slot: Mutex<Option<Arc<Vec<u8>>>>,
}

/// The blocks of heads of an array. A block is read when one of its heads is asked for: a query asks for many,
/// and one request of a megabyte costs less than a hundred of a kilobyte.
#[derive(Debug)]
pub(super) struct HeadBlocks {
    blocks: Vec<HeadBlock>,
    /// Blocks in memory, oldest first, and their bytes.
    kept: Mutex<(VecDeque<usize>, u64)>,
    limit: u64,
}

impl HeadBlocks {
    pub(super) fn new() -> Self {
        Self { blocks: Vec::new(), kept: Mutex::default(), limit: KEPT }
    }

    /// Adds a block, and gives its number.
    pub(super) fn push(&mut self, segment: &Arc<Segment>, block: &Block) -> usize {
        let (segment, block) = (Arc::clone(segment), block.clone());
        self.blocks.push(HeadBlock { segment, block, slot: Mutex::default() });
        self.blocks.len() - 1
    }

    pub(super) fn block(&self, number: usize) -> &HeadBlock {
        &self.blocks[number]
    }

    /// The head at `range` of the payload of block `number`, which lies within it.
    pub(super) fn head(
        &self,
        number: usize,
        range: Range<usize>,
        body_len: u64,
        counters: &Counters,
    ) -> Result<Head> {
        let HeadBlock { segment, block, slot } = &self.blocks[number];
        let mut held = locked(slot);
        if let Some(bytes) = &*held {
            return Ok(Head { block: Arc::clone(bytes), range, body_len });
        }
        // Under the slot's lock: others who want this block wait for it instead of reading it too.
        let bytes = Arc::new(segment.payload(block, counters)?);
        *held = Some(Arc::clone(&bytes));
        drop(held);
        self.keep(number);
        Ok(Head { block: bytes, range, body_len })
    }

    /// Counts a block that came to memory, and lets the oldest go where there are too many bytes. Takes slots'
    /// locks under that of the queue; no one takes them the other way round.
    fn keep(&self, number: usize) {
        let mut kept = locked(&self.kept);
        kept.0.push_back(number);
        kept.1 += self.blocks[number].block.payload;
        while kept.1 > self.limit && kept.0.len() > 1 {
            let Some(oldest) = kept.0.pop_front() else { break };
            *locked(&self.blocks[oldest].slot) = None;
            kept.1 -= self.blocks[oldest].block.payload;
        }
    }

    #[cfg(test)]
    pub(super) fn limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.blocks.iter().filter_map(|b| locked(&b.slot).as_ref().map(|bytes| bytes.len())).sum()
    }
}

/// What a mutex guards is replaced whole, so a panic elsewhere leaves nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
