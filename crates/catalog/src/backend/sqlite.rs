//! Catalogs in one SQLite file, written ahead (WAL), so that readers and a writer do not wait for one another.
//!
//! What is written ahead is found by memory that processes of one machine share (sqlite.org/wal.html). On a network file
//! system a catalog has a rollback journal instead, which needs locks alone; see `journal.rs`.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use sieva_store::local::{OpenDatabase, user};
use sieva_types::{Error, ErrorKind, Result};

use super::schema::{self, Dialect};
use super::{Cell, Row, Session, Table};
use crate::until;

/// How long a writer waits for another one.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Pages of 4 KiB: 64 MiB of cache for a session that writes, which is what its random insertions live on.
/// A schema from elsewhere must not run functions, and cells of damaged pages are checked.
const SETTINGS: &str = "
    PRAGMA cache_size = -65536;
    PRAGMA temp_store = MEMORY;
    PRAGMA wal_autocheckpoint = 16384;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
";

/// How long one statement may run: those of the catalog take seconds, those of a file that was made to be slow for ever.
const LONGEST: Duration = Duration::from_secs(600);
/// Steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 100_000;
/// More tables and indexes than any catalog has.
const MOST_OBJECTS: usize = 200;
/// Longest text, blob and row, of which a manifest's is the longest.
const LONGEST_VALUE: i32 = crate::limits::MAX_MANIFEST as i32 + (1 << 20);
/// Rows between two looks at whether the question is still wanted.
const ROWS: usize = 1024;
/// How long a writer sleeps between two tries.
pub(super) const NAP: Duration = Duration::from_millis(20);

/// Where a database is.
pub(super) struct Place {
    path: PathBuf,
    /// How it is shown: what is meant as the address of a server may be taken for a path.
    name: String,
}

impl Place {
    pub(super) fn new(path: &str) -> Self {
        Self { path: PathBuf::from(path), name: sieva_store::redacted_database(path) }
    }

    pub(super) fn in_memory(&self) -> bool {
        self.path.as_os_str() == ":memory:"
    }

    /// A file beside it.
    fn beside(&self, end: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(end);
        path.into()
    }

    /// A session, and whether it can only read.
    pub(super) fn open(&self, read_only: bool) -> Result<(Box<dyn Session>, bool)> {
        let given = self.path.as_os_str().as_encoded_bytes();
        if given.is_empty() || given.contains(&0) {
            // SQLite takes an empty name for a catalog that is gone when it is closed.
            let message = format!("{:?} can be the name of no catalog: it is empty, or has a NUL", self.name);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let exists = self.in_memory() || self.path.exists();
        if read_only && !exists {
            let message = format!("there is no catalog '{}'", self.name);
            return Err(
                Error::new(ErrorKind::FileNotFound, message).hint("register sources: sieva catalog add DIR")
            );
        }
        let parent = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !exists && !parent.is_dir() {
            let parent = sieva_store::redacted_database(&parent.to_string_lossy());
            let message = format!("cannot make catalog '{}': there is no directory '{parent}'", self.name);
            return Err(Error::new(ErrorKind::FileNotFound, message).hint("make the directory first"));
        }
        self.check_files()?;
        if !read_only {
            if !exists && !self.in_memory() {
                self.create()?;
            }
            match self.open_writable() {
                Err(e) if exists && e.kind() == ErrorKind::PermissionDenied => {}
                session => return self.checked(session?, false),
            }
        }
        self.checked(self.open_readable()?, true)
    }

    /// A session, if nothing was put beside the catalog while it was opened.
    fn checked(&self, session: Box<dyn Session>, read_only: bool) -> Result<(Box<dyn Session>, bool)> {
        self.check_files()?;
        Ok((session, read_only))
    }

    fn open_writable(&self) -> Result<Box<dyn Session>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut session = self.connect(&self.path, flags)?;
        session.settle_journal(self.is_on_network())?;
        session.script(SETTINGS)?;
        schema::prepare(&mut session, &self.name, false)?;
        session.check_schema()?;
        if !self.in_memory() {
            session.check_writable()?;
        }
        Ok(Box::new(session))
    }

    fn open_readable(&self) -> Result<Box<dyn Session>> {
        let plain = match self.is_on_network() {
            true => self.open_over_network(),
            false => self.connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY),
        };
        match plain.and_then(|session| self.ready(session)) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied || e.message().contains("unable to open") => {}
            session => return session,
        }
        // Readers of a file that is written ahead share a file beside it, which cannot be made here. Without a log beside it,
        // and with nobody who may write, the file is all there is.
        let is_left = |end: &str| std::fs::metadata(self.beside(end)).is_ok_and(|m| m.len() > 0);
        if is_left("-wal") || is_left("-journal") {
            let message = format!("catalog '{}' was not closed, and cannot be put right here", self.name);
            let hint = "open it once where its directory may be written";
            return Err(Error::new(ErrorKind::PermissionDenied, message).hint(hint));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let session = self.connect(Path::new(&immutable_uri(&self.path)), flags)?;
        self.ready(session)
    }

    /// A session that only reads, and may put right what a writer left that was killed.
    fn open_over_network(&self) -> Result<SqliteSession> {
        let mut session = self.connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        session.settle_journal(true)?;
        session.script("PRAGMA query_only = ON")?;
        Ok(session)
    }

    fn is_on_network(&self) -> bool {
        let parent = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = if self.path.exists() { &self.path } else { parent };
        !self.in_memory() && sieva_store::local::is_on_network(place)
    }

    fn ready(&self, mut session: SqliteSession) -> Result<Box<dyn Session>> {
        session.script(
            "PRAGMA cache_size = -65536; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
        )?;
        schema::prepare(&mut session, &self.name, true)?;
        session.check_schema()?;
        Ok(Box::new(session))
    }

    fn connect(&self, path: &Path, flags: OpenFlags) -> Result<SqliteSession> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let held = match self.in_memory() {
            true => None,
            false => Some(
                OpenDatabase::new(&self.path)
                    .map_err(|e| Error::io(format!("cannot open catalog '{}'", self.name), &e))?,
            ),
        };
        let mut connection = Connection::open_with_flags(path, flags).map_err(|e| error(&self.name, &e))?;
        connection.busy_handler(Some(wait)).map_err(|e| error(&self.name, &e))?;
        connection.set_prepared_statement_cache_capacity(128);
        let started = Started::default();
        defend(&mut connection, &started).map_err(|e| error(&self.name, &e))?;
        Ok(SqliteSession { connection, name: self.name.clone(), started, _held: held })
    }

    /// Makes the file, readable by nobody else: it tells what its owner has and asked.
    fn create(&self) -> Result<()> {
        let mut new = std::fs::OpenOptions::new();
        match new.write(true).create_new(true).mode(0o600).open(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io(format!("cannot make catalog '{}'", self.name), &e))
            }
            _ => Ok(()),
        }
    }

    /// Refuses pipes, devices and the like under the names that SQLite opens: they would be waited for; and logs that
    /// somebody else put beside a catalog into which they may not write: SQLite would take what they say over into it.
    fn check_files(&self) -> Result<()> {
        if self.in_memory() {
            return Ok(());
        }
        let found = std::fs::metadata(&self.path).ok();
        for end in ["", "-wal", "-shm", "-journal"] {
            let Ok(meta) = std::fs::metadata(self.beside(end)) else { continue };
            let message = format!("catalog '{}': '{}{end}'", self.name, self.name);
            if !meta.is_file() {
                let message = format!("{message} is not a regular file");
                return Err(Error::new(ErrorKind::UnknownFormat, message));
            }
            if !end.is_empty() && is_planted(found.as_ref(), &meta) {
                let message =
                    format!("{message} belongs to user {}, who may not write to the catalog", meta.uid());
                return Err(Error::new(ErrorKind::PermissionDenied, message)
                    .hint("remove it, and keep the catalog in a directory to which nobody else may write"));
            }
        }
        Ok(())
    }
}

/// Whether a file beside a database is of somebody who may not write to that (`None`: it is not there yet).
fn is_planted(database: Option<&Metadata>, beside: &Metadata) -> bool {
    let is_shared = database.is_some_and(|meta| meta.mode() & 0o022 != 0);
    let owner = database.map_or(user(), MetadataExt::uid);
    !is_shared && ![owner, user(), 0].contains(&beside.uid())
}

/// When the statement that runs was begun.
#[derive(Clone, Default)]
struct Started(Arc<Mutex<Option<Instant>>>);

impl Started {
    fn set(&self, when: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = when;
    }

    fn is_overdue(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|when| when.elapsed() > LONGEST)
    }
}

/// Makes a connection that runs nothing that is in the file: no views, no triggers, no functions of its schema; and that ends
/// a statement that runs too long.
fn defend(connection: &mut Connection, started: &Started) -> rusqlite::Result<()> {
    for (what, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    ] {
        connection.set_db_config(what, on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    let started = started.clone();
    connection.progress_handler(STEPS, Some(move || until::is_over() || started.is_overdue()))
}

/// Waits for a lock, which was tried `count` times; false: no longer.
fn wait(count: i32) -> bool {
    let waited = NAP * u32::try_from(count).unwrap_or(u32::MAX);
    let goes_on = waited < PATIENCE && !until::is_over();
    if goes_on {
        std::thread::sleep(NAP);
    }
    goes_on
}

/// Whether what a schema says of one of its objects could make a statement do more than look at rows: only plain tables and
/// indexes are the catalog's.
fn is_foreign(kind: &str, sql: &str) -> bool {
    let sql = sql.to_ascii_uppercase();
    let words = |word: &&str| sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|w| w == *word);
    // An index of ours lists columns, a default is a constant: another bracket holds an expression.
    let computes = if kind == "index" { sql.matches('(').count() > 1 } else { defaults_compute(&sql) };
    computes
        || !matches!(kind, "table" | "index")
        || ["VIRTUAL", "GENERATED", "AS", "CHECK", "WHERE"].iter().any(words)
}

/// Whether a column of a table has an expression as its default.
fn defaults_compute(sql: &str) -> bool {
    sql.split("DEFAULT").skip(1).any(|rest| rest.trim_start().starts_with('('))
}

/// The URI of a file that nobody changes (sqlite.org/uri.html).
fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri + "?immutable=1"
}

pub(super) struct SqliteSession {
    pub(super) connection: Connection,
    name: String,
    started: Started,
    /// Until the connection, which is dropped first, is closed.
    _held: Option<OpenDatabase>,
}

impl SqliteSession {
    pub(super) fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + '_ {
        |e| error(&self.name, &e)
    }

    /// Notes that a statement begins, until what is returned is dropped.
    fn timed(&self) -> Timed {
        self.started.set(Some(Instant::now()));
        Timed(self.started.clone())
    }

    /// Refuses a file whose schema is none that a catalog has.
    fn check_schema(&mut self) -> Result<()> {
        let sql =
            format!("SELECT type, name, coalesce(sql, '') FROM sqlite_master LIMIT {}", MOST_OBJECTS + 1);
        let objects = super::collect(self, &sql, &[], |row| {
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.text(2)?.to_owned()))
        })?;
        if objects.len() > MOST_OBJECTS {
            let message = format!("catalog '{}' has more than {MOST_OBJECTS} tables and indexes", self.name);
            return Err(Error::new(ErrorKind::CorruptFile, message)
                .hint("somebody changed the file: remove it, and register the sources anew"));
        }
        match objects.iter().find(|(kind, _, sql)| is_foreign(kind, sql)) {
            None => Ok(()),
            Some((kind, name, _)) => {
                let message = format!("catalog '{}': '{name}' is a {kind} that no catalog has", self.name);
                Err(Error::new(ErrorKind::CorruptFile, message)
                    .hint("somebody changed the file: remove it, and register the sources anew"))
            }
        }
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

/// A statement that runs.
struct Timed(Started);

impl Drop for Timed {
    fn drop(&mut self) {
        self.0.set(None);
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
        let _timed = self.timed();
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
        let _timed = self.timed();
        let mut cells = vec![Cell::Null; width];
        let mut rows = statement.query(rusqlite::params_from_iter(parameters)).map_err(self.failed())?;
        let mut count = 0_usize;
        while let Some(row) = rows.next().map_err(self.failed())? {
            count += 1;
            if count.is_multiple_of(ROWS) && until::is_over() {
                return Err(until::over());
            }
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
        for (count, row) in rows.enumerate() {
            if count.is_multiple_of(ROWS) && until::is_over() {
                return Err(until::over());
            }
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
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OperationInterrupted)
            if until::is_over() =>
        {
            until::over()
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let what = format!("it is locked by another process, and stayed so for {} s", PATIENCE.as_secs());
            new(ErrorKind::Io, &what).hint("try again when that process has ended")
        }
        Some(ErrorCode::OperationInterrupted) => {
            let what = format!("a statement ran for more than {} s, and was ended", LONGEST.as_secs());
            new(ErrorKind::Io, &what).hint("the file may be damaged: register the sources anew")
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
