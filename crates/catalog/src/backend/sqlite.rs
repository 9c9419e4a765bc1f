//! Catalogs in one SQLite file, written ahead (WAL), so that readers and a writer do not wait for one another.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use sieva_types::{Error, ErrorKind, Result};

use super::schema::{self, Dialect};
use super::{Cell, Row, Session, Table};

/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pages of 4 KiB: 64 MiB of cache for a session that writes, which is what its random insertions live on.
/// A schema from elsewhere must not run functions, and cells of damaged pages are checked.
const SETTINGS: &str = "
    PRAGMA synchronous = NORMAL;
    PRAGMA cache_size = -65536;
    PRAGMA temp_store = MEMORY;
    PRAGMA wal_autocheckpoint = 16384;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
";

/// Where a database is.
pub(super) struct Place {
    path: PathBuf,
    name: String,
}

impl Place {
    pub(super) fn new(path: &str) -> Self {
        Self { path: PathBuf::from(path), name: path.to_owned() }
    }

    pub(super) fn in_memory(&self) -> bool {
        self.name == ":memory:"
    }

    /// A session, and whether it can only read.
    pub(super) fn open(&self, read_only: bool) -> Result<(Box<dyn Session>, bool)> {
        let exists = self.in_memory() || self.path.exists();
        if read_only && !exists {
            let message = format!("there is no catalog '{}'", self.name);
            return Err(
                Error::new(ErrorKind::FileNotFound, message).hint("register sources: sieva catalog add DIR")
            );
        }
        let parent = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !exists && !parent.is_dir() {
            let message =
                format!("cannot make catalog '{}': there is no directory '{}'", self.name, parent.display());
            return Err(Error::new(ErrorKind::FileNotFound, message).hint("make the directory first"));
        }
        if !read_only {
            match self.open_writable() {
                Err(e) if exists && e.kind() == ErrorKind::PermissionDenied => {}
                session => return Ok((session?, false)),
            }
        }
        Ok((self.open_readable()?, true))
    }

    fn open_writable(&self) -> Result<Box<dyn Session>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut session = self.connect(&self.path, flags)?;
        // Two that make the same file at once meet here, and SQLite does not wait at this place.
        let start = Instant::now();
        while let Err(e) = session.script("PRAGMA journal_mode = WAL") {
            if start.elapsed() > PATIENCE || !e.message().contains("locked") {
                return Err(e);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        session.script(SETTINGS)?;
        schema::prepare(&mut session, &self.name, false)?;
        if !self.in_memory() {
            session.check_writable()?;
        }
        Ok(Box::new(session))
    }

    fn open_readable(&self) -> Result<Box<dyn Session>> {
        let plain = self
            .connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .and_then(|session| self.ready(session));
        match plain {
            Err(e) if e.kind() == ErrorKind::PermissionDenied || e.message().contains("unable to open") => {}
            session => return session,
        }
        // Readers of a file written ahead share a file beside it, which cannot be made here. Without a log beside it,
        // and with nobody who may write, the file is all there is.
        let log = PathBuf::from(format!("{}-wal", self.name));
        if std::fs::metadata(&log).is_ok_and(|m| m.len() > 0) {
            let message = format!("catalog '{}' was not closed, and cannot be put right here", self.name);
            let hint = "open it once where its directory may be written";
            return Err(Error::new(ErrorKind::PermissionDenied, message).hint(hint));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let session = self.connect(Path::new(&immutable_uri(&self.name)), flags)?;
        self.ready(session)
    }

    fn ready(&self, mut session: SqliteSession) -> Result<Box<dyn Session>> {
        session.script(
            "PRAGMA cache_size = -65536; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
        )?;
        schema::prepare(&mut session, &self.name, true)?;
        Ok(Box::new(session))
    }

    fn connect(&self, path: &Path, flags: OpenFlags) -> Result<SqliteSession> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|e| error(&self.name, &e))?;
        connection.busy_timeout(PATIENCE).map_err(|e| error(&self.name, &e))?;
        connection.set_prepared_statement_cache_capacity(128);
        Ok(SqliteSession { connection, name: self.name.clone() })
    }
}

/// The URI of a file that nobody changes (sqlite.org/uri.html).
fn immutable_uri(path: &str) -> String {
    let mut uri = String::from("file:");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri + "?immutable=1"
}

struct SqliteSession {
    connection: Connection,
    name: String,
}

impl SqliteSession {
    fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + '_ {
        |e| error(&self.name, &e)
    }

    /// A file that may not be written opens all the same, and would fail at the first change.
    fn check_writable(&mut self) -> Result<()> {
        let read_only = self.connection.is_readonly("main").map_err(self.failed())?;
        if read_only {
            let message = format!("catalog '{}' may not be written", self.name);
            return Err(Error::new(ErrorKind::PermissionDenied, message));
        }
        Ok(())
    }
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(SqlValue::Null),
            Self::Int(v) => ToSqlOutput::Owned(SqlValue::Integer(*v)),
            Self::Real(v) => ToSqlOutput::Owned(SqlValue::Real(*v)),
            Self::Text(v) => ToSqlOutput::Borrowed(ValueRef::Text(v.as_bytes())),
            Self::Blob(v) => ToSqlOutput::Borrowed(ValueRef::Blob(v)),
        })
    }
}

/// Parameters of a statement are named `$1` ... in order, which SQLite takes as names and numbers in that order.
impl Session for SqliteSession {
    fn run(&mut self, sql: &str, parameters: &[Cell]) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(sql).map_err(self.failed())?;
        let changed = statement.execute(rusqlite::params_from_iter(parameters)).map_err(self.failed())?;
        Ok(changed as u64)
    }

    fn each(
        &mut self,
        sql: &str,
        parameters: &[Cell],
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).map_err(self.failed())?;
        let width = statement.column_count();
        let mut cells = vec![Cell::Null; width];
        let mut rows = statement.query(rusqlite::params_from_iter(parameters)).map_err(self.failed())?;
        while let Some(row) = rows.next().map_err(self.failed())? {
            for (column, cell) in cells.iter_mut().enumerate() {
                read_cell(row.get_ref(column).map_err(self.failed())?, cell)?;
            }
            if !each(&Row(&cells))? {
                break;
            }
        }
        Ok(())
    }

    fn insert(&mut self, table: &Table, rows: &mut dyn Iterator<Item = Vec<Cell>>) -> Result<()> {
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let places: Vec<String> = (1..=names.len()).map(|i| format!("${i}")).collect();
        let sql = format!("INSERT INTO {} ({}) VALUES ({})", table.name, names.join(", "), places.join(", "));
        let mut statement = self.connection.prepare_cached(&sql).map_err(self.failed())?;
        for row in rows {
            statement.execute(rusqlite::params_from_iter(&row)).map_err(self.failed())?;
        }
        Ok(())
    }

    fn script(&mut self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(self.failed())
    }

    fn begin(&mut self, write: bool) -> Result<()> {
        self.script(if write { "BEGIN IMMEDIATE" } else { "BEGIN" })
    }

    fn end(&mut self, commit: bool) -> Result<()> {
        if self.connection.is_autocommit() {
            // A failure such as a full disk has rolled back already.
            return Ok(());
        }
        let done = self.script(if commit { "COMMIT" } else { "ROLLBACK" });
        if done.is_err() && !self.connection.is_autocommit() {
            // What could not be written is given up, so that the session is of use again.
            self.script("ROLLBACK")?;
        }
        done
    }

    fn table_names(&mut self) -> Result<Vec<String>> {
        let sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')";
        super::collect(self, sql, &[], |row| row.text(0).map(str::to_owned))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }
}

fn read_cell(value: ValueRef<'_>, cell: &mut Cell) -> Result<()> {
    // The memory of the row before is used again.
    match (value, &mut *cell) {
        (ValueRef::Blob(v), Cell::Blob(out)) => {
            out.clear();
            out.extend_from_slice(v);
        }
        (ValueRef::Null, _) => *cell = Cell::Null,
        (ValueRef::Integer(v), _) => *cell = Cell::Int(v),
        (ValueRef::Real(v), _) => *cell = Cell::Real(v),
        (ValueRef::Blob(v), _) => *cell = Cell::Blob(v.to_vec()),
        (ValueRef::Text(v), _) => {
            let text =
                std::str::from_utf8(v).map_err(|_| Error::corrupt("a text of the catalog is not UTF-8"))?;
            *cell = Cell::Text(text.to_owned());
        }
    }
    Ok(())
}

fn error(name: &str, e: &rusqlite::Error) -> Error {
    let text = match e {
        rusqlite::Error::SqliteFailure(failure, message) => {
            message.clone().unwrap_or_else(|| failure.to_string().to_lowercase())
        }
        other => other.to_string(),
    };
    let new = |kind, what: &str| Error::new(kind, format!("catalog '{name}': {what}"));
    match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => {
            new(ErrorKind::CorruptFile, &format!("the file is damaged: {text}"))
                .hint("save its tags with sqlite3's .recover, remove it and register the sources anew")
        }
        Some(ErrorCode::NotADatabase) => new(ErrorKind::CorruptFile, "the file is not an SQLite database")
            .hint("give the path of a catalog, or of a file that is not there yet"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let what = format!("it is locked by another process, and stayed so for {} s", PATIENCE.as_secs());
            new(ErrorKind::Io, &what).hint("try again when that process has ended")
        }
        Some(ErrorCode::DiskFull) => {
            new(ErrorKind::Io, "the disk is full; nothing was changed").hint("make room, then repeat it")
        }
        Some(
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied,
        ) => new(ErrorKind::PermissionDenied, &text),
        Some(ErrorCode::CannotOpen) => {
            new(ErrorKind::PermissionDenied, "unable to open the file, or one beside it")
        }
        Some(ErrorCode::TooBig | ErrorCode::OutOfMemory) => new(ErrorKind::MemoryLimit, &text),
        _ => new(ErrorKind::Io, &text),
    }
}
