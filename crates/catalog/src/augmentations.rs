//! What was built beside sources, and what an administrator says of it.
//!
//! Both are kept by location and path, so that they outlive changes of the source and need no registered one.

use sieva_types::{Error, ErrorKind, Result};

use crate::backend::{Cell, Pool, Row, Session, collect};
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
    /// When it came into its state, in seconds since 1970 (UTC).
    pub at: f64,
    /// The directory that it is in; empty where that is not known.
    pub store: String,
    /// Bytes of the array's data, decoded; 0 where that is not known.
    pub data_bytes: u64,
    /// What tells the state of the source that it was built for: its length and a hash of its content.
    pub fingerprint: String,
    /// What became of it.
    pub state: AugmentationState,
}

/// What became of an augmentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AugmentationState {
    /// It is there, and of the source as it was when that was last looked at.
    #[default]
    Current,
    /// It was built for another state of the source.
    Stale,
    /// It was removed.
    Gone,
}

impl AugmentationState {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Current, "current"), (Self::Stale, "stale"), (Self::Gone, "gone")];

    /// `current`, `stale` or `gone`.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn of(number: i64) -> Result<Self> {
        let known = usize::try_from(number).ok().and_then(|n| Self::ALL.get(n));
        known.map(|(state, _)| *state).ok_or_else(|| {
            Error::new(
                ErrorKind::CorruptFile,
                format!("the state of an augmentation is {number}, not 0 to 2"),
            )
        })
    }
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

fn check_all(built: &[Augmentation]) -> Result<()> {
    for a in built {
        check(&a.location, &a.path, &a.kind)?;
        limits::name("version", &a.version)?;
        limits::name("host", &a.host)?;
        limits::name("fingerprint", &a.fingerprint)?;
        limits::path(&a.store)?;
        limits::signed("size of an augmentation", a.bytes)?;
        limits::signed("size of an array", a.data_bytes)?;
    }
    Ok(())
}

pub(crate) fn record(pool: &Pool, built: &[Augmentation]) -> Result<()> {
    check_all(built)?;
    pool.write(|session| built.iter().try_for_each(|a| put(session, a)))
}

/// Puts one in the place of what is known of it in this store, or of what no store is known of.
fn put(session: &mut dyn Session, a: &Augmentation) -> Result<()> {
    let mut cells = which(&a.location, &a.path, &a.kind).to_vec();
    cells.push(a.store.clone().into());
    session
        .run(&format!("DELETE FROM augmentations WHERE {WHICH} AND (store = $4 OR store = '')"), &cells)?;
    cells.extend([a.version.clone().into(), Cell::Int(a.bytes as i64), a.seconds.into()]);
    cells.extend([a.host.clone().into(), a.at.into(), Cell::Int(a.data_bytes as i64)]);
    cells.extend([a.fingerprint.clone().into(), Cell::Int(a.state as i64)]);
    let sql = "INSERT INTO augmentations (location, path, kind, store, version, bytes, seconds, host, at, data_bytes,
            fingerprint, state)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    session.run(sql, &cells).map(drop)
}

/// Makes what is known of one store of a source what `there` says; see `Catalog::sync_augmentations`.
pub(crate) fn sync(
    pool: &Pool,
    location: &str,
    store: &str,
    there: &[Augmentation],
    at: f64,
) -> Result<bool> {
    check_all(there)?;
    limits::location(location)?;
    limits::path(store)?;
    let changes = pool.read(|session| changed(session, location, store, there, at))?;
    if changes.is_empty() {
        return Ok(false);
    }
    pool.write(|session| {
        // Another process may have told of it meanwhile.
        let changes = changed(session, location, store, there, at)?;
        changes.iter().try_for_each(|a| put(session, a))?;
        Ok(!changes.is_empty())
    })
}

/// What of a store is not known as it is now.
fn changed(
    session: &mut dyn Session,
    location: &str,
    store: &str,
    there: &[Augmentation],
    at: f64,
) -> Result<Vec<Augmentation>> {
    let sql =
        format!("SELECT {COLUMNS} FROM augmentations WHERE location = $1 AND (store = $2 OR store = '')");
    let known = collect(session, &sql, &[location.into(), store.into()], read)?;
    let same = |a: &Augmentation, k: &Augmentation| (&a.path, &a.kind) == (&k.path, &k.kind);
    let of = |a: &Augmentation| {
        (a.version.clone(), a.bytes, a.store.clone(), a.data_bytes, a.fingerprint.clone(), a.state)
    };
    let mut changes: Vec<Augmentation> = Vec::new();
    for a in there {
        match known.iter().find(|k| same(a, k)) {
            Some(k) if of(k) == of(a) => {}
            // It is what it was when it was built, but for its state.
            Some(k) if (k.bytes, &k.fingerprint) == (a.bytes, &a.fingerprint) => {
                changes.push(Augmentation { seconds: k.seconds, host: k.host.clone(), ..a.clone() });
            }
            _ => changes.push(a.clone()),
        }
    }
    let gone = known.iter().filter(|k| !there.iter().any(|a| same(a, k)));
    changes.extend(
        gone.filter(|k| k.state != AugmentationState::Gone && k.store == store).map(|k| Augmentation {
            state: AugmentationState::Gone,
            at,
            ..k.clone()
        }),
    );
    Ok(changes)
}

const COLUMNS: &str =
    "location, path, kind, version, bytes, seconds, host, at, store, data_bytes, fingerprint, state";

fn read(row: &Row<'_>) -> Result<Augmentation> {
    Ok(Augmentation {
        location: row.text(0)?.to_owned(),
        path: row.text(1)?.to_owned(),
        kind: row.text(2)?.to_owned(),
        version: row.text(3)?.to_owned(),
        bytes: row.count(4)?,
        seconds: row.real(5)?,
        host: row.text(6)?.to_owned(),
        at: row.real(7)?,
        store: row.text(8)?.to_owned(),
        data_bytes: row.count(9)?,
        fingerprint: row.text(10)?.to_owned(),
        state: AugmentationState::of(row.int(11)?)?,
    })
}

pub(crate) fn list(pool: &Pool, prefix: &str) -> Result<Vec<Augmentation>> {
    limits::path(prefix)?;
    let (condition, parameters) = begins("location", prefix);
    let sql =
        format!("SELECT {COLUMNS} FROM augmentations WHERE {condition} ORDER BY location, path, kind, store");
    pool.read(|session| collect(session, &sql, &parameters, read))
}

/// Notes that what a store holds of a source is of another state of it.
pub(crate) fn set_stale(pool: &Pool, location: &str, store: &str, at: f64) -> Result<bool> {
    let (stale, current) = (AugmentationState::Stale as i64, AugmentationState::Current as i64);
    // SQLite numbers parameters in the order in which they stand.
    let cells: [Cell; 5] = [stale.into(), at.into(), location.into(), store.into(), current.into()];
    let sql =
        "UPDATE augmentations SET state = $1, at = $2 WHERE location = $3 AND store = $4 AND state = $5";
    pool.write(|session| Ok(session.run(sql, &cells)? > 0))
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
