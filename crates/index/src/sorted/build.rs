//! Building a replica: an external sample sort.
//!
//! Sample keys for pivots; partition all columns at them in batches; sort the buckets one by one and write
//! their rows in order (SDS, section III.A.2, with spill files in the place of its exchange of messages).

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
use super::writer::{NewArray, Writer, make_durable, sync_directories};
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

impl Build<'_> {
    /// Builds the replica in `dir`.
    pub fn build(&self, dir: &Path, attributes: &Map<String, Value>) -> Result<()> {
        let columns = stored_columns(self.columns)?;
        let rows = checked_len(self.shape)?;
        let row = row_dtype(rows);
        let sizes = columns.iter().map(|c| c.dtype.size()).chain([row.size()]).collect();
        let schema = Schema { key: columns[0].dtype, sizes, rows };
        let source = TableSource::new(self.table, &schema, self.shape)?;
        let plan = BuildSizes::new(self.layout, &schema, &source, self.options, self.bucket_rows)?;
        let paths = paths(&columns);
        files::create_dir(dir)?;
        let create = |path: &str, dtype, len, name: &str| {
            NewArray::create(dir.join(path), self.layout, dtype, len, name)
        };
        let mut arrays: Vec<NewArray> = (columns.iter().zip(&paths))
            .map(|(c, path)| create(path, c.dtype, rows, &c.name))
            .collect::<Result<_>>()?;
        arrays.push(create(ROW, row, rows, ROW)?);
        arrays.push(create(FENCE, schema.key, self.layout.chunks(rows), FENCE)?);
        let (numbers, fences) = self.write(dir, &schema, &source, &plan, arrays)?;
        for path in paths.iter().map(String::as_str).chain([ROW, FENCE]) {
            sync_directories(&dir.join(path))?;
        }
        let shape = self.shape.to_vec();
        let source = attributes.clone();
        let meta = Meta { layout: self.layout, shape, numbers, columns, paths, fences, source };
        files::write_small(&dir.join("zarr.json"), &meta.to_text()?)?;
        files::sync(dir)
    }

    /// Writes all arrays; the number of keys that are numbers, and the checksum of the fences.
    fn write(
        &self,
        dir: &Path,
        schema: &Schema,
        source: &TableSource<'_>,
        plan: &BuildSizes,
        arrays: Vec<NewArray>,
    ) -> Result<(u64, u32)> {
        let run = Run::new(self.options, plan.threads, schema.sizes.len(), schema.rows);
        let (writer, complete) = Writer::new(self.layout, arrays);
        std::thread::scope(|scope| {
            let durable = scope.spawn(|| make_durable(complete, self.options.cancel));
            let sorted = Sort { run: &run, schema, plan, dir, ordered: source.ordered }
                .sort(source, &writer)
                .and_then(|numbers| Ok((numbers, write_fences(schema, &writer)?)));
            drop(writer);
            let durable = durable.join();
            let sorted = sorted?;
            durable.map_err(|_| Error::new(ErrorKind::Internal, "making shards durable failed"))??;
            run.check()?;
            Ok(sorted)
        })
    }
}

fn write_fences(schema: &Schema, writer: &Writer) -> Result<u32> {
    let mut fences = writer.fences();
    let size = schema.sizes[0];
    let rows = 0..(fences.len() / size) as u64;
    writer.write(schema.sizes.len(), rows, &mut Vec::new(), |range, out| {
        out.copy_from_slice(&fences[range.start * size..range.end * size]);
    })?;
    swap_little_endian(&mut fences, size);
    Ok(crc32c::crc32c(&fences))
}

/// The sort of one table.
struct Sort<'a> {
    run: &'a Run<'a>,
    schema: &'a Schema,
    plan: &'a BuildSizes,
    dir: &'a Path,
    ordered: bool,
}

impl Sort<'_> {
    fn sort(&self, source: &TableSource<'_>, writer: &Writer) -> Result<u64> {
        let keep = if self.plan.in_memory { Keep::Memory } else { Keep::Files(self.dir) };
        let whole = self.partition(source, self.schema.rows, &keep)?;
        let numbers = whole.numbers;
        let mut leaves = Vec::new();
        self.expand(Arc::new(whole), 0, 0, &mut leaves)?;
        let scratch: Vec<Mutex<Scratch>> = (0..self.run.threads).map(|_| Mutex::default()).collect();
        self.run.parallel(leaves.len(), |thread, i| {
            let mut scratch = scratch[thread].lock().unwrap_or_else(PoisonError::into_inner);
            let (partition, number, first_row) = &leaves[i];
            let bucket = Bucket { partition, number: *number, first_row: *first_row };
            bucket::sort(self.run, self.schema, writer, &bucket, self.ordered, &mut scratch)
        })?;
        Ok(numbers)
    }

    fn partition(&self, source: &dyn Source, rows: u64, keep: &Keep<'_>) -> Result<Partition> {
        let buckets = rows.div_ceil(self.plan.bucket_rows as u64).min(self.plan.most_buckets as u64);
        let pivots = pivots::choose(self.run, source, self.schema, buckets as usize)?;
        Partition::new(self.run, source, self.schema, &pivots, self.plan.batch_rows, keep)
    }

    /// Lists the buckets of a partition with their first rows; partitions those that do not fit again.
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
            if rows > self.plan.most_rows as u64 {
                let source = BucketSource::new(&partition, bucket, self.schema, self.plan.segment_rows);
                let parts = self.partition(&source, rows, &Keep::Files(self.dir))?;
                self.expand(Arc::new(parts), first_row, depth + 1, leaves)?;
            } else if rows > 0 {
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
