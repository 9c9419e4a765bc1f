//! Requests of many processes as one plan: who reads what, when, and which boxes that is (Liu et al., section IV.B,
//! Algorithm 1, steps one and two).
//!
//! Each rank cuts its own boxes ([`Piece`]) and tells all ranks. [`Plan::of`] then comes to the same on every rank, as all of
//! them know all pieces: pieces of one unit (server, stripe, block) are read together, overlaps once ([`Plan::reads`]), by
//! one rank; each server's units by as few ranks as balance allows, in the order in which bytes lie, in waves of bounded size.
//! Where requests of several ranks do not overlap, [`cost`] decides whether each reads its own, and nothing is sent.

mod cost;
mod deal;
mod union;

use std::ops::Range;

use sieva_types::{Bx, Error, ErrorKind, Result};

use crate::layout::c_strides;

pub use union::disjoint;

/// Numbers of a piece before its box, as ranks tell one another: array, kind, bytes of a value, request, server, stripe, block.
pub const HEAD: usize = 7;

/// An array of which something is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its lengths.
    pub shape: Vec<u64>,
    /// Whether blocks are chunks, which are decoded as a whole, rather than runs of elements.
    pub is_chunked: bool,
}

/// A part of a box that a rank asks for, within one stripe and one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which of the arrays.
    pub array: usize,
    /// What its values are read as, if there is a choice: pieces of different kinds have no unit in common.
    pub kind: u64,
    /// Bytes of a value, as it is sent.
    pub width: u64,
    /// The rank that asks.
    pub asker: usize,
    /// Which of the asker's requests it is of.
    pub request: u64,
    /// The server that has it.
    pub server: u64,
    /// The number of the stripe.
    pub stripe: u64,
    /// The number of the block.
    pub block: u64,
    /// The elements.
    pub bx: Bx,
}

impl Piece {
    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        self.bx.len().saturating_mul(self.width)
    }

    /// What pieces that are read together have in common; servers first, and there the order of bytes.
    fn key(&self) -> (u64, u64, usize, u64, u64) {
        (self.server, self.stripe, self.array, self.block, self.kind)
    }
}

/// Pieces that are read together, each element once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its pieces, of [`Plan::pieces`].
    pub pieces: Range<usize>,
    /// The rank that reads it.
    pub reader: usize,
    /// When.
    pub wave: u64,
}

/// Who reads what, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// All pieces, in the order in which they are read.
    pub pieces: Vec<Piece>,
    /// The place of each in what was given.
    pub given: Vec<usize>,
    /// What is read together.
    pub units: Vec<Unit>,
    /// How many waves there are.
    pub waves: u64,
    /// Bytes that a rank sends in a wave, at most.
    pub largest: u64,
    /// Of each array, whether units are rows of elements in C order, beyond which somebody else may read.
    is_row: Vec<bool>,
    /// The lengths of each array.
    shapes: Vec<Vec<u64>>,
}

impl Plan {
    /// The plan for the pieces of `ranks` ranks, of which each sends `most` bytes in a wave, or one unit.
    ///
    /// # Errors
    /// `invalid-value` for pieces of no array, of no rank, or beyond their array.
    pub fn of(arrays: &[Asked], pieces: Vec<Piece>, ranks: usize, most: u64) -> Result<Self> {
        pieces.iter().try_for_each(|piece| check(arrays, piece, ranks))?;
        Ok(deal::plan(arrays, pieces, ranks, most))
    }

    /// The boxes that the reader of a unit reads: all that its pieces hold, nothing twice. What lies between pieces of a
    /// chunk, or costs less than another request, may be among it.
    pub fn reads(&self, unit: usize) -> Vec<Bx> {
        let Some(Unit { pieces, .. }) = self.units.get(unit) else { return Vec::new() };
        let boxes: Vec<Bx> = self.pieces[pieces.clone()].iter().map(|piece| piece.bx.clone()).collect();
        disjoint(&boxes, self.is_row(unit))
    }

    /// The run of elements in C order that a unit is, its first position and how many, where [`Plan::reads`] is one without a
    /// gap: the bytes of a stripe, as one request has them.
    pub fn run(&self, unit: usize) -> Option<(u64, u64)> {
        let first = self.units.get(unit).filter(|_| self.is_row(unit))?.pieces.start;
        let strides = c_strides(&self.shapes[self.pieces[first].array], 1);
        let boxes = self.reads(unit);
        let place = |bx: &Bx, last: u64| {
            let each = bx.start.iter().zip(&bx.shape).zip(&strides);
            each.map(|((start, n), stride)| (start + last * (n - 1)) * stride).sum::<u64>()
        };
        let (begin, end) =
            (boxes.iter().map(|bx| place(bx, 0)).min()?, boxes.iter().map(|bx| place(bx, 1)).max()? + 1);
        (boxes.iter().map(Bx::len).sum::<u64>() == end - begin).then_some((begin, end - begin))
    }

    /// Whether a unit is a row of elements in C order, as a stripe has them, rather than a box; see [`disjoint`].
    pub fn is_row(&self, unit: usize) -> bool {
        let first = self.units.get(unit).and_then(|unit| self.pieces.get(unit.pieces.start));
        first.is_some_and(|piece| self.is_row.get(piece.array).is_some_and(|is| *is))
    }
}

/// The pieces that a rank tells of: rows of [`HEAD`] numbers and those of its box, start then lengths.
///
/// # Errors
/// `invalid-value` for numbers that are no pieces.
pub fn pieces_of(arrays: &[Asked], asker: usize, mut numbers: &[u64]) -> Result<Vec<Piece>> {
    let mut found = Vec::new();
    while let Some((head, rest)) = numbers.split_first_chunk::<HEAD>() {
        let array = usize::try_from(head[0]).unwrap_or(usize::MAX);
        let rank = arrays.get(array).ok_or_else(|| wrong(format!("array number {array}")))?.shape.len();
        let bx = rest.get(..2 * rank).ok_or_else(|| wrong("a box that is cut off".into()))?;
        numbers = &rest[2 * rank..];
        let [_, kind, width, request, server, stripe, block] = *head;
        let bx = Bx::new(bx[..rank].to_vec(), bx[rank..].to_vec());
        found.push(Piece { array, kind, width, asker, request, server, stripe, block, bx });
    }
    if numbers.is_empty() { Ok(found) } else { Err(wrong("a row that is cut off".into())) }
}

fn check(arrays: &[Asked], piece: &Piece, ranks: usize) -> Result<()> {
    let shape = arrays.get(piece.array).map(|array| &array.shape);
    let is_inside = shape.is_some_and(|shape| {
        let ends = piece.bx.start.iter().zip(&piece.bx.shape).map(|(s, n)| s.checked_add(*n));
        shape.len() == piece.bx.rank() && ends.zip(shape).all(|(end, n)| end.is_some_and(|end| end <= *n))
    });
    if !is_inside || piece.bx.is_empty() || piece.asker >= ranks {
        return Err(wrong(format!("a piece of array {} that is not within it", piece.array)));
    }
    Ok(())
}

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("pieces of ranks: {what}"))
}

#[cfg(test)]
mod tests;
