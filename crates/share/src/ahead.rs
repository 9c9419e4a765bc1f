//! Parts of objects that lie side by side, and several followers of a user want: fetched ahead by one request for all of
//! them. A request for a small part takes about as long as one for a hundred of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use sieva::Result;
use sieva_store::objects::Objects;

use crate::at_once;
use crate::record::ObjectRef;

/// Bytes between two parts that are fetched with them: moving these takes less time than another request.
const MOST_GAP: u64 = 16 << 10;
/// Bytes of a request.
const MOST_RUN: u64 = 8 << 20;
/// Bytes that are fetched ahead at a time.
pub(crate) const MOST_AHEAD: u64 = 64 << 20;

/// Parts side by side in an object.
#[derive(Debug, PartialEq, Eq)]
struct Run<'r> {
    key: &'r str,
    begin: u64,
    end: u64,
    parts: usize,
}

/// What is here before it is asked for.
#[derive(Default)]
pub(crate) struct Ahead<'r> {
    /// By object and first byte.
    fetched: BTreeMap<(&'r str, u64), Vec<u8>>,
    /// Bytes that were fetched and nobody counted yet.
    moved: AtomicU64,
}

impl<'r> Ahead<'r> {
    /// Fetches what more than one request would be made for. What cannot be had is left to who asks for it, and is told
    /// there.
    ///
    /// # Errors
    /// Those of running requests side by side; none of the store's.
    pub fn fetch(objects: &dyn Objects, wanted: Vec<&'r ObjectRef>) -> Result<Self> {
        let runs = runs(wanted);
        let bytes = at_once::map(objects.at_once(), &runs, |run| {
            let mut bytes = vec![0; usize::try_from(run.end - run.begin).unwrap_or(0)];
            let is_there = objects.get_range(run.key, run.begin, &mut bytes);
            Ok(is_there.is_ok_and(|there| there).then_some(bytes))
        })?;
        let there = runs.iter().zip(bytes).filter_map(|(run, bytes)| Some(((run.key, run.begin), bytes?)));
        let fetched: BTreeMap<_, _> = there.collect();
        let moved = AtomicU64::new(fetched.values().map(|bytes| bytes.len() as u64).sum());
        Ok(Self { fetched, moved })
    }

    /// The bytes of a result, where they are here.
    pub fn part<'s>(&'s self, object: &'s ObjectRef) -> Option<&'s [u8]> {
        if !object.ranges.is_empty() {
            return None;
        }
        // The map's keys live as long as what is looked for.
        let fetched: &BTreeMap<(&'s str, u64), Vec<u8>> = &self.fetched;
        let (&(key, begin), bytes) = fetched.range(..=(&*object.key, object.offset)).next_back()?;
        let from = usize::try_from(object.offset - begin).ok()?;
        let to = from.checked_add(usize::try_from(object.size).ok()?)?;
        (key == object.key).then(|| bytes.get(from..to)).flatten()
    }

    /// What was fetched and is not counted yet: the first who asks counts it.
    pub fn moved(&self) -> u64 {
        self.moved.swap(0, Ordering::Relaxed)
    }
}

/// Parts without long gaps between them, as long as a request may be; no part alone.
fn runs(mut wanted: Vec<&ObjectRef>) -> Vec<Run<'_>> {
    wanted.retain(|part| {
        part.size > 0
            && part.size < MOST_RUN
            && part.offset.checked_add(part.size).is_some()
            && part.ranges.is_empty()
    });
    wanted.sort_by_key(|part| (&part.key, part.offset, part.size));
    let mut runs: Vec<Run<'_>> = Vec::new();
    for part in wanted {
        let end = part.offset + part.size;
        match runs.last_mut() {
            Some(run)
                if run.key == part.key
                    && part.offset.saturating_sub(run.end) <= MOST_GAP
                    && end - run.begin <= MOST_RUN =>
            {
                run.end = run.end.max(end);
                run.parts += 1;
            }
            _ => runs.push(Run { key: &part.key, begin: part.offset, end, parts: 1 }),
        }
    }
    runs.retain(|run| run.parts > 1);
    let mut left = MOST_AHEAD;
    runs.retain(|run| {
        let size = run.end - run.begin;
        let fits = size <= left;
        left -= if fits { size } else { 0 };
        fits
    });
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(key: &str, offset: u64, size: u64) -> ObjectRef {
        let checksum = String::new();
        ObjectRef { key: key.to_owned(), offset, size, checksum, rows: 0, ranges: Vec::new() }
    }

    fn of(parts: &[ObjectRef]) -> Vec<(String, u64, u64, usize)> {
        let found = runs(parts.iter().collect());
        found.into_iter().map(|run| (run.key.to_owned(), run.begin, run.end, run.parts)).collect()
    }

    #[test]
    fn parts_side_by_side_are_one_request_and_those_far_apart_are_not() {
        let parts =
            [part("b", 0, 9), part("a", 30, 5), part("a", 10, 10), part("a", 0, 10), part("a", 35, 1)];
        assert_eq!(of(&parts), [("a".to_owned(), 0, 36, 4)]);
        let far =
            [part("a", 0, 10), part("a", 10, 10), part("a", 21 + MOST_GAP, 5), part("a", 26 + MOST_GAP, 1)];
        let from = 21 + MOST_GAP;
        assert_eq!(of(&far), [("a".to_owned(), 0, 20, 2), ("a".to_owned(), from, from + 6, 2)]);
        // What two want is fetched once; a part within another one belongs to it.
        let parts = [part("a", 0, 10), part("a", 0, 10), part("a", 2, 3), part("a", 10, 1), part("b", 0, 1)];
        assert_eq!(of(&parts), [("a".to_owned(), 0, 11, 4)]);
        assert_eq!(of(&[]), []);
    }

    #[test]
    fn what_a_hostile_index_says_is_left_out_and_lengths_are_bounded() {
        let far =
            [part("a", u64::MAX, 2), part("a", u64::MAX - 1, 1), part("a", 0, u64::MAX), part("a", 0, 0)];
        assert_eq!(of(&far), []);
        let half = MOST_RUN / 2;
        let large: Vec<ObjectRef> = (0..40).map(|n| part("a", n * half, half)).collect();
        let found = of(&large);
        assert_eq!(found.len() as u64, MOST_AHEAD / MOST_RUN);
        assert!(found.iter().all(|(_, begin, end, _)| end - begin == MOST_RUN));
    }
}
