//! Values at some places of a tile, taken from what is read of the tile once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_format::buffer::Buffer;
use sieva_format::cf::TimeUnits;
use sieva_types::{Bx, DType, Result};

use crate::exec::Execution;
use crate::exec::access_path::sorted::linear;
use crate::exec::fetch::column::Column;
use crate::exec::tile::arrays::{Leaves, element_size};
use crate::exec::tile::evaluate::Provider;
use crate::values::{Values, Vector};

/// The columns at some places of a box of the row space.
pub struct Picked<'a, 'e> {
    leaves: &'a mut Leaves<'e>,
    execution: &'e Execution,
    bx: &'a Bx,
    places: &'a [usize],
}

impl<'a, 'e> Picked<'a, 'e> {
    /// At `places` of `bx`, ascending.
    pub fn new(
        leaves: &'a mut Leaves<'e>,
        execution: &'e Execution,
        bx: &'a Bx,
        places: &'a [usize],
    ) -> Self {
        Self { leaves, execution, bx, places }
    }

    /// The places in the part of the box along `axes`, ascending ones; `None` where they are all of those of the box.
    fn own_places(&self, axes: &[usize]) -> Option<Vec<usize>> {
        let rank = self.bx.rank();
        if axes.len() == rank {
            return (self.places.len() as u64 != self.bx.len()).then(|| self.places.to_vec());
        }
        let mut strides = vec![0; rank];
        let mut stride = 1;
        for &axis in axes.iter().rev() {
            strides[axis] = stride;
            stride *= self.bx.shape[axis] as usize;
        }
        let own = |&place: &usize| {
            let (mut rest, mut at) = (place, 0);
            for d in (0..rank).rev() {
                let n = self.bx.shape[d] as usize;
                at += rest % n * strides[d];
                rest /= n;
            }
            at
        };
        Some(self.places.iter().map(own).collect())
    }
}

impl Provider for Picked<'_, '_> {
    fn array(&mut self, array: usize, raw: bool) -> Result<Vector> {
        self.execution.options.check_cancel()?;
        let bound = &self.execution.bound.arrays[array];
        let places = self.own_places(&self.leaves.axes(array));
        if self.execution.source.schema().arrays[bound.index].dtype == DType::Str {
            let column = self.leaves.column(array, raw, self.bx)?;
            return places.map_or(column.clone(), |p| column.take(&p)).into_vector();
        }
        let domain = if raw { &bound.raw_domain } else { &bound.domain };
        let stored = self.leaves.stored(array, self.bx)?;
        let Some(places) = places else {
            return Column::decode(stored, self.places.len(), domain).into_vector();
        };
        let size = element_size(domain);
        let mut picked = Buffer::default();
        picked.resize(places.len() * size);
        pick(stored.bytes(), &places, size, picked.bytes_mut());
        Column::decode(&picked, places.len(), domain).into_vector()
    }

    fn position(&mut self, dim: usize) -> Result<Vector> {
        let rows = &self.execution.bound.rows;
        let axis = rows.axis(dim).unwrap_or_default();
        let inner: u64 = self.bx.shape[axis + 1..].iter().product();
        let along = |&p: &usize| (self.bx.start[axis] + p as u64 / inner % self.bx.shape[axis]) as i64;
        Vector::new(Values::I64(self.places.iter().map(along).collect()), None)
    }

    fn units(&self, array: usize) -> Option<&TimeUnits> {
        self.execution.bound.arrays[array].time.as_deref()
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.execution.options.cancel)
    }
}

/// Copies the elements at `places`, of `size` bytes each.
fn pick(from: &[u8], places: &[usize], size: usize, out: &mut [u8]) {
    fn by<const N: usize>(from: &[u8], places: &[usize], out: &mut [u8]) {
        let from = from.as_chunks::<N>().0;
        for (slot, &p) in out.as_chunks_mut::<N>().0.iter_mut().zip(places) {
            *slot = from[p];
        }
    }
    match size {
        1 => by::<1>(from, places, out),
        2 => by::<2>(from, places, out),
        4 => by::<4>(from, places, out),
        _ => by::<8>(from, places, out),
    }
}

/// The positions of the row space at `places` of a box, ascending ones.
pub fn positions_of(shape: &[u64], bx: &Bx, places: &[usize]) -> Vec<u64> {
    let inner = bx.shape.last().copied().unwrap_or(1).max(1);
    let (mut row, mut start) = (u64::MAX, 0);
    let position = |&place: &usize| {
        let place = place as u64;
        if row == u64::MAX || place - row * inner >= inner {
            row = place / inner;
            start = linear(shape, bx, row);
        }
        start + (place - row * inner)
    };
    places.iter().map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_positions_of_the_whole() {
        let (shape, bx) = ([4, 5, 6], Bx::new(vec![1, 2, 3], vec![2, 2, 2]));
        assert_eq!(positions_of(&shape, &bx, &[0, 1, 2, 5, 7]), [45, 46, 51, 76, 82]);
        assert_eq!(positions_of(&[], &Bx::new(vec![], vec![]), &[0]), [0]);
    }
}
