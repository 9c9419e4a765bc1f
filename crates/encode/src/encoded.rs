//! A result as a file that need not exist.

use std::path::PathBuf;
use std::sync::Arc;

use sieva::{Attr, Error, ErrorKind, Query, Result, Rows};

use crate::format::Format;
use crate::plan::{Piece, Plan, WINDOW};
use crate::spool::Spool;
use crate::variable::{Variable, variables};
use crate::{arrow, attributes, csv, hdf5, id, netcdf};

/// Rows of a batch of what is written first.
const BATCH_ROWS: usize = 1 << 16;

/// How a result is encoded.
#[derive(Clone, Debug)]
pub struct EncodeOptions {
    /// A directory for what must be written before its length is known; `None`: the system's for temporary files.
    pub spool: Option<PathBuf>,
    /// Bytes that one result may take there.
    pub spool_limit: u64,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { spool: None, spool_limit: 8 << 30 }
    }
}

/// The bytes of a result in a format. Cheap to clone; used by many threads at once.
#[derive(Clone)]
pub struct Encoded(Arc<Inner>);

struct Inner {
    query: Arc<Query>,
    body: Body,
    rows: u64,
    format: Format,
    id: String,
}

/// Where the bytes come from.
enum Body {
    /// From the columns, whenever they are wanted.
    Columns { rows: Rows, variables: Vec<Variable>, plan: Plan },
    /// From a file that was written.
    Spooled(Spool),
}

impl Encoded {
    /// Evaluates the query and lays the file out. For netCDF and HDF5 texts are read to know their lengths, other values
    /// are not; other formats are written, once, to a temporary file.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit` (also of the temporary file); `unsupported` where the format has no
    /// type for a column, or was not compiled in.
    pub fn new(query: Arc<Query>, format: Format, options: &EncodeOptions) -> Result<Self> {
        let id = id::id_of(&query, format);
        let (body, rows) = match format {
            Format::Netcdf => columns(&query, netcdf::plan)?,
            Format::Hdf5 => columns(&query, hdf5::plan)?,
            Format::Arrow | Format::Parquet | Format::Csv => spooled(&query, format, options)?,
        };
        Ok(Self(Arc::new(Inner { query, body, rows, format, id })))
    }

    /// The query.
    pub fn query(&self) -> &Arc<Query> {
        &self.0.query
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.0.format
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        match &self.0.body {
            Body::Columns { plan, .. } => plan.len,
            Body::Spooled(spool) => spool.len,
        }
    }

    /// Whether it has none, which no format allows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of the result.
    pub fn rows(&self) -> u64 {
        self.0.rows
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
        let threads = self.query().threads();
        let end = offset.saturating_add(to.len() as u64).min(self.len());
        let mut at = offset;
        while at < end {
            let piece = self.window(at, end);
            let range = piece.range().clone();
            let part = &mut to[(range.start - offset) as usize..(range.end - offset) as usize];
            self.read_piece(&piece, threads, part)?;
            at = range.end;
        }
        Ok(at.saturating_sub(offset) as usize)
    }

    /// The part of the file that begins at `offset` and is best made at once, of those up to `end`.
    pub(crate) fn window(&self, offset: u64, end: u64) -> Piece {
        match &self.0.body {
            Body::Columns { rows, plan, .. } => plan.window(rows, offset, end),
            Body::Spooled(_) => Piece::Still(offset..end.min(offset.saturating_add(WINDOW))),
        }
    }

    /// Makes a piece, by so many threads.
    pub(crate) fn read_piece(&self, piece: &Piece, threads: usize, to: &mut [u8]) -> Result<()> {
        match &self.0.body {
            Body::Columns { rows, variables, plan } => {
                self.0.query.source().reader().store().check_unchanged()?;
                plan.read(piece, (rows, variables), threads, to)
            }
            Body::Spooled(spool) => spool.read_exact_at(piece.range().start, to),
        }
    }
}

/// A file that is laid out by `plan`.
fn columns(
    query: &Arc<Query>,
    plan: impl FnOnce(&[Variable], u64, &[Attr]) -> Result<Plan>,
) -> Result<(Body, u64)> {
    let rows = Rows::new(Arc::clone(query))?;
    let variables = variables(&rows)?;
    let plan = plan(&variables, rows.len(), &attributes::of_file(query))?;
    let n = rows.len();
    Ok((Body::Columns { rows, variables, plan }, n))
}

/// A file that is written first.
fn spooled(query: &Query, format: Format, options: &EncodeOptions) -> Result<(Body, u64)> {
    let batches = query.batches(BATCH_ROWS)?;
    let dir = options.spool.clone().unwrap_or_else(std::env::temp_dir);
    let (spool, rows) = Spool::write(&dir, options.spool_limit, |out| match format {
        Format::Arrow => arrow::write(batches, out),
        Format::Csv => csv::write(batches, out),
        #[cfg(feature = "parquet")]
        Format::Parquet => crate::parquet::write(batches, out),
        other => {
            let message = format!("results as {} were not compiled in", other.name());
            Err(Error::new(ErrorKind::Unsupported, message).hint("take another format"))
        }
    })?;
    Ok((Body::Spooled(spool), rows))
}
