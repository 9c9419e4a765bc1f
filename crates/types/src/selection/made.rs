//! Selections that are made of positions, coordinates and boxes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Selection, SelectionBuilder, coords};
use crate::{Bx, Error, ErrorKind, Result};

/// Coordinates that are made positions at a time.
const COORDS_AT_ONCE: usize = 4096;

/// Runs of boxes between two looks at memory and cancellation.
const RUNS_UNLOOKED: u64 = 1 << 12;

impl Selection {
    /// The given positions, best in increasing order: others are right but slower. Repeated ones count once.
    ///
    /// Fails with [`ErrorKind::InvalidValue`] on one outside of the row space.
    pub fn from_positions(
        dims: Vec<String>,
        shape: Vec<u64>,
        positions: impl IntoIterator<Item = u64>,
    ) -> Result<Self> {
        let mut builder = SelectionBuilder::new(dims, shape)?;
        builder.push_positions(positions)?;
        Ok(builder.finish())
    }

    /// The positions of these coordinates: row-major, one number per dimension for each. Best in C order, as
    /// [`Selection::coords`] gives them; repeated ones count once.
    ///
    /// Fails with [`ErrorKind::InvalidValue`] on one outside of the row space, and where the last is not whole.
    pub fn from_coords(dims: Vec<String>, shape: Vec<u64>, coords: &[u64]) -> Result<Self> {
        let rank = shape.len();
        if rank == 0 || !coords.len().is_multiple_of(rank) {
            let message = format!("{} numbers are no coordinates of {rank} dimensions", coords.len());
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let mut builder = SelectionBuilder::new(dims, shape.clone())?;
        let mut positions = Vec::with_capacity(COORDS_AT_ONCE.min(coords.len() / rank));
        for piece in coords.chunks(COORDS_AT_ONCE * rank) {
            positions.clear();
            for at in piece.chunks_exact(rank) {
                positions.push(coords::ravel(at, &shape)?);
            }
            builder.push_positions(positions.iter().copied())?;
        }
        Ok(builder.finish())
    }

    /// The positions in any of these boxes, in at most `memory` bytes; `cancel` stops it.
    ///
    /// Fails with [`ErrorKind::DimensionMismatch`] on a box of another rank, with [`ErrorKind::InvalidValue`] on one that
    /// does not lie in the row space, with [`ErrorKind::MemoryLimit`] and [`ErrorKind::Cancelled`].
    pub fn from_boxes(
        dims: Vec<String>,
        shape: Vec<u64>,
        boxes: &[Bx],
        (memory, cancel): (u64, &AtomicBool),
    ) -> Result<Self> {
        let mut builder = SelectionBuilder::new(dims, shape.clone())?;
        let mut runs = 0_u64;
        for bx in boxes {
            coords::for_runs(bx, &shape, |start, len| {
                runs += 1;
                if runs.is_multiple_of(RUNS_UNLOOKED) {
                    look(&builder, memory, cancel)?;
                }
                builder.push_run(start, len)
            })?;
        }
        look(&builder, memory, cancel)?;
        Ok(builder.finish())
    }
}

/// That the selection so far fits, and is still wanted.
fn look(builder: &SelectionBuilder, memory: u64, cancel: &AtomicBool) -> Result<()> {
    if cancel.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::Cancelled, "making a selection of boxes was cancelled"));
    }
    if builder.memory_bytes() <= memory {
        return Ok(());
    }
    let message = format!("a selection of these boxes takes more than {memory} bytes");
    Err(Error::new(ErrorKind::MemoryLimit, message)
        .hint("give boxes that span the last dimensions, or fewer at once"))
}
