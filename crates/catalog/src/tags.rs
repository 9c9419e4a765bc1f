//! Tags: values that users set on objects. They outlive changes of the source: they are kept by path.

use std::collections::{BTreeSet, HashMap};

use sieva_types::{Error, ErrorKind, Result};

use crate::backend::{Pool, Session, first, tables};
use crate::known::{self, Stored};
use crate::limits;
use crate::names;
use crate::packed::{self, Entry};
use crate::terms::{self, Holder, Term};
use crate::tree;
use crate::value::Value;

/// A path as a number for the index of tags: FNV-1a of 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). Paths themselves
/// may be longer than index entries; the path is compared too.
fn path_hash(path: &str) -> i64 {
    let hash =
        path.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    hash as i64
}

/// The tags of a source by path.
pub(crate) fn of_source(session: &mut dyn Session, source: i64) -> Result<HashMap<String, Vec<Entry>>> {
    let mut found: HashMap<String, Vec<Entry>> = HashMap::new();
    session.each("SELECT path, key, value FROM tags WHERE source = $1", &[source.into()], &mut |row| {
        let key = row.int(1)?;
        let values = packed::read_values(row.blob(2)?)?;
        let entries = values.into_iter().take(1).map(|value| (key, true, value));
        found.entry(row.text(0)?.to_owned()).or_default().extend(entries);
        Ok(true)
    })?;
    Ok(found)
}

/// The number of an object, found by halving: objects are numbered in the order of their tree.
pub(crate) fn locate(session: &mut dyn Session, source: &Stored, path: &str) -> Result<i64> {
    find(session, source, path)?.ok_or_else(|| {
        let message = format!("'{}' has no object '{path}'", source.location);
        Error::new(ErrorKind::UnknownArray, message).hint("list its objects: sieva catalog show SOURCE")
    })
}

/// As [`locate`]; `None`: there is no such object.
pub(crate) fn find(session: &mut dyn Session, source: &Stored, path: &str) -> Result<Option<i64>> {
    limits::path(path)?;
    let (mut low, mut high) = (source.first, source.last);
    while low <= high {
        let middle = low + (high - low) / 2;
        let sql = "SELECT path FROM objects WHERE id = $1";
        let Some(here) = first(session, sql, &[middle.into()], |row| row.text(0).map(str::to_owned))? else {
            return Err(Error::corrupt(format!(
                "the catalog lacks object {middle} of '{}'",
                source.location
            ))
            .hint("register the source anew"));
        };
        match tree::order(path, &here) {
            std::cmp::Ordering::Equal => return Ok(Some(middle)),
            std::cmp::Ordering::Less => high = middle - 1,
            std::cmp::Ordering::Greater => low = middle + 1,
        }
    }
    Ok(None)
}

pub(crate) fn set(pool: &Pool, location: &str, tags: &[(&str, &str, Option<Value>)]) -> Result<u64> {
    limits::location(location)?;
    for (path, key, value) in tags {
        limits::path(path)?;
        limits::name("key", key)?;
        value.iter().try_for_each(|v| limits::value(key, v))?;
    }
    pool.write(|session| {
        let Some(source) = known::stored(session, location)? else {
            let message = format!("source '{location}' is not in the catalog");
            return Err(
                Error::new(ErrorKind::FileNotFound, message).hint("register it: sieva catalog add SOURCE")
            );
        };
        let numbers = names::intern(session, tags.iter().map(|(_, key, _)| *key))?;
        let keys: BTreeSet<i64> = numbers.values().copied().collect();
        let mut holders = terms::holders(session, source.first, source.last)?;
        let before = rows(&holders, &keys);
        let mut changed = BTreeSet::new();
        let mut count = 0;
        for (path, key, value) in tags {
            let id = locate(session, &source, path)?;
            let key = numbers.get(*key).copied().unwrap_or_default();
            let at = usize::try_from(id - source.first).ok().and_then(|i| holders.get_mut(i));
            let Some(holder) = at.filter(|h| h.id == id) else {
                return Err(Error::corrupt("a source lacks objects"));
            };
            if put(session, &source, path, key, value.as_ref(), &mut holder.entries)? {
                changed.insert(id);
                count += 1;
            }
        }
        for id in changed {
            let bytes = packed::entries(&holders[(id - source.first) as usize].entries);
            session.run("UPDATE objects SET attributes = $1 WHERE id = $2", &[bytes.into(), id.into()])?;
        }
        let after = rows(&holders, &keys);
        let gone: Vec<Term> = before.difference(&after).cloned().collect();
        terms::remove(session, &gone)?;
        session.insert(&tables::TERMS, &mut after.difference(&before).map(terms::row))?;
        Ok(count)
    })
}

/// The rows of the index for some keys.
fn rows(holders: &[Holder], keys: &BTreeSet<i64>) -> BTreeSet<Term> {
    keys.iter().flat_map(|&key| terms::of(holders, Some(key))).collect()
}

/// Sets or removes one tag; whether this changed anything.
fn put(
    session: &mut dyn Session,
    source: &Stored,
    path: &str,
    key: i64,
    value: Option<&Value>,
    entries: &mut Vec<Entry>,
) -> Result<bool> {
    let place = entries.iter().position(|e| e.0 == key && e.1);
    let old = place.map(|i| packed::values(&[&entries[i].2]));
    let new = value.map(|v| packed::values(&[v]));
    if old == new {
        return Ok(false);
    }
    let sql = "DELETE FROM tags WHERE source = $1 AND path_hash = $2 AND key = $3 AND path = $4";
    session.run(sql, &[source.id.into(), path_hash(path).into(), key.into(), path.into()])?;
    if let Some(i) = place {
        entries.remove(i);
    }
    if let (Some(bytes), Some(value)) = (new, value) {
        let sql = "INSERT INTO tags (source, path_hash, path, key, value) VALUES ($1, $2, $3, $4, $5)";
        session
            .run(sql, &[source.id.into(), path_hash(path).into(), path.into(), key.into(), bytes.into()])?;
        entries.push((key, true, value.clone()));
    }
    Ok(true)
}
