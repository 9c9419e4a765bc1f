//! A result as a file that need not exist.

use std::path::PathBuf;
use std::sync::Arc;

use sieva::{Query, Result, Rows};

use crate::format::Format;
use crate::plan::{Piece, Plan, WINDOW};
use crate::variable::{Variable, variables};
use crate::{attributes, id, netcdf};

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

pub(crate) struct Inner {
    rows: Rows,
    variables: Vec<Variable>,
    plan: Plan,
    format: Format,
    id: String,
}

impl Encoded {
    /// Evaluates the query and lays the file out; texts are read to know their lengths, other values are not.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, `memory-limit`; `unsupported` where the format has no type for a column.
    pub fn new(query: Arc<Query>, format: Format, options: &EncodeOptions) -> Result<Self> {
        let _ = options;
        let id = id::id_of(&query, format);
        let attrs = attributes::of_file(&query);
        let rows = Rows::new(query)?;
        let variables = variables(&rows)?;
        let plan = match format {
            Format::Netcdf => netcdf::plan(&variables, rows.len(), &attrs)?,
        };
        Ok(Self(Arc::new(Inner { rows, variables, plan, format, id })))
    }

    /// The query.
    pub fn query(&self) -> &Arc<Query> {
        self.0.rows.query()
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.0.format
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.0.plan.len
    }

    /// Whether it has none, which no format allows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of the result.
    pub fn rows(&self) -> u64 {
        self.0.rows.len()
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
            let piece = self.piece(at, end.min(at.saturating_add(WINDOW)));
            let range = piece.range().clone();
            let part = &mut to[(range.start - offset) as usize..(range.end - offset) as usize];
            self.read_piece(&piece, threads, part)?;
            at = range.end;
        }
        Ok(at.saturating_sub(offset) as usize)
    }

    /// The part of the file that begins at `offset` and ends at `end` at the latest, which can be made at once.
    pub(crate) fn piece(&self, offset: u64, end: u64) -> Piece {
        self.0.plan.piece(offset, end)
    }

    /// Makes a piece, by so many threads.
    pub(crate) fn read_piece(&self, piece: &Piece, threads: usize, to: &mut [u8]) -> Result<()> {
        let inner = &*self.0;
        inner.rows.query().source().reader().store().check_unchanged()?;
        inner.plan.read(piece, (&inner.rows, &inner.variables), threads, to)
    }
}
