//! Questions: which objects satisfy a filter, page by page.

use std::collections::HashMap;

use sieva_types::Result;

use crate::backend::{Cell, Pool, Session, first};
use crate::collections;
use crate::evaluate::{Evaluator, FIRST_CAP};
use crate::filter::{self, Filter, Plan, Test};
use crate::intervals::Intervals;
use crate::limits;
use crate::names;
use crate::record::ObjectKind;
use crate::tree::leaf;
use crate::value::SortKey;

/// A question.
#[derive(Clone, Debug)]
pub struct Find {
    /// What the objects have to satisfy.
    pub filter: Filter,
    /// Of this kind; `None`: groups and arrays.
    pub kind: Option<ObjectKind>,
    /// Of this path, or this last part of a path.
    pub name: Option<String>,
    /// In sources of this collection.
    pub collection: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// With a greater number than this: the last one of the page before.
    pub after: Option<i64>,
}

impl Find {
    /// All arrays that satisfy a filter.
    pub fn new(filter: Filter) -> Self {
        let kind = Some(ObjectKind::Array);
        Self { filter, kind, name: None, collection: None, limit: usize::MAX, after: None }
    }

    /// Groups, arrays, or both.
    #[must_use]
    pub fn kind(mut self, kind: Option<ObjectKind>) -> Self {
        self.kind = kind;
        self
    }

    /// Only objects of this path, or this last part of a path.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only objects in sources of this collection.
    #[must_use]
    pub fn collection(mut self, name: impl Into<String>) -> Self {
        self.collection = Some(name.into());
        self
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Those after the last one of the page before.
    #[must_use]
    pub fn after(mut self, after: Option<i64>) -> Self {
        self.after = after;
        self
    }
}

/// An object that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Location of its source.
    pub location: String,
    /// Its path.
    pub path: String,
    /// Group or array.
    pub kind: ObjectKind,
    /// Its number, which stays until its source changes.
    pub id: i64,
}

/// Answers a question.
pub(crate) fn find(pool: &Pool, find: &Find) -> Result<Vec<ObjectRef>> {
    let mut page = Page { find, found: Vec::new(), locations: HashMap::new() };
    pool.read(|session| {
        visit(session, find, &mut |session, objects| page.take(session, objects))?;
        Ok(std::mem::take(&mut page.found))
    })
}

/// Counts the objects that a question without limit finds.
pub(crate) fn count(pool: &Pool, find: &Find) -> Result<u64> {
    pool.read(|session| {
        let mut total = 0;
        visit(session, find, &mut |session, objects| {
            for &(low, high) in objects.parts() {
                total += count_between(session, find, low, high)?;
            }
            Ok(true)
        })?;
        Ok(total)
    })
}

fn count_between(session: &mut dyn Session, find: &Find, low: i64, high: i64) -> Result<u64> {
    let kind = kind_code(find);
    if find.name.is_none() {
        let sql = "SELECT count(*) FROM objects WHERE id BETWEEN $1 AND $2 AND (kind = $3 OR $3 = -1)";
        return Ok(first(session, sql, &[low.into(), high.into(), kind], |row| row.count(0))?.unwrap_or(0));
    }
    let sql = "SELECT path FROM objects WHERE id BETWEEN $1 AND $2 AND (kind = $3 OR $3 = -1)";
    let mut total = 0;
    session.each(sql, &[low.into(), high.into(), kind], &mut |row| {
        total += u64::from(is_named(find, row.text(0)?));
        Ok(true)
    })?;
    Ok(total)
}

fn kind_code(find: &Find) -> Cell {
    Cell::Int(find.kind.map_or(-1, ObjectKind::code))
}

fn is_named(find: &Find, path: &str) -> bool {
    find.name.as_ref().is_none_or(|name| name == path || name == leaf(path))
}

/// What is done with intervals of objects, in order; false: no more are needed.
type Visitor<'v> = dyn FnMut(&mut dyn Session, &Intervals) -> Result<bool> + 'v;

fn visit(session: &mut dyn Session, find: &Find, visitor: &mut Visitor<'_>) -> Result<()> {
    let plan = filter::plan(&find.filter)?;
    let from = find.after.map_or(0, |id| id.saturating_add(1).max(0));
    let mut within = Intervals::of(vec![(from, i64::MAX)]);
    if let Some(name) = &find.collection {
        within = within.and(&collections::objects(session, name)?);
    }
    if let Some(name) = &find.name {
        limits::path(name)?;
    }
    if let Some(found) = Evaluator::new(session).attempt(&plan, &within, FIRST_CAP)? {
        return visitor(session, &found).map(|_| ());
    }
    match driver(&plan) {
        Some((key, value)) => walk(session, &plan, &within, key, value, visitor),
        None => {
            let found = Evaluator::new(session).evaluate(&plan, &within)?;
            visitor(session, &found).map(|_| ())
        }
    }
}

/// A comparison with one value that all objects have to satisfy: its rows are in the order of objects.
fn driver(plan: &Plan) -> Option<(&str, &SortKey)> {
    match plan {
        Plan::Leaf(key, Test::Ranges(ranges)) => match ranges.as_slice() {
            [range] if range.is_point() => Some((key, &range.low)),
            _ => None,
        },
        Plan::And(parts) => parts.iter().find_map(driver),
        _ => None,
    }
}

/// Rows of one stretch.
const STRETCH: usize = 1024;

/// Goes along the rows of one comparison, asking the others for each stretch, so that a page needs no whole answer.
fn walk(
    session: &mut dyn Session,
    plan: &Plan,
    within: &Intervals,
    key: &str,
    value: &SortKey,
    visitor: &mut Visitor<'_>,
) -> Result<()> {
    let Some(key) = names::find(session, key)? else { return Ok(()) };
    let Some((mut low, high)) = within.bounds() else { return Ok(()) };
    loop {
        let mut parts = Vec::new();
        let ended = Evaluator::new(session).point(key, value, (low, high), STRETCH, &mut parts)?;
        let last = parts.last().map(|&(_, last)| last);
        let stretch = Intervals::of(parts).and(&Intervals::of(vec![(low, high)])).and(within);
        let found = Evaluator::new(session).evaluate(plan, &stretch)?;
        if !visitor(session, &found)? || ended {
            return Ok(());
        }
        // Rows of the same head and another rest fill a stretch without bringing anything.
        let Some(last) = last else { return whole(session, plan, within, low, visitor) };
        low = last.saturating_add(1);
        if low > high {
            return Ok(());
        }
    }
}

fn whole(
    session: &mut dyn Session,
    plan: &Plan,
    within: &Intervals,
    low: i64,
    visitor: &mut Visitor<'_>,
) -> Result<()> {
    let rest = within.and(&Intervals::of(vec![(low, i64::MAX)]));
    let found = Evaluator::new(session).evaluate(plan, &rest)?;
    visitor(session, &found).map(|_| ())
}

struct Page<'a> {
    find: &'a Find,
    found: Vec<ObjectRef>,
    locations: HashMap<i64, String>,
}

impl Page<'_> {
    /// Takes objects until the page is full; whether there is room for more.
    fn take(&mut self, session: &mut dyn Session, objects: &Intervals) -> Result<bool> {
        let kind = kind_code(self.find);
        let mut taken: Vec<(i64, ObjectRef)> = Vec::new();
        let sql =
            "SELECT id, source, path, kind FROM objects WHERE id BETWEEN $1 AND $2 AND (kind = $3 OR $3 = -1)
            ORDER BY id";
        for &(low, high) in objects.parts() {
            let room = self.find.limit.saturating_sub(self.found.len() + taken.len());
            if room == 0 {
                break;
            }
            let end = taken.len().saturating_add(room);
            session.each(sql, &[low.into(), high.into(), kind.clone()], &mut |row| {
                let path = row.text(2)?;
                if is_named(self.find, path) {
                    let kind = ObjectKind::from_code(row.int(3)?)?;
                    let object =
                        ObjectRef { location: String::new(), path: path.to_owned(), kind, id: row.int(0)? };
                    taken.push((row.int(1)?, object));
                }
                Ok(taken.len() < end)
            })?;
        }
        for (source, mut object) in taken {
            object.location = self.location(session, source)?;
            self.found.push(object);
        }
        Ok(self.found.len() < self.find.limit)
    }

    fn location(&mut self, session: &mut dyn Session, source: i64) -> Result<String> {
        if let Some(location) = self.locations.get(&source) {
            return Ok(location.clone());
        }
        let sql = "SELECT location FROM sources WHERE id = $1";
        let found = first(session, sql, &[source.into()], |row| row.text(0).map(str::to_owned))?;
        let location = found.unwrap_or_default();
        self.locations.insert(source, location.clone());
        Ok(location)
    }
}
