//! Least and greatest values of arrays, and which sources could hold what is looked for.

use std::collections::BTreeSet;

use sieva_types::{Error, ErrorKind, Result};

use crate::backend::{Cell, Pool, Session, collect, tables};
use crate::collections;
use crate::intervals::Intervals;
use crate::known;
use crate::limits;
use crate::names;
use crate::packed;
use crate::record::ArrayStats;
use crate::tags::locate;
use crate::tree::leaf;
use crate::value::Value;

/// Statistics of one array.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundStats {
    /// Location of its source.
    pub location: String,
    /// Its path.
    pub path: String,
    /// Its number.
    pub id: i64,
    /// What is known; `None`: nothing.
    pub stats: Option<ArrayStats>,
}

/// Checks statistics that are handed over.
pub(crate) fn check(stats: &ArrayStats) -> Result<()> {
    limits::signed("count of missing elements", stats.missing)?;
    limits::signed("count of elements", stats.count)?;
    let Some((low, high)) = &stats.range else { return Ok(()) };
    number(low)?;
    number(high)?;
    if low.compare(high).is_some_and(std::cmp::Ordering::is_gt) {
        let message = format!("the least value {low:?} is greater than the greatest, {high:?}");
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    Ok(())
}

fn number(value: &Value) -> Result<()> {
    if value.is_number() {
        return Ok(());
    }
    let message = format!("a bound of an array's values is {value:?}, not a number");
    Err(Error::new(ErrorKind::TypeMismatch, message).hint("give an integer or a float that is not NaN"))
}

/// The row of an array in the table of names.
pub(crate) fn array_row(leaf: i64, object: i64, stats: Option<&ArrayStats>) -> Vec<Cell> {
    let range = stats.and_then(|s| s.range.as_ref());
    let count = |n: u64| Cell::Int(n as i64);
    vec![
        leaf.into(),
        object.into(),
        range.map(|(low, _)| low.sort_key().head).into(),
        range.map(|(_, high)| high.sort_key().head).into(),
        stats.map_or(Cell::Null, |s| count(s.missing)),
        stats.map_or(Cell::Null, |s| count(s.count)),
    ]
}

/// The row of an array's exact bounds and other bytes, where there are any.
pub(crate) fn row(object: i64, stats: &ArrayStats) -> Option<Vec<Cell>> {
    let bounds = stats.range.as_ref().map(|(low, high)| packed::values(&[low, high]));
    (bounds.is_some() || stats.blob.is_some())
        .then(|| vec![object.into(), bounds.into(), stats.blob.clone().into()])
}

/// Takes arrays with these numbers out of the table of names.
pub(crate) fn remove_arrays(session: &mut dyn Session, first: i64, last: i64) -> Result<()> {
    let sql = "SELECT path FROM objects WHERE id BETWEEN $1 AND $2 AND kind = 1";
    let mut leaves = BTreeSet::new();
    session.each(sql, &[first.into(), last.into()], &mut |row| {
        leaves.insert(leaf(row.text(0)?).to_owned());
        Ok(true)
    })?;
    for number in names::intern(session, leaves.iter().map(String::as_str))?.into_values() {
        let sql = "DELETE FROM arrays WHERE leaf = $1 AND object BETWEEN $2 AND $3";
        session.run(sql, &[number.into(), first.into(), last.into()])?;
    }
    Ok(())
}

pub(crate) fn set(pool: &Pool, location: &str, version: &str, stats: &[(&str, ArrayStats)]) -> Result<bool> {
    limits::location(location)?;
    for (path, stats) in stats {
        check(stats).map_err(|e| e.at(path).at(location))?;
    }
    pool.write(|session| {
        let Some(source) = known::stored(session, location)? else { return Ok(false) };
        if source.version != version {
            return Ok(false);
        }
        for (path, stats) in stats {
            let object = locate(session, &source, path)?;
            let mut numbers = names::intern(session, [leaf(path)])?;
            let leaf = numbers.remove(leaf(path)).unwrap_or_default();
            let sql = "DELETE FROM arrays WHERE leaf = $1 AND object = $2";
            if session.run(sql, &[leaf.into(), object.into()])? == 0 {
                let message = format!("'{path}' of '{location}' is a group, not an array");
                return Err(Error::new(ErrorKind::UnknownArray, message).hint("give the path of an array"));
            }
            session.run("DELETE FROM stats WHERE object = $1", &[object.into()])?;
            session.insert(&tables::ARRAYS, &mut std::iter::once(array_row(leaf, object, Some(stats))))?;
            session.insert(&tables::STATS, &mut row(object, stats).into_iter())?;
        }
        Ok(true)
    })
}

/// An array with its row of statistics.
const JOINED: &str = "FROM arrays JOIN objects ON objects.id = arrays.object
    JOIN sources ON sources.id = objects.source LEFT JOIN stats ON stats.object = arrays.object
    WHERE arrays.leaf = $1 AND (objects.path = $2 OR $3 = 0)";

fn named(session: &mut dyn Session, name: &str) -> Result<Option<Vec<Cell>>> {
    limits::path(name)?;
    let Some(number) = names::find(session, leaf(name))? else { return Ok(None) };
    Ok(Some(vec![number.into(), name.into(), Cell::Int(i64::from(name.contains('/')))]))
}

/// The objects that are asked for.
fn scope(session: &mut dyn Session, collection: Option<&str>) -> Result<Intervals> {
    collection.map_or_else(|| Ok(Intervals::all()), |name| collections::objects(session, name))
}

fn holds(scope: &Intervals, id: i64) -> bool {
    let parts = scope.parts();
    parts[..parts.partition_point(|&(first, _)| first <= id)].last().is_some_and(|&(_, last)| id <= last)
}

pub(crate) fn of_name(pool: &Pool, name: &str, collection: Option<&str>) -> Result<Vec<FoundStats>> {
    pool.read(|session| {
        let scope = scope(session, collection)?;
        let Some(parameters) = named(session, name)? else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT sources.location, objects.path, arrays.object, missing, count, bounds, extra {JOINED}
             ORDER BY arrays.object"
        );
        let mut found = Vec::new();
        session.each(&sql, &parameters, &mut |row| {
            let id = row.int(2)?;
            if holds(&scope, id) {
                let count = row.optional_count(4)?;
                let stats =
                    count.map(|n| read(n, row.count(3)?, row.optional_blob(5)?, row.optional_blob(6)?));
                let (location, path) = (row.text(0)?.to_owned(), row.text(1)?.to_owned());
                found.push(FoundStats { location, path, id, stats: stats.transpose()? });
            }
            Ok(true)
        })?;
        Ok(found)
    })
}

/// Statistics from the columns that hold them.
pub(crate) fn read(
    count: u64,
    missing: u64,
    bounds: Option<&[u8]>,
    extra: Option<&[u8]>,
) -> Result<ArrayStats> {
    let range = match bounds.map(packed::read_values).transpose()?.as_deref() {
        None => None,
        Some([low, high]) => Some((low.clone(), high.clone())),
        Some(_) => return Err(Error::corrupt("the bounds of an array's values are damaged")),
    };
    Ok(ArrayStats { range, missing, count, blob: extra.map(<[u8]>::to_vec) })
}

pub(crate) fn could_contain(
    pool: &Pool,
    name: &str,
    lower: Option<&Value>,
    upper: Option<&Value>,
    collection: Option<&str>,
) -> Result<Vec<String>> {
    lower.into_iter().chain(upper).try_for_each(number)?;
    // Bytes that sort before, and after, those of every number.
    let lower = lower.map_or(Vec::new(), |v| v.sort_key().head);
    let upper = upper.map_or(vec![0xff], |v| v.sort_key().head);
    pool.read(|session| {
        let scope = scope(session, collection)?;
        let Some(mut parameters) = named(session, name)? else { return Ok(Vec::new()) };
        parameters.extend([lower.into(), upper.into()]);
        let sql = format!(
            "SELECT sources.location, arrays.object {JOINED}
             AND (count IS NULL OR count = 0 OR missing < count)
             AND (low IS NULL OR (high >= $4 AND low <= $5)) ORDER BY sources.location"
        );
        let found = collect(session, &sql, &parameters, |row| {
            holds(&scope, row.int(1)?).then(|| row.text(0).map(str::to_owned)).transpose()
        })?;
        let mut found: Vec<String> = found.into_iter().flatten().collect();
        found.dedup();
        Ok(found)
    })
}
