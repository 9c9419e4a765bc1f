//! Registers sources: what has changed is replaced, wholly or not at all.

use std::collections::HashMap;
use std::time::SystemTime;

use sieva_types::{Error, ErrorKind, Result};

use crate::backend::{Cell, Pool, Session, collect, first, tables};
use crate::known::{self, Stored};
use crate::limits;
use crate::names;
use crate::packed::{self, Entry};
use crate::record::{ObjectRecord, SourceRecord};
use crate::statistics;
use crate::terms::{self, Holder, Term};
use crate::tree::{self, Node, leaf};
use crate::value::Value;
use crate::{collections, forget, tags};

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    /// Sources that were not known.
    pub added: u64,
    /// Sources that had changed.
    pub replaced: u64,
    /// Sources that were as they are known.
    pub unchanged: u64,
    /// Objects of the sources that were added or replaced, with groups that were only implied.
    pub objects: u64,
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

pub(crate) fn ingest(pool: &Pool, batch: &[SourceRecord]) -> Result<IngestReport> {
    // Of a location that is there twice the last counts.
    let latest: HashMap<&str, usize> =
        batch.iter().enumerate().map(|(i, s)| (s.location.as_str(), i)).collect();
    let mut trees = Vec::with_capacity(latest.len());
    for (i, source) in batch.iter().enumerate() {
        if latest.get(source.location.as_str()) == Some(&i) {
            check(source)?;
            trees.push((source, tree::build(&source.objects).map_err(|e| e.at(&source.location))?));
        }
    }
    pool.write(|session| write(session, &trees))
}

fn check(source: &SourceRecord) -> Result<()> {
    limits::location(&source.location)?;
    let checked = || -> Result<()> {
        limits::name("format", &source.format)?;
        limits::name("version", &source.version)?;
        limits::text("error", source.error.as_deref().unwrap_or_default())?;
        limits::signed("size", source.size)?;
        source.collections.iter().try_for_each(|name| limits::name("collection", name))?;
        source.objects.iter().try_for_each(|object| {
            check_object(object).map_err(|e| e.at(format!("'{}'", shown(&object.path))))
        })
    };
    checked().map_err(|e| e.at(&source.location))
}

fn shown(path: &str) -> String {
    path.chars().take(80).collect::<String>().escape_debug().to_string()
}

fn check_object(object: &ObjectRecord) -> Result<()> {
    limits::path(&object.path)?;
    limits::name("dtype", &object.dtype)?;
    object.element_count()?;
    limits::signed("stored bytes", object.stored_bytes.unwrap_or(0))?;
    let count = object.attributes.len();
    let texts = object.attributes.iter().map(|(_, v)| if let Value::Text(text) = v { text.len() } else { 0 });
    let bytes: usize = texts.sum();
    if count > limits::MAX_ATTRIBUTES || bytes > limits::MAX_TEXTS {
        let (most, room) = (limits::MAX_ATTRIBUTES, limits::MAX_TEXTS);
        let message =
            format!("{count} attributes with {bytes} bytes of text; at most {most} with {room} are kept");
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("leave some out"));
    }
    for (key, value) in &object.attributes {
        limits::name("key", key)?;
        limits::value(key, value)?;
    }
    object.stats.as_ref().map_or(Ok(()), statistics::check)
}

type Tree<'a> = (&'a SourceRecord, Vec<Node<'a>>);

/// Rows of the tables with many rows.
#[derive(Default)]
struct Rows {
    objects: Vec<Vec<Cell>>,
    arrays: Vec<Vec<Cell>>,
    stats: Vec<Vec<Cell>>,
    terms: Vec<Term>,
}

fn write(session: &mut dyn Session, trees: &[Tree<'_>]) -> Result<IngestReport> {
    let locations: Vec<&str> = trees.iter().map(|(source, _)| source.location.as_str()).collect();
    let stored = known::stored_of(session, &locations)?.into_iter().map(|s| (s.location.clone(), s));
    let mut stored: HashMap<String, Stored> = stored.collect();
    let mut report = IngestReport::default();
    let mut changed = Vec::new();
    for tree in trees {
        let before = stored.remove(&tree.0.location);
        match before {
            Some(source) if is_same(&source, tree.0) => {
                report.unchanged += 1;
                collections::join(session, source.id, tree.0)?;
            }
            before => {
                report.added += u64::from(before.is_none());
                report.replaced += u64::from(before.is_some());
                report.objects += tree.1.len() as u64;
                changed.push((tree, before));
            }
        }
    }
    let numbers = names::intern(session, changed.iter().flat_map(|(tree, _)| used_names(tree)))?;
    let mut next = reserve(session, report.objects)?;
    let mut rows = Rows::default();
    for (tree, before) in changed {
        let source = put_source(session, tree, before, next)?;
        add_rows(session, tree, source, next, &numbers, &mut rows)?;
        next += tree.1.len() as i64;
    }
    // In the order of the index its pages are touched once.
    rows.terms.sort_unstable();
    session.insert(&tables::OBJECTS, &mut rows.objects.into_iter())?;
    rows.arrays.sort_by_key(|row| {
        if let (Cell::Int(a), Cell::Int(b)) = (&row[0], &row[1]) { (*a, *b) } else { (0, 0) }
    });
    session.insert(&tables::ARRAYS, &mut rows.arrays.into_iter())?;
    session.insert(&tables::STATS, &mut rows.stats.into_iter())?;
    session.insert(&tables::TERMS, &mut rows.terms.iter().map(terms::row))?;
    Ok(report)
}

fn is_same(stored: &Stored, record: &SourceRecord) -> bool {
    stored.size == record.size
        && stored.version == record.version
        && stored.format == record.format
        && stored.error == record.error
}

/// Keys of attributes, and names of arrays.
fn used_names<'a>(tree: &'a Tree<'_>) -> impl Iterator<Item = &'a str> {
    let records = || tree.1.iter().filter_map(|node| node.record);
    let keys = records().flat_map(|record| record.attributes.iter().map(|(key, _)| key.as_str()));
    keys.chain(records().map(|record| leaf(&record.path)))
}

/// Numbers for so many objects: the first of them. No number is given twice.
fn reserve(session: &mut dyn Session, count: u64) -> Result<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'next_object'";
    let next = first(session, sql, &[], |row| row.int(0))?.unwrap_or(1).max(1);
    let after = i64::try_from(count).ok().and_then(|n| next.checked_add(n));
    let after = after.ok_or_else(|| Error::corrupt("the catalog has no numbers left for objects"))?;
    session.run("UPDATE meta SET value = $1 WHERE name = 'next_object'", &[after.into()])?;
    Ok(next)
}

/// Writes the row of a source, without what was known of its objects before; its number.
fn put_source(
    session: &mut dyn Session,
    tree: &Tree<'_>,
    before: Option<Stored>,
    first_id: i64,
) -> Result<i64> {
    let (source, nodes) = tree;
    let last = first_id + nodes.len() as i64 - 1;
    let cells = vec![
        source.location.clone().into(),
        source.format.clone().into(),
        Cell::Int(limits::signed("size", source.size)?),
        source.version.clone().into(),
        now().into(),
        source.error.clone().into(),
        first_id.into(),
        last.into(),
        source.statistics.clone().into(),
    ];
    if let Some(before) = &before {
        forget::objects(session, before)?;
    }
    let sql =
        "INSERT INTO sources (location, format, size, version, registered, error, first, last, statistics)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (location) DO UPDATE SET format = excluded.format, size = excluded.size,
            version = excluded.version, registered = excluded.registered, error = excluded.error,
            first = excluded.first, last = excluded.last, statistics = excluded.statistics
        RETURNING id";
    let id = first(session, sql, &cells, |row| row.int(0))?.unwrap_or_default();
    if before.is_some() || source.manifest.is_some() {
        known::put_manifest(session, id, source.manifest.as_deref())?;
    }
    collections::join(session, id, source)?;
    Ok(id)
}

fn add_rows(
    session: &mut dyn Session,
    (_, nodes): &Tree<'_>,
    source: i64,
    base: i64,
    numbers: &HashMap<String, i64>,
    rows: &mut Rows,
) -> Result<()> {
    let mut user_tags = tags::of_source(session, source)?;
    let number = |name: &str| numbers.get(name).copied().unwrap_or_default();
    let mut holders = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let (id, last) = (base + i as i64, base + node.last as i64);
        let mut entries = own_entries(node, &number);
        entries.extend(user_tags.remove(&node.path).unwrap_or_default());
        rows.objects.push(object_row(node, id, source, base + node.parent as i64, last, &entries)?);
        if let Some(record) = node.record.filter(|r| r.kind == crate::ObjectKind::Array) {
            let leaf = number(leaf(&node.path));
            rows.arrays.push(statistics::array_row(leaf, id, record.stats.as_ref()));
            rows.stats.extend(record.stats.as_ref().and_then(|stats| statistics::row(id, stats)));
        }
        if !entries.is_empty() {
            holders.push(Holder { id, last, entries });
        }
    }
    rows.terms.extend(terms::of(&holders, None));
    Ok(())
}

/// The attributes of an object; of a key that is there twice the last.
fn own_entries(node: &Node<'_>, number: &impl Fn(&str) -> i64) -> Vec<Entry> {
    let attributes = node.record.map_or(&[][..], |record| &record.attributes);
    let mut entries: Vec<Entry> = Vec::with_capacity(attributes.len());
    let mut places: HashMap<i64, usize> = HashMap::with_capacity(attributes.len());
    for (key, value) in attributes {
        let key = number(key);
        let value: Value = value.clone();
        match places.get(&key) {
            Some(&place) => entries[place].2 = value,
            None => {
                places.insert(key, entries.len());
                entries.push((key, false, value));
            }
        }
    }
    entries
}

fn object_row(
    node: &Node<'_>,
    id: i64,
    source: i64,
    parent: i64,
    last: i64,
    entries: &[Entry],
) -> Result<Vec<Cell>> {
    let record = node.record;
    let kind = record.map_or(crate::ObjectKind::Group, |r| r.kind);
    let is_array = kind == crate::ObjectKind::Array;
    let elements = record.filter(|_| is_array).map_or(Ok(0), ObjectRecord::element_count)?;
    let stored =
        record.and_then(|r| r.stored_bytes).map(|n| limits::signed("stored bytes", n)).transpose()?;
    Ok(vec![
        id.into(),
        source.into(),
        parent.into(),
        last.into(),
        kind.code().into(),
        node.path.clone().into(),
        record.map_or("", |r| r.dtype.as_str()).into(),
        packed::shape(record.map_or(&[], |r| &r.shape)).into(),
        Cell::Int(limits::signed("elements", elements)?),
        stored.into(),
        packed::entries(entries).into(),
    ])
}

/// Numbers of all objects of sources, as (first, last).
pub(crate) fn spans(session: &mut dyn Session, sql: &str, parameters: &[Cell]) -> Result<Vec<(i64, i64)>> {
    collect(session, sql, parameters, |row| Ok((row.int(0)?, row.int(1)?)))
}
