//! What tasks of a collection found, merged or not.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use sieva_query::exec::Groups;
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::Question;
use crate::tasks::TaskKind;

/// Rows that may be looked at in all, so that counts of them can be added.
pub(super) const MOST_ROWS: u64 = 1 << 62;

/// What one task of a collection or several found: the answer as far as their objects tell it.
#[derive(Debug)]
pub struct CollectionPartial {
    pub(super) question: Question,
    pub(super) seen: Seen,
    pub(super) found: Found,
    /// Bytes that it and what is merged with it may take.
    pub(super) memory: u64,
}

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Numbers of objects, each once; ascending, and those that touch made into one.
    pub(super) ranges: Vec<Range<u64>>,
    /// Their rows.
    pub(super) rows: u64,
    /// How many have all arrays, and how many lack one.
    pub(super) evaluated: u64,
    pub(super) lacking: u64,
}

#[derive(Debug)]
pub(super) enum Found {
    Count(u64),
    /// Of the objects that have all arrays, by their numbers.
    Rows(BTreeMap<u64, Arc<Selection>>),
    Groups(Box<Groups>),
    /// Nothing: a value could not be represented, which LIMIT may want no row behind. Who finishes it looks.
    Open,
}

impl Seen {
    pub(super) fn objects(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }

    /// Takes in others, which share no object with these.
    fn add(&mut self, other: Self) -> Result<()> {
        let rows = self.rows.checked_add(other.rows).filter(|&n| n <= MOST_ROWS).ok_or_else(too_many_rows)?;
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.extend(other.ranges);
        ranges.sort_unstable_by_key(|r| (r.start, r.end));
        for range in ranges {
            match self.ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.ranges.push(range),
            }
        }
        self.rows = rows;
        self.evaluated += other.evaluated;
        self.lacking += other.lacking;
        Ok(())
    }

    /// Objects that are in both.
    fn twice(&self, other: &Self) -> Option<Range<u64>> {
        let (mut a, mut b) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let both = x.start.max(y.start)..x.end.min(y.end);
            if !both.is_empty() {
                return Some(both);
            }
            if x.end <= y.end {
                a.next()
            } else {
                b.next()
            };
        }
        None
    }
}

pub(super) fn too_many_rows() -> Error {
    Error::new(ErrorKind::Unsupported, format!("tasks of objects with more than {MOST_ROWS} rows in all"))
}

impl CollectionPartial {
    /// What was asked for.
    pub fn kind(&self) -> TaskKind {
        self.question.kind
    }

    /// The numbers of the objects that were looked at, ascending.
    pub fn objects(&self) -> &[Range<u64>] {
        &self.seen.ranges
    }

    /// How many objects were looked at, and of how many.
    pub fn looked_at(&self) -> (u64, u64) {
        (self.seen.objects(), self.question.count)
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
    /// As [`CollectionPartial::to_bytes`]; `memory-limit`.
    pub fn copy(&self) -> Result<Self> {
        Self::from_bytes_within(&self.to_bytes()?, self.memory)
    }

    /// Takes in what other tasks of the same query found; in any order, the answer is the same.
    ///
    /// # Errors
    /// As [`CollectionPartial::check_mergeable`]; `type-mismatch` where an array differs in type between objects;
    /// `memory-limit`, then what was found so far is lost.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.check_mergeable(&other)?;
        self.seen.add(other.seen)?;
        match (&mut self.found, other.found) {
            (Found::Count(n), Found::Count(more)) => *n = n.saturating_add(more),
            (Found::Rows(own), Found::Rows(more)) => {
                own.extend(more);
                let need = own.values().map(|s| s.memory_bytes()).fold(0, u64::saturating_add);
                if need > self.memory {
                    return Err(Error::new(
                        ErrorKind::MemoryLimit,
                        format!(
                            "the positions of {} objects take {need} bytes, the limit is {}",
                            own.len(),
                            self.memory
                        ),
                    )
                    .hint("ask for the count or for groups, or allow more memory"));
                }
            }
            (Found::Open, Found::Count(_) | Found::Rows(_) | Found::Open) => {}
            (own @ (Found::Count(_) | Found::Rows(_)), Found::Open) => *own = Found::Open,
            (Found::Groups(own), Found::Groups(more)) if own.is_like(&more) => own.merge(*more)?,
            (Found::Groups(_), Found::Groups(_)) => {
                let message = "what an aggregate takes in is of another type in some objects than in others";
                return Err(Error::new(ErrorKind::TypeMismatch, message)
                    .hint("convert it, as by float64(x), or ask for the objects of one type only"));
            }
            _ => {
                return Err(Error::new(ErrorKind::Internal, "a partial result of another kind than it says"));
            }
        }
        Ok(())
    }

    /// That another may be merged with it: both are of one question, and of different objects.
    ///
    /// # Errors
    /// `invalid-value` where they are not.
    pub fn check_mergeable(&self, other: &Self) -> Result<()> {
        let (a, b) = (&self.question, &other.question);
        if a != b {
            let what = if a.plan != b.plan {
                "of different questions"
            } else if a.kind != b.kind {
                "of different kinds"
            } else if a.objects != b.objects || a.count != b.count {
                "of different objects of the catalog"
            } else {
                "of different states of the sources, or ways of opening them"
            };
            let message = format!("partial results {what} were to be merged");
            return Err(
                Error::new(ErrorKind::InvalidValue, message).hint("merge those of the tasks of one query")
            );
        }
        match self.seen.twice(&other.seen) {
            None => Ok(()),
            Some(twice) => {
                let (first, last) = (twice.start, twice.end - 1);
                let message = format!("the objects {first} to {last} are in both partial results");
                Err(Error::new(ErrorKind::InvalidValue, message).hint("merge the result of each task once"))
            }
        }
    }

    /// That all objects were looked at.
    pub(super) fn check_complete(&self) -> Result<()> {
        let (seen, all) = self.looked_at();
        if seen == all {
            return Ok(());
        }
        let message = format!("the partial result is of {seen} objects of {all}");
        Err(Error::new(ErrorKind::InvalidValue, message).hint("merge the results of all tasks first"))
    }
}
