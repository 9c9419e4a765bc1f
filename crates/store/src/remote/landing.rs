//! Where the bytes of one request go: segment after segment, each to those who wait for it as soon as it is whole.
//!
//! So a request may be long, which costs fewer of them, and still nobody waits for more than what is read.

use std::collections::VecDeque;
use std::ops::Range;

use crate::cache::{Part, Promise};

/// One stretch of what a request brings.
#[derive(Debug)]
struct Stretch {
    end: u64,
    /// Who waits for it; nobody for bytes that had come before, and lie between those that had not.
    waits: Option<(Promise, Part)>,
}

/// What has not come of a request, in order and without gaps.
#[derive(Debug)]
pub(crate) struct Landing {
    start: u64,
    stretches: VecDeque<Stretch>,
}

impl Landing {
    /// A request that begins at `start`.
    pub(crate) fn new(start: u64) -> Self {
        Self { start, stretches: VecDeque::new() }
    }

    /// Adds a segment that is waited for. What lies between the last one and it is brought in vain.
    pub(crate) fn push(&mut self, promise: Promise, part: Part) {
        if self.range().end < part.range.start {
            self.stretches.push_back(Stretch { end: part.range.start, waits: None });
        }
        self.stretches.push_back(Stretch { end: part.range.end, waits: Some((promise, part)) });
    }

    /// The bytes that have not come.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.stretches.back().map_or(self.start, |last| last.end)
    }

    /// The segments that have not come.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.stretches.iter().filter_map(|stretch| stretch.waits.as_ref().map(|(_, part)| part))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Bytes of the next stretch.
    pub(crate) fn next_len(&self) -> usize {
        self.stretches.front().map_or(0, |next| (next.end - self.start) as usize)
    }

    /// Hands on the segments that `got`, which begins where the next one does, has in full. Returns how many bytes were
    /// taken from it.
    pub(crate) fn take(&mut self, got: &mut Vec<u8>) -> u64 {
        let before = self.start;
        while got.len() >= self.next_len() {
            let len = self.next_len();
            let Some(stretch) = self.stretches.pop_front() else { break };
            let rest = got.split_off(len);
            let bytes = std::mem::replace(got, rest);
            if let Some((promise, _)) = stretch.waits {
                promise.keep(Ok(bytes));
            }
            self.start = stretch.end;
        }
        self.start - before
    }

    /// Takes out those who wait.
    pub(crate) fn into_waiting(self) -> impl Iterator<Item = (Promise, Part)> {
        self.stretches.into_iter().filter_map(|stretch| stretch.waits)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn segments_are_handed_on_when_they_are_whole() {
        let mut landing = Landing::new(10);
        let flights = [10..13, 13..15, 17..20].map(|range| {
            let (promise, flight) = Promise::new();
            landing.push(promise, Part { range, flight: Arc::clone(&flight) });
            flight
        });
        assert_eq!((landing.range(), landing.next_len()), (10..20, 3));
        let mut got = vec![0, 1];
        assert_eq!(landing.take(&mut got), 0);
        got.extend([2, 3, 4, 5]);
        assert_eq!((landing.take(&mut got), got), (5, vec![5]));
        assert_eq!(landing.range(), 15..20);
        assert_eq!(*flights[0].wait().unwrap(), [0, 1, 2]);
        assert_eq!(*flights[1].wait().unwrap(), [3, 4]);
        assert!(!flights[2].is_done());
        // Two bytes that nobody waits for, and one that somebody does.
        let mut got = vec![6, 7, 8];
        assert_eq!((landing.take(&mut got), got, landing.range()), (2, vec![8], 17..20));
        // What is dropped ends with an error.
        drop(landing);
        assert!(flights[2].wait().is_err());
    }
}
