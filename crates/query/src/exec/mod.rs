//! Execution: a bound query over the bytes of its source, tile by tile.
//!
//! The row space is cut into tiles along the chunks of the array that costs most. A tile's conditions are
//! evaluated on their own dimensions and broadcast; what is left of the tile decides what is read next.
//! Results of tiles are taken in order, so that an answer does not depend on the number of threads.

mod aggregate;
mod column;
mod condition;
mod evaluate;
mod gather;
mod keys;
mod leaves;
mod plan;
mod pool;
mod prepare;
mod rows;
mod select;
mod tiles;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_format::ArraySource;
use sieva_format::read::{BlockReader, ChunkCache};
use sieva_types::Result;

use crate::bind::Bound;
pub use aggregate::{GroupTable, aggregate};
pub use column::{Column, Data};
pub use evaluate::evaluate_constant;
pub use gather::Gatherer;
pub use keys::{order_by, retain_distinct};
pub use plan::Plan;
pub use rows::{RowStream, fetch};
pub use select::{count, select};

/// How a query is run.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Threads that read and evaluate.
    pub threads: usize,
    /// Bytes that reading and results in flight may take.
    pub memory: u64,
    /// Set to stop the query.
    pub cancel: Arc<AtomicBool>,
}

impl Default for ExecOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads, memory: 1 << 30, cancel: Arc::default() }
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExecStats {
    /// Tiles that were evaluated by reading data.
    pub tiles_scanned: u64,
    /// Tiles decided without reading data.
    pub tiles_skipped: u64,
}

/// A bound query with readers of its arrays.
pub struct Execution {
    /// The query.
    pub bound: Bound,
    /// The source.
    pub source: Arc<dyn ArraySource>,
    /// How it is run.
    pub options: ExecOptions,
    readers: Vec<BlockReader>,
}

impl Execution {
    /// Opens the layouts of the arrays that `bound` uses.
    ///
    /// # Errors
    /// `corrupt-file`, `link-refused` and the like, of an array in use; `stale-source`.
    pub fn new(source: Arc<dyn ArraySource>, bound: Bound, options: ExecOptions) -> Result<Self> {
        source.store().check_unchanged()?;
        // A quarter of the memory for decoded chunks that more than one tile wants; a chunk and its copies
        // must fit in what is left, once for each thread. Where chunks are large, fewer threads have room.
        let cache = Arc::new(ChunkCache::new((options.memory / 4) as usize));
        let layouts = bound.arrays.iter().map(|a| source.layout(a.index)).collect::<Result<Vec<_>>>()?;
        let chunk = layouts.iter().filter(|l| l.is_chunked()).map(|l| l.chunk_bytes).max().unwrap_or(1);
        let room = usize::try_from(options.memory / 2 / chunk.max(1)).unwrap_or(usize::MAX);
        let options = ExecOptions { threads: options.threads.min(room).max(1), ..options };
        let share = options.memory / 2 / options.threads as u64;
        let readers = bound
            .arrays
            .iter()
            .map(|a| BlockReader::new(Arc::clone(&source), a.index, Arc::clone(&cache), share));
        let readers = readers.collect::<Result<Vec<_>>>()?;
        Ok(Self { bound, source, options, readers })
    }
}
