//! Values as they go in and come out.

use crate::element::Element;

/// Values of a column, of rows that follow those before.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Its values, little-endian.
    pub data: &'a [u8],
    /// Of each row a byte, 0 where the value is missing; `None`: none is.
    pub valid: Option<&'a [u8]>,
}

impl Slice<'_> {
    /// Some of its rows, of values of a size.
    pub(super) fn cut(&self, size: usize, from: usize, to: usize) -> Self {
        Self { data: &self.data[from * size..to * size], valid: self.valid.map(|valid| &valid[from..to]) }
    }
}

/// Values that come out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Their type.
    pub element: Element,
    /// The values, little-endian; zero where one is missing.
    pub data: Vec<u8>,
    /// As of [`Slice`].
    pub valid: Option<Vec<u8>>,
}

impl Values {
    pub(super) fn new(element: Element) -> Self {
        Self { element, data: Vec::new(), valid: None }
    }

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.data.len() / self.element.size()
    }

    /// Bytes that they hold.
    pub(super) fn held(&self) -> usize {
        self.data.capacity() + self.valid.as_ref().map_or(0, Vec::capacity)
    }

    /// Appends values, and which of them are there; there may be room for so many bytes more.
    pub(super) fn extend(&mut self, data: &[u8], valid: Option<&[u8]>, room: usize) {
        let (before, size) = (self.rows(), self.element.size());
        if self.data.capacity() - self.data.len() < data.len() {
            // Not twice as much: what is held counts.
            self.data.reserve_exact(data.len().max(room.min(self.data.len() / 4)));
        }
        self.data.extend_from_slice(data);
        let missing = valid.filter(|valid| valid.contains(&0));
        if missing.is_none() && self.valid.is_none() {
            return;
        }
        let rows = self.rows();
        let mask = self.valid.get_or_insert_with(|| vec![1; before]);
        mask.extend(valid.unwrap_or_default().iter().map(|v| u8::from(*v != 0)));
        mask.resize(rows, 1);
        for row in (before..rows).filter(|row| mask[*row] == 0) {
            self.data[row * size..(row + 1) * size].fill(0);
        }
    }
}
