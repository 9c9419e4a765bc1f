//! Single elements of a tile: read by themselves where that costs less than reading the tile.

use std::time::Instant;

use sieva_types::{Buffer, Bx, DType, ErrorKind, Result};

use super::path::{AccessPath, Answer, Offer, Question};
use crate::bind::Value;
use crate::exec::access_path::Access;
use crate::exec::fetch::runs::read_runs;
use crate::exec::tile::arrays::{Leaves, element_size};
use crate::exec::{Column, Execution, FetchWay};
use crate::mask::Mask;
use crate::raw::RawTest;

/// C-order positions in an array of shape `shape` of places in a box of it, which ascend.
pub(in crate::exec) fn positions_of(shape: &[u64], own: &Bx, places: &[usize]) -> Vec<u64> {
    let row = own.shape.last().copied().unwrap_or(1).max(1);
    let mut starts = (u64::MAX, 0);
    let at = |&i: &usize| {
        let r = i as u64 / row;
        if starts.0 != r {
            starts = (r, crate::exec::access_path::sorted::linear(shape, own, r));
        }
        starts.1 + i as u64 % row
    };
    places.iter().map(at).collect()
}

/// Reading the positions that are open one by one, or in short runs.
pub(super) struct PointsPath;

impl AccessPath for PointsPath {
    fn forced_by(&self) -> Option<Access> {
        None
    }

    fn is_there(&self, execution: &Execution, array: usize) -> bool {
        execution.flat[array].is_some() && execution.bound.arrays[array].axes.is_sorted()
    }

    fn offer<'e>(
        &self,
        execution: &'e Execution,
        asked: &Question<'_>,
        open: Option<&Mask>,
    ) -> Option<Offer<'e>> {
        if execution.options.access == Access::Scan || !self.is_there(execution, asked.array) {
            return None;
        }
        // All of a tile that lines up with the array is open, or none is known to be.
        let all = asked.own.len();
        let count = open.map_or_else(|| (asked.bx.len() == all).then_some(all), |open| Some(open.count()))?;
        let cost = count as f64 * execution.indexes.costs.direct.request.get();
        Some(Offer {
            cost,
            evaluate: Box::new(|evaluator, asked, open| {
                evaluator.read = true;
                evaluator.did.by_points += 1;
                let sure = match open {
                    Some(open) => evaluator.leaves.test_points(asked, open)?,
                    None => evaluator.leaves.test_points(asked, &Mask::ones(asked.own.len() as usize))?,
                };
                Ok(Answer { sure, check: None })
            }),
        })
    }
}

impl Leaves<'_> {
    /// Where the stored values belong to the set among the positions `open` of the array's own box, read one by one (or in
    /// short runs) of an array that lies plainly, with axes in order; where it does not, all are read.
    fn test_points(&mut self, asked: &Question<'_>, open: &Mask) -> Result<Mask> {
        let Some(flat) = &self.execution.flat[asked.array] else {
            return Ok(self.test(asked.array, asked.raw, asked.set, asked.bx)?.1);
        };
        let domain = self.domain(asked.array, asked.raw);
        let size = element_size(domain);
        let index = self.execution.bound.arrays[asked.array].index;
        let places: Vec<usize> = open.ones_iter().collect();
        let positions =
            positions_of(&self.execution.source.schema().arrays[index].shape, &asked.own, &places);
        let mut values = self.spare.pop().unwrap_or_default();
        values.resize(positions.len() * size);
        let costs = &self.execution.indexes.costs.direct;
        let (gap, started) = (costs.gap(), Instant::now());
        let (requests, bytes) =
            read_runs(flat, &positions, size, gap, &mut self.workspace, values.bytes_mut())?;
        costs.observe(requests, bytes, started.elapsed().as_secs_f64() * 1e9);
        let mut found = Mask::zeros(positions.len());
        RawTest::new(domain.dtype(), asked.set).test(&values, found.words_mut());
        self.spare.push(values);
        let mut mask = Mask::zeros(asked.own.len() as usize);
        found.ones_iter().for_each(|i| mask.set(places[i]));
        Ok(mask)
    }

    /// The values of an array at some places of the tile `bx`, from the replica that gave the rows or one by one; `None`
    /// where reading the tile costs less, or was done already.
    ///
    /// # Errors
    /// Reading errors.
    pub(in crate::exec) fn at_places(
        &mut self,
        value: &Value,
        bx: &Bx,
        places: &[usize],
    ) -> Result<Option<Column>> {
        let Value::Array { array, raw } = value else { return Ok(None) };
        let (array, execution) = (*array, self.execution);
        let bound = &execution.bound.arrays[array];
        let own = execution.own_box(array, bx);
        let lines_up = bound.axes.len() == bx.rank() && bound.axes.is_sorted();
        let domain = self.domain(array, *raw);
        let allowed = execution.options.access != Access::Scan && execution.options.fetch == FetchWay::Auto;
        if !lines_up || !allowed || domain.dtype() == DType::Str || self.holds(array, &own) {
            return Ok(None);
        }
        let shape = &execution.source.schema().arrays[bound.index].shape;
        let size = element_size(domain);
        let positions = positions_of(shape, &own, places);
        let mut out = Buffer::default();
        out.resize(positions.len() * size);
        let done = self.by_replica(bound.index, &positions, size, &mut out)?
            || self.one_by_one(array, &own, &positions, size, &mut out)?;
        Ok(done.then(|| Column::decode(&out, positions.len(), domain)))
    }

    fn by_replica(&self, index: usize, positions: &[u64], size: usize, out: &mut Buffer) -> Result<bool> {
        let Some(chosen) = self.execution.chosen() else { return Ok(false) };
        match chosen.fetch(index, positions, (size, out.bytes_mut()), &self.execution.options) {
            Err(e) if e.kind() == ErrorKind::CorruptIndex => {
                self.execution.indexes.note(e.message());
                Ok(false)
            }
            done => Ok(done?.is_some()),
        }
    }

    fn one_by_one(
        &mut self,
        array: usize,
        own: &Bx,
        positions: &[u64],
        size: usize,
        out: &mut Buffer,
    ) -> Result<bool> {
        let execution = self.execution;
        let costs = &execution.indexes.costs.direct;
        let Some(flat) = &execution.flat[array] else { return Ok(false) };
        // Over a network the tiles were asked for ahead.
        let single = positions.len() as f64 * costs.request.get();
        if flat.is_remote() || single >= execution.scan_cost(array, own) {
            return Ok(false);
        }
        let (gap, started) = (costs.gap(), Instant::now());
        let (requests, bytes) = read_runs(flat, positions, size, gap, &mut self.workspace, out.bytes_mut())?;
        costs.observe(requests, bytes, started.elapsed().as_secs_f64() * 1e9);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_box_are_positions_of_the_array() {
        let own = Bx::new(vec![1, 2, 3], vec![2, 2, 2]);
        let of = |places: &[usize]| positions_of(&[4, 5, 6], &own, places);
        assert_eq!(of(&[0, 1, 2, 4, 7]), [45, 46, 51, 75, 82]);
        assert_eq!(positions_of(&[], &Bx::whole(&[]), &[0]), [0]);
    }
}
