//! Texts that come in another order than they are wanted in.

use super::Texts;

/// A place that no text was put to.
const NONE: usize = usize::MAX;

/// Texts for so many places, which come in any order. Those that come in order cost nothing more.
#[derive(Clone, Debug)]
pub struct PlacedTexts {
    places: usize,
    came: Texts,
    /// Which of those that came stands at each place; `None` as long as they came in order.
    pub(super) from: Option<Vec<usize>>,
}

impl PlacedTexts {
    /// So many places, none with a text.
    pub fn new(places: usize) -> Self {
        Self { places, came: Texts::new(), from: None }
    }

    /// Puts a text to a place; the last one that is put there stands.
    ///
    /// # Panics
    /// Where there is no such place.
    pub fn put(&mut self, place: usize, text: &str) {
        assert!(place < self.places, "place {place} of {}", self.places);
        let number = self.came.len();
        if place != number && self.from.is_none() {
            let mut from: Vec<usize> = (0..number).collect();
            from.resize(self.places, NONE);
            self.from = Some(from);
        }
        if let Some(from) = &mut self.from {
            from[place] = number;
        }
        self.came.push(text);
    }

    /// The texts of all places, with `fill` where none was put.
    pub fn finish(mut self, fill: &str) -> Texts {
        let Some(mut from) = self.from else {
            (self.came.len()..self.places).for_each(|_| self.came.push(fill));
            self.came.shrink();
            return self.came;
        };
        if from.contains(&NONE) {
            let filled = self.came.len();
            self.came.push(fill);
            from.iter_mut().filter(|i| **i == NONE).for_each(|i| *i = filled);
        }
        self.came.take(from.iter().copied())
    }

    /// Bytes that they take.
    pub fn memory_bytes(&self) -> usize {
        self.came.memory_bytes() + self.from.as_ref().map_or(0, |f| f.capacity() * size_of::<usize>())
    }
}
