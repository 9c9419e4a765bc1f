//! Tables, their versions, and how a catalog of an older version is brought forward.
//!
//! `docs/reference/catalog.md` tells what the columns mean.

use sieva_types::{Error, ErrorKind, Result};

use super::{Cell, Session, first};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Int,
    Real,
    Text,
    Blob,
}

/// A table that rows are added to in bulk.
pub(crate) struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Column)],
}

/// The words of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

/// The tables with many rows.
pub(crate) mod tables {
    use super::Column::{Blob, Int, Real, Text};
    use super::Table;

    pub(crate) const OBJECTS: Table = Table {
        name: "objects",
        columns: &[
            ("id", Int),
            ("source", Int),
            ("parent", Int),
            ("last", Int),
            ("kind", Int),
            ("path", Text),
            ("dtype", Text),
            ("shape", Blob),
            ("elements", Int),
            ("stored_bytes", Int),
            ("attributes", Blob),
        ],
    };
    pub(crate) const TERMS: Table = Table {
        name: "terms",
        columns: &[("key", Int), ("value", Blob), ("first", Int), ("span", Int), ("rest", Blob)],
    };
    pub(crate) const ARRAYS: Table = Table {
        name: "arrays",
        columns: &[
            ("leaf", Int),
            ("object", Int),
            ("low", Blob),
            ("high", Blob),
            ("missing", Int),
            ("count", Int),
        ],
    };
    pub(crate) const STATS: Table =
        Table { name: "stats", columns: &[("object", Int), ("bounds", Blob), ("extra", Blob)] };
    pub(crate) const USAGE: Table = Table {
        name: "usage",
        columns: &[
            ("id", Int),
            ("location", Text),
            ("path", Text),
            ("operation", Text),
            ("condition", Text),
            ("selectivity", Real),
            ("seconds", Real),
            ("bytes_read", Int),
            ("at", Real),
            ("asked_by", Text),
        ],
    };
}

/// The statements that make version n + 1 of version n. Never changed, only added to.
pub(super) const MIGRATIONS: [&str; 3] = ["
    CREATE TABLE names (id {id}, name {text} NOT NULL UNIQUE);
    CREATE TABLE sources (id {id}, location {text} NOT NULL UNIQUE, format {text} NOT NULL, size {int} NOT NULL,
        version {text} NOT NULL, registered {real} NOT NULL, error {text}, first {int} NOT NULL, last {int} NOT NULL,
        statistics {blob});
    CREATE TABLE manifests (source {id}, manifest {blob} NOT NULL);
    CREATE TABLE objects (id {id}, source {int} NOT NULL, parent {int} NOT NULL, last {int} NOT NULL,
        kind {int} NOT NULL, path {text} NOT NULL, dtype {text} NOT NULL, shape {blob} NOT NULL,
        elements {int} NOT NULL, stored_bytes {int}, attributes {blob} NOT NULL);
    CREATE TABLE terms (key {int} NOT NULL, value {blob} NOT NULL, first {int} NOT NULL, span {int} NOT NULL,
        rest {blob}, PRIMARY KEY (key, value, first)) {clustered};
    CREATE TABLE tags (source {int} NOT NULL, path_hash {int} NOT NULL, path {text} NOT NULL, key {int} NOT NULL,
        value {blob} NOT NULL);
    CREATE INDEX tags_of_path ON tags (source, path_hash, key);
    CREATE TABLE arrays (leaf {int} NOT NULL, object {int} NOT NULL, low {blob}, high {blob}, missing {int},
        count {int}, PRIMARY KEY (leaf, object)) {clustered};
    CREATE TABLE stats (object {id}, bounds {blob}, extra {blob});
    CREATE TABLE collections (id {id}, name {text} NOT NULL UNIQUE, description {text} NOT NULL);
    CREATE TABLE members (collection {int} NOT NULL, source {int} NOT NULL, PRIMARY KEY (collection, source))
        {clustered};
    CREATE INDEX members_of_source ON members (source);
    CREATE TABLE collection_prefixes (collection {int} NOT NULL, prefix {text} NOT NULL);
    CREATE TABLE augmentations (location {text} NOT NULL, path {text} NOT NULL, kind {text} NOT NULL,
        version {text} NOT NULL, bytes {int} NOT NULL, seconds {real}, host {text} NOT NULL, at {real});
    CREATE INDEX augmentations_of_location ON augmentations (location);
    CREATE TABLE rules (location {text} NOT NULL, path {text} NOT NULL, kind {text} NOT NULL, rule {int} NOT NULL);
    CREATE INDEX rules_of_location ON rules (location);
    CREATE TABLE usage (id {id}, location {text} NOT NULL, path {text} NOT NULL, operation {text} NOT NULL,
        condition {text} NOT NULL, selectivity {real}, seconds {real}, bytes_read {int} NOT NULL, at {real});
    INSERT INTO meta VALUES ('next_object', 1);
    INSERT INTO meta VALUES ('usage_retention', 100000);
", "
    ALTER TABLE usage ADD COLUMN asked_by {text} NOT NULL DEFAULT '';
", "
    ALTER TABLE augmentations ADD COLUMN store {text} NOT NULL DEFAULT '';
    ALTER TABLE augmentations ADD COLUMN data_bytes {int} NOT NULL DEFAULT 0;
    ALTER TABLE augmentations ADD COLUMN fingerprint {text} NOT NULL DEFAULT '';
    ALTER TABLE augmentations ADD COLUMN state {int} NOT NULL DEFAULT 0;
"];

fn in_words_of(dialect: Dialect, sql: &str) -> String {
    let words = match dialect {
        Dialect::Sqlite => ["INTEGER", "REAL", "TEXT", "BLOB", "INTEGER PRIMARY KEY", "WITHOUT ROWID"],
        // The collation sorts by bytes, as SQLite does.
        #[cfg(feature = "postgres")]
        Dialect::Postgres => {
            let id = "BIGINT PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY";
            ["BIGINT", "DOUBLE PRECISION", "TEXT COLLATE \"C\"", "BYTEA", id, ""]
        }
    };
    let names = ["{int}", "{real}", "{text}", "{blob}", "{id}", "{clustered}"];
    names.iter().zip(words).fold(sql.to_owned(), |text, (name, word)| text.replace(name, word))
}

/// Brings a catalog to this version. `read_only`: only checks that it is of this version.
pub(super) fn prepare(session: &mut dyn Session, name: &str, read_only: bool) -> Result<()> {
    session.begin(false)?;
    let found = version(session, name);
    session.end(false)?;
    if check(found?, MIGRATIONS.len(), name, read_only)? {
        return Ok(());
    }
    session.begin(true)?;
    let done = migrate(session, name, &MIGRATIONS);
    session.end(done.is_ok())?;
    done
}

/// Whether a catalog of the version `found` needs nothing.
fn check(found: usize, ours: usize, name: &str, read_only: bool) -> Result<bool> {
    if found > ours {
        let message =
            format!("catalog '{name}' is of version {found}, newer than {ours}, the latest known here");
        return Err(Error::new(ErrorKind::Unsupported, message).hint("use a newer sieva, or another catalog"));
    }
    if found < ours && read_only {
        let message = match found {
            0 => format!("'{name}' holds no catalog"),
            _ => format!("catalog '{name}' is of version {found}; {ours} is expected"),
        };
        return Err(Error::new(ErrorKind::FileNotFound, message).hint("open it once where it may be written"));
    }
    Ok(found == ours)
}

/// The version of the catalog that is there: 0 where there is none.
fn version(session: &mut dyn Session, name: &str) -> Result<usize> {
    let tables = session.table_names()?;
    if tables.is_empty() {
        return Ok(0);
    }
    let foreign = || {
        Error::new(ErrorKind::UnknownFormat, format!("'{name}' is a database, but not a catalog of sieva"))
            .hint("give the path of a file that is not there yet")
    };
    if !tables.iter().any(|t| t == "meta") {
        return Err(foreign());
    }
    let found =
        first(session, "SELECT value FROM meta WHERE name = $1", &["catalog_version".into()], |row| {
            Ok(row.int(0).unwrap_or(-1))
        })
        .map_err(|e| if e.kind() == ErrorKind::Io { foreign() } else { e })?;
    found.and_then(|v| usize::try_from(v).ok()).filter(|&v| v > 0).ok_or_else(foreign)
}

pub(super) fn migrate(session: &mut dyn Session, name: &str, migrations: &[&str]) -> Result<()> {
    // Another process may have done it while this one waited.
    let found = version(session, name)?;
    if check(found, migrations.len(), name, false)? {
        return Ok(());
    }
    if found == 0 {
        let meta = "CREATE TABLE meta (name {text} NOT NULL PRIMARY KEY, value {int} NOT NULL);
            INSERT INTO meta VALUES ('catalog_version', 0)";
        session.script(&in_words_of(session.dialect(), meta))?;
    }
    for migration in &migrations[found..] {
        session.script(&in_words_of(session.dialect(), migration))?;
    }
    let sql = "UPDATE meta SET value = $1 WHERE name = 'catalog_version'";
    session.run(sql, &[Cell::Int(migrations.len() as i64)])?;
    Ok(())
}
