//! Tasks and partial results as bytes: a magic number, a version, a checksum, and what they are (docs/reference/tasks.md).

use sieva_plan::Plan;
use sieva_query::exec::Groups;
use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{Bx, Error, ErrorKind, Result, Selection, checked_len};

use super::disjoint::{Found as Disjointness, disjoint};
use super::partial::{Found, Partial};
use super::{Cut, Question, Task, TaskKind, check_box};
use crate::frame::{framed, opened};

const TASK: [u8; 4] = *b"SVTK";
const PARTIAL: [u8; 4] = *b"SVPR";
/// Where a question begins, before its kind: nothing is said of it.
pub(crate) const OPEN: u8 = 3;
/// What reading a task may take.
pub(crate) const TASK_MEMORY: u64 = 256 << 20;
/// What a partial result may take, where it is not said: as much as a query.
pub(crate) const PARTIAL_MEMORY: u64 = 1 << 30;

pub(crate) const TASK_SUBJECT: Subject = Subject {
    name: "task",
    kind: ErrorKind::InvalidValue,
    hint: "send it again, or make it anew from the query: what it was sent through has changed or cut it off",
};
pub(crate) const PARTIAL_SUBJECT: Subject = Subject {
    name: "partial result",
    kind: ErrorKind::InvalidValue,
    hint: "send it again, or run its task anew: what it was sent through has changed or cut it off",
};

impl Task {
    /// The task as bytes.
    ///
    /// # Errors
    /// As [`Plan::to_bytes`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut w = Writer::default();
        write_question(&mut w, &self.question);
        w.blob(&self.plan.to_bytes()?);
        write_box(&mut w, &self.bx);
        Ok(framed(TASK, w))
    }

    /// The task that [`Task::to_bytes`] wrote.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no task, damaged, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut r = opened(TASK, "SVTK", &TASK_SUBJECT, bytes, TASK_MEMORY)?;
        let question = read_question(&mut r)?;
        let plan = Plan::from_bytes(r.blob()?)?;
        let bx = read_box(&mut r, &question.space())?;
        if plan.id()? != question.plan {
            return Err(r.damaged("its plan is another"));
        }
        r.finish()?;
        Ok(Self { question, plan, bx })
    }
}

impl Partial {
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
        w.list(&self.boxes, write_box);
        match &self.found {
            Found::Count(n) => w.uint(*n),
            Found::Selection(found) => {
                let mut bytes = Vec::new();
                found.write_to(&mut bytes)?;
                w.blob(&bytes);
            }
            Found::Groups(groups) => groups.encode(&mut w),
            Found::Open => {}
        }
        Ok(framed(PARTIAL, w))
    }

    /// What [`Partial::to_bytes`] wrote; it, and what is merged with it, may take 1 GiB.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no partial result, damaged, or of another version; `memory-limit`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_within(bytes, PARTIAL_MEMORY)
    }

    /// The same, where it and what is merged with it may take so many bytes.
    ///
    /// # Errors
    /// As [`Partial::from_bytes`].
    pub fn from_bytes_within(bytes: &[u8], memory: u64) -> Result<Self> {
        let mut r = opened(PARTIAL, "SVPR", &PARTIAL_SUBJECT, bytes, memory)?;
        let read = Self::read(&mut r, memory);
        if read.is_err() && r.is_over() {
            let message = format!(
                "a partial result of {} bytes takes more than the limit of {memory} bytes",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint("allow it more memory"));
        }
        let read = read?;
        r.finish()?;
        Ok(read)
    }

    fn read(r: &mut Reader<'_>, memory: u64) -> Result<Self> {
        let (is_open, kind) = read_kind(r)?;
        let question = read_question_of(r, kind)?;
        let space = question.space();
        let boxes = r.list(|r| read_box(r, &space))?;
        match disjoint(boxes.iter()) {
            Disjointness::Disjoint => {}
            Disjointness::Overlapping => return Err(r.damaged("rows that were looked at twice")),
            Disjointness::TooMuch => return Err(r.damaged("boxes that are none of tasks")),
        }
        // Those of boxes that share none, of rows that can be counted.
        let rows: u64 = match question.cut {
            Some(_) => Bx::whole(&question.rows).len(),
            None => boxes.iter().map(Bx::len).sum(),
        };
        let found = match question.kind {
            _ if is_open => Found::Open,
            TaskKind::Count => match r.uint()? {
                n if n <= rows => Found::Count(n),
                n => return Err(r.damaged(format!("{n} rows of {rows}"))),
            },
            TaskKind::Selection => {
                let mut left = r.blob()?;
                let found = Selection::read_from(&mut left).map_err(|e| r.damaged(e.message()))?;
                if found.shape() != question.rows || found.len() > rows || !left.is_empty() {
                    return Err(r.damaged(format!("{found:?} of rows of shape {:?}", question.rows)));
                }
                Found::Selection(found)
            }
            TaskKind::Groups => Found::Groups(Box::new(Groups::decode(r, rows, memory)?)),
        };
        Ok(Self { question, boxes, found, memory })
    }
}

fn write_question(w: &mut Writer, question: &Question) {
    let Question { kind, plan, state, meaning, rows, cut } = question;
    w.byte(kind.code());
    w.text(plan);
    state.iter().for_each(|&n| w.uint(n));
    w.uint(*meaning);
    w.uints(rows);
    w.option(cut.as_ref(), |w, cut| {
        w.text(&cut.array);
        w.list(&cut.first, |w, &key| w.int(key));
    });
}

fn read_question(r: &mut Reader<'_>) -> Result<Question> {
    let code = r.byte()?;
    let kind = kind_of(r, code)?;
    read_question_of(r, kind)
}

pub(crate) fn kind_of(r: &Reader<'_>, code: u8) -> Result<TaskKind> {
    TaskKind::of_code(code).ok_or_else(|| r.damaged(format!("{code} is nothing that tasks give")))
}

/// Whether a partial result says nothing, and what was asked for.
pub(crate) fn read_kind(r: &mut Reader<'_>) -> Result<(bool, TaskKind)> {
    let first = r.byte()?;
    let is_open = first == OPEN;
    let code = if is_open { r.byte()? } else { first };
    match kind_of(r, code)? {
        TaskKind::Groups if is_open => Err(r.damaged("groups that are not said")),
        kind => Ok((is_open, kind)),
    }
}

fn read_question_of(r: &mut Reader<'_>, kind: TaskKind) -> Result<Question> {
    let plan = r.text()?;
    let state = [r.uint()?, r.uint()?, r.uint()?];
    let meaning = r.uint()?;
    let rows = r.uints()?;
    checked_len(&rows).map_err(|e: Error| r.damaged(e.message()))?;
    let cut = r.option(|r| Ok(Cut { array: r.text()?, first: r.list(Reader::int)? }))?;
    if cut.as_ref().is_some_and(|cut| !cut.first.is_sorted_by(|a, b| a < b)) {
        return Err(r.damaged("parts by values that do not follow one another"));
    }
    Ok(Question { kind, plan, state, meaning, rows, cut })
}

fn write_box(w: &mut Writer, bx: &Bx) {
    w.uints(&bx.start);
    w.uints(&bx.shape);
}

fn read_box(r: &mut Reader<'_>, rows: &[u64]) -> Result<Bx> {
    let (start, shape) = (r.uints()?, r.uints()?);
    if start.len() != shape.len() {
        return Err(r.damaged("a box of two ranks"));
    }
    let bx = Bx::new(start, shape);
    check_box(&bx, rows).map_err(|e| r.damaged(e.message()))?;
    Ok(bx)
}
