//! The two directions: from a server to boxes, and from a box to servers.

use std::ops::Range;

use sieva_types::Bx;

use super::order::Order;
use super::{Share, SubCorrelation};
use crate::layout::{ChunkIndex, ChunkRef};

impl SubCorrelation {
    /// The elements that begin in the stripes of a server.
    pub(super) fn elements_on<'a>(
        &'a self,
        order: &'a Order,
        server: u32,
    ) -> impl Iterator<Item = Share> + 'a {
        let stripes = self.striping.stripes_on(server, order.bytes());
        stripes.flat_map(move |piece| {
            let boxes = order.boxes(order.within(&piece.range));
            boxes.map(move |bx| share(order, server, piece.stripe, bx))
        })
    }

    /// The elements of a box, by the stripes in which they begin.
    pub(super) fn elements_of<'a>(&'a self, order: &'a Order, bx: Bx) -> impl Iterator<Item = Share> + 'a {
        let mut next = order.next_in(&bx, 0);
        let touched = std::iter::from_fn(move || {
            let number = next?;
            let piece = self.striping.pieces(order.byte_of(number)..order.bytes().end).next()?;
            // The next element of the box may be many stripes further.
            let end = order.first_from(piece.range.end);
            next = order.next_in(&bx, end);
            let own = bx.clone();
            Some(order.boxes(number..end).filter_map(move |part| {
                Some(share(order, piece.server, piece.stripe, part.intersect(&own)?))
            }))
        });
        touched.flatten()
    }

    /// The chunks whose first byte a server has, and the rests of others.
    pub(super) fn chunks_on<'a>(
        &'a self,
        index: &'a ChunkIndex,
        server: u32,
    ) -> impl Iterator<Item = Share> + 'a {
        let grid = self.layout.grid();
        let stored = index.numbered().flat_map(move |(number, chunk)| {
            let bx = self.layout.chunk_box(&coordinates(number, &grid));
            self.shares_of_chunk(chunk, bx)
        });
        stored.filter(move |share| share.server == server)
    }

    /// The chunks that a box touches, whole, with the part of the box that each has.
    pub(super) fn chunks_of<'a>(&'a self, index: &'a ChunkIndex, bx: Bx) -> impl Iterator<Item = Share> + 'a {
        let chunk = &self.layout.chunk_shape;
        let first: Vec<u64> = bx.start.iter().zip(chunk).map(|(s, c)| s / c.max(&1)).collect();
        let last: Vec<u64> = (0..bx.rank()).map(|d| (bx.end(d) - 1) / chunk[d].max(1)).collect();
        let grid = self.layout.grid();
        let mut at = Some(first.clone());
        let touched = std::iter::from_fn(move || {
            let mut coords = at.take()?;
            let here = coords.clone();
            at = crate::read::advance(&mut coords, &first, &last).then_some(coords);
            Some(here)
        });
        touched
            .filter_map(move |coords| {
                let chunk = index.get(coords.iter().zip(&grid).fold(0, |n, (c, g)| n * g + c))?;
                let part = self.layout.chunk_box(&coords).intersect(&bx)?;
                Some(self.shares_of_chunk(chunk, part))
            })
            .flatten()
    }

    fn shares_of_chunk(&self, chunk: ChunkRef, bx: Bx) -> impl Iterator<Item = Share> + '_ {
        let bytes = chunk.offset..chunk.offset.saturating_add(chunk.size);
        self.striping.pieces(bytes).enumerate().map(move |(i, piece)| Share {
            server: piece.server,
            stripe: piece.stripe,
            bytes: piece.range,
            bx: bx.clone(),
            is_first: i == 0,
        })
    }
}

fn share(order: &Order, server: u32, stripe: u64, bx: Bx) -> Share {
    let bytes: Range<u64> = order.bytes_of(&bx);
    Share { server, stripe, bytes, bx, is_first: true }
}

/// The grid coordinates of a chunk's C-order number.
fn coordinates(number: u64, grid: &[u64]) -> Vec<u64> {
    let mut rest = number;
    let mut coords = vec![0; grid.len()];
    for (coord, n) in coords.iter_mut().zip(grid).rev() {
        *coord = rest % n.max(&1);
        rest /= n.max(&1);
    }
    coords
}
