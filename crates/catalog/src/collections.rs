//! Collections: named sets of sources.

use sieva_types::{Error, ErrorKind, Result};

use crate::backend::{Pool, Session, collect as rows, first};
use crate::ingest::spans;
use crate::intervals::Intervals;
use crate::known::{self, Stored, Which};
use crate::limits;
use crate::record::SourceRecord;

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionInfo {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Prefixes of locations: sources that are registered with one of them join it.
    pub prefixes: Vec<String>,
    /// How many sources it has.
    pub sources: u64,
}

/// The number of a collection.
fn number(session: &mut dyn Session, name: &str) -> Result<i64> {
    limits::name("collection", name)?;
    let found =
        first(session, "SELECT id FROM collections WHERE name = $1", &[name.into()], |row| row.int(0))?;
    match found {
        Some(id) => Ok(id),
        None => {
            let names = rows(session, "SELECT name FROM collections ORDER BY name LIMIT 20", &[], |row| {
                row.text(0).map(str::to_owned)
            })?;
            let hint = if names.is_empty() {
                "there are none".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            };
            let message = format!("the catalog has no collection '{name}'");
            Err(Error::new(ErrorKind::UnknownAttribute, message).hint(hint))
        }
    }
}

/// The objects of a collection's sources.
pub(crate) fn objects(session: &mut dyn Session, name: &str) -> Result<Intervals> {
    let id = number(session, name)?;
    let sql =
        "SELECT first, last FROM members JOIN sources ON sources.id = members.source WHERE collection = $1";
    Ok(Intervals::of(spans(session, sql, &[id.into()])?))
}

/// Makes a collection; a description of `None` leaves one that is there.
fn make(session: &mut dyn Session, name: &str, description: Option<&str>) -> Result<i64> {
    limits::name("collection", name)?;
    if name.is_empty() {
        return Err(Error::new(ErrorKind::InvalidValue, "a collection's name is empty"));
    }
    let sql = "INSERT INTO collections (name, description) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    session.run(sql, &[name.into(), description.unwrap_or_default().into()])?;
    if let Some(text) = description {
        limits::text("description", text)?;
        session
            .run("UPDATE collections SET description = $1 WHERE name = $2", &[text.into(), name.into()])?;
    }
    number(session, name)
}

fn add(session: &mut dyn Session, collection: i64, source: i64) -> Result<u64> {
    let sql = "INSERT INTO members (collection, source) VALUES ($1, $2) ON CONFLICT (collection, source) DO NOTHING";
    session.run(sql, &[collection.into(), source.into()])
}

/// Puts a source that is being registered into the collections that it names, and those of its location.
pub(crate) fn join(session: &mut dyn Session, source: i64, record: &SourceRecord) -> Result<()> {
    for name in &record.collections {
        let collection = make(session, name, None)?;
        add(session, collection, source)?;
    }
    let prefixes = rows(session, "SELECT collection, prefix FROM collection_prefixes", &[], |row| {
        Ok((row.int(0)?, row.text(1)?.to_owned()))
    })?;
    for (collection, prefix) in prefixes {
        if record.location.starts_with(&prefix) {
            add(session, collection, source)?;
        }
    }
    Ok(())
}

pub(crate) fn create(pool: &Pool, name: &str, description: &str) -> Result<()> {
    pool.write(|session| make(session, name, Some(description)).map(|_| ()))
}

pub(crate) fn remove(pool: &Pool, name: &str) -> Result<bool> {
    limits::name("collection", name)?;
    pool.write(|session| {
        let sql = "SELECT id FROM collections WHERE name = $1";
        let Some(id) = first(session, sql, &[name.into()], |row| row.int(0))? else { return Ok(false) };
        session.run("DELETE FROM members WHERE collection = $1", &[id.into()])?;
        session.run("DELETE FROM collection_prefixes WHERE collection = $1", &[id.into()])?;
        Ok(session.run("DELETE FROM collections WHERE id = $1", &[id.into()])? > 0)
    })
}

pub(crate) fn list(pool: &Pool) -> Result<Vec<CollectionInfo>> {
    let sql = "SELECT name, description, (SELECT count(*) FROM members WHERE collection = collections.id), id
        FROM collections ORDER BY name";
    pool.read(|session| {
        let mut found = rows(session, sql, &[], |row| {
            let (name, description) = (row.text(0)?.to_owned(), row.text(1)?.to_owned());
            Ok((
                row.int(3)?,
                CollectionInfo { name, description, prefixes: Vec::new(), sources: row.count(2)? },
            ))
        })?;
        for (id, collection) in &mut found {
            let sql = "SELECT prefix FROM collection_prefixes WHERE collection = $1 ORDER BY prefix";
            collection.prefixes = rows(session, sql, &[(*id).into()], |row| row.text(0).map(str::to_owned))?;
        }
        Ok(found.into_iter().map(|(_, collection)| collection).collect())
    })
}

fn add_all(session: &mut dyn Session, collection: i64, sources: &[Stored]) -> Result<u64> {
    sources.iter().try_fold(0, |n, source| Ok(n + add(session, collection, source.id)?))
}

pub(crate) fn collect(pool: &Pool, name: &str, locations: &[&str]) -> Result<u64> {
    pool.write(|session| {
        let collection = number(session, name)?;
        let sources = known::stored_of(session, locations)?;
        add_all(session, collection, &sources)
    })
}

pub(crate) fn collect_prefix(pool: &Pool, name: &str, prefix: &str) -> Result<u64> {
    pool.write(|session| {
        let collection = number(session, name)?;
        let sources = known::which(session, &Which::Prefix(prefix))?;
        let sql = "DELETE FROM collection_prefixes WHERE collection = $1 AND prefix = $2";
        session.run(sql, &[collection.into(), prefix.into()])?;
        let sql = "INSERT INTO collection_prefixes (collection, prefix) VALUES ($1, $2)";
        session.run(sql, &[collection.into(), prefix.into()])?;
        add_all(session, collection, &sources)
    })
}
