//! What was built beside sources, and what an administrator says of it.
//!
//! Both are kept by location and path, so that they outlive changes of the source and need no registered one.

use sieva_types::{Error, ErrorKind, Result};

use crate::backend::{Cell, Pool, collect};
use crate::known::begins;
use crate::limits;

/// An augmentation that was built.
#[derive(Clone, Debug, PartialEq)]
pub struct Augmentation {
    /// Location of the source.
    pub location: String,
    /// Path of the array.
    pub path: String,
    /// `zonemap`, `bitmap`, `sorted` ...
    pub kind: String,
    /// Version of the source that it was built for.
    pub version: String,
    /// Its size.
    pub bytes: u64,
    /// How long building it took.
    pub seconds: f64,
    /// Where it was built.
    pub host: String,
    /// When, in seconds since 1970 (UTC).
    pub at: f64,
}

/// What an administrator says of augmentations of a kind of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It is kept, whatever the budget.
    Pinned,
    /// It is not built.
    Forbidden,
}

fn check(location: &str, path: &str, kind: &str) -> Result<()> {
    limits::location(location)?;
    limits::path(path)?;
    limits::name("kind", kind)
}

const WHICH: &str = "location = $1 AND path = $2 AND kind = $3";

fn which(location: &str, path: &str, kind: &str) -> [Cell; 3] {
    [location.into(), path.into(), kind.into()]
}

pub(crate) fn record(pool: &Pool, built: &[Augmentation]) -> Result<()> {
    for a in built {
        check(&a.location, &a.path, &a.kind)?;
        limits::name("version", &a.version)?;
        limits::name("host", &a.host)?;
        limits::signed("size of an augmentation", a.bytes)?;
    }
    pool.write(|session| {
        for a in built {
            session.run(
                &format!("DELETE FROM augmentations WHERE {WHICH}"),
                &which(&a.location, &a.path, &a.kind),
            )?;
            let mut cells = which(&a.location, &a.path, &a.kind).to_vec();
            cells.extend([a.version.clone().into(), Cell::Int(a.bytes as i64), a.seconds.into()]);
            cells.extend([a.host.clone().into(), a.at.into()]);
            let sql = "INSERT INTO augmentations (location, path, kind, version, bytes, seconds, host, at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
            session.run(sql, &cells)?;
        }
        Ok(())
    })
}

pub(crate) fn list(pool: &Pool, prefix: &str) -> Result<Vec<Augmentation>> {
    limits::path(prefix)?;
    let (condition, parameters) = begins("location", prefix);
    let sql = format!(
        "SELECT location, path, kind, version, bytes, seconds, host, at FROM augmentations WHERE {condition}
         ORDER BY location, path, kind"
    );
    pool.read(|session| {
        collect(session, &sql, &parameters, |row| {
            Ok(Augmentation {
                location: row.text(0)?.to_owned(),
                path: row.text(1)?.to_owned(),
                kind: row.text(2)?.to_owned(),
                version: row.text(3)?.to_owned(),
                bytes: row.count(4)?,
                seconds: row.real(5)?,
                host: row.text(6)?.to_owned(),
                at: row.real(7)?,
            })
        })
    })
}

pub(crate) fn forget(pool: &Pool, location: &str, path: &str, kind: &str) -> Result<bool> {
    check(location, path, kind)?;
    let sql = format!("DELETE FROM augmentations WHERE {WHICH}");
    pool.write(|session| Ok(session.run(&sql, &which(location, path, kind))? > 0))
}

pub(crate) fn set_rule(
    pool: &Pool,
    location: &str,
    path: &str,
    kind: &str,
    rule: Option<Rule>,
) -> Result<()> {
    check(location, path, kind)?;
    pool.write(|session| {
        session.run(&format!("DELETE FROM rules WHERE {WHICH}"), &which(location, path, kind))?;
        if let Some(rule) = rule {
            let mut cells = which(location, path, kind).to_vec();
            cells.push(Cell::Int(if rule == Rule::Pinned { 0 } else { 1 }));
            session.run("INSERT INTO rules (location, path, kind, rule) VALUES ($1, $2, $3, $4)", &cells)?;
        }
        Ok(())
    })
}

pub(crate) fn rules(pool: &Pool, prefix: &str) -> Result<Vec<(String, String, String, Rule)>> {
    limits::path(prefix)?;
    let (condition, parameters) = begins("location", prefix);
    let sql = format!(
        "SELECT location, path, kind, rule FROM rules WHERE {condition} ORDER BY location, path, kind"
    );
    pool.read(|session| {
        collect(session, &sql, &parameters, |row| {
            let rule = match row.int(3)? {
                0 => Rule::Pinned,
                1 => Rule::Forbidden,
                other => {
                    return Err(Error::new(ErrorKind::CorruptFile, format!("a rule is {other}, not 0 or 1")));
                }
            };
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.text(2)?.to_owned(), rule))
        })
    })
}
