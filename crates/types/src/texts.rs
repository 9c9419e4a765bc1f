//! Texts as a column has them: their bytes one behind the other, and where each begins. It is Arrow's layout of `utf8`, and
//! of `large_utf8` where the bytes are more than 32-bit offsets reach.

mod placed;
mod slice;
#[cfg(test)]
mod tests;

use std::ops::{Index, Range};

use crate::{Error, ErrorKind, Result};

pub use placed::PlacedTexts;
pub use slice::TextSlice;

/// Most bytes that 32-bit offsets reach. The tests of this crate have texts that go over it.
const SMALL: usize = if cfg!(test) { 100 } else { i32::MAX as usize };

/// Where each text begins, and at the end where the last one ends.
#[derive(Clone, Debug)]
pub enum TextOffsets {
    /// Those of `utf8`.
    Small(Vec<i32>),
    /// Those of `large_utf8`.
    Large(Vec<i64>),
}

/// Runs `$body` with `$v` bound to the vector inside, whatever its width.
macro_rules! with_offsets {
    ($offsets:expr, $v:ident => $body:expr) => {
        match $offsets {
            TextOffsets::Small($v) => $body,
            TextOffsets::Large($v) => $body,
        }
    };
}

impl TextOffsets {
    /// The place number `i`, which is there.
    fn at(&self, i: usize) -> usize {
        with_offsets!(self, v => v[i] as usize)
    }

    fn len(&self) -> usize {
        with_offsets!(self, v => v.len())
    }

    fn memory_bytes(&self) -> usize {
        with_offsets!(self, v => v.capacity() * size_of_val(&v[0]))
    }
}

/// Texts. Which of them are missing is told beside them; what stands there means nothing.
#[derive(Clone, Debug)]
pub struct Texts {
    /// The bytes of all of them: a `String`, so that parts of it are texts without being looked at again.
    bytes: String,
    /// One more than there are texts, the first is 0, the last the number of bytes.
    offsets: TextOffsets,
}

impl Default for Texts {
    fn default() -> Self {
        Self::new()
    }
}

impl Texts {
    /// None.
    pub fn new() -> Self {
        Self::with_room(0, 0)
    }

    /// None, with room for so many of so many bytes together.
    pub fn with_room(texts: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(texts.saturating_add(1));
        offsets.push(0);
        Self { bytes: String::with_capacity(bytes), offsets: TextOffsets::Small(offsets) }
    }

    /// The same text so many times.
    pub fn repeated(text: &str, times: usize) -> Self {
        let mut all = Self::with_room(times, text.len().saturating_mul(times));
        (0..times).for_each(|_| all.push(text));
        all
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text number `i`.
    pub fn get(&self, i: usize) -> Option<&str> {
        (i < self.len()).then(|| &self[i])
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator + Clone {
        self.all().iter()
    }

    /// All of them, borrowed.
    pub fn all(&self) -> TextSlice<'_> {
        self.part(0..self.len())
    }

    /// Those of these numbers, borrowed.
    ///
    /// # Panics
    /// As of a slice of a vector.
    pub fn part(&self, rows: Range<usize>) -> TextSlice<'_> {
        TextSlice::new(self, rows)
    }

    /// The bytes of all of them, one behind the other.
    pub fn as_str(&self) -> &str {
        &self.bytes
    }

    /// Adds a text.
    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.end();
    }

    /// Adds the text of these bytes; those that are not UTF-8 are taken as Latin-1.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.push(text),
            Err(_) => self.push_chars(bytes.iter().map(|&b| char::from(b))),
        }
    }

    /// Adds the text of these characters, which is never held elsewhere.
    pub fn push_chars(&mut self, chars: impl IntoIterator<Item = char>) {
        self.bytes.extend(chars);
        self.end();
    }

    /// The bytes that were added last are a text.
    fn end(&mut self) {
        let end = self.bytes.len();
        self.reach(end);
        match &mut self.offsets {
            TextOffsets::Small(v) => v.push(end as i32),
            TextOffsets::Large(v) => v.push(end as i64),
        }
    }

    /// Has offsets that reach so many bytes.
    fn reach(&mut self, bytes: usize) {
        if let TextOffsets::Small(v) = &self.offsets
            && bytes > SMALL
        {
            let mut wide = Vec::with_capacity(v.capacity());
            wide.extend(v.iter().map(|&at| i64::from(at)));
            self.offsets = TextOffsets::Large(wide);
        }
    }

    /// Adds others.
    pub fn append(&mut self, others: TextSlice<'_>) {
        let start = self.bytes.len();
        self.bytes.push_str(others.as_str());
        self.reach(self.bytes.len());
        let first = others.start();
        let ends = others.ends().map(|end| start + (end - first));
        match &mut self.offsets {
            TextOffsets::Small(v) => v.extend(ends.map(|end| end as i32)),
            TextOffsets::Large(v) => v.extend(ends.map(|end| end as i64)),
        }
    }

    /// A copy of those of these numbers.
    ///
    /// # Panics
    /// As of a slice of a vector.
    #[must_use]
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let part = self.part(rows);
        let mut all = Self::with_room(part.len(), part.as_str().len());
        all.append(part);
        all
    }

    /// Those of these numbers, in this order.
    ///
    /// # Panics
    /// Where there is none of a number.
    #[must_use]
    pub fn take(&self, order: impl ExactSizeIterator<Item = usize> + Clone) -> Self {
        let bytes = order.clone().map(|i| self.end_of(i) - self.offsets.at(i)).sum();
        let mut all = Self::with_room(order.len(), bytes);
        order.for_each(|i| all.push(&self[i]));
        all
    }

    /// Those that `keep` is true of.
    #[must_use]
    pub fn filter(&self, keep: &[bool]) -> Self {
        self.iter().zip(keep).filter(|(_, keep)| **keep).map(|(text, _)| text).collect()
    }

    /// Makes room for so many texts more of so many bytes together, and no more than that.
    ///
    /// # Errors
    /// `memory-limit` where the system has none.
    pub fn reserve_exact(&mut self, texts: usize, bytes: usize) -> Result<()> {
        let places = with_offsets!(&mut self.offsets, v => v.try_reserve_exact(texts));
        places.and_then(|()| self.bytes.try_reserve_exact(bytes)).map_err(|_| {
            let message = format!("the system has no memory for {texts} more texts of {bytes} bytes");
            Error::new(ErrorKind::MemoryLimit, message).hint("ask for less at once")
        })
    }

    /// Gives back room that others would have.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        with_offsets!(&mut self.offsets, v => v.shrink_to_fit());
    }

    /// Texts that there is room for besides those that are there.
    pub fn room(&self) -> usize {
        with_offsets!(&self.offsets, v => v.capacity() - v.len())
    }

    /// Bytes of texts that there is room for, with those that are there.
    pub fn bytes_capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Bytes that they take.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.offsets.memory_bytes()
    }

    /// Bytes of texts and offsets, room for others left out.
    pub fn used_bytes(&self) -> usize {
        self.all().used_bytes()
    }

    /// Offsets and bytes, as Arrow has them.
    pub fn into_parts(self) -> (TextOffsets, Vec<u8>) {
        (self.offsets, self.bytes.into_bytes())
    }

    fn end_of(&self, i: usize) -> usize {
        self.offsets.at(i + 1)
    }
}

impl Index<usize> for Texts {
    type Output = str;

    fn index(&self, i: usize) -> &str {
        &self.bytes[self.offsets.at(i)..self.end_of(i)]
    }
}

impl PartialEq for Texts {
    /// Of the width of offsets nothing is seen from outside.
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.all().ends().eq(other.all().ends())
    }
}

impl Eq for Texts {}

impl<S: AsRef<str>, const N: usize> PartialEq<[S; N]> for Texts {
    fn eq(&self, other: &[S; N]) -> bool {
        self.iter().eq(other.iter().map(AsRef::as_ref))
    }
}

impl<S: AsRef<str>> Extend<S> for Texts {
    fn extend<I: IntoIterator<Item = S>>(&mut self, texts: I) {
        texts.into_iter().for_each(|text| self.push(text.as_ref()));
    }
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let texts = texts.into_iter();
        let mut all = Self::with_room(texts.size_hint().0, 0);
        all.extend(texts);
        all
    }
}
