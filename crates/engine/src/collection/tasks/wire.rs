//! Tasks of collections and what they find as bytes, framed as those of sources are (docs/reference/tasks.md).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use sieva_catalog::Value;
use sieva_plan::Plan;
use sieva_query::exec::Groups;
use sieva_types::wire::{Reader, Writer};
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::super::keys::Class;
use super::super::objects::{Object, Pinned, SourceObjects};
use super::partial::{CollectionPartial, Found, MOST_ROWS, Seen};
use super::{CollectionTask, Question, check_range};
use crate::frame::{framed, opened};
use crate::tasks::TaskKind;
use crate::tasks::wire::{
    OPEN, PARTIAL_MEMORY, PARTIAL_SUBJECT, TASK_MEMORY, TASK_SUBJECT, kind_of, read_kind,
};

const TASK: [u8; 4] = *b"SVCT";
const PARTIAL: [u8; 4] = *b"SVCP";

impl CollectionTask {
    /// Whether bytes begin as those of a task of a collection do.
    pub fn is_begun_by(bytes: &[u8]) -> bool {
        bytes.starts_with(&TASK)
    }

    /// The task as bytes.
    ///
    /// # Errors
    /// As [`Plan::to_bytes`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut w = Writer::default();
        write_question(&mut w, &self.question);
        w.blob(&self.plan.to_bytes()?);
        w.uint(self.first);
        write_classes(&mut w, &self.classes);
        write_source(&mut w, &self.example);
        w.list(&self.sources, write_source);
        Ok(framed(TASK, w))
    }

    /// The task that [`CollectionTask::to_bytes`] wrote.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no task of a collection, damaged, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut r = opened(TASK, "SVCT", &TASK_SUBJECT, bytes, TASK_MEMORY)?;
        let question = read_question(&mut r)?;
        let plan = Plan::from_bytes(r.blob()?)?;
        let first = r.uint()?;
        let classes = r.list(read_class)?;
        let example = read_source(&mut r, &classes)?;
        let sources = r.list(|r| read_source(r, &classes))?;
        if let Some(s) = sources.iter().find(|s| s.pinned.as_ref().is_none_or(|p| p.content.is_none())) {
            return Err(r.damaged(format!("'{}' in no state", s.location)));
        }
        if plan.id()? != question.plan {
            return Err(r.damaged("its plan is another"));
        }
        let own: u64 = sources.iter().map(|s| s.objects.len() as u64).sum();
        let objects = first..first.saturating_add(own);
        check_range(&objects, question.count).map_err(|e| r.damaged(e.message()))?;
        r.finish()?;
        Ok(Self { question, plan, first, classes, example, sources })
    }
}

impl CollectionPartial {
    /// Whether bytes begin as those of a partial result of a collection do.
    pub fn is_begun_by(bytes: &[u8]) -> bool {
        bytes.starts_with(&PARTIAL)
    }

    /// What was found, as bytes.
    ///
    /// # Errors
    /// `invalid-value` for dimensions with names of more than 64 KiB.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut w = Writer::default();
        if matches!(self.found, Found::Open) {
            w.byte(OPEN);
        }
        write_question(&mut w, &self.question);
        let Seen { ranges, rows, evaluated, lacking } = &self.seen;
        w.list(ranges, |w, range| {
            w.uint(range.start);
            w.uint(range.end);
        });
        [rows, evaluated, lacking].into_iter().for_each(|&n| w.uint(n));
        match &self.found {
            Found::Count(n) => w.uint(*n),
            Found::Rows(all) => {
                w.uint(all.len() as u64);
                for (number, selection) in all {
                    w.uint(*number);
                    let mut bytes = Vec::new();
                    selection.write_to(&mut bytes)?;
                    w.blob(&bytes);
                }
            }
            Found::Groups(groups) => groups.encode(&mut w),
            Found::Open => {}
        }
        Ok(framed(PARTIAL, w))
    }

    /// What [`CollectionPartial::to_bytes`] wrote; it, and what is merged with it, may take 1 GiB.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no partial result of a collection, damaged, or of another version;
    /// `memory-limit`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_within(bytes, PARTIAL_MEMORY)
    }

    /// The same, where it and what is merged with it may take so many bytes.
    ///
    /// # Errors
    /// As [`CollectionPartial::from_bytes`].
    pub fn from_bytes_within(bytes: &[u8], memory: u64) -> Result<Self> {
        let mut r = opened(PARTIAL, "SVCP", &PARTIAL_SUBJECT, bytes, memory)?;
        let read = Self::read(&mut r, memory);
        if read.is_err() && r.is_over() {
            let n = bytes.len();
            let message =
                format!("a partial result of {n} bytes takes more than the limit of {memory} bytes");
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint("allow it more memory"));
        }
        let read = read?;
        r.finish()?;
        Ok(read)
    }

    fn read(r: &mut Reader<'_>, memory: u64) -> Result<Self> {
        let (is_open, kind) = read_kind(r)?;
        let question = read_question_of(r, kind)?;
        let seen = read_seen(r, &question)?;
        let found = match question.kind {
            _ if is_open => Found::Open,
            TaskKind::Count => match r.uint()? {
                n if n <= seen.rows => Found::Count(n),
                n => return Err(r.damaged(format!("{n} rows of {}", seen.rows))),
            },
            TaskKind::Selection => Found::Rows(read_rows(r, &seen)?),
            TaskKind::Groups => Found::Groups(Box::new(Groups::decode(r, seen.rows, memory)?)),
        };
        Ok(Self { question, seen, found, memory })
    }
}

fn read_seen(r: &mut Reader<'_>, question: &Question) -> Result<Seen> {
    let ranges = r.list(|r| Ok(r.uint()?..r.uint()?))?;
    let mut next = 0;
    for range in &ranges {
        check_range(range, question.count).map_err(|e| r.damaged(e.message()))?;
        if range.is_empty() || range.start < next {
            return Err(r.damaged("objects that are not in order, or were looked at twice"));
        }
        next = range.end;
    }
    let [rows, evaluated, lacking] = [r.uint()?, r.uint()?, r.uint()?];
    let seen = Seen { ranges, rows, evaluated, lacking };
    if rows > MOST_ROWS || evaluated.checked_add(lacking) != Some(seen.objects()) {
        let objects = seen.objects();
        return Err(
            r.damaged(format!("{rows} rows of {evaluated} and {lacking} objects, which are {objects}"))
        );
    }
    Ok(seen)
}

fn read_rows(r: &mut Reader<'_>, seen: &Seen) -> Result<BTreeMap<u64, Arc<Selection>>> {
    let n = r.uint()?;
    if n != seen.evaluated {
        return Err(r.damaged(format!("positions of {n} objects of {}", seen.evaluated)));
    }
    let (mut all, mut rows) = (BTreeMap::new(), 0_u64);
    for _ in 0..n {
        let number = r.uint()?;
        let is_seen = seen.ranges.iter().any(|range: &Range<u64>| range.contains(&number));
        if !is_seen || all.last_key_value().is_some_and(|(&last, _)| last >= number) {
            return Err(r.damaged(format!("positions of object {number}")));
        }
        let mut left = r.blob()?;
        let found = Selection::read_from(&mut left).map_err(|e| r.damaged(e.message()))?;
        rows = rows.saturating_add(found.len());
        if !left.is_empty() || rows > seen.rows {
            return Err(r.damaged(format!("{found:?} of object {number}")));
        }
        r.charge(usize::try_from(found.memory_bytes()).unwrap_or(usize::MAX))?;
        all.insert(number, Arc::new(found));
    }
    Ok(all)
}

fn write_question(w: &mut Writer, question: &Question) {
    let Question { kind, plan, objects, states, meaning, count } = question;
    w.byte(kind.code());
    w.text(plan);
    [objects, states, meaning, count].into_iter().for_each(|&n| w.uint(n));
}

fn read_question(r: &mut Reader<'_>) -> Result<Question> {
    let code = r.byte()?;
    let kind = kind_of(r, code)?;
    read_question_of(r, kind)
}

fn read_question_of(r: &mut Reader<'_>, kind: TaskKind) -> Result<Question> {
    let plan = r.text()?;
    let [objects, states, meaning, count] = [r.uint()?, r.uint()?, r.uint()?, r.uint()?];
    Ok(Question { kind, plan, objects, states, meaning, count })
}

/// A source with its objects, and what is known of it.
pub(in crate::collection) fn write_source(w: &mut Writer, source: &SourceObjects) {
    w.text(&source.location);
    w.option(source.pinned.as_ref(), |w, pinned| {
        pinned.state.iter().for_each(|&n| w.uint(n));
        w.option(pinned.content, |w, content| w.uint(content));
        w.option(pinned.manifest.as_deref(), |w, bytes| w.blob(bytes));
    });
    write_objects(w, &source.objects);
}

/// What [`write_source`] wrote, with at least one object.
pub(in crate::collection) fn read_source(r: &mut Reader<'_>, classes: &[Class]) -> Result<SourceObjects> {
    let location = r.text()?;
    let pinned = r.option(|r| {
        let (state, content) = ([r.uint()?, r.uint()?], r.option(Reader::uint)?);
        let manifest = r.option(Reader::blob)?;
        r.charge(manifest.map_or(0, <[u8]>::len))?;
        Ok(Pinned { state, content, manifest: manifest.map(Arc::from) })
    })?;
    let objects = r.list(|r| read_object(r, classes))?;
    if objects.is_empty() {
        return Err(r.damaged(format!("no object of '{location}'")));
    }
    Ok(SourceObjects { location, objects, pinned })
}

pub(in crate::collection) fn write_classes(w: &mut Writer, classes: &[Class]) {
    w.list(classes, |w, class| {
        let code = Class::ALL.iter().position(|c| c == class).unwrap_or_default();
        w.byte(code as u8);
    });
}

pub(in crate::collection) fn read_class(r: &mut Reader<'_>) -> Result<Class> {
    let code = r.byte()?;
    let class = Class::ALL.get(usize::from(code)).copied();
    class.ok_or_else(|| r.damaged(format!("{code} is no type of a key")))
}

pub(super) fn write_objects(w: &mut Writer, objects: &[Object]) {
    w.list(objects, |w, object| {
        w.text(&object.group);
        w.list(&object.values, |w, value| match value {
            None => w.byte(0),
            Some(Value::Bool(b)) => w.byte(1 + u8::from(*b)),
            Some(Value::Int(i)) => {
                w.byte(3);
                w.int((*i).into());
            }
            Some(Value::UInt(u)) => {
                w.byte(4);
                w.uint(*u);
            }
            Some(Value::Float(f)) => {
                w.byte(5);
                w.float(*f);
            }
            Some(Value::Text(s)) => {
                w.byte(6);
                w.text(s);
            }
        });
    });
}

/// An object with a value of each key, of the key's type.
fn read_object(r: &mut Reader<'_>, classes: &[Class]) -> Result<Object> {
    let group = r.text()?;
    let values = r.list(read_value)?;
    let fits = |(value, class): (&Option<Value>, &Class)| value.as_ref().is_none_or(|v| class.takes(v));
    if values.len() != classes.len() || !values.iter().zip(classes).all(fits) {
        return Err(r.damaged(format!("the keys of object '{group}'")));
    }
    Ok(Object { group, values })
}

fn read_value(r: &mut Reader<'_>) -> Result<Option<Value>> {
    Ok(Some(match r.byte()? {
        0 => return Ok(None),
        code @ (1 | 2) => Value::Bool(code == 2),
        3 => {
            let value = r.int()?;
            Value::Int(
                i64::try_from(value).map_err(|_| r.damaged(format!("{value} as an integer of 64 bits")))?,
            )
        }
        4 => Value::UInt(r.uint()?),
        5 => Value::Float(r.float()?),
        6 => Value::Text(r.text()?),
        code => return Err(r.damaged(format!("{code} is no kind of value"))),
    }))
}
