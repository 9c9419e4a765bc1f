//! Where the bytes of one request go: segment after segment, each to those who wait for it as soon as it is whole.
//!
//! So a request may be long, which costs fewer of them, and still nobody waits for more than what is read.

use std::collections::VecDeque;
use std::ops::Range;

use crate::cache::{Part, Promise};

/// The segments of a request that have not come, in order and without gaps between them.
#[derive(Debug, Default)]
pub(crate) struct Landing {
    waiting: VecDeque<(Promise, Part)>,
}

impl Landing {
    pub(crate) fn new(segments: impl IntoIterator<Item = (Promise, Part)>) -> Self {
        Self { waiting: segments.into_iter().collect() }
    }

    /// The bytes that have not come.
    pub(crate) fn range(&self) -> Range<u64> {
        let ends = self.waiting.front().zip(self.waiting.back());
        ends.map_or(0..0, |((_, first), (_, last))| first.range.start..last.range.end)
    }

    /// The segments that have not come.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.waiting.iter().map(|(_, part)| part)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of the next segment.
    pub(crate) fn next_len(&self) -> usize {
        self.waiting.front().map_or(0, |(_, part)| (part.range.end - part.range.start) as usize)
    }

    /// Hands on the segments that `got`, which begins where the next one does, has in full. Returns how many bytes were
    /// taken from it.
    pub(crate) fn take(&mut self, got: &mut Vec<u8>) -> u64 {
        let mut taken = 0;
        while !self.waiting.is_empty() && got.len() >= self.next_len() {
            let len = self.next_len();
            let rest = got.split_off(len);
            let Some((promise, _)) = self.waiting.pop_front() else { break };
            promise.keep(Ok(std::mem::replace(got, rest)));
            taken += len as u64;
        }
        taken
    }

    /// Takes out the next segment.
    pub(crate) fn pop(&mut self) -> Option<(Promise, Part)> {
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn segments_are_handed_on_when_they_are_whole() {
        let (segments, flights): (Vec<_>, Vec<_>) = [10..13, 13..15, 15..18]
            .into_iter()
            .map(|range| {
                let (promise, flight) = Promise::new();
                ((promise, Part { range, flight: Arc::clone(&flight) }), flight)
            })
            .unzip();
        let mut landing = Landing::new(segments);
        assert_eq!((landing.range(), landing.next_len()), (10..18, 3));
        let mut got = vec![0, 1];
        assert_eq!(landing.take(&mut got), 0);
        got.extend([2, 3, 4, 5]);
        assert_eq!((landing.take(&mut got), got), (5, vec![5]));
        assert_eq!(landing.range(), 15..18);
        assert_eq!(*flights[0].wait().unwrap(), [0, 1, 2]);
        assert_eq!(*flights[1].wait().unwrap(), [3, 4]);
        assert!(!flights[2].is_done());
        // What is dropped ends with an error.
        drop(landing);
        assert!(flights[2].wait().is_err());
    }
}
