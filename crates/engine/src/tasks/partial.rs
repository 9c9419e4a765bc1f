//! What tasks found, merged or not.

use sieva_query::exec::Groups;
use sieva_types::{Bx, Error, ErrorKind, Result, Selection};

use super::disjoint::{Found as Disjointness, disjoint};
use super::{Question, TaskKind};

/// Pairs of boxes that are compared one by one.
const FEW_PAIRS: usize = 1 << 16;

/// What one task or several found: the answer as far as their rows tell it.
#[derive(Debug)]
pub struct Partial {
    pub(super) question: Question,
    /// The rows that were looked at, each once; or the numbers of parts by values.
    pub(super) boxes: Vec<Bx>,
    pub(super) found: Found,
    /// Bytes that it and what is merged with it may take.
    pub(super) memory: u64,
}

#[derive(Debug)]
pub(super) enum Found {
    Count(u64),
    Selection(Selection),
    Groups(Box<Groups>),
    /// Nothing: a value could not be represented, which LIMIT may want no row behind. Who finishes it looks.
    Open,
}

impl Partial {
    /// What was asked for.
    pub fn kind(&self) -> TaskKind {
        self.question.kind
    }

    /// How many rows were looked at, and of how many; of parts by values how many parts.
    pub fn looked_at(&self) -> (u64, u64) {
        (self.boxes.iter().map(Bx::len).sum(), Bx::whole(&self.question.space()).len())
    }

    /// Sets how many bytes it and what is merged with it may take.
    pub fn limit(&mut self, memory: u64) {
        self.memory = memory;
        if let Found::Groups(groups) = &mut self.found {
            groups.limit(memory);
        }
    }

    /// The same once more.
    ///
    /// # Errors
    /// As [`Partial::to_bytes`]; `memory-limit`.
    pub fn copy(&self) -> Result<Self> {
        Self::from_bytes_within(&self.to_bytes()?, self.memory)
    }

    /// Takes in what other tasks of the same query found; in any order, the answer is the same.
    ///
    /// # Errors
    /// `invalid-value` for parts of different questions, or of states of a source that differ, and for rows that both looked
    /// at; `memory-limit`, then what was found so far is lost.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.check_mergeable(&other)?;
        match (&mut self.found, other.found) {
            (Found::Count(n), Found::Count(more)) => *n = n.saturating_add(more),
            (Found::Selection(own), Found::Selection(more)) => *own = own.union(&more)?,
            (Found::Groups(own), Found::Groups(more)) if own.is_like(&more) => own.merge(*more)?,
            (Found::Open, Found::Count(_) | Found::Selection(_) | Found::Open) => {}
            (own @ (Found::Count(_) | Found::Selection(_)), Found::Open) => *own = Found::Open,
            _ => {
                return Err(Error::new(ErrorKind::Internal, "a partial result of another kind than it says"));
            }
        }
        self.boxes.extend(other.boxes);
        Ok(())
    }

    /// That another may be merged with it: both are of one question, and of different rows.
    ///
    /// # Errors
    /// `invalid-value` where they are not.
    pub fn check_mergeable(&self, other: &Self) -> Result<()> {
        if self.question != other.question {
            let (a, b) = (&self.question, &other.question);
            let what = if a.plan != b.plan {
                "of different questions"
            } else if a.kind != b.kind {
                "of different kinds"
            } else if a.cut != b.cut {
                "of rows that were cut in different ways"
            } else {
                "of different states of the source, or ways of opening it"
            };
            let message = format!("partial results {what} were to be merged");
            return Err(
                Error::new(ErrorKind::InvalidValue, message).hint("merge those of the tasks of one query")
            );
        }
        let few = self.boxes.len().saturating_mul(other.boxes.len()) <= FEW_PAIRS;
        match if few { None } else { Some(disjoint(self.boxes.iter().chain(&other.boxes))) } {
            Some(Disjointness::Disjoint) => return Ok(()),
            Some(Disjointness::TooMuch) => {
                let message = "the boxes of two partial results are none of tasks of one query";
                return Err(Error::new(ErrorKind::InvalidValue, message)
                    .hint("merge the results of tasks that one query was cut into"));
            }
            Some(Disjointness::Overlapping) | None => {}
        }
        for bx in &other.boxes {
            if let Some(twice) = self.boxes.iter().find_map(|own| own.intersect(bx)) {
                let what = if self.question.cut.is_some() { "parts" } else { "rows" };
                let message =
                    format!("the {what} {:?} + {:?} are in both partial results", twice.start, twice.shape);
                return Err(
                    Error::new(ErrorKind::InvalidValue, message).hint("merge the result of each task once")
                );
            }
        }
        Ok(())
    }

    /// That all rows were looked at.
    pub(super) fn check_complete(&self) -> Result<()> {
        let (seen, all) = self.looked_at();
        if seen == all {
            return Ok(());
        }
        let what = if self.question.cut.is_some() { "parts" } else { "rows" };
        let message = format!("the partial result is of {seen} {what} of {all}");
        Err(Error::new(ErrorKind::InvalidValue, message).hint("merge the results of all tasks first"))
    }
}
