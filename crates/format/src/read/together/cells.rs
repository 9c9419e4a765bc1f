//! What only a library reads, or other code: boxes of cells of the array, each read once for all tasks that touch it.

use sieva_types::{Bx, Result, try_zeros};

use super::chunk::coords_of;
use super::task::Task;
use crate::layout::{Layout, c_strides};
use crate::read::direct::is_dense;

/// Bytes of a cell of an array that has no chunks, about.
const CELL: u64 = 1 << 20;
/// Bytes of a cell, at most: chunks of more are read in parts.
const MOST: u64 = 64 << 20;
/// Boxes of one cell that are read each by itself, where they lie sparsely; of more, the box around them is.
const FEW: usize = 16;

/// The shape of the cells of an array: its chunks, or rows.
pub(super) fn shape(layout: &Layout) -> Vec<u64> {
    let most = if layout.chunk_shape == layout.extent { CELL } else { MOST };
    let mut shape: Vec<u64> = layout.chunk_shape.iter().map(|n| (*n).max(1)).collect();
    for d in 0..shape.len() {
        let inner =
            shape[d + 1..].iter().fold(layout.element_size.max(1) as u64, |n, s| n.saturating_mul(*s));
        if inner.saturating_mul(shape[d]) <= most {
            break;
        }
        shape[d] = (most / inner).max(1);
    }
    shape
}

/// Reads the cell of this number for its tasks, which are of one array.
pub(super) fn serve(number: u64, tasks: &[&Task<'_>]) {
    let Some(first) = tasks.first() else { return };
    let layout = &*first.reader.layout;
    let shape = shape(layout);
    let grid: Vec<u64> = layout.extent.iter().zip(&shape).map(|(n, c)| n.div_ceil(*c)).collect();
    let start: Vec<u64> = coords_of(number, &grid).iter().zip(&shape).map(|(i, c)| i * c).collect();
    let cell = Bx::new(start, shape);
    let wanted = tasks.iter().filter(|task| task.sink.is_wanted());
    let parts: Vec<(&Task<'_>, Bx)> =
        wanted.filter_map(|task| Some((*task, cell.intersect(&task.bx)?))).collect();
    let Some(around) = parts.iter().map(|(_, part)| part.clone()).reduce(|a, b| around(&a, &b)) else {
        return;
    };
    let size = layout.element_size as u64;
    let bytes = parts.iter().fold(0_u64, |n, (_, part)| n.saturating_add(part.len().saturating_mul(size)));
    if parts.len() > FEW || is_dense(around.len().saturating_mul(size), bytes) {
        return read(&around, &parts);
    }
    let mut rest = parts;
    // The largest first, which may hold others.
    rest.sort_by_key(|(_, part)| std::cmp::Reverse(part.len()));
    while let Some((_, whole)) = rest.first() {
        let whole = whole.clone();
        let (within, others) = rest.into_iter().partition(|(_, part)| whole.contains(part));
        let within: Vec<_> = within;
        read(&whole, &within);
        rest = others;
    }
}

/// Reads a box once, and copies each task's part of it. An error of a box of several is that of who needs what fails.
fn read(whole: &Bx, parts: &[(&Task<'_>, Bx)]) {
    if !parts.iter().any(|(task, _)| task.sink.is_wanted()) {
        return;
    }
    match block(whole, parts) {
        Ok(block) => {
            for (task, part) in parts {
                let strides = c_strides(&whole.shape, task.size() as u64);
                let away = part.start.iter().zip(&whole.start).zip(&strides);
                let base = away.map(|((p, w), s)| (p - w) * s).sum();
                task.copy(part, &block, base, &strides);
            }
        }
        Err(e) if parts.iter().all(|(_, part)| part == whole) => {
            parts.iter().for_each(|(task, _)| task.sink.fail(task.reader.locate(e.clone())));
        }
        Err(_) => parts.iter().for_each(|part| read(&part.1, std::slice::from_ref(part))),
    }
}

fn block(whole: &Bx, parts: &[(&Task<'_>, Bx)]) -> Result<Vec<u8>> {
    let Some((task, _)) = parts.first() else { return Ok(Vec::new()) };
    let reader = task.reader;
    let mut block = try_zeros((whole.len() as usize).saturating_mul(task.size()))?;
    reader.source.needs_library(reader.array)?.read_library(reader.array, whole, &mut block)?;
    Ok(block)
}

/// The smallest box around two.
fn around(a: &Bx, b: &Bx) -> Bx {
    let start: Vec<u64> = a.start.iter().zip(&b.start).map(|(a, b)| *a.min(b)).collect();
    let shape = (0..a.rank()).map(|d| a.end(d).max(b.end(d)) - start[d]).collect();
    Bx::new(start, shape)
}
