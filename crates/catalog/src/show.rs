//! Objects with all that is known of them.

use std::collections::{BTreeSet, HashMap};

use sieva_types::Result;

use crate::backend::{Cell, Pool, Session, collect};
use crate::known::{self, SourceInfo};
use crate::limits;
use crate::names;
use crate::packed::{self, Entry};
use crate::record::{ArrayStats, ObjectKind};
use crate::statistics;
use crate::tags;
use crate::value::Value;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file.
    Attribute,
    /// A user.
    Tag,
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectInfo {
    /// Its number, which stays until its source changes.
    pub id: i64,
    /// Its path; `""` is the root.
    pub path: String,
    /// Group or array.
    pub kind: ObjectKind,
    /// Element type as text; empty for a group.
    pub dtype: String,
    /// Shape; empty for a group and for a scalar.
    pub shape: Vec<u64>,
    /// Elements of an array; 0 for a group.
    pub elements: u64,
    /// Stored bytes, where known.
    pub stored_bytes: Option<u64>,
    /// Its own attributes and tags in the order of the file, tags last; a key may be there as both.
    pub attributes: Vec<(String, Value, Origin)>,
    /// Statistics, where known.
    pub stats: Option<ArrayStats>,
}

pub(crate) fn show(pool: &Pool, location: &str) -> Result<Option<(SourceInfo, Vec<ObjectInfo>)>> {
    limits::location(location)?;
    pool.read(|session| {
        let Some(info) = known::info(session, location)? else { return Ok(None) };
        let Some(source) = known::stored(session, location)? else { return Ok(None) };
        Ok(Some((info, objects(session, source.first, source.last)?)))
    })
}

pub(crate) fn object(pool: &Pool, location: &str, path: &str) -> Result<Option<ObjectInfo>> {
    limits::location(location)?;
    pool.read(|session| {
        let Some(source) = known::stored(session, location)? else { return Ok(None) };
        let Some(id) = tags::find(session, &source, path)? else { return Ok(None) };
        Ok(objects(session, id, id)?.pop())
    })
}

/// The objects with numbers from `first` to `last`.
fn objects(session: &mut dyn Session, first: i64, last: i64) -> Result<Vec<ObjectInfo>> {
    let sql = "SELECT id, path, kind, dtype, shape, elements, stored_bytes, attributes FROM objects
        WHERE id BETWEEN $1 AND $2 ORDER BY id";
    let found = collect(session, sql, &[first.into(), last.into()], |row| {
        let info = ObjectInfo {
            id: row.int(0)?,
            path: row.text(1)?.to_owned(),
            kind: ObjectKind::from_code(row.int(2)?)?,
            dtype: row.text(3)?.to_owned(),
            shape: packed::read_shape(row.blob(4)?)?,
            elements: row.count(5)?,
            stored_bytes: row.optional_count(6)?,
            attributes: Vec::new(),
            stats: None,
        };
        Ok((info, packed::read_entries(row.blob(7)?)?))
    })?;
    let keys: BTreeSet<i64> = found.iter().flat_map(|(_, entries)| entries.iter().map(|e| e.0)).collect();
    let keys = names::of_numbers(session, keys)?;
    let mut infos: Vec<ObjectInfo> =
        found.into_iter().map(|(info, entries)| described(info, entries, &keys)).collect();
    add_stats(session, &mut infos)?;
    Ok(infos)
}

fn described(mut info: ObjectInfo, entries: Vec<Entry>, keys: &HashMap<i64, String>) -> ObjectInfo {
    let described = entries.into_iter().map(|(key, is_tag, value)| {
        let origin = if is_tag { Origin::Tag } else { Origin::Attribute };
        (keys.get(&key).cloned().unwrap_or_default(), value, origin)
    });
    info.attributes = described.collect();
    info
}

fn add_stats(session: &mut dyn Session, infos: &mut [ObjectInfo]) -> Result<()> {
    let leaves = infos.iter().filter(|i| i.kind == ObjectKind::Array).map(|i| crate::tree::leaf(&i.path));
    let leaves: BTreeSet<String> = leaves.map(str::to_owned).collect();
    let Some((first, last)) = infos.first().map(|i| i.id).zip(infos.last().map(|i| i.id)) else {
        return Ok(());
    };
    let mut stats = HashMap::new();
    for leaf in leaves {
        let Some(number) = names::find(session, &leaf)? else { continue };
        let sql = "SELECT arrays.object, missing, count, bounds, extra FROM arrays
            LEFT JOIN stats ON stats.object = arrays.object
            WHERE leaf = $1 AND arrays.object BETWEEN $2 AND $3 AND count IS NOT NULL";
        let parameters = [Cell::Int(number), first.into(), last.into()];
        stats.extend(collect(session, sql, &parameters, |row| {
            let bounds = row.optional_blob(3)?;
            Ok((row.int(0)?, statistics::read(row.count(2)?, row.count(1)?, bounds, row.optional_blob(4)?)?))
        })?);
    }
    infos.iter_mut().for_each(|info| info.stats = stats.remove(&info.id));
    Ok(())
}
