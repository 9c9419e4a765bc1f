//! Running a task of a collection, and the answer of all of them.

use std::collections::BTreeMap;

use sieva_query::exec::Groups;
use sieva_types::{Error, ErrorKind, Result};

use super::super::Collection;
use super::super::objects::Pinned;
use super::super::query::{CollectionQuery, Given, Known};
use super::listing::meaning_of;
use super::partial::{CollectionPartial, Found, MOST_ROWS, Seen, too_many_rows};
use super::{CollectionTask, Question};
use crate::query::QueryOptions;
use crate::tasks::TaskKind;

impl Collection {
    /// Runs a task of this collection, wherever it was made. What names mean, which objects there are and which values their
    /// keys have, the task says; the catalog is asked for manifests of its sources, unless it carries them.
    ///
    /// # Errors
    /// `stale-source` where a source is in another state than that of which the task was made, `invalid-value` where the
    /// collection was opened in another way; those of the query.
    pub fn run_task(&self, task: &CollectionTask, options: &QueryOptions) -> Result<CollectionPartial> {
        self.start_task(task, options)?.run()
    }

    /// The work of a task, to be run or stopped.
    ///
    /// # Errors
    /// As [`Collection::run_task`].
    pub fn start_task(&self, task: &CollectionTask, options: &QueryOptions) -> Result<CollectionWork> {
        let given = Given {
            sources: task.sources.clone(),
            classes: task.classes.clone(),
            example: Some(task.example.clone()),
            known: Known::Nothing,
        };
        let query = self.query_given(&task.plan, options, given)?;
        if meaning_of(query.template().source()) != task.question.meaning {
            return Err(opened_otherwise(self));
        }
        if query.logical_plan()?.id()? != task.question.plan {
            let message = format!("the plan of the task is no question to the collection '{}'", self.name());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("make the tasks anew"));
        }
        task.question.kind.check(query.template())?;
        Ok(CollectionWork { query, question: task.question.clone(), first: task.first })
    }
}

fn opened_otherwise(collection: &Collection) -> Error {
    let message =
        format!("the collection '{}' was opened in another way than for the task", collection.name());
    Error::new(ErrorKind::InvalidValue, message).hint("open it with the same valid_range=")
}

/// A task of a collection at work.
pub struct CollectionWork {
    query: CollectionQuery,
    question: Question,
    first: u64,
}

impl CollectionWork {
    /// The query of the task's objects: what it does, and the flag that stops it.
    pub fn query(&self) -> &CollectionQuery {
        &self.query
    }

    /// What the task finds.
    ///
    /// # Errors
    /// Reading errors, told with the object and its source; `stale-source`; `memory-limit`; `cancelled`.
    pub fn run(&self) -> Result<CollectionPartial> {
        let end = self.first + self.query.objects().count() as u64;
        let ranges = std::iter::once(self.first..end).filter(|r| !r.is_empty()).collect();
        let mut seen = Seen { ranges, ..Seen::default() };
        let found = match self.found(&mut seen) {
            Err(e) if self.query.may_end_early() && e.kind() == ErrorKind::Overflow => {
                let (ranges, evaluated) = (std::mem::take(&mut seen.ranges), end - self.first);
                seen = Seen { ranges, evaluated, ..Seen::default() };
                Found::Open
            }
            found => found?,
        };
        let question = self.question.clone();
        Ok(CollectionPartial { question, seen, found, memory: self.query.memory() })
    }

    fn found(&self, seen: &mut Seen) -> Result<Found> {
        Ok(match self.question.kind {
            TaskKind::Count => {
                let mut all = 0_u64;
                self.query.count_each(&mut |found| {
                    all = all.saturating_add(found.map_or(0, |(_, hits)| hits));
                    seen.note(found.map(|(rows, _)| rows))
                })?;
                Found::Count(all)
            }
            TaskKind::Selection => {
                let mut all = BTreeMap::new();
                let mut number = self.first;
                self.query.select_each(&mut |found| {
                    seen.note(found.as_ref().map(|(rows, _)| *rows))?;
                    all.extend(found.map(|(_, positions)| (number, positions)));
                    number += 1;
                    Ok(())
                })?;
                Found::Rows(all)
            }
            TaskKind::Groups => {
                let groups = self.query.gather(&mut |rows| seen.note(rows))?;
                Found::Groups(Box::new(groups))
            }
        })
    }
}

impl Seen {
    /// Notes an object by how many rows it has; `None` of one that lacks an array.
    fn note(&mut self, rows: Option<u64>) -> Result<()> {
        let Some(rows) = rows else {
            self.lacking += 1;
            return Ok(());
        };
        self.evaluated += 1;
        let all = self.rows.checked_add(rows).filter(|&n| n <= MOST_ROWS);
        self.rows = all.ok_or_else(too_many_rows)?;
        Ok(())
    }
}

impl CollectionQuery {
    /// This query, which knows its answer by what its tasks found: nothing that they looked at is evaluated again. It counts
    /// and gives rows and groups as if it had found them itself: HAVING, ORDER BY, OFFSET and LIMIT are applied. Values of
    /// rows are read here. Where a task met a value that cannot be represented, and LIMIT may want no row behind it, the query
    /// is evaluated here.
    ///
    /// # Errors
    /// `invalid-value` where tasks are missing, or were made for another query; `stale-source` where sources are in other
    /// states than theirs; `memory-limit`; `arithmetic-overflow`.
    pub fn finish(&self, partial: CollectionPartial) -> Result<Self> {
        self.finish_with(partial, self.options())
    }

    /// The same, run with other options.
    ///
    /// # Errors
    /// As [`CollectionQuery::finish`].
    pub fn finish_with(&self, partial: CollectionPartial, options: &QueryOptions) -> Result<Self> {
        if let Some(other) = self.planned_otherwise()? {
            return other.finish_with(partial, options);
        }
        let (_, own) = self.question(partial.kind())?;
        check_same(&own, &partial.question)?;
        partial.check_complete()?;
        let CollectionPartial { seen, found, .. } = partial;
        let is_open = matches!(found, Found::Open);
        let (known, groups) = match found {
            Found::Open => (Known::Nothing, None),
            Found::Count(n) => (Known::Count(n), None),
            Found::Rows(all) => {
                let all = all.into_iter().map(|(n, s)| (n as usize, s)).collect();
                (Known::Rows(all), None)
            }
            Found::Groups(groups) => (Known::Nothing, Some(*groups)),
        };
        let (mut sources, classes) = (self.found().to_vec(), self.classes().to_vec());
        for (source, &state) in sources.iter_mut().zip(&self.listing()?.each) {
            source.pinned = Some(Pinned::whole(state));
        }
        let given = Given { sources, classes, example: Some(self.example().clone()), known };
        let finished = self.given(given, options)?;
        if !is_open {
            finished.note_seen(seen.evaluated, seen.lacking);
        }
        if let Some(groups) = groups {
            finished.take_groups(groups)?;
        }
        Ok(finished)
    }

    /// Finishes the groups of all objects.
    fn take_groups(&self, mut groups: Groups) -> Result<()> {
        let empty = Groups::start(self.template().execution()?)?;
        if !empty.is_like(&groups) {
            let message = "the partial result has other keys or aggregates than the query";
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        groups.limit(self.memory());
        // Without keys there is one group, of no rows too.
        self.set_groups(if groups.is_empty() { empty } else { groups })
    }
}

/// That what was found is of this question.
fn check_same(own: &Question, found: &Question) -> Result<()> {
    if own == found {
        return Ok(());
    }
    let wrong = |kind, what: &str, hint: &str| Err(Error::new(kind, what).hint(hint));
    if own.plan != found.plan {
        let hint = "finish it by the query that made the tasks, or an equal one";
        return wrong(ErrorKind::InvalidValue, "the partial result is of another query", hint);
    }
    if own.objects != found.objects || own.count != found.count {
        let what = "the catalog tells of other objects, or of other values of their keys, than when the tasks were made";
        return wrong(ErrorKind::StaleSource, what, "make the tasks anew");
    }
    if own.states != found.states {
        let what = "sources of the collection are not in the states that the tasks are of";
        return wrong(ErrorKind::StaleSource, what, "make the tasks anew, of the same files");
    }
    wrong(
        ErrorKind::InvalidValue,
        "the collection was opened in another way than for the tasks",
        "open it with the same valid_range=",
    )
}
