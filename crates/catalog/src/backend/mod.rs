//! The two databases behind one face: sessions that run statements, and the pool that holds them.
//!
//! Statements are written once, for both: parameters are `$1`, `$2` ..., columns hold 64-bit integers, floats, texts that
//! sort by their bytes, and bytes. Text of a user reaches a database as a parameter only.

mod cell;
mod journal;
#[cfg(feature = "postgres")]
mod postgres;
mod schema;
mod sqlite;

use std::sync::{Mutex, MutexGuard, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

pub(crate) use cell::{Cell, Row};
pub(crate) use schema::{Table, tables};

/// One connection.
pub(crate) trait Session: Send {
    /// Runs a statement; the number of rows that it changed.
    fn run(&mut self, sql: &str, parameters: &[Cell]) -> Result<u64>;

    /// Hands the rows of a query to `each`, until that returns false.
    fn each(
        &mut self,
        sql: &str,
        parameters: &[Cell],
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()>;

    /// Adds rows that are not there yet.
    fn insert(&mut self, table: &Table, rows: &mut dyn Iterator<Item = Vec<Cell>>) -> Result<()>;

    /// Runs statements without parameters.
    fn script(&mut self, sql: &str) -> Result<()>;

    /// Begins a transaction. One that writes waits for its turn.
    fn begin(&mut self, write: bool) -> Result<()>;

    /// Ends the transaction.
    fn end(&mut self, commit: bool) -> Result<()>;

    /// The tables that are there: `meta` where it is a catalog.
    fn table_names(&mut self) -> Result<Vec<String>>;

    /// A table's definition in the words of this database.
    fn dialect(&self) -> schema::Dialect;
}

enum Target {
    Sqlite(sqlite::Place),
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::Server>),
}

/// Sessions that wait for work.
pub(crate) struct Pool {
    target: Target,
    read_only: bool,
    idle: Mutex<Vec<Box<dyn Session>>>,
    /// Held by who uses a catalog in memory: it has one session, as each one would have a database of its own.
    single: Option<Mutex<()>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("read_only", &self.read_only).finish_non_exhaustive()
    }
}

/// Sessions that are kept for later.
const KEPT: usize = 8;

impl Pool {
    /// Opens the database of a URL; see `Catalog::open`.
    pub(crate) fn open(url: &str, read_only: bool) -> Result<Self> {
        let target = target(url)?;
        let (session, read_only): (Box<dyn Session>, bool) = match &target {
            Target::Sqlite(place) => place.open(read_only)?,
            #[cfg(feature = "postgres")]
            Target::Postgres(server) => server.open(read_only)?,
        };
        let single = matches!(&target, Target::Sqlite(place) if place.in_memory()).then(|| Mutex::new(()));
        Ok(Self { target, read_only, idle: Mutex::new(vec![session]), single })
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Box<dyn Session>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        match &self.target {
            Target::Sqlite(place) => Ok(place.open(self.read_only)?.0),
            #[cfg(feature = "postgres")]
            Target::Postgres(server) => Ok(server.open(self.read_only)?.0),
        }
    }

    /// A session in a transaction. One that waited too long may have lost its server: then a new one is made.
    fn begun(&self, write: bool) -> Result<Box<dyn Session>> {
        loop {
            let waiting = self.idle().pop();
            let Some(mut session) = waiting else { break };
            match session.begin(write) {
                Ok(()) => return Ok(session),
                Err(e) if self.single.is_some() => {
                    self.idle().push(session);
                    return Err(e);
                }
                Err(e) if e.message().contains("locked") => return Err(e),
                Err(_) => {}
            }
        }
        let mut session = self.connect()?;
        session.begin(write)?;
        Ok(session)
    }

    fn with<T>(&self, write: bool, work: impl FnOnce(&mut dyn Session) -> Result<T>) -> Result<T> {
        let _turn = self.single.as_ref().map(|m| m.lock().unwrap_or_else(PoisonError::into_inner));
        let mut session = self.begun(write)?;
        let done = work(session.as_mut());
        let ended = session.end(write && done.is_ok());
        if ended.is_ok() || self.single.is_some() {
            let mut idle = self.idle();
            if idle.len() < KEPT {
                idle.push(session);
            }
        }
        let done = done?;
        ended?;
        Ok(done)
    }

    /// Work on one state of the catalog.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&mut dyn Session) -> Result<T>) -> Result<T> {
        self.with(false, work)
    }

    /// Work that changes the catalog, wholly or, where it fails, not at all.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut dyn Session) -> Result<T>) -> Result<T> {
        if self.read_only {
            let message = "the catalog is open for reading only";
            let hint = "open it where its file and directory may be written, or use another one";
            return Err(Error::new(ErrorKind::PermissionDenied, message).hint(hint));
        }
        self.with(true, work)
    }
}

fn target(url: &str) -> Result<Target> {
    if url.starts_with("postgresql://") || url.starts_with("postgres://") {
        #[cfg(feature = "postgres")]
        return Ok(Target::Postgres(Box::new(postgres::Server::parse(url)?)));
        #[cfg(not(feature = "postgres"))]
        return Err(Error::new(ErrorKind::Unsupported, "this build of sieva has no PostgreSQL")
            .hint("build it with the feature 'postgres'"));
    }
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    if path.contains("://") || is_settings(path) || is_misspelt(path) {
        let shown = sieva_store::redacted_database(path);
        let message = format!("'{shown}' is not the URL of a catalog");
        return Err(Error::new(ErrorKind::InvalidValue, message)
            .hint("give a path, sqlite:PATH or postgresql://USER@HOST/DATABASE"));
    }
    if path.is_empty() || path.contains('\0') {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            "the path of a catalog is empty or holds a zero byte",
        ));
    }
    Ok(Target::Sqlite(sqlite::Place::new(path)))
}

/// Whether this begins as an address of PostgreSQL.
fn is_misspelt(text: &str) -> bool {
    let scheme = text.trim_start().split(':').next().unwrap_or_default();
    text.contains(':') && ["postgres", "postgresql"].iter().any(|s| s.eq_ignore_ascii_case(scheme))
}

/// Whether this is the other form of PostgreSQL's addresses (`host=... user=...`), which would be taken for a path.
fn is_settings(text: &str) -> bool {
    let names: Vec<&str> = text.split_whitespace().filter_map(|word| word.split('=').next()).collect();
    ["host", "hostaddr", "user", "dbname"].iter().any(|n| names.contains(n)) && text.contains('=')
}

/// The rows of a query as what `read` makes of them.
pub(crate) fn collect<T>(
    session: &mut dyn Session,
    sql: &str,
    parameters: &[Cell],
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    session.each(sql, parameters, &mut |row| {
        found.push(read(row)?);
        Ok(true)
    })?;
    Ok(found)
}

/// What `read` makes of the first row of a query.
pub(crate) fn first<T>(
    session: &mut dyn Session,
    sql: &str,
    parameters: &[Cell],
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut found = None;
    session.each(sql, parameters, &mut |row| {
        found = Some(read(row)?);
        Ok(false)
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
