//! The arrays of a tile: read once each, whatever wants them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sieva_format::buffer::Buffer;
use sieva_format::cf::TimeUnits;
use sieva_format::read::Workspace;
use sieva_types::{Bx, DType, Error, ErrorKind, Result};

use crate::bind::Value;
use crate::exec::Execution;
use crate::exec::access_path::bitmap::Evaluated;
use crate::exec::fetch::column::{Column, Data};
use crate::exec::learn::Learner;
use crate::exec::tile::evaluate::{Provider, evaluate};
use crate::exec::together::shelf::{Piece, Shelf};
use crate::mask::Mask;
use crate::raw::{KeySet, RawTest, StoredDomain};
use crate::values::{Values, Vector};

/// One worker's arrays of the tile at hand.
pub struct Leaves<'e> {
    pub(in crate::exec) execution: &'e Execution,
    pub(in crate::exec) workspace: Workspace,
    /// Per bound array: the box (of the array's own axes) that is held, and its elements.
    held: Vec<Option<(Bx, Arc<Buffer>)>>,
    /// Where the tile's arrays are found that other queries of the same worker read.
    shelf: Option<Shelf>,
    pub(in crate::exec) spare: Vec<Buffer>,
    /// For evaluating bitmaps.
    pub(in crate::exec) bitmap: sieva_index::bitmap::Workspace,
    /// Per bound array, what the bitmap of a region said that is larger than a tile.
    pub(in crate::exec) evaluated: Vec<Option<Evaluated>>,
    /// What reading took, and what was spent on leaving statistics.
    learner: Learner,
}

impl<'e> Leaves<'e> {
    /// Nothing held yet.
    pub fn new(execution: &'e Execution) -> Self {
        let held = execution.bound.arrays.iter().map(|_| None).collect();
        Self {
            execution,
            workspace: Workspace::cancelled_by(&execution.options.cancel),
            held,
            shelf: None,
            spare: Vec::new(),
            bitmap: sieva_index::bitmap::Workspace::default(),
            evaluated: execution.bound.arrays.iter().map(|_| None).collect(),
            learner: Learner::default(),
        }
    }

    /// Of a worker that evaluates several queries, whose arrays lie on a shelf.
    pub(in crate::exec) fn sharing(execution: &'e Execution, shelf: &Shelf) -> Self {
        Self { shelf: Some(shelf.clone()), ..Self::new(execution) }
    }

    /// Leaves the tile at hand: what is held of it belongs to the shelf.
    pub(in crate::exec) fn leave(&mut self) {
        self.held.iter_mut().for_each(|held| *held = None);
    }

    /// The axes of a bound array in ascending order: the order its elements are delivered in.
    pub(in crate::exec) fn axes(&self, array: usize) -> Vec<usize> {
        let mut axes = self.execution.bound.arrays[array].axes.clone();
        axes.sort_unstable();
        axes
    }

    /// The array's stored elements over its part of `bx` (a box of the row space), C order of its axes ascending.
    pub fn stored(&mut self, array: usize, bx: &Bx) -> Result<&Buffer> {
        let axes = &self.execution.bound.arrays[array].axes;
        let own =
            Bx::new(axes.iter().map(|&a| bx.start[a]).collect(), axes.iter().map(|&a| bx.shape[a]).collect());
        let known = self.held[array].as_ref().is_some_and(|(held, _)| *held == own);
        if !known {
            let mut buffer = match self.shelf.clone() {
                Some(shelf) => self.read_shared(array, &own, &shelf)?,
                None => self.read_alone(array, &own)?,
            };
            if !axes.is_sorted() {
                let mut turned = self.spare.pop().unwrap_or_default();
                transpose(&buffer, &mut turned, &own.shape, axes, element_size(self.domain(array, true)));
                self.spare.extend(Arc::into_inner(std::mem::replace(&mut buffer, Arc::new(turned))));
            }
            self.held[array] = Some((own, buffer));
        }
        match &self.held[array] {
            Some((_, buffer)) => Ok(buffer),
            None => Err(Error::new(ErrorKind::Internal, "an array that was read is not held")),
        }
    }

    fn read_alone(&mut self, array: usize, own: &Bx) -> Result<Arc<Buffer>> {
        let last = self.held[array].take().and_then(|(_, buffer)| Arc::into_inner(buffer));
        let mut buffer = last.or_else(|| self.spare.pop()).unwrap_or_default();
        let (started, cached) = (Instant::now(), self.workspace.cached());
        self.execution.readers[array].read(own, &mut buffer, &mut self.workspace)?;
        let is_read = self.workspace.cached() == cached;
        self.learner.learn(self.execution, array, own, &buffer, is_read.then_some(started));
        Ok(Arc::new(buffer))
    }

    fn read_shared(&mut self, array: usize, own: &Bx, shelf: &Shelf) -> Result<Arc<Buffer>> {
        let (execution, workspace) = (self.execution, &mut self.workspace);
        let (bound, cached) = (&execution.bound.arrays[array], workspace.cached());
        let size = element_size(&bound.raw_domain);
        let piece = Piece { array: bound.index, axes: &bound.axes, own, size };
        let started = Instant::now();
        let (buffer, is_read) =
            shelf.take(&piece, |bx, out| execution.readers[array].read(bx, out, workspace))?;
        if is_read {
            let is_read = workspace.cached() == cached;
            self.learner.learn(execution, array, own, &buffer, is_read.then_some(started));
        }
        Ok(buffer)
    }

    /// The stored elements over a box of an array whose positions are those of the row space, if they are held.
    pub(in crate::exec) fn held(&self, array: usize, bx: &Bx) -> Option<&Buffer> {
        self.held[array].as_ref().filter(|(held, _)| held == bx).map(|(_, buffer)| &**buffer)
    }

    /// Whether the box `own` of an array is what was read of it last, or lies on the shelf.
    pub(in crate::exec) fn holds(&self, array: usize, own: &Bx) -> bool {
        self.held[array].as_ref().is_some_and(|(held, _)| held == own) || self.is_shared(array, own)
    }

    /// Whether the box `own` of an array was read for another query.
    pub(in crate::exec) fn is_shared(&self, array: usize, own: &Bx) -> bool {
        let index = self.execution.bound.arrays[array].index;
        self.shelf.as_ref().is_some_and(|shelf| shelf.holds(index, own))
    }

    pub(in crate::exec) fn domain(&self, array: usize, raw: bool) -> &'e StoredDomain {
        let bound = &self.execution.bound.arrays[array];
        if raw { &bound.raw_domain } else { &bound.domain }
    }

    /// Where the array's stored values belong to `set`, over its part of `bx`.
    pub fn test(&mut self, array: usize, raw: bool, set: &KeySet, bx: &Bx) -> Result<(Vec<usize>, Mask)> {
        let axes = self.axes(array);
        let mut mask = Mask::zeros(axes.iter().map(|&a| bx.shape[a]).product::<u64>() as usize);
        let test = RawTest::new(self.domain(array, raw).dtype(), set);
        test.test(self.stored(array, bx)?, mask.words_mut());
        Ok((axes, mask))
    }

    /// The error of a value that failed at place `i` of the axes that it varies along, within the box `bx`: computed
    /// again there alone, so that it names what stands there.
    ///
    /// # Errors
    /// That one.
    pub(in crate::exec) fn error_at(&mut self, value: &Value, bx: &Bx, i: usize) -> Result<()> {
        let axes = self.execution.bound.axes_of(value);
        let mut one = Bx::new(bx.start.clone(), vec![1; bx.rank()]);
        let mut rest = i as u64;
        for &axis in axes.iter().rev() {
            one.start[axis] += rest % bx.shape[axis];
            rest /= bx.shape[axis];
        }
        evaluate(value, &mut BoxProvider { leaves: self, bx: &one, axes: &axes })?.sound().map(drop)
    }

    /// The array's values over its part of `bx`.
    pub(in crate::exec) fn column(&mut self, array: usize, raw: bool, bx: &Bx) -> Result<Column> {
        let bound = &self.execution.bound.arrays[array];
        let info = &self.execution.source.schema().arrays[bound.index];
        let n = bound.axes.iter().map(|&a| bx.shape[a]).product::<u64>() as usize;
        if info.dtype == DType::Str {
            let own = Bx::new(
                bound.axes.iter().map(|&a| bx.start[a]).collect(),
                bound.axes.iter().map(|&a| bx.shape[a]).collect(),
            );
            let texts = self.execution.readers[array].read_texts(&own, &mut self.workspace)?;
            let texts = match bound.axes.is_sorted() {
                true => texts,
                false => texts.take(transposed(&own.shape, &bound.axes).into_iter()),
            };
            return Ok(Column { data: Data::Str(texts), valid: None });
        }
        let domain = self.domain(array, raw);
        Ok(Column::decode(self.stored(array, bx)?, n, domain))
    }
}

/// The columns of a box of the row space, broadcast to the axes that an expression varies along.
pub struct BoxProvider<'a, 'e> {
    /// Where arrays are read.
    pub leaves: &'a mut Leaves<'e>,
    /// The box, of the row space's rank.
    pub bx: &'a Bx,
    /// The axes along which there are values, ascending.
    pub axes: &'a [usize],
}

impl Provider for BoxProvider<'_, '_> {
    fn array(&mut self, array: usize, raw: bool) -> Result<Vector> {
        // A tile may have thousands of values to be computed.
        self.leaves.execution.options.check_cancel()?;
        let column = self.leaves.column(array, raw, self.bx)?;
        let own = self.leaves.axes(array);
        broadcast(column, &own, self.axes, self.bx).into_vector()
    }

    fn position(&mut self, dim: usize) -> Result<Vector> {
        let axis = self.leaves.execution.bound.rows.axis(dim).unwrap_or_default();
        let positions = (self.bx.start[axis]..self.bx.end(axis)).map(|p| p as i64).collect();
        let column = Column { data: Data::I64(positions), valid: None };
        let column = broadcast(column, &[axis], self.axes, self.bx);
        let Data::I64(v) = column.data else { return Vector::new(Values::I64(Vec::new()), None) };
        Vector::new(Values::I64(v), None)
    }

    fn units(&self, array: usize) -> Option<&TimeUnits> {
        self.leaves.execution.bound.arrays[array].time.as_deref()
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.leaves.execution.options.cancel)
    }
}

/// A column over the axes `own` as one over `axes`, of which `own` is a part (both ascending).
fn broadcast(column: Column, own: &[usize], axes: &[usize], bx: &Bx) -> Column {
    if own == axes {
        return column;
    }
    let mut strides = vec![0; axes.len()];
    let mut stride = 1;
    for &axis in own.iter().rev() {
        if let Some(d) = axes.iter().position(|&a| a == axis) {
            strides[d] = stride;
        }
        stride *= bx.shape[axis] as usize;
    }
    let shape: Vec<usize> = axes.iter().map(|&a| bx.shape[a] as usize).collect();
    column.take(&indices(&shape, &strides))
}

/// `Σ index·stride` for each index of `shape`, in C order.
pub(in crate::exec) fn indices(shape: &[usize], strides: &[usize]) -> Vec<usize> {
    let mut out = vec![0];
    for (&n, &s) in shape.iter().zip(strides) {
        out = out.iter().flat_map(|&base| (0..n).map(move |i| base + i * s)).collect();
    }
    out
}

/// Source index of each element when dimensions with these axes are put in ascending order of axes.
fn transposed(shape: &[u64], axes: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_unstable_by_key(|&d| axes[d]);
    let mut strides = vec![1; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1] * shape[d + 1] as usize;
    }
    let turned: Vec<usize> = order.iter().map(|&d| shape[d] as usize).collect();
    let strides: Vec<usize> = order.iter().map(|&d| strides[d]).collect();
    indices(&turned, &strides)
}

fn transpose(from: &Buffer, to: &mut Buffer, shape: &[u64], axes: &[usize], size: usize) {
    to.resize(from.bytes().len());
    let source = from.bytes();
    for (slot, i) in to.bytes_mut().chunks_exact_mut(size).zip(transposed(shape, axes)) {
        slot.copy_from_slice(&source[i * size..(i + 1) * size]);
    }
}

/// Bytes of an element as the block reader delivers it.
pub(in crate::exec) fn element_size(domain: &StoredDomain) -> usize {
    match domain.dtype() {
        DType::F16 => 4,
        other => other.size().max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_repeats_along_missing_axes() {
        let bx = Bx::new(vec![0, 0, 0], vec![2, 3, 2]);
        let column = Column { data: Data::I32(vec![10, 20]), valid: Some(Mask::from(&[true, false][..])) };
        let out = broadcast(column.clone(), &[0], &[0, 1], &bx);
        assert_eq!(out.data, Data::I32(vec![10, 10, 10, 20, 20, 20]));
        assert_eq!(out.valid, Some(Mask::from(&[true, true, true, false, false, false][..])));
        assert_eq!(broadcast(column, &[2], &[1, 2], &bx).data, Data::I32(vec![10, 20, 10, 20, 10, 20]));
    }

    #[test]
    fn transposing_puts_axes_in_order() {
        // A (3, 2) block whose dimensions are axes 1 and 0.
        assert_eq!(transposed(&[3, 2], &[1, 0]), [0, 2, 4, 1, 3, 5]);
        assert_eq!(transposed(&[], &[]), [0]);
    }
}
