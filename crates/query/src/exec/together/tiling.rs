//! The tiles of queries that are evaluated together: one grid for all, along the chunks of what they read.

use sieva_types::Bx;

use super::member::Member;
use super::shelf::hull;
use crate::exec::tile::{self, Tiles};

/// Parts that the work has for each thread, at least, where tiles of several arrays are put together.
const PER_THREAD: u64 = 8;

/// Gives all members tiles of one shape, and returns those of the box around their areas.
pub(super) fn lay(members: &mut [Member<'_>]) -> Option<Tiles> {
    let area = members.iter().map(|m| m.area().clone()).reduce(|a, b| hull(&a, &b))?;
    let shape = shape_of(members, &area);
    for member in members.iter_mut() {
        member.tiles = Tiles::new(member.area().clone(), shape.clone());
    }
    Some(Tiles::new(area, shape))
}

fn shape_of(members: &[Member<'_>], area: &Bx) -> Vec<u64> {
    let axes: Vec<usize> = (0..area.rank()).collect();
    let mut shapes: Vec<Vec<u64>> = Vec::new();
    for member in members {
        let shape = member.execution.tile_shape(&member.arrays, &axes);
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    let most = rows_at_once(members);
    let threads = members.iter().map(|m| m.execution.options.threads as u64).max().unwrap_or(1);
    let largest = shapes.iter().map(|s| volume(s)).max().unwrap_or(1);
    let enough = most.min(area.len() / (PER_THREAD * threads)).max(largest);
    let rows = members.first().map_or(&area.shape, |m| &m.execution.bound.rows.shape);
    let mut shape = joined(&shapes, rows, &area.shape, enough);
    let follows = members.iter().any(|m| m.execution.follows_regions(&m.arrays));
    (if follows { tile::halve_to } else { tile::cut_to })(&mut shape, most);
    shape
}

/// How many rows each thread may work on at once: the arrays of all queries are held, and what one of them computes.
fn rows_at_once(members: &[Member<'_>]) -> u64 {
    let mut known = Vec::new();
    let (mut held, mut row, mut most) = (0, 0, u64::MAX);
    for member in members {
        for (&array, &index) in member.arrays.iter().zip(member.indexes.iter()) {
            if !known.contains(&index) {
                known.push(index);
                held += member.execution.element_bytes(array);
            }
        }
        row = row.max(member.row);
    }
    // A bit for each query of what was found.
    let bytes = held + row + 1 + members.len() as u64 / 8;
    for member in members {
        most = most.min(member.execution.options.rows_at_work(bytes));
    }
    most
}

fn volume(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |n: u64, &s| n.saturating_mul(s))
}

/// A shape that is made of whole tiles of each of these, where at most so many positions of the area lie in it; else the
/// largest of them, so that most of the chunks of most arrays lie in one tile.
fn joined(shapes: &[Vec<u64>], rows: &[u64], area: &[u64], most: u64) -> Vec<u64> {
    let rank = rows.len();
    let multiple = |d: usize| {
        let all = shapes.iter().fold(1, |all, shape| least_multiple(all, shape[d].max(1)));
        // All that there is lies in one tile then.
        all.min(shapes.iter().map(|shape| shape[d]).fold(rows[d].max(1), u64::max))
    };
    let whole: Vec<u64> = (0..rank).map(multiple).collect();
    let within: Vec<u64> = whole.iter().zip(area).map(|(&n, &of)| n.min(of.max(1))).collect();
    if volume(&within) <= most {
        return whole;
    }
    shapes.iter().max_by_key(|s| volume(s)).cloned().unwrap_or_else(|| vec![1; rank])
}

fn least_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_made_of_whole_tiles_of_all() {
        let join = |shapes: &[&[u64]], rows: &[u64], most| {
            joined(&shapes.iter().map(|s| s.to_vec()).collect::<Vec<_>>(), rows, rows, most)
        };
        assert_eq!(join(&[&[4, 10]], &[100, 100], 1), [4, 10]);
        assert_eq!(join(&[&[4, 10], &[6, 5]], &[100, 100], 120), [12, 10]);
        assert_eq!(join(&[&[4, 10], &[6, 5]], &[100, 100], 119), [4, 10]);
        // As far as the rows go.
        assert_eq!(join(&[&[4, 10], &[7, 10]], &[10, 10], 100), [10, 10]);
        assert_eq!(join(&[&[], &[]], &[], 1), [0_u64; 0]);
        assert_eq!(least_multiple(u64::MAX, u64::MAX - 1), u64::MAX);
    }
}
