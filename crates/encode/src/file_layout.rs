//! The layout of a file: a head, and the values of each column one row behind the other from a known offset on.

use std::ops::Range;

use sieva::{Result, ResultColumns};

use crate::elements::{Order, encode};
use crate::variable::Variable;

/// Bytes of a column that are made at once: large enough that chunks are decoded about once, and small enough that many
/// readers fit into memory.
pub(crate) const WINDOW: u64 = 1 << 20;

/// How many times as large a window may be whose rows share chunks.
pub(crate) const MOST_WINDOWS: u64 = 16;

/// Where the values of a column lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the column.
    pub column: usize,
    /// Offset of its first value.
    pub begin: u64,
    /// Bytes of each value.
    pub width: u64,
}

/// The layout of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileLayout {
    /// What comes before the values.
    pub head: Vec<u8>,
    /// The columns' places, ascending. What lies between them is zeros.
    pub places: Vec<Place>,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of the file.
    pub len: u64,
    /// Byte order of the values.
    pub order: Order,
}

/// A part of a file of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of the head, or zeros behind it and between columns.
    Still(Range<u64>),
    /// Bytes of a column's values: its number in [`FileLayout::places`].
    Values(usize, Range<u64>),
}

impl Piece {
    /// Its bytes of the file.
    pub fn range(&self) -> &Range<u64> {
        match self {
            Self::Still(range) | Self::Values(_, range) => range,
        }
    }
}

impl FileLayout {
    /// The part of the file that begins at `offset` and ends at `end` at the latest; not empty unless `offset` is.
    pub fn piece(&self, offset: u64, end: u64) -> Piece {
        let next = self.places.partition_point(|p| p.begin <= offset);
        if let Some((index, place)) = next.checked_sub(1).map(|i| (i, &self.places[i])) {
            let stop = place.begin + self.rows * place.width;
            if offset < stop {
                return Piece::Values(index, offset..end.min(stop));
            }
        }
        let stop = self.places.get(next).map_or(self.len, |p| p.begin);
        Piece::Still(offset..end.min(stop))
    }

    /// The piece that begins at `offset` and is best made at once, of those up to `end`: of about [`WINDOW`] bytes, or of
    /// rows that share chunks, in at most `most` bytes.
    pub fn window(&self, rows: &ResultColumns, offset: u64, end: u64, most: u64) -> Piece {
        let piece = self.piece(offset, end.min(offset.saturating_add(WINDOW)));
        let Piece::Values(index, range) = &piece else { return piece };
        let place = self.places[*index];
        let row_of = |at: u64| (at - place.begin) / place.width;
        let most = row_of(offset.saturating_add(most)).min(self.rows);
        if range.end == end || row_of(range.end) == self.rows {
            return piece;
        }
        let row = rows.part_end(place.column, row_of(offset), row_of(range.end), most);
        let stop = (place.begin + row * place.width).min(end);
        if stop > offset { Piece::Values(*index, offset..stop) } else { piece }
    }

    /// Puts the bytes of a piece into `to`, which has exactly the room.
    ///
    /// # Errors
    /// Reading errors; `invalid-value` where a value is equal to the fill value.
    pub fn read(
        &self,
        piece: &Piece,
        (rows, variables): (&ResultColumns, &[Variable]),
        threads: usize,
        to: &mut [u8],
    ) -> Result<()> {
        let range = piece.range();
        let Piece::Values(index, _) = piece else {
            to.fill(0);
            if let Some(head) = self.head.get(range.start as usize..) {
                let n = head.len().min(to.len());
                to[..n].copy_from_slice(&head[..n]);
            }
            return Ok(());
        };
        let place = self.places[*index];
        let (from, upto) = (range.start - place.begin, range.end - place.begin);
        let (first, last) = (from / place.width, upto.div_ceil(place.width));
        let column = rows.read(place.column, first..last, threads)?;
        let variable = &variables[place.column];
        if from % place.width == 0 && upto % place.width == 0 {
            return encode(&column, variable, self.order, to);
        }
        let mut whole = vec![0; ((last - first) * place.width) as usize];
        encode(&column, variable, self.order, &mut whole)?;
        to.copy_from_slice(&whole[(from - first * place.width) as usize..][..to.len()]);
        Ok(())
    }
}
