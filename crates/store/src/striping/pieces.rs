//! Ranges of bytes, cut where stripes end.

use std::ops::Range;

use super::Part;

/// A range of bytes within one stripe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The server that has it, below [`Striping::servers`](super::Striping::servers).
    pub server: u32,
    /// The number of its stripe, which ascends with the offset.
    pub stripe: u64,
    /// Its bytes.
    pub range: Range<u64>,
}

/// Pieces in the order of the file.
pub(super) struct Pieces<'a> {
    parts: &'a [Part],
    left: Range<u64>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(parts: &'a [Part], range: Range<u64>) -> Self {
        let before = parts.partition_point(|part| part.range.end <= range.start);
        Self { parts: &parts[before.min(parts.len())..], left: range }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let part = self.parts.first().filter(|_| !self.left.is_empty())?;
        let within = self.left.start..self.left.end.min(part.range.end);
        let piece = part.piece(part.rule.stripe(within.start), &within);
        self.left.start = piece.range.end;
        if piece.range.end == part.range.end {
            self.parts = &self.parts[1..];
        }
        Some(piece)
    }
}
