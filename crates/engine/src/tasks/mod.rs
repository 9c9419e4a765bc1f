//! Tasks: parts of the work of a query, for whoever runs them elsewhere.
//!
//! A [`Task`] is a plan, a box of its rows, and what tells the state of the source. [`Source::run_task`] makes a [`Partial`]
//! of it, in any process that can open the source. Partial results are merged in any order, and [`Query::finish`] gives the
//! answer of the whole query, to the bit. Both are bytes where they travel.

mod disjoint;
mod kind;
mod partial;
mod run;
pub(crate) mod wire;

use sieva_plan::{Plan, SourceRef};
use sieva_types::{Bx, Error, ErrorKind, KeySet, Result};

pub use kind::TaskKind;
pub use partial::Partial;
pub use run::Work;

use crate::augment::{check_state, state_of};
use crate::open::Source;
use crate::query::Query;

/// What a question is asked of, and which: parts of one answer have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    kind: TaskKind,
    /// [`Plan::id`].
    plan: String,
    /// The state of the source: length, and hashes of its version and content.
    state: [u64; 3],
    /// A hash of how it was opened, as far as that changes what its values mean.
    meaning: u64,
    /// Lengths of the rows' dimensions.
    rows: Vec<u64>,
    /// How the rows are cut, where that is by values.
    cut: Option<Cut>,
}

/// Rows cut by the values of an array, into parts with numbers: boxes are of these then.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    /// Its path in the schema.
    array: String,
    /// The first key of each part but the first, ascending. NaN is in the last.
    first: Vec<i128>,
}

impl Cut {
    /// The keys of the parts in a box of their numbers.
    fn keys(&self, bx: &Bx) -> KeySet {
        if bx.is_empty() {
            return KeySet::EMPTY;
        }
        let (from, end) = (bx.start[0] as usize, bx.end(0) as usize);
        let low = from.checked_sub(1).map_or(i128::MIN, |k| self.first[k]);
        let high = self.first.get(end.saturating_sub(1)).map_or(i128::MAX, |next| next.saturating_sub(1));
        KeySet { nan: end > self.first.len(), ..KeySet::interval(low, high) }
    }
}

impl Question {
    fn of(query: &Query, plan: &Plan, kind: TaskKind) -> Result<Self> {
        let source = query.source();
        Ok(Self {
            kind,
            plan: plan.id()?,
            state: state_of(source)?,
            meaning: meaning_of(source),
            rows: query.bound().rows.shape.clone(),
            cut: None,
        })
    }

    /// What boxes of tasks are of: the rows, or the numbers of parts.
    fn space(&self) -> Vec<u64> {
        self.cut.as_ref().map_or_else(|| self.rows.clone(), |cut| vec![cut.first.len() as u64 + 1])
    }

    /// That the source is the one that was asked of, in its state of then.
    fn check(&self, source: &Source) -> Result<()> {
        if self.meaning != meaning_of(source) {
            let message = format!("'{}' was opened in another way than for the task", source.name());
            return Err(Error::new(ErrorKind::InvalidValue, message)
                .hint("open it with the same dims=, valid_range= and join="));
        }
        check_state(source, self.state)
    }
}

fn meaning_of(source: &Source) -> u64 {
    sieva_index::content_hash(source.meaning().as_bytes())
}

/// A part of the work of a query: what is asked, of which rows, of which state of a source.
///
/// ```no_run
/// # fn main() -> sieva::Result<()> {
/// let source = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?;
/// let options = sieva::QueryOptions::default();
/// let query = source.sql("SELECT month(time), avg(TEMP) GROUP BY 1", &options)?;
/// let mut whole: Option<sieva::Partial> = None;
/// for task in query.tasks(8)? {
///     // Anywhere: another process opens the source, and gets and gives back bytes.
///     let task = sieva::Task::from_bytes(&task.to_bytes()?)?;
///     let part = sieva::Partial::from_bytes(&source.run_task(&task, &options)?.to_bytes()?)?;
///     match &mut whole {
///         Some(whole) => whole.merge(part)?,
///         None => whole = Some(part),
///     }
/// }
/// if let Some(whole) = whole {
///     println!("{} months", query.finish(whole)?.count()?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    question: Question,
    plan: Plan,
    bx: Bx,
}

impl Task {
    /// What it gives.
    pub fn kind(&self) -> TaskKind {
        self.question.kind
    }

    /// What is asked, of all rows.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The path of the source, as it was opened where the task was made.
    pub fn source(&self) -> Option<&str> {
        match &self.plan.scan.source {
            SourceRef::Path(path) => Some(path),
            _ => None,
        }
    }

    /// The box of the rows that it looks at: all of them, where it is a part by values.
    pub fn rows(&self) -> Bx {
        if self.question.cut.is_some() { Bx::whole(&self.question.rows) } else { self.bx.clone() }
    }

    /// Its number and how many there are, where it is a part by values of an array rather than by a box.
    pub fn number(&self) -> Option<(u64, u64)> {
        self.question.cut.as_ref().map(|cut| (self.bx.start[0], cut.first.len() as u64 + 1))
    }

    /// Lengths of the dimensions of all rows.
    pub fn shape(&self) -> &[u64] {
        &self.question.rows
    }
}

impl Query {
    /// The work in `n` parts or fewer, along whole chunks: of groups their aggregates, else the positions.
    ///
    /// No values are read for it. Which parts depends on the query and the source, not on memory, threads or indexes.
    ///
    /// # Errors
    /// `unsupported` for subqueries of other sources, and for a histogram without its range; `invalid-value` where `n` is 0;
    /// `stale-source`.
    pub fn tasks(&self, n: usize) -> Result<Vec<Task>> {
        self.tasks_of(TaskKind::of(self), n)
    }

    /// The same for something else that may be asked of it.
    ///
    /// # Errors
    /// As [`Query::tasks`]; `unsupported` for what is not to be had in parts.
    pub fn tasks_of(&self, kind: TaskKind, n: usize) -> Result<Vec<Task>> {
        if n == 0 {
            return Err(Error::new(ErrorKind::InvalidValue, "work in 0 parts").hint("ask for 1 or more"));
        }
        let whole = self.task(kind, Bx::whole(&self.bound().rows.shape))?;
        Ok(self.known().cuts(n).into_iter().map(|bx| Task { bx, ..whole.clone() }).collect())
    }

    /// The work in about `n` parts, for whoever runs each of them once and merges what they give: as [`Query::tasks_of`], but
    /// that rows which a sorted replica gives are cut by its key, so that no part looks up the rows of another. Such parts have
    /// no boxes; where a replica tells the number alone, there is one. The answer does not depend on who has which index.
    ///
    /// # Errors
    /// As [`Query::tasks_of`].
    pub fn shares_of(&self, kind: TaskKind, n: usize) -> Result<Vec<Task>> {
        if kind == TaskKind::Groups || n < 2 || self.has_open_subqueries() {
            return self.tasks_of(kind, n);
        }
        if kind == TaskKind::Count && self.known().is_counted() {
            return self.tasks_of(kind, 1);
        }
        let Some((array, first)) = self.known().key_cuts(n) else { return self.tasks_of(kind, n) };
        let mut whole = self.task(kind, Bx::whole(&self.bound().rows.shape))?;
        let parts = first.len() as u64 + 1;
        let array = self.source().schema().arrays[array].path.clone();
        whole.question.cut = Some(Cut { array, first });
        let part = |k| Task { bx: Bx::new(vec![k], vec![1]), ..whole.clone() };
        Ok((0..parts).map(part).collect())
    }

    /// Seconds of one thread that finding this takes, about: by how much is worth sharing it out.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn effort(&self, kind: TaskKind) -> Result<f64> {
        if self.has_open_subqueries() {
            return Ok(f64::INFINITY);
        }
        self.known().effort(kind == TaskKind::Count)
    }

    /// The kind of what answers all that may be asked of it.
    pub fn usual_kind(&self) -> TaskKind {
        TaskKind::of(self)
    }

    /// The part of the work that are the rows in a box. The boxes of all tasks must have each row once.
    ///
    /// # Errors
    /// As [`Query::tasks_of`]; `invalid-value` for a box that reaches beyond the rows.
    pub fn task(&self, kind: TaskKind, bx: Bx) -> Result<Task> {
        kind.check(self)?;
        let plan = self.logical_plan()?;
        kind::refuse_other_sources(&plan)?;
        let question = Question::of(self, &plan, kind)?;
        check_box(&bx, &question.rows)?;
        Ok(Task { question, plan, bx })
    }
}

/// That a box lies in what is cut, of a shape.
fn check_box(bx: &Bx, rows: &[u64]) -> Result<()> {
    let fits = |d: usize| bx.start[d].checked_add(bx.shape[d]).is_some_and(|end| end <= rows[d]);
    if bx.start.len() == rows.len() && bx.rank() == rows.len() && (0..rows.len()).all(fits) {
        return Ok(());
    }
    let message = format!("the box {:?} + {:?} does not lie in rows of shape {rows:?}", bx.start, bx.shape);
    Err(Error::new(ErrorKind::InvalidValue, message))
}
