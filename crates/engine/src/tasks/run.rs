//! Running a task, and the answer of all of them.

use sieva_plan::SourceRef;
use sieva_query::exec::{Groups, finish_groups, partial_groups};
use sieva_types::{Error, ErrorKind, Result};

use super::partial::{Found, Partial};
use super::{Question, Task, TaskKind};
use crate::augment::state_of;
use crate::open::Source;
use crate::query::{Known, Part, Query, QueryOptions};

impl Source {
    /// Runs a task of this source, wherever it was made.
    ///
    /// # Errors
    /// `stale-source` where the source is in another state than that of which the task was made, `invalid-value` where it was
    /// opened in another way; those of the query.
    pub fn run_task(&self, task: &Task, options: &QueryOptions) -> Result<Partial> {
        self.start_task(task, options)?.run()
    }

    /// What tells its state from others, wherever it is opened: length, and hashes of its version and of its content.
    ///
    /// # Errors
    /// `stale-source` where it was changed since it was opened; reading errors.
    pub fn state(&self) -> Result<[u64; 3]> {
        state_of(self)
    }

    /// The query that a task is a part of, of a source in the state that the task was made of.
    ///
    /// # Errors
    /// As [`Source::run_task`].
    pub fn query_of(&self, task: &Task, options: &QueryOptions) -> Result<Query> {
        task.question.check(self)?;
        let mut plan = task.plan.clone();
        plan.scan.source = SourceRef::Given;
        let query = self.query_plan(&plan, options)?;
        if query.bound().rows.shape != task.question.rows {
            let (here, there) = (&query.bound().rows.shape, &task.question.rows);
            let message = format!("the rows have shape {here:?} in '{}', {there:?} in the task", self.name());
            return Err(Error::new(ErrorKind::StaleSource, message).hint("make the tasks anew"));
        }
        Ok(query)
    }

    /// The query of a task's rows alone.
    ///
    /// # Errors
    /// As [`Source::run_task`].
    pub fn part_of(&self, task: &Task, options: &QueryOptions) -> Result<Query> {
        Ok(self.start_task(task, options)?.query)
    }

    /// The number of the array with a path in the schema.
    fn number_of(&self, path: &str) -> Result<usize> {
        self.schema().arrays.iter().position(|array| array.path == path).ok_or_else(|| {
            let message = format!("a task by values of '{path}', which '{}' does not have", self.name());
            Error::new(ErrorKind::InvalidValue, message)
        })
    }

    /// The work of a task, to be run or stopped.
    ///
    /// # Errors
    /// As [`Source::run_task`].
    pub fn start_task(&self, task: &Task, options: &QueryOptions) -> Result<Work> {
        let query = self.query_of(task, options)?;
        super::check_box(&task.bx, &task.question.space())?;
        task.question.kind.check(&query)?;
        let part = match &task.question.cut {
            Some(cut) => Part::Keys(self.number_of(&cut.array)?, cut.keys(&task.bx)),
            None => Part::Rows(task.bx.clone()),
        };
        Ok(Work { ends_early: query.may_end_early(), query: query.within(part)?, task: task.clone() })
    }
}

/// A task at work.
pub struct Work {
    query: Query,
    task: Task,
    /// Whether the whole query may want no row behind one that fails.
    ends_early: bool,
}

impl Work {
    /// The query of the task's rows: what it does, and the flag that stops it.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// What the task finds.
    ///
    /// # Errors
    /// Reading errors, `memory-limit`, `cancelled`.
    pub fn run(&self) -> Result<Partial> {
        let query = &self.query;
        let found = match self.found() {
            Err(e) if self.ends_early && e.kind() == ErrorKind::Overflow => Found::Open,
            found => found?,
        };
        let (question, boxes) = (self.task.question.clone(), vec![self.task.bx.clone()]);
        Ok(Partial { question, boxes, found, memory: query.memory() })
    }

    fn found(&self) -> Result<Found> {
        let query = &self.query;
        Ok(match self.task.kind() {
            TaskKind::Count => {
                let n = query.count()?;
                query.keep_counted()?;
                Found::Count(n)
            }
            TaskKind::Selection => Found::Selection(query.selection()?.as_ref().clone()),
            TaskKind::Groups => {
                let _entered = query.enter()?;
                Found::Groups(Box::new(partial_groups(query.execution()?)?.0))
            }
        })
    }
}

impl Query {
    /// This query, which knows its answer by what its tasks found: nothing that they looked at is read again. It counts, gives
    /// positions, rows and groups as if it had found them itself: HAVING, ORDER BY, OFFSET and LIMIT are applied. Where a task
    /// met a value that cannot be represented, and LIMIT may want no row behind it, it is evaluated again as it is.
    ///
    /// # Errors
    /// `invalid-value` where tasks are missing, or were made for another query; `stale-source` where the source is in another
    /// state than theirs; `memory-limit`; `arithmetic-overflow`.
    pub fn finish(&self, partial: Partial) -> Result<Self> {
        let plan = self.logical_plan()?;
        if plan.id()? != partial.question.plan {
            return Err(Error::new(ErrorKind::InvalidValue, "the partial result is of another query")
                .hint("finish it by the query that made the tasks, or an equal one"));
        }
        partial.question.check(self.source())?;
        let own =
            Question { cut: partial.question.cut.clone(), ..Question::of(self, &plan, partial.kind())? };
        if own != partial.question {
            return Err(Error::new(ErrorKind::InvalidValue, "the partial result is of other rows"));
        }
        partial.check_complete()?;
        let known = match partial.found {
            Found::Open => return self.again(None),
            Found::Count(n) => Known::Count(n),
            Found::Selection(found) => {
                self.check_positions(&found)?;
                Known::Selection(found)
            }
            Found::Groups(mut groups) => {
                let query = self.in_one_form()?;
                let _entered = query.enter()?;
                let empty = Groups::start(query.execution()?)?;
                if !empty.is_like(&groups) {
                    let message = "the partial result has other keys or aggregates than the query";
                    return Err(Error::new(ErrorKind::InvalidValue, message));
                }
                // Without keys there is one group, of no rows too.
                groups.limit(query.memory());
                let groups = if groups.is_empty() { empty } else { *groups };
                return query.knowing(Known::Groups(finish_groups(query.execution()?, groups)?));
            }
        };
        self.knowing(known)
    }
}
