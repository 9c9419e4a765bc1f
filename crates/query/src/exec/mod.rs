//! Execution: a bound query over the bytes of its source, tile by tile.
//!
//! The row space is cut into tiles along the chunks of the array that costs most. A tile's conditions are
//! evaluated on their own dimensions and broadcast; what is left of the tile decides what is read next.
//! Results of tiles are taken in order, so that an answer does not depend on the number of threads.

pub(crate) mod access_path;
mod budget;
mod fetch;
mod groups;
mod learn;
mod order;
pub(crate) mod pool;
mod prefetch;
mod select;
pub mod threads;
pub(crate) mod tile;
pub(crate) mod together;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Once, OnceLock};

use sieva_format::ArraySource;
use sieva_format::read::{BlockReader, ChunkCache};
use sieva_index::ArrayIndex;
use sieva_types::Result;

use crate::bind::Bound;
use crate::cost::ReadCosts;
use crate::optimizer::PhysicalPlan;
pub use access_path::sorted::Chosen;
pub use access_path::{Access, FetchWay, Indexes, Replica};
pub use budget::Room;
pub use fetch::Gatherer;
pub use fetch::column::{Column, Data};
pub use fetch::ordered::OrderedRows;
pub(crate) use fetch::rows::ROWS_COMPARED;
pub use fetch::rows::{RowStream, fetch};
pub(crate) use fetch::runs::MAX_SPAN_BYTES;
pub(crate) use fetch::steps::MOST_TOGETHER;
pub(crate) use groups::aggregate::arrays_of_groups;
pub use groups::aggregate::{aggregate, finish_groups, partial_groups, reduce};
pub use groups::{GroupRows, GroupTable, Groups, KeyValues};
pub use order::first_in_order;
pub use order::keys::{order_by, retain_distinct};
pub(crate) use order::{key_needs, wanted as wanted_first};
pub use pool::check;
pub use select::kept::Found;
pub(crate) use select::product;
pub use select::{Counted, count, select, select_until_failure};
pub use tile::evaluate::evaluate_constant;
use tile::prepare::Prepared;
pub use tile::{is_of_chunks, region_shape, sized_region_shape};
pub use together::shelf::{Shared, Shares};
pub use together::{Answer, Asked, Want, Went, together};

/// How a query is run.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Threads that read and evaluate.
    pub threads: usize,
    /// Bytes that reading and results in flight may take.
    pub memory: u64,
    /// Of these, what may be held that grows with the rows, where others of a run hold as much; `None`: three quarters.
    pub room: Option<u64>,
    /// Of these, what instances of functions that came as code may have.
    pub code: u64,
    /// Set to stop the query.
    pub cancel: Arc<AtomicBool>,
    /// The ways of evaluating conditions that may be taken.
    pub access: Access,
    /// How values at selected positions are fetched.
    pub fetch: FetchWay,
    /// Bytes that ORDER BY and DISTINCT may write to temporary files where memory does not do; 0: none.
    pub spill: u64,
    /// Decoded chunks that others of the same source use as well; `None`: its own, of a quarter of the memory.
    pub cache: Option<Arc<ChunkCache>>,
}

impl Default for ExecOptions {
    fn default() -> Self {
        // Asked once: it reads the limits of the process's control group, which takes longer than a small query.
        static THREADS: OnceLock<usize> = OnceLock::new();
        let threads = *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
        let (access, fetch) = (Access::Auto, FetchWay::Auto);
        Self {
            threads,
            memory: 1 << 30,
            room: None,
            code: 0,
            cancel: Arc::default(),
            access,
            fetch,
            spill: 0,
            cache: None,
        }
    }
}

/// What a run did: tiles by the way that they were decided.
///
/// A tile is the unit of work: a chunk, or what stands for one. Where several conditions apply to it, each is
/// counted by the way that it took, so that the last three may add up to more than the tiles evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecStats {
    /// Tiles evaluated by reading data.
    pub tiles_scanned: u64,
    /// Tiles decided without reading data, whether nothing or something of them is selected.
    pub tiles_skipped: u64,
    /// Of those decided without reading, tiles selected wholly by what is known of them.
    pub tiles_taken: u64,
    /// Conditions on tiles answered by bitmaps.
    pub by_bitmap: u64,
    /// Conditions on tiles answered by reading single elements.
    pub by_points: u64,
    /// Conditions on tiles answered by reading the tile.
    pub by_scan: u64,
    /// Rows found through a sorted replica.
    pub by_replica: u64,
}

impl ExecStats {
    /// Adds what another part of the work did.
    pub fn merge(&mut self, other: &Self) {
        self.tiles_scanned += other.tiles_scanned;
        self.tiles_skipped += other.tiles_skipped;
        self.tiles_taken += other.tiles_taken;
        self.by_bitmap += other.by_bitmap;
        self.by_points += other.by_points;
        self.by_scan += other.by_scan;
        self.by_replica += other.by_replica;
    }
}

/// A bound query with readers of its arrays.
pub struct Execution {
    /// The query.
    pub bound: Bound,
    /// The source.
    pub source: Arc<dyn ArraySource>,
    /// How it is run.
    pub options: ExecOptions,
    /// What is known of the source besides its data.
    pub indexes: Arc<Indexes>,
    pub(crate) readers: Vec<BlockReader>,
    /// The same for arrays that lie plainly: a run of positions is one range.
    pub(crate) flat: Vec<Option<BlockReader>>,
    /// Per bound array, what is known of its regions.
    pub(crate) indexed: Vec<Option<Arc<ArrayIndex>>>,
    /// The physical plan, once it was made.
    pub(crate) physical: OnceLock<Arc<PhysicalPlan>>,
    /// What its first stage found, once it was run; while it is run, others wait.
    prepared: OnceLock<Arc<Prepared>>,
    preparing: Mutex<()>,
    /// Set when small arrays were asked of the network.
    fetched_ahead: Once,
    /// The rows that a sorted replica gave, once there are any.
    chosen: OnceLock<Arc<Chosen>>,
}

impl Execution {
    /// Opens the layouts of the arrays that `bound` uses.
    ///
    /// # Errors
    /// `corrupt-file`, `link-refused` and the like, of an array in use; `stale-source`.
    pub fn new(
        source: Arc<dyn ArraySource>,
        bound: Bound,
        indexes: Arc<Indexes>,
        options: ExecOptions,
    ) -> Result<Self> {
        source.store().check_unchanged()?;
        // A quarter of the memory for decoded chunks that more than one tile wants; a chunk and its copies
        // must fit in what is left, once for each thread. Where chunks are large, fewer threads have room.
        let own = || Arc::new(ChunkCache::new((options.memory / 4) as usize));
        let cache = options.cache.clone().unwrap_or_else(own);
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
        let flat = readers.iter().map(BlockReader::flat).collect();
        let indexed = bound.arrays.iter().map(|a| indexes.array(a.index)).collect();
        Ok(Self {
            bound,
            source,
            options,
            indexes,
            readers,
            flat,
            indexed,
            physical: OnceLock::new(),
            prepared: OnceLock::new(),
            preparing: Mutex::default(),
            fetched_ahead: Once::new(),
            chosen: OnceLock::new(),
        })
    }

    /// Has the network bring the small arrays, once.
    fn ask_for_small(&self) {
        self.fetched_ahead.call_once(|| self.fetch_small_ahead());
    }

    /// The rows that a sorted replica gave, if one was used.
    pub fn chosen(&self) -> Option<&Arc<Chosen>> {
        self.chosen.get()
    }

    /// Lets it fetch from the replica that gave another query's rows.
    pub fn fetch_from(&self, chosen: Option<&Arc<Chosen>>) {
        if let Some(chosen) = chosen {
            self.chosen.get_or_init(|| Arc::clone(chosen));
        }
    }

    /// The reader of a bound array.
    fn reader(&self, array: usize) -> &BlockReader {
        &self.readers[array]
    }

    /// What reading an array costs.
    pub(crate) fn read_costs(&self, array: usize) -> &ReadCosts {
        let costs = &self.indexes.costs;
        if self.readers[array].layout().is_chunked() { &costs.chunked } else { &costs.direct }
    }
}
