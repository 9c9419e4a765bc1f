//! A result as a file that need not exist.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use sieva::{Attr, CollectionQuery, Error, ErrorKind, Query, Result, ResultColumns};

use crate::deflated::{Deflated, Part, level};
use crate::file_layout::{FileLayout, MOST_WINDOWS, Piece, Place, WINDOW};
use crate::format::Format;
use crate::hdf5::chunked::{Chunked, Stored};
use crate::spool::{Spool, failed};
use crate::variable::{Variable, variables};
use crate::writer::{Making, Out};
use crate::{attributes, id};

/// Bytes that streams of a file that was made elsewhere may take.
const RECEIVED_MEMORY: u64 = 256 << 20;
/// ResultColumns of a batch of what is written first.
const BATCH_ROWS: usize = 1 << 16;

/// How a result is encoded.
#[derive(Clone, Debug)]
pub struct EncodeOptions {
    /// A directory for what must be written before its length is known; `None`: the system's for temporary files.
    pub spool: Option<PathBuf>,
    /// Bytes that one result may take there.
    pub spool_limit: u64,
    /// Level at which values are deflated, up to 9; 0: not at all. Of netCDF and HDF5: the file is then HDF5 in chunks
    /// with shuffle and deflate, with netCDF-4's dimension in the one, without in the other.
    pub deflate: u32,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { spool: None, spool_limit: 8 << 30, deflate: 0 }
    }
}

/// The bytes of a result in a format. Cheap to clone; used by many threads at once.
#[derive(Clone)]
pub struct Encoded(Arc<Inner>);

struct Inner {
    running: Running,
    body: Body,
    rows: u64,
    format: Format,
    id: String,
}

/// Where the values of a column lie in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPlace {
    /// The name that it has there.
    pub name: String,
    /// The first byte of its first value.
    pub begin: u64,
    /// Bytes of a value.
    pub width: u64,
}

/// How what makes the bytes is run.
pub(crate) struct Running {
    /// Stops it.
    pub cancel: Arc<AtomicBool>,
    pub threads: usize,
    /// Bytes that what is in flight may take.
    pub memory: u64,
}

/// Where the bytes come from.
enum Body {
    /// From the columns, whenever they are wanted.
    Columns { rows: ResultColumns, variables: Vec<Variable>, plan: FileLayout },
    /// From the columns, in chunks whose places are known last.
    Deflated(Deflated),
    /// From a file that was written.
    Spooled(Spool),
}

impl Encoded {
    /// Evaluates the query and lays the file out. For netCDF and HDF5 texts are read to know their lengths, other values
    /// are not; other formats are written, once, to a temporary file.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit` (also of the temporary file); `unsupported` where the format has no
    /// type for a column, or was not compiled in; `invalid-value` of a level, or of one for a format that has none.
    pub fn new(query: Arc<Query>, format: Format, options: &EncodeOptions) -> Result<Self> {
        check_compression(format, options)?;
        let id = id::id_of(&query, format, options);
        let (body, rows) = match format.0.making() {
            Making::LaidOut { has_dimension, .. } if options.deflate > 0 => {
                deflated(&query, has_dimension, options)?
            }
            Making::LaidOut { plan, .. } => columns(&query, plan)?,
            Making::Rows(_) => {
                let batches = query.batches(BATCH_ROWS)?;
                spooled(&batches.schema(), batches, format, options)?
            }
        };
        let running =
            Running { cancel: query.cancel_flag(), threads: query.threads(), memory: query.memory() };
        Ok(Self(Arc::new(Inner { running, body, rows, format, id })))
    }

    /// The same of a query of a collection, in a format that is written row by row.
    ///
    /// # Errors
    /// As [`Encoded::new`]; `unsupported` of netCDF and HDF5, as each object has positions of its own.
    pub fn of_collection(query: &CollectionQuery, format: Format, options: &EncodeOptions) -> Result<Self> {
        check_compression(format, options)?;
        if format.is_laid_out() {
            let message = format!("the format {} of a query of a collection", format.name());
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("take arrow, parquet, csv or json: each object has positions of its own"));
        }
        let id = id::id_of_collection(query, format)?;
        let batches = query.batches(BATCH_ROWS)?;
        let (body, rows) = spooled(&batches.schema(), batches, format, options)?;
        let running =
            Running { cancel: query.cancel_flag(), threads: query.threads(), memory: query.memory() };
        Ok(Self(Arc::new(Inner { running, body, rows, format, id })))
    }

    /// A file that was made elsewhere: so many rows, a name, and all of its bytes.
    pub(crate) fn received(
        format: Format,
        rows: u64,
        id: String,
        file: &[u8],
        options: &EncodeOptions,
    ) -> Result<Self> {
        let dir = options.spool.clone().unwrap_or_else(std::env::temp_dir);
        let put = |out: &mut dyn Write| out.write_all(file).map_err(|e| failed(&e));
        let (spool, ()) = Spool::write(&dir, options.spool_limit, |out| put(out))?;
        let running = Running { cancel: Arc::default(), threads: 1, memory: RECEIVED_MEMORY };
        Ok(Self(Arc::new(Inner { running, body: Body::Spooled(spool), rows, format, id })))
    }

    /// A flag that stops reading it when it is set: that of its query.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.running.cancel)
    }

    pub(crate) fn running(&self) -> &Running {
        &self.0.running
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.0.format
    }

    /// Bytes of the file. Of a deflated one they are known when it was written, which this does at the first time.
    ///
    /// # Errors
    /// Of a deflated file those of reading, and of writing to the temporary file.
    pub fn size(&self) -> Result<u64> {
        match &self.0.body {
            Body::Columns { plan, .. } => Ok(plan.len),
            Body::Deflated(file) => Ok(file.written(self)?.len),
            Body::Spooled(spool) => Ok(spool.len),
        }
    }

    /// ResultColumns of the result.
    pub fn rows(&self) -> u64 {
        self.0.rows
    }

    /// Where the values of each column lie in the file, one row behind the other; none of a file in which they lie otherwise.
    pub fn places(&self) -> Vec<ColumnPlace> {
        let Body::Columns { variables, plan, .. } = &self.0.body else { return Vec::new() };
        let of = |place: &Place| ColumnPlace {
            name: variables[place.column].name.clone(),
            begin: place.begin,
            width: place.width,
        };
        plan.places.iter().map(of).collect()
    }

    /// A name of 32 hexadecimal digits: what has the same name has the same bytes, as long as the source is not changed
    /// with its length and time of modification kept.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Fills `to` with the bytes from `offset` on, as far as there are any; says how many. The bytes of a file are always
    /// the same, in whatever parts and order they are read.
    ///
    /// # Errors
    /// Reading errors; `stale-source` where the source was changed; `invalid-value` where a computed value is equal to
    /// the format's fill value; `cancelled`.
    pub fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<usize> {
        let threads = self.0.running.threads;
        let end = offset.saturating_add(to.len() as u64).min(self.size()?);
        let mut at = offset;
        while at < end {
            let piece = self.window(at, end, MOST_WINDOWS * WINDOW);
            let range = piece.range().clone();
            let part = &mut to[(range.start - offset) as usize..(range.end - offset) as usize];
            self.read_piece(&piece, threads, part)?;
            at = range.end;
        }
        Ok(at.saturating_sub(offset) as usize)
    }

    /// The part of the file that begins at `offset` and is best made at once, of those up to `end` and of at most `most`
    /// bytes, or [`WINDOW`].
    pub(crate) fn window(&self, offset: u64, end: u64, most: u64) -> Piece {
        match &self.0.body {
            Body::Columns { rows, plan, .. } => plan.window(rows, offset, end, most),
            Body::Deflated(_) | Body::Spooled(_) => {
                Piece::Still(offset..end.min(offset.saturating_add(WINDOW)))
            }
        }
    }

    /// Makes a piece, by so many threads.
    pub(crate) fn read_piece(&self, piece: &Piece, threads: usize, to: &mut [u8]) -> Result<()> {
        self.check_stopped()?;
        match &self.0.body {
            Body::Columns { rows, variables, plan } => {
                rows.query().source().reader().store().check_unchanged()?;
                plan.read(piece, (rows, variables), threads, to)
            }
            Body::Deflated(file) => file.written(self)?.read_exact_at(piece.range().start, to),
            Body::Spooled(spool) => spool.read_exact_at(piece.range().start, to),
        }
    }

    /// The file, where it is one of deflated chunks.
    pub(crate) fn deflated(&self) -> Option<&Deflated> {
        match &self.0.body {
            Body::Deflated(file) => Some(file),
            _ => None,
        }
    }

    /// Makes chunks of a deflated file.
    pub(crate) fn make_part(&self, file: &Deflated, part: &Part, to: &mut Vec<u8>) -> Result<Vec<Stored>> {
        self.check_stopped()?;
        file.make(part, to)
    }

    /// A piece may be small enough, or be there already, so that nothing else looks.
    fn check_stopped(&self) -> Result<()> {
        if self.0.running.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was interrupted"));
        }
        Ok(())
    }
}

/// Whether the format can be compressed so.
fn check_compression(format: Format, options: &EncodeOptions) -> Result<()> {
    if options.deflate == 0 {
        return Ok(());
    }
    if !format.is_deflatable() {
        let message = format!("deflate={}: results as {} have no deflate", options.deflate, format.name());
        let names: Vec<&str> = Format::all().filter(|f| f.is_deflatable()).map(Format::name).collect();
        let hint = format!("take {}, or leave it out", names.join(" or "));
        return Err(Error::new(ErrorKind::InvalidValue, message).hint(hint));
    }
    level(options.deflate).map(|_| ())
}

/// A file of deflated chunks, of which nothing is made yet.
fn deflated(query: &Arc<Query>, has_dimension: bool, options: &EncodeOptions) -> Result<(Body, u64)> {
    let rows = ResultColumns::new(Arc::clone(query))?;
    let (variables, attrs, n) = (variables(&rows)?, attributes::of_file(query), rows.len());
    let plan = Chunked::new(&variables, n, &attrs, options.deflate, has_dimension)?;
    let spool = (options.spool.clone().unwrap_or_else(std::env::temp_dir), options.spool_limit);
    Ok((Body::Deflated(Deflated::new(rows, variables, attrs, plan, spool)), n))
}

/// A file that is laid out by `plan`.
fn columns(
    query: &Arc<Query>,
    plan: impl FnOnce(&[Variable], u64, &[Attr]) -> Result<FileLayout>,
) -> Result<(Body, u64)> {
    let rows = ResultColumns::new(Arc::clone(query))?;
    let variables = variables(&rows)?;
    let plan = plan(&variables, rows.len(), &attributes::of_file(query))?;
    let n = rows.len();
    Ok((Body::Columns { rows, variables, plan }, n))
}

/// A file that is written first.
fn spooled(
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    format: Format,
    options: &EncodeOptions,
) -> Result<(Body, u64)> {
    let dir = options.spool.clone().unwrap_or_else(std::env::temp_dir);
    let (spool, rows) = Spool::write(&dir, options.spool_limit, |out| {
        let mut sink = format.begin(schema, Out { to: Box::new(out), is_pipe: false })?;
        let mut rows = 0;
        for batch in batches {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            sink.batch(&batch)?;
        }
        sink.finish(None)?;
        Ok(rows)
    })?;
    Ok((Body::Spooled(spool), rows))
}
