//! Tasks: parts of the work of a query, for whoever runs them elsewhere.
//!
//! A [`Task`] is a plan, a box of its rows, and what tells the state of the source. [`Source::run_task`] makes a [`Partial`]
//! of it, in any process that can open the source. Partial results are merged in any order, and [`Query::finish`] gives the
//! answer of the whole query, to the bit. Both are bytes where they travel.

mod kind;
mod partial;
mod run;
pub(crate) mod wire;

use sieva_plan::{Plan, SourceRef};
use sieva_types::{Bx, Error, ErrorKind, Result};

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
        })
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

    /// The box of the rows that it looks at.
    pub fn rows(&self) -> &Bx {
        &self.bx
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

/// That a box lies in rows of a shape.
fn check_box(bx: &Bx, rows: &[u64]) -> Result<()> {
    let fits = |d: usize| bx.start[d].checked_add(bx.shape[d]).is_some_and(|end| end <= rows[d]);
    if bx.start.len() == rows.len() && bx.rank() == rows.len() && (0..rows.len()).all(fits) {
        return Ok(());
    }
    let message = format!("the box {:?} + {:?} does not lie in rows of shape {rows:?}", bx.start, bx.shape);
    Err(Error::new(ErrorKind::InvalidValue, message))
}
