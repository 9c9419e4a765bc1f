//! Sources as such: what is known of them without their objects.

use std::collections::HashMap;

use sieva_types::Result;

use crate::backend::{Cell, Pool, Row, Session, collect, first};
use crate::limits;
use crate::names::{LIST, fill, places};

/// What is known of a source's state: enough to tell whether it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Bytes.
    pub size: u64,
    /// Time of modification, or tag.
    pub version: String,
    /// Why it could not be read; `None`: it could.
    pub error: Option<String>,
    /// Its manifest, where asked for and kept.
    pub manifest: Option<Vec<u8>>,
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceInfo {
    /// Path or URL.
    pub location: String,
    /// `HDF5`, `Zarr v3` ...
    pub format: String,
    /// Bytes.
    pub size: u64,
    /// Time of modification, or tag.
    pub version: String,
    /// When it was registered or last changed, in seconds since 1970 (UTC).
    pub registered: f64,
    /// Why it could not be read; `None`: it could.
    pub error: Option<String>,
    /// Groups and arrays, with the root.
    pub objects: u64,
    /// Statistics of the whole source, as they were given.
    pub statistics: Option<Vec<u8>>,
    /// Names of its collections.
    pub collections: Vec<String>,
}

/// Which sources.
pub(crate) enum Which<'a> {
    One(&'a str),
    Prefix(&'a str),
}

/// A source as the database has it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub id: i64,
    pub location: String,
    pub format: String,
    pub size: u64,
    pub version: String,
    pub error: Option<String>,
    /// Numbers of its objects.
    pub first: i64,
    pub last: i64,
}

const STORED: &str = "id, location, format, size, version, error, first, last";

fn read_stored(row: &Row<'_>) -> Result<Stored> {
    Ok(Stored {
        id: row.int(0)?,
        location: row.text(1)?.to_owned(),
        format: row.text(2)?.to_owned(),
        size: row.count(3)?,
        version: row.text(4)?.to_owned(),
        error: row.optional_text(5)?.map(str::to_owned),
        first: row.int(6)?,
        last: row.int(7)?,
    })
}

/// The source of a location.
pub(crate) fn stored(session: &mut dyn Session, location: &str) -> Result<Option<Stored>> {
    let sql = format!("SELECT {STORED} FROM sources WHERE location = $1");
    first(session, &sql, &[location.into()], read_stored)
}

/// The sources of many locations; those that are not known are left out.
pub(crate) fn stored_of(session: &mut dyn Session, locations: &[&str]) -> Result<Vec<Stored>> {
    let sql = format!("SELECT {STORED} FROM sources WHERE location IN ({})", places(1));
    // What holds a zero byte is no location, and PostgreSQL takes no such text.
    let all: Vec<Cell> = locations.iter().filter(|l| !l.contains('\0')).map(|&l| l.into()).collect();
    let mut found = Vec::with_capacity(all.len());
    for list in all.chunks(LIST) {
        found.extend(collect(session, &sql, &fill(list), read_stored)?);
    }
    Ok(found)
}

/// The first text that sorts after all that begin with `prefix`; `None`: there is none.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // Characters sort as their UTF-8 bytes; the surrogates are no characters.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// A condition on a column of locations for all that begin with a prefix, with its parameters as `$1` and `$2`.
pub(crate) fn begins(column: &str, prefix: &str) -> (String, Vec<Cell>) {
    let condition = format!("{column} >= $1 AND ({column} < $2 OR $2 = '')");
    (condition, vec![prefix.into(), after_prefix(prefix).unwrap_or_default().into()])
}

/// All sources that are meant.
pub(crate) fn which(session: &mut dyn Session, which: &Which<'_>) -> Result<Vec<Stored>> {
    match which {
        Which::One(location) => {
            limits::location(location)?;
            Ok(stored(session, location)?.into_iter().collect())
        }
        Which::Prefix(prefix) => {
            limits::path(prefix)?;
            let (condition, parameters) = begins("location", prefix);
            let sql = format!("SELECT {STORED} FROM sources WHERE {condition} ORDER BY location");
            collect(session, &sql, &parameters, read_stored)
        }
    }
}

pub(crate) fn known(
    pool: &Pool,
    locations: &[&str],
    manifests: Option<u64>,
) -> Result<HashMap<String, Known>> {
    pool.read(|session| {
        let sources = stored_of(session, locations)?;
        let mut found = match manifests {
            Some(most) => manifests_of(session, &sources, most)?,
            None => HashMap::new(),
        };
        let all = sources.into_iter().map(|s| {
            let manifest = found.remove(&s.id);
            (s.location, Known { size: s.size, version: s.version, error: s.error, manifest })
        });
        Ok(all.collect())
    })
}

/// The manifests of sources that take at most so many bytes together. Lengths are asked for first: a database may hold
/// what no catalog keeps.
fn manifests_of(session: &mut dyn Session, sources: &[Stored], most: u64) -> Result<HashMap<i64, Vec<u8>>> {
    let ids: Vec<Cell> = sources.iter().map(|s| s.id.into()).collect();
    let sql = |what: &str| format!("SELECT source, {what} FROM manifests WHERE source IN ({})", places(1));
    let mut fitting = Vec::with_capacity(ids.len());
    let mut left = most;
    for list in ids.chunks(LIST) {
        let lengths =
            collect(session, &sql("length(manifest)"), &fill(list), |row| Ok((row.int(0)?, row.count(1)?)))?;
        for (id, length) in lengths {
            if length <= left.min(limits::MAX_MANIFEST as u64) {
                left -= length;
                fitting.push(Cell::Int(id));
            }
        }
    }
    let mut found = HashMap::with_capacity(fitting.len());
    for list in fitting.chunks(LIST) {
        session.each(&sql("manifest"), &fill(list), &mut |row| {
            found.insert(row.int(0)?, row.blob(1)?.to_vec());
            Ok(true)
        })?;
    }
    Ok(found)
}

/// Keeps a manifest in place of the one before.
pub(crate) fn put_manifest(session: &mut dyn Session, source: i64, manifest: Option<&[u8]>) -> Result<()> {
    session.run("DELETE FROM manifests WHERE source = $1", &[source.into()])?;
    if let Some(bytes) = manifest {
        limits::manifest(bytes)?;
        session.run(
            "INSERT INTO manifests (source, manifest) VALUES ($1, $2)",
            &[source.into(), bytes.into()],
        )?;
    }
    Ok(())
}

pub(crate) fn set_manifest(
    pool: &Pool,
    location: &str,
    version: &str,
    manifest: Option<&[u8]>,
) -> Result<bool> {
    limits::location(location)?;
    pool.write(|session| match stored(session, location)? {
        Some(source) if source.version == version => {
            put_manifest(session, source.id, manifest).map(|()| true)
        }
        _ => Ok(false),
    })
}

pub(crate) fn list(pool: &Pool, prefix: &str, limit: usize, after: Option<&str>) -> Result<Vec<SourceInfo>> {
    limits::path(prefix)?;
    limits::path(after.unwrap_or_default())?;
    let (condition, mut parameters) = begins("location", prefix);
    parameters.push(after.unwrap_or_default().into());
    parameters.push(Cell::Int(i64::try_from(limit).unwrap_or(i64::MAX)));
    let sql =
        format!("SELECT {INFO} FROM sources WHERE {condition} AND location > $3 ORDER BY location LIMIT $4");
    pool.read(|session| {
        let mut found = collect(session, &sql, &parameters, read_info)?;
        found.iter_mut().try_for_each(|(id, info)| {
            info.collections = collections_of(session, *id)?;
            Ok(())
        })?;
        Ok(found.into_iter().map(|(_, info)| info).collect())
    })
}

const INFO: &str = "id, location, format, size, version, registered, error, first, last, statistics";

fn read_info(row: &Row<'_>) -> Result<(i64, SourceInfo)> {
    let info = SourceInfo {
        location: row.text(1)?.to_owned(),
        format: row.text(2)?.to_owned(),
        size: row.count(3)?,
        version: row.text(4)?.to_owned(),
        registered: row.real(5)?,
        error: row.optional_text(6)?.map(str::to_owned),
        objects: row.int(8)?.abs_diff(row.int(7)?).saturating_add(1),
        statistics: row.optional_blob(9)?.map(<[u8]>::to_vec),
        collections: Vec::new(),
    };
    Ok((row.int(0)?, info))
}

fn collections_of(session: &mut dyn Session, source: i64) -> Result<Vec<String>> {
    let sql = "SELECT name FROM collections JOIN members ON members.collection = collections.id
        WHERE members.source = $1 ORDER BY name";
    collect(session, sql, &[source.into()], |row| row.text(0).map(str::to_owned))
}

/// All that is known of one source as such.
pub(crate) fn info(session: &mut dyn Session, location: &str) -> Result<Option<SourceInfo>> {
    let sql = format!("SELECT {INFO} FROM sources WHERE location = $1");
    let Some((id, mut info)) = first(session, &sql, &[location.into()], read_info)? else { return Ok(None) };
    info.collections = collections_of(session, id)?;
    Ok(Some(info))
}

#[cfg(test)]
mod tests {
    use super::after_prefix;

    #[test]
    fn prefixes_end_where_they_should() {
        assert_eq!(after_prefix("/data/"), Some("/data0".into()));
        assert_eq!(after_prefix("a\u{10ffff}"), Some("b".into()));
        assert_eq!(after_prefix("\u{d7ff}"), Some("\u{e000}".into()));
        assert_eq!(after_prefix(""), None);
    }
}
