//! Some texts that follow one another, borrowed.

use std::ops::{Index, Range};

use super::{TextOffsets, Texts};

/// Some of [`Texts`] that follow one another.
#[derive(Clone, Copy, Debug)]
pub struct TextSlice<'a> {
    texts: &'a Texts,
    first: usize,
    end: usize,
}

impl<'a> TextSlice<'a> {
    pub(super) fn new(texts: &'a Texts, rows: Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= texts.len(), "{rows:?} of {} texts", texts.len());
        Self { texts, first: rows.start, end: rows.end }
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.end - self.first
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator + Clone {
        (self.first..self.end).map(move |i| &self.texts[i])
    }

    /// Those of these numbers.
    ///
    /// # Panics
    /// As of a slice of a vector.
    #[must_use]
    pub fn part(self, rows: Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= self.len(), "{rows:?} of {} texts", self.len());
        Self { first: self.first + rows.start, end: self.first + rows.end, ..self }
    }

    /// The bytes of all of them, one behind the other.
    pub fn as_str(self) -> &'a str {
        &self.texts.bytes[self.start()..self.texts.offsets.at(self.end)]
    }

    /// Bytes of texts and offsets.
    pub fn used_bytes(self) -> usize {
        let width = match &self.texts.offsets {
            TextOffsets::Small(_) => size_of::<i32>(),
            TextOffsets::Large(_) => size_of::<i64>(),
        };
        self.as_str().len() + self.len() * width
    }

    /// Where the first one begins.
    pub(super) fn start(self) -> usize {
        self.texts.offsets.at(self.first)
    }

    /// Where each of them ends.
    pub(super) fn ends(self) -> impl Iterator<Item = usize> + 'a {
        (self.first..self.end).map(move |i| self.texts.end_of(i))
    }
}

impl Index<usize> for TextSlice<'_> {
    type Output = str;

    fn index(&self, i: usize) -> &str {
        assert!(i < self.len(), "text {i} of {}", self.len());
        &self.texts[self.first + i]
    }
}
