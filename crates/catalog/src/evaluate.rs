//! Evaluates a plan to the intervals of objects that satisfy it.
//!
//! What a comparison brings is not estimated but measured: each is read up to a cap, and what ends below it is the
//! narrowest. Those that do not end are asked only where the others hold: by a look into the index for each interval
//! left, or, of few objects, by their own attributes. Where none ends, the cap grows.

use std::collections::HashMap;

use sieva_types::Result;

use crate::backend::{Cell, Session, collect, first};
use crate::filter::{Plan, Range, Test};
use crate::intervals::{Intervals, MAX_INTERVALS, too_many};
use crate::names;
use crate::packed;
use crate::value::{SortKey, Value};

/// Rows of the index that a comparison is first read for.
pub(crate) const FIRST_CAP: usize = 4096;
/// Rows that each of several comparisons is first read for.
const SMALLEST_CAP: usize = 64;
/// Intervals that the index is looked into for one by one.
const MAX_PROBES: usize = 8192;
/// Objects whose own attributes are read.
const MAX_VERIFIED: u64 = 8192;
/// A text's sorting key of this length may go on in its rest.
const FULL_HEAD: usize = 256;

/// Evaluates the plans of one question on one state of the catalog.
pub(crate) struct Evaluator<'a> {
    pub session: &'a mut dyn Session,
    keys: HashMap<String, Option<i64>>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(session: &'a mut dyn Session) -> Self {
        Self { session, keys: HashMap::new() }
    }

    /// The number of a key; `None`: no object has it.
    fn key(&mut self, key: &str) -> Result<Option<i64>> {
        if let Some(number) = self.keys.get(key) {
            return Ok(*number);
        }
        let number = names::find(self.session, key)?;
        self.keys.insert(key.to_owned(), number);
        Ok(number)
    }

    /// The objects within `within` that satisfy the plan.
    pub(crate) fn evaluate(&mut self, plan: &Plan, within: &Intervals) -> Result<Intervals> {
        let mut cap = FIRST_CAP;
        loop {
            if let Some(found) = self.attempt(plan, within, cap)? {
                return Ok(found);
            }
            if cap >= MAX_INTERVALS {
                return Err(too_many());
            }
            cap = (cap * 16).min(MAX_INTERVALS);
        }
    }

    /// As [`Evaluator::evaluate`]; `None` where this takes more than `cap` rows of the index for one comparison.
    pub(crate) fn attempt(
        &mut self,
        plan: &Plan,
        within: &Intervals,
        cap: usize,
    ) -> Result<Option<Intervals>> {
        if within.is_empty() {
            return Ok(Some(Intervals::default()));
        }
        match plan {
            Plan::All => Ok(Some(within.clone())),
            Plan::Nothing => Ok(Some(Intervals::default())),
            Plan::Leaf(key, test) => self.leaf(key, test, within, cap),
            Plan::And(parts) => self.all(parts, within, cap),
            Plan::Or(parts) => {
                let mut found = Intervals::default();
                for part in parts {
                    let Some(more) = self.attempt(part, within, cap)? else { return Ok(None) };
                    found = found.or(&more)?;
                }
                Ok(Some(found))
            }
        }
    }

    fn all(&mut self, parts: &[Plan], within: &Intervals, cap: usize) -> Result<Option<Intervals>> {
        let mut left: Vec<&Plan> = parts.iter().collect();
        let mut found = within.clone();
        let mut small = SMALLEST_CAP.min(cap);
        // A wide comparison that stands first must not be read far before a narrow one has had its turn.
        loop {
            let before = left.len();
            let mut open = Vec::new();
            for part in left {
                match self.attempt(part, &found, small)? {
                    Some(narrower) => found = found.and(&narrower),
                    None => open.push(part),
                }
            }
            if open.is_empty() || found.is_empty() {
                return Ok(Some(found));
            }
            // Those that did not end get another chance where others have narrowed.
            if open.len() == before {
                if small >= cap {
                    return Ok(None);
                }
                small = (small * 8).min(cap);
            }
            left = open;
        }
    }

    fn leaf(&mut self, key: &str, test: &Test, within: &Intervals, cap: usize) -> Result<Option<Intervals>> {
        let inverse = matches!(test, Test::Null | Test::Missing);
        let Some(number) = self.key(key)? else {
            return Ok(Some(if inverse { within.clone() } else { Intervals::default() }));
        };
        let mut parts = Vec::new();
        for range in test.ranges() {
            let room = cap.saturating_sub(parts.len());
            if self.range(number, &range, test, within, room, &mut parts)? {
                continue;
            }
            if within.total() <= MAX_VERIFIED {
                return self.verify(number, test, within).map(Some);
            }
            return Ok(None);
        }
        let covered = Intervals::of(parts);
        Ok(Some(if inverse { within.without(&covered) } else { within.and(&covered) }))
    }

    /// Adds the intervals of a range of values; false where there are more than `room`.
    fn range(
        &mut self,
        key: i64,
        range: &Range,
        test: &Test,
        within: &Intervals,
        room: usize,
        parts: &mut Vec<(i64, i64)>,
    ) -> Result<bool> {
        if !range.is_point() {
            return self.scan(key, range, test, room, parts);
        }
        let Some((low, high)) = within.bounds() else { return Ok(true) };
        // A few more rows are cheaper than a look for each interval.
        let start = parts.len();
        let few = within.parts().len().saturating_mul(4).max(64);
        if self.point(key, &range.low, (low, high), room.min(few), parts)? {
            return Ok(true);
        }
        parts.truncate(start);
        if within.parts().len() > MAX_PROBES {
            return self.point(key, &range.low, (low, high), room, parts);
        }
        for &window in within.parts() {
            let room = room.saturating_sub(parts.len() - start);
            if !self.point(key, &range.low, window, room, parts)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the intervals of one value that meet `window`, in order; false where there are more than `room`.
    pub(crate) fn point(
        &mut self,
        key: i64,
        value: &SortKey,
        (low, high): (i64, i64),
        room: usize,
        parts: &mut Vec<(i64, i64)>,
    ) -> Result<bool> {
        let mut count = 0;
        let mut add = |first: i64, span: i64, rest: &[u8]| {
            count += 1;
            if rest == value.rest {
                parts.push((first, first.saturating_add(span)));
            }
            count <= room
        };
        if low > 0 {
            let sql = "SELECT first, span, rest FROM terms WHERE key = $1 AND value = $2 AND first < $3
                ORDER BY first DESC LIMIT 1";
            self.session.each(sql, &[key.into(), value.head.clone().into(), low.into()], &mut |row| {
                let (first, span) = (row.int(0)?, row.int(1)?);
                Ok(first.saturating_add(span) < low
                    || add(first, span, row.optional_blob(2)?.unwrap_or_default()))
            })?;
        }
        let sql = "SELECT first, span, rest FROM terms WHERE key = $1 AND value = $2 AND first >= $3 AND first <= $4
            ORDER BY first LIMIT $5";
        let limit = Cell::Int(room.saturating_add(1) as i64);
        let parameters = [key.into(), value.head.clone().into(), low.into(), high.into(), limit];
        self.session.each(sql, &parameters, &mut |row| {
            Ok(add(row.int(0)?, row.int(1)?, row.optional_blob(2)?.unwrap_or_default()))
        })?;
        Ok(count <= room)
    }

    /// Adds all intervals of a range of values; false where there are more than `room`.
    fn scan(
        &mut self,
        key: i64,
        range: &Range,
        test: &Test,
        room: usize,
        parts: &mut Vec<(i64, i64)>,
    ) -> Result<bool> {
        let long = |end: &SortKey| end.head.len() >= FULL_HEAD;
        let pattern = if let Test::Pattern(pattern, not) = test { Some((pattern, *not)) } else { None };
        let recheck = pattern.is_some() || long(&range.low) || long(&range.high);
        let low = if range.low_open && !long(&range.low) { ">" } else { ">=" };
        let high = if range.high_open && !long(&range.high) { "<" } else { "<=" };
        let columns = if recheck { ", value, rest" } else { "" };
        let sql = format!(
            "SELECT first, span{columns} FROM terms WHERE key = $1 AND value {low} $2 AND value {high} $3 LIMIT $4"
        );
        let limit = Cell::Int(room.saturating_add(1) as i64);
        let parameters = [key.into(), range.low.head.clone().into(), range.high.head.clone().into(), limit];
        let mut count = 0;
        self.session.each(&sql, &parameters, &mut |row| {
            count += 1;
            if recheck {
                let rest = row.optional_blob(3)?.unwrap_or_default().to_vec();
                let found = SortKey { head: row.blob(2)?.to_vec(), rest };
                if !range.holds(&found) || pattern.is_some_and(|(p, not)| p.matches(&text_of(&found)) == not)
                {
                    return Ok(true);
                }
            }
            let first = row.int(0)?;
            parts.push((first, first.saturating_add(row.int(1)?)));
            Ok(count <= room)
        })?;
        Ok(count <= room)
    }

    /// The objects of `within` that satisfy a test, by their own attributes and those above them.
    fn verify(&mut self, key: i64, test: &Test, within: &Intervals) -> Result<Intervals> {
        let mut values: HashMap<i64, Option<Value>> = HashMap::new();
        let mut found = Vec::new();
        for &(low, high) in within.parts() {
            let sql = "SELECT id, parent, attributes FROM objects WHERE id BETWEEN $1 AND $2 ORDER BY id";
            let objects = collect(self.session, sql, &[low.into(), high.into()], |row| {
                let own = packed::value_of(&packed::read_entries(row.blob(2)?)?, key).cloned();
                Ok((row.int(0)?, row.int(1)?, own))
            })?;
            for (id, parent, own) in objects {
                let value = match own {
                    None if parent != id => self.above(key, parent, &mut values)?,
                    own => own,
                };
                if test.accepts(value.as_ref()) {
                    found.push((id, id));
                }
                values.insert(id, value);
            }
        }
        Ok(Intervals::of(found))
    }

    /// The value that holds at an object, from itself or above.
    fn above(
        &mut self,
        key: i64,
        object: i64,
        values: &mut HashMap<i64, Option<Value>>,
    ) -> Result<Option<Value>> {
        let mut way = Vec::new();
        let mut at = object;
        let value = loop {
            if let Some(value) = values.get(&at) {
                break value.clone();
            }
            way.push(at);
            let sql = "SELECT parent, attributes FROM objects WHERE id = $1";
            let found = first(self.session, sql, &[at.into()], |row| {
                Ok((row.int(0)?, packed::value_of(&packed::read_entries(row.blob(1)?)?, key).cloned()))
            })?;
            match found {
                Some((_, Some(value))) => break Some(value),
                // Parents come before their children: anything else would be a circle.
                Some((parent, None)) if parent < at => at = parent,
                _ => break None,
            }
        };
        values.extend(way.into_iter().map(|object| (object, value.clone())));
        Ok(value)
    }
}

/// The text of a sorting key.
fn text_of(key: &SortKey) -> String {
    let bytes: Vec<u8> = key.head.iter().skip(1).chain(&key.rest).copied().collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
