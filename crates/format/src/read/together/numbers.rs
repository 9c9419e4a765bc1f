//! Which chunks of a grid, and which blocks of the store, a task touches: in closed form, in ascending order.

use std::ops::Range;

use sieva_types::{Bx, Selection};

use super::pieces::{Block, Part};
use super::task::Task;
use crate::layout::c_strides;
use crate::read::{dot, span_bytes};

/// Numbers that are noted before those that came twice are left out.
const MOST_NOTED: usize = 1 << 16;

/// Cells of a box that are counted through one by one; what lies outside of a range is stepped over among more.
const FEW_CELLS: u64 = 64;

/// The numbers of the chunks, of a grid of cells of this shape, that a task touches, of those in `range`.
pub(super) fn of_grid(task: &Task<'_>, cell: &[u64], range: &Range<u64>, emit: &mut dyn FnMut(u64)) {
    let extent = &task.reader.layout.extent;
    if task.selection.is_none() && cells_of(&task.bx, cell) <= FEW_CELLS {
        let emit = &mut |number| {
            if range.contains(&number) {
                emit(number);
            }
        };
        return each_cell((&task.bx.start, &task.bx.shape), extent, cell, 0, emit);
    }
    let grid: Vec<u64> = extent.iter().zip(cell).map(|(n, c)| n.div_ceil((*c).max(1))).collect();
    let steps = c_strides(&grid, 1);
    if let Some(selected) = task.selection {
        let last = cell.last().copied().unwrap_or(1).max(1);
        return of_selection(task, selected.selection, range, emit, &mut |coords, n, note| {
            let Some((&end, outer)) = coords.split_last() else { return note(0..1) };
            let base: u64 = outer.iter().zip(cell).zip(&steps).map(|((i, c), s)| i / c * s).sum();
            note(base + end / last..base + (end + n - 1) / last + 1);
        });
    }
    let bx = &task.bx;
    let first: Vec<u64> = bx.start.iter().zip(cell).map(|(s, c)| s / c).collect();
    let counts: Vec<u64> = (0..bx.rank()).map(|d| (bx.end(d) - 1) / cell[d] - first[d] + 1).collect();
    // A cell is an element of one byte of an array of cells.
    let block = Block::new(&counts, 1, &steps, &steps).by_rows();
    let is_over = |_: u64, _: u64| !task.sink.is_wanted();
    block.within((dot(&first, &steps), 0), range, &is_over, &mut |part| {
        if let Part::Run { from, len, .. } = part {
            (from..from + len).for_each(&mut *emit);
        }
    });
}

/// How many cells of this shape a box touches, which is not empty; 2^64 - 1 where there are more.
fn cells_of(bx: &Bx, cell: &[u64]) -> u64 {
    let along = |((start, n), cell): ((&u64, &u64), &u64)| (start + n - 1) / cell - start / cell + 1;
    bx.start.iter().zip(&bx.shape).zip(cell).map(along).fold(1, u64::saturating_mul)
}

/// Hands on the numbers of the cells that a box (its start and shape) touches, in ascending order. `before` is the number of the
/// outer dimensions' cell.
fn each_cell(
    (start, shape): (&[u64], &[u64]),
    extent: &[u64],
    cell: &[u64],
    before: u64,
    emit: &mut dyn FnMut(u64),
) {
    let [first, starts @ ..] = start else { return emit(before) };
    let base = before * extent[0].div_ceil(cell[0]);
    for index in first / cell[0]..=(first + shape[0] - 1) / cell[0] {
        each_cell((starts, &shape[1..]), &extent[1..], &cell[1..], base + index, emit);
    }
}

/// The numbers of the blocks of `unit` bytes that a task whose elements lie plainly from `first` on touches, about: between
/// its rows there may be some of which nothing is wanted.
pub(super) fn of_store(
    task: &Task<'_>,
    first: u64,
    unit: u64,
    range: &Range<u64>,
    emit: &mut dyn FnMut(u64),
) {
    let layout = &*task.reader.layout;
    if let Some(selected) = task.selection {
        let stride = layout.strides.last().copied().unwrap_or(0);
        let size = layout.element_size as u64;
        return of_selection(task, selected.selection, range, emit, &mut |coords, n, note| {
            let from = first.saturating_add(dot(coords, &layout.strides));
            note(from / unit..(from + (n - 1) * stride + size - 1) / unit + 1);
        });
    }
    let mut next = range.start;
    spans(first, &task.bx.shape, &layout.strides, layout.element_size, unit, &mut |from, span| {
        let last = (from.saturating_add(span) - 1) / unit;
        (next.max(from / unit)..=last).take_while(|n| *n < range.end).for_each(|n| {
            emit(n);
            next = n + 1;
        });
    });
}

/// The spans of a block, with no gaps of more than `unit` bytes between rows of a span.
fn spans(from: u64, shape: &[u64], strides: &[u64], size: usize, unit: u64, emit: &mut dyn FnMut(u64, u64)) {
    match shape {
        [n, inner @ ..] if *n > 1 && strides[0] > unit => {
            for i in 0..*n {
                spans(from.saturating_add(i * strides[0]), inner, &strides[1..], size, unit, emit);
            }
        }
        [1, inner @ ..] => spans(from, inner, &strides[1..], size, unit, emit),
        _ => emit(from, span_bytes(shape, strides, size)),
    }
}

/// Notes the numbers of a run of elements: their first coordinates, how many they are, and who notes.
type NumbersOf<'a> = dyn FnMut(&[u64], u64, &mut dyn FnMut(Range<u64>)) + 'a;

/// Hands on the numbers that `numbers_of` notes for each run of selected elements within a row: their first coordinates and
/// how many they are.
fn of_selection(
    task: &Task<'_>,
    selection: &Selection,
    range: &Range<u64>,
    emit: &mut dyn FnMut(u64),
    numbers_of: &mut NumbersOf<'_>,
) {
    let size = (task.size() as u64).max(1);
    let extent = &task.reader.layout.extent;
    let steps: Vec<u64> = task.strides.iter().map(|s| s / size).collect();
    let origin = task.base / size;
    let rows = task.bx.shape.first().copied().unwrap_or(1);
    let end = origin + rows * steps.first().copied().unwrap_or(1);
    // Elements of a row of the last dimension, of those that the array has, stored or not.
    let row = if steps.len() > 1 { steps[steps.len() - 2] } else { u64::MAX };
    let (mut noted, mut coords, mut most) = (Vec::new(), vec![0; steps.len()], MOST_NOTED);
    // The row of the last position, and whether any of it is stored.
    let (mut positions, mut is_stored) = (0..0, false);
    let mut note = |numbers: Range<u64>| {
        for n in numbers.start.max(range.start)..numbers.end.min(range.end) {
            if noted.last() != Some(&n) {
                noted.push(n);
            }
        }
        if noted.len() > most {
            noted.sort_unstable();
            noted.dedup();
            most = MOST_NOTED.max(2 * noted.len());
        }
    };
    for (start, len) in selection.runs().take_while(|_| task.sink.is_wanted()) {
        let (mut at, last) = (start.max(origin), (start + len).min(end));
        while at < last {
            if !positions.contains(&at) {
                let mut rest = at - origin;
                for (index, step) in coords.iter_mut().zip(&steps) {
                    (*index, rest) = (rest / step.max(&1), rest % step.max(&1));
                }
                let start = at - coords.last().copied().unwrap_or(0);
                positions = start..start.saturating_add(row);
                let outer = coords.iter().zip(extent).take(coords.len().saturating_sub(1));
                is_stored = outer.into_iter().all(|(i, n)| i < n);
            }
            let (column, take) = (at - positions.start, (last.min(positions.end)) - at);
            if let Some(index) = coords.last_mut() {
                *index = column;
            }
            let stored = extent.last().map_or(1, |n| n.saturating_sub(column));
            if is_stored && stored > 0 {
                numbers_of(&coords, take.min(stored), &mut note);
            }
            at += take;
        }
    }
    noted.sort_unstable();
    noted.dedup();
    noted.into_iter().for_each(emit);
}
