//! What is asked of arrays, so that advice can follow from use.

use sieva_types::Result;

use crate::backend::{Cell, Pool, Session, collect, first, tables};
use crate::known::begins;
use crate::limits;

/// One use of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Location of the source.
    pub location: String,
    /// Path of the array.
    pub path: String,
    /// `count`, `read`, `histogram` ...
    pub operation: String,
    /// The bounds that were asked, in short; at most 512 bytes are kept.
    pub condition: String,
    /// Part of the elements that was hit, 0 to 1; NaN where unknown.
    pub selectivity: f64,
    /// How long it took.
    pub seconds: f64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// When, in seconds since 1970 (UTC).
    pub at: f64,
    /// Who asked, as a server knows its client; empty for the owner of the process. At most 512 bytes are kept.
    pub asked_by: String,
}

/// A text cut to what is kept.
fn shortened(text: &str) -> String {
    let mut end = text.len().min(limits::MAX_NAME);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace('\0', "\u{fffd}")
}

fn setting(session: &mut dyn Session, name: &str) -> Result<i64> {
    let found = first(session, "SELECT value FROM meta WHERE name = $1", &[name.into()], |row| row.int(0))?;
    Ok(found.unwrap_or(100_000))
}

fn trim(session: &mut dyn Session) -> Result<()> {
    let keep = setting(session, "usage_retention")?.max(0);
    let newest =
        first(session, "SELECT coalesce(max(id), 0) FROM usage", &[], |row| row.int(0))?.unwrap_or(0);
    session.run("DELETE FROM usage WHERE id <= $1", &[newest.saturating_sub(keep).into()])?;
    Ok(())
}

pub(crate) fn record(pool: &Pool, batch: &[Usage]) -> Result<()> {
    for usage in batch {
        limits::location(&usage.location)?;
        limits::path(&usage.path)?;
        limits::name("operation", &usage.operation)?;
        limits::signed("bytes read", usage.bytes_read)?;
    }
    pool.write(|session| {
        let newest =
            first(session, "SELECT coalesce(max(id), 0) FROM usage", &[], |row| row.int(0))?.unwrap_or(0);
        let mut rows = batch.iter().zip(newest.saturating_add(1)..).map(|(usage, id)| {
            vec![
                id.into(),
                usage.location.clone().into(),
                usage.path.clone().into(),
                usage.operation.clone().into(),
                shortened(&usage.condition).into(),
                usage.selectivity.into(),
                usage.seconds.into(),
                Cell::Int(usage.bytes_read as i64),
                usage.at.into(),
                shortened(&usage.asked_by).into(),
            ]
        });
        session.insert(&tables::USAGE, &mut rows)?;
        trim(session)
    })
}

pub(crate) fn latest(pool: &Pool, prefix: &str, limit: usize) -> Result<Vec<Usage>> {
    limits::path(prefix)?;
    let (condition, mut parameters) = begins("location", prefix);
    parameters.push(Cell::Int(i64::try_from(limit).unwrap_or(i64::MAX)));
    let sql = format!(
        "SELECT location, path, operation, condition, selectivity, seconds, bytes_read, at,
             asked_by FROM usage
         WHERE {condition} ORDER BY id DESC LIMIT $3"
    );
    pool.read(|session| {
        collect(session, &sql, &parameters, |row| {
            Ok(Usage {
                location: row.text(0)?.to_owned(),
                path: row.text(1)?.to_owned(),
                operation: row.text(2)?.to_owned(),
                condition: row.text(3)?.to_owned(),
                selectivity: row.real(4)?,
                seconds: row.real(5)?,
                bytes_read: row.count(6)?,
                at: row.real(7)?,
                asked_by: row.text(8)?.to_owned(),
            })
        })
    })
}

pub(crate) fn set_retention(pool: &Pool, count: u64) -> Result<()> {
    let count = limits::signed("the number of uses to keep", count)?;
    pool.write(|session| {
        session.run("UPDATE meta SET value = $1 WHERE name = 'usage_retention'", &[count.into()])?;
        trim(session)
    })
}
