//! How the memory is shared out: threads, batches, buckets.

use sieva_types::{Error, ErrorKind, Result};

use super::SortOptions;
use super::bucket::bytes_per_row;
use super::layout::Layout;
use super::pivots::SAMPLES_PER_BUCKET;
use super::source::{Schema, Source, TableSource};
use super::writer::CHUNKS_AT_ONCE;

/// Rows of a bucket, where memory and the number of buckets allow: a column of it fits the cache of a core.
const BUCKET_ROWS: usize = 1 << 19;
/// Buckets of one partition. More would make runs short and let no cache hold their ends.
const MOST_BUCKETS: usize = 4096;
/// Rows of a run that are worth a read of their own.
const RUN_ROWS: usize = 8192;

/// Sizes of a build, in rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BuildSizes {
    pub threads: usize,
    /// Whether the partition is kept in memory.
    pub in_memory: bool,
    /// Rows that are partitioned at once.
    pub batch_rows: usize,
    /// Rows of a bucket that is not partitioned further.
    pub most_rows: usize,
    /// Rows of a bucket that is aimed at.
    pub bucket_rows: usize,
    /// Buckets of a partition, at most.
    pub most_buckets: usize,
    /// Rows of a segment where a bucket is partitioned.
    pub segment_rows: usize,
}

impl BuildSizes {
    /// The plan for a table.
    ///
    /// # Errors
    /// `memory-limit` where a region with its partition does not fit, with what would.
    pub fn new(
        layout: Layout,
        schema: &Schema,
        table: &TableSource<'_>,
        options: &SortOptions<'_>,
        bucket_rows: Option<usize>,
    ) -> Result<Self> {
        let largest = (0..table.segments()).map(|s| table.rows(s)).max().unwrap_or(0);
        let budget = Budget { layout, schema, largest, regions: table.segments(), ordered: table.ordered };
        let wish = bucket_rows.unwrap_or(BUCKET_ROWS);
        for threads in (1..=options.threads.clamp(1, 1024)).rev() {
            let rows = u64::try_from(largest).unwrap_or(u64::MAX);
            let whole = schema.rows.saturating_mul(schema.row_bytes());
            let enough = budget.bytes_per_thread().max(bytes_per_row(schema, table.ordered) as u64 * rows);
            if let Some(share) = budget.share(options.memory, threads, whole).filter(|&s| s >= enough) {
                return Ok(budget.plan(options.memory, threads, share, wish, true));
            }
            let share = budget.share(options.memory, threads, 0);
            if let Some(share) = share.filter(|&s| s >= budget.bytes_per_thread()) {
                return Ok(budget.plan(options.memory, threads, share, wish, false));
            }
        }
        let need = budget.fixed(1).saturating_add(budget.bytes_per_thread());
        let need = need.saturating_add(need / 7 + 8);
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "sorting regions of up to {largest} rows takes {need} bytes of memory, {} are allowed",
                options.memory
            ),
        )
        .hint(format!("allow {need} bytes or more")))
    }
}

struct Budget<'a> {
    layout: Layout,
    schema: &'a Schema,
    /// Rows of the largest region.
    largest: usize,
    regions: usize,
    ordered: bool,
}

impl Budget<'_> {
    /// Bytes that do not depend on sizes of batches and buckets: chunks that are complete in parts, chunks
    /// being written, fences, boxes of regions.
    fn fixed(&self, threads: usize) -> u64 {
        let chunk = self.schema.rows.min(self.layout.chunk as u64);
        let parts = 2 * threads as u64 * chunk * self.schema.row_bytes();
        let writes = (threads * CHUNKS_AT_ONCE.min(self.layout.chunks(self.schema.rows) as usize)) as u64
            * self.layout.stride(self.schema.widest()) as u64;
        // A number and a copy of it, in both byte orders.
        let fences = self.layout.chunks(self.schema.rows).saturating_mul(32);
        parts + writes + fences + self.regions as u64 * 16
    }

    /// Bytes of the values and positions of a segment.
    fn segment_bytes(&self) -> u64 {
        (self.schema.widest() + self.schema.sizes[self.schema.positions()]) as u64
    }

    /// Bytes of a row of a batch: its place, and the element there.
    fn batch_bytes(&self) -> u64 {
        4 + self.schema.widest() as u64
    }

    /// Bytes that a thread must have: a region and its partition.
    fn bytes_per_thread(&self) -> u64 {
        (self.segment_bytes() + self.batch_bytes()).saturating_mul(self.largest as u64)
    }

    /// Bytes for each thread, of which there are `memory`, where `kept` bytes are kept all the time. An
    /// eighth is left to samples, runs and allocators.
    fn share(&self, memory: u64, threads: usize, kept: u64) -> Option<u64> {
        let left = (memory - memory / 8).checked_sub(self.fixed(threads))?.checked_sub(kept)?;
        Some(left / threads as u64)
    }

    fn plan(&self, memory: u64, threads: usize, share: u64, wish: usize, in_memory: bool) -> BuildSizes {
        let rows = usize::try_from(self.schema.rows).unwrap_or(usize::MAX);
        let limit = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(u32::MAX as usize);
        let most_rows = limit(share / bytes_per_row(self.schema, self.ordered) as u64).max(1);
        let segment_rows = limit(share / 4 / self.segment_bytes()).clamp(1, 1 << 16);
        let region = self.largest.max(segment_rows) as u64;
        let fitting = limit(share.saturating_sub(region * self.segment_bytes()) / self.batch_bytes());
        // Samples take 16 bytes, twice as many as wished for may come from rounding up; a run takes 4.
        let sampled = limit(memory / 32 / (32 * SAMPLES_PER_BUCKET as u64));
        let indexed = limit((memory / 128).saturating_mul(fitting as u64) / self.schema.rows.max(1));
        let most_buckets = (fitting / 64).min(sampled).min(indexed).clamp(2, MOST_BUCKETS);
        let bucket_rows = wish.min(most_rows - most_rows / 3).max(1);
        let buckets = rows.div_ceil(bucket_rows).min(most_buckets);
        let batch_rows = (buckets * RUN_ROWS).max(1 << 20).min(rows.div_ceil(4 * threads));
        let batch_rows = batch_rows.min(fitting).max(self.largest).max(1);
        BuildSizes { threads, in_memory, batch_rows, most_rows, bucket_rows, most_buckets, segment_rows }
    }
}
