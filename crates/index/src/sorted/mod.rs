//! Sorted replicas: all rows of arrays of one shape, ordered by one of them.
//!
//! A condition on the key selects one contiguous slice of rows for each of its intervals, of every column and
//! of the positions in the source (SDS, section III.A.2; PDC, section III.D.3). A replica is a Zarr v3 group
//! that any reader of Zarr reads; `docs/reference/sorted-replica.md` describes it.
//!
//! Rows ascend by the key of the stored value ([`sieva_types::keys`]), with -0.0 before 0.0 and NaN last; ties
//! are in the order of positions. Missing values are values like others.

mod arrays;
mod bucket;
mod build;
mod code;
mod files;
mod layout;
mod meta;
mod partition;
mod pivots;
mod replica;
mod run;
mod runs;
mod seal;
mod shared;
mod sizes;
mod source;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};
use sieva_types::{Buffer, Bx, DType, Result};

pub use pivots::Pivot;
pub use replica::SortedReplica;
pub use runs::Runs;
pub use shared::SharedBuild;

/// Arrays of one shape, as the builder reads them.
pub trait Table: Sync {
    /// Number of regions.
    fn regions(&self) -> usize;

    /// The box of a region in the shape of the arrays. Regions cover the shape exactly once.
    fn region(&self, region: usize) -> Bx;

    /// Reads the elements of a region of a column into `out`, which it sizes: native byte order, C order, bool
    /// as bytes and float16 as float32. Called from several threads, and more than once for each region.
    ///
    /// # Errors
    /// Those of the source, which end the build.
    fn read(&self, region: usize, column: usize, out: &mut Buffer) -> Result<()>;
}

/// A column of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the array in the source.
    pub name: String,
    /// Type of the elements as they are stored: bool is uint8, float16 is float32.
    pub dtype: DType,
}

/// How to build.
pub struct SortOptions<'a> {
    /// Threads, at most.
    pub threads: usize,
    /// Bytes of memory for all threads together, without what [`Table::read`] takes for itself.
    pub memory: u64,
    /// What tells the replica from others, the same in all processes that build it: a file of another one is not believed.
    pub seal: u64,
    /// Set by the caller to end the build.
    pub cancel: &'a AtomicBool,
    /// Told the rows done and their number in all phases, from several threads.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Builds a sorted replica of `table`, whose arrays have `shape`, in the directory `dir`.
///
/// `columns[0]` is the key. `attributes` are kept with the replica for the caller to find again (integers and
/// texts exactly, floats to their last digit or so). The directory is created; it may exist if no replica is
/// in it. When this returns, all files are durable and `zarr.json` of the group was the last to be written; the
/// caller gives the directory its final name. After an error it holds no spill files; the rest is the
/// caller's to remove. Spill files take about the bytes of all columns in the same file system, where those
/// do not fit `options.memory`.
///
/// # Errors
/// `memory-limit` where a single region with its partition does not fit, with what would; `invalid-value` for
/// columns or regions that make no table; `cancelled`; `io-error` and its kin; the errors of the table.
pub fn build(
    dir: &Path,
    shape: &[u64],
    columns: &[Column],
    table: &dyn Table,
    attributes: &Map<String, Value>,
    options: &SortOptions<'_>,
) -> Result<()> {
    let layout = layout::Layout::STANDARD;
    build::Build { layout, bucket_rows: None, shape, columns, table, options }.build(dir, attributes)
}
