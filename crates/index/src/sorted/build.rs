//! Building a replica: an external sample sort.
//!
//! Sample keys for pivots; partition all columns at them in batches; sort the buckets one by one and write
//! their rows in order (SDS, section III.A.2, with spill files in the place of its exchange of messages).

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use sieva_types::{DType, Error, ErrorKind, Result, checked_len};

use super::bucket::{self, Bucket, Scratch};
use super::layout::{FENCE, Layout, ROW, path_segment, swap_little_endian};
use super::meta::Meta;
use super::partition::{Keep, Partition};
use super::replica::row_dtype;
use super::run::Run;
use super::sizes::BuildSizes;
use super::source::{BucketSource, Schema, Source, TableSource};
use super::writer::{NewArray, Writer, sync_directories, written};
use super::{Column, SortOptions, Table, files, pivots};

/// A bucket that is cut this often does not shrink: positions occur twice.
const DEEPEST: usize = 64;

/// What is built, and how; tests choose other sizes than [`super::build()`].
pub(super) struct Build<'a> {
    pub layout: Layout,
    /// Rows of a bucket; a size that suits caches where there is none.
    pub bucket_rows: Option<usize>,
    pub shape: &'a [u64],
    pub columns: &'a [Column],
    pub table: &'a dyn Table,
    pub options: &'a SortOptions<'a>,
}

/// What follows from a table before any of it is read.
pub(super) struct Ready<'a> {
    pub columns: Vec<Column>,
    /// The directory of each column.
    pub paths: Vec<String>,
    pub schema: Schema,
    /// The type of positions.
    pub row: DType,
    pub source: TableSource<'a>,
    pub sizes: BuildSizes,
}

impl<'a> Build<'a> {
    /// # Errors
    /// `invalid-value` for columns or regions that make no table; `memory-limit`.
    pub fn ready(&self) -> Result<Ready<'a>> {
        let columns = stored_columns(self.columns)?;
        let rows = checked_len(self.shape)?;
        let row = row_dtype(rows);
        let sizes = columns.iter().map(|c| c.dtype.size()).chain([row.size()]).collect();
        let schema = Schema { key: columns[0].dtype, sizes, rows };
        let source = TableSource::new(self.table, &schema, self.shape)?;
        let sizes = BuildSizes::new(self.layout, &schema, &source, self.options, self.bucket_rows)?;
        Ok(Ready { paths: paths(&columns), columns, schema, row, source, sizes })
    }

    /// Builds the replica in `dir`.
    pub fn build(&self, dir: &Path, attributes: &Map<String, Value>) -> Result<()> {
        let ready = self.ready()?;
        files::create_dir(dir)?;
        let arrays = self.create(&ready, dir)?;
        let rows = ready.schema.rows;
        let run = Run::new(self.options, ready.sizes.threads, ready.schema.sizes.len(), rows);
        let (numbers, fences) = written(self.layout, arrays, self.options.cancel, |writer| {
            let Ready { schema, source, sizes, .. } = &ready;
            let keep = if sizes.in_memory { Keep::Memory } else { Keep::Files(dir) };
            let sort = Sort { run: &run, schema, sizes, dir, ordered: source.ordered, wanted: 0..rows };
            let whole = sort.partition(source, rows, &keep)?;
            let numbers = whole.numbers;
            sort.sort(whole, writer)?;
            Ok((numbers, writer.fences()))
        })?;
        run.check()?;
        self.finish(&ready, dir, numbers, fences, attributes)
    }

    /// The arrays of columns and positions, empty.
    pub fn create(&self, ready: &Ready<'_>, dir: &Path) -> Result<Vec<NewArray>> {
        let rows = ready.schema.rows;
        let create = |path: &str, dtype, name: &str| {
            NewArray::create(dir.join(path), self.layout, (dtype, name), rows, self.options.seal)
        };
        let mut arrays: Vec<NewArray> = (ready.columns.iter().zip(&ready.paths))
            .map(|(c, path)| create(path, c.dtype, &c.name))
            .collect::<Result<_>>()?;
        arrays.push(create(ROW, ready.row, ROW)?);
        Ok(arrays)
    }

    /// The same, once they are there, to have `rows` written to.
    pub fn open(&self, ready: &Ready<'_>, dir: &Path, rows: &Range<u64>) -> Vec<NewArray> {
        let all = ready.schema.rows;
        let open = |path: &str, dtype| {
            NewArray::open(dir.join(path), self.layout, (dtype, all), rows.clone(), self.options.seal)
        };
        let columns = ready.columns.iter().zip(&ready.paths).map(|(c, path)| open(path, c.dtype));
        columns.chain([open(ROW, ready.row)]).collect()
    }

    /// Writes what is written last: the first keys of all chunks (in native byte order), and the metadata.
    pub fn finish(
        &self,
        ready: &Ready<'_>,
        dir: &Path,
        numbers: u64,
        mut fences: Vec<u8>,
        attributes: &Map<String, Value>,
    ) -> Result<()> {
        let (layout, size, key) = (self.layout, ready.schema.sizes[0], ready.schema.key);
        let chunks = layout.chunks(ready.schema.rows);
        let array = NewArray::create(dir.join(FENCE), layout, (key, FENCE), chunks, self.options.seal)?;
        written(layout, vec![array], self.options.cancel, |writer| {
            writer.write(0, 0..chunks, &mut Vec::new(), |range, out| {
                out.copy_from_slice(&fences[range.start * size..range.end * size]);
            })
        })?;
        swap_little_endian(&mut fences, size);
        for path in ready.paths.iter().map(String::as_str).chain([ROW, FENCE]) {
            sync_directories(&dir.join(path))?;
        }
        let meta = Meta {
            layout,
            shape: self.shape.to_vec(),
            numbers,
            columns: ready.columns.clone(),
            paths: ready.paths.clone(),
            fences: crc32c::crc32c(&fences),
            seal: Some(self.options.seal),
            source: attributes.clone(),
        };
        files::write_small(&dir.join("zarr.json"), &meta.to_text()?)?;
        files::sync(dir)
    }
}

/// The sort of one table, or of some of its rows.
pub(super) struct Sort<'a> {
    pub run: &'a Run<'a>,
    pub schema: &'a Schema,
    pub sizes: &'a BuildSizes,
    pub dir: &'a Path,
    pub ordered: bool,
    /// The rows of the replica that are written.
    pub wanted: Range<u64>,
}

impl Sort<'_> {
    /// Sorts the buckets of a partition, and writes their rows.
    pub fn sort(&self, whole: Partition, writer: &Writer) -> Result<()> {
        let mut leaves = Vec::new();
        self.expand(Arc::new(whole), 0, 0, &mut leaves)?;
        let scratch: Vec<Mutex<Scratch>> = (0..self.run.threads).map(|_| Mutex::default()).collect();
        self.run.parallel(leaves.len(), |thread, i| {
            let mut scratch = scratch[thread].lock().unwrap_or_else(PoisonError::into_inner);
            let (partition, number, first_row) = &leaves[i];
            let (number, first_row, wanted) = (*number, *first_row, self.wanted.clone());
            let bucket = Bucket { partition, number, first_row, wanted };
            bucket::sort(self.run, self.schema, writer, &bucket, self.ordered, &mut scratch)
        })
    }

    fn partition(&self, source: &dyn Source, rows: u64, keep: &Keep<'_>) -> Result<Partition> {
        let buckets = rows.div_ceil(self.sizes.bucket_rows as u64).min(self.sizes.most_buckets as u64);
        let pivots = pivots::choose(self.run, source, self.schema, buckets as usize)?;
        Partition::new(self.run, source, self.schema, &pivots, self.sizes.batch_rows, keep)
    }

    /// Lists the buckets of a partition with wanted rows and their first rows; partitions those that do not fit again.
    fn expand(
        &self,
        partition: Arc<Partition>,
        mut first_row: u64,
        depth: usize,
        leaves: &mut Vec<(Arc<Partition>, usize, u64)>,
    ) -> Result<()> {
        if depth > DEEPEST {
            return Err(Error::new(ErrorKind::Internal, "positions of the table are not all different"));
        }
        for (bucket, &rows) in partition.sizes.iter().enumerate() {
            let is_wanted = first_row < self.wanted.end && first_row + rows > self.wanted.start;
            if is_wanted && rows > self.sizes.most_rows as u64 {
                let source = BucketSource::new(&partition, bucket, self.schema, self.sizes.segment_rows);
                let parts = self.partition(&source, rows, &Keep::Files(self.dir))?;
                self.expand(Arc::new(parts), first_row, depth + 1, leaves)?;
            } else if is_wanted && rows > 0 {
                leaves.push((partition.clone(), bucket, first_row));
            }
            first_row += rows;
        }
        Ok(())
    }
}

/// The columns in the types that they are stored in.
fn stored_columns(columns: &[Column]) -> Result<Vec<Column>> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidValue, what);
    if columns.is_empty() {
        return Err(invalid("a sorted replica needs a key column".into()));
    }
    let mut stored: Vec<Column> = Vec::with_capacity(columns.len());
    for column in columns {
        let dtype = match column.dtype {
            DType::Bool => DType::U8,
            DType::F16 => DType::F32,
            DType::Str => return Err(invalid(format!("'{}': texts cannot be sorted", column.name))),
            other => other,
        };
        if stored.iter().any(|c| c.name == column.name) {
            return Err(invalid(format!("two columns are named '{}'", column.name)));
        }
        stored.push(Column { name: column.name.clone(), dtype });
    }
    Ok(stored)
}

/// A directory for each column.
fn paths(columns: &[Column]) -> Vec<String> {
    let mut paths = Vec::with_capacity(columns.len());
    for column in columns {
        paths.push(path_segment(&column.name, &paths));
    }
    paths
}
