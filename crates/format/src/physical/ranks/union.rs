//! Boxes that overlap as boxes that do not.

use sieva_types::Bx;

/// Boxes that a union is cut into at most, for each box that it is of; else the hull is read.
const MOST_FOR_EACH: usize = 8;
/// How many times as much as was asked for is read rather than several boxes: reading narrow boxes of what is not chunked
/// takes the bytes between their rows, too, and those of several are the same.
const MOST_MORE: u64 = 4;

/// Boxes that cover the same elements as `boxes`, none of them twice.
///
/// Slabs along the first dimension in which boxes differ, in which the others are cut in the same way; slabs that are cut alike
/// are one. Several boxes that are not less than their hull by far are that hull, with some elements that nobody asked for;
/// so are more than 8 boxes for each given, but of a row. `is_row`: they are of a row of elements in C order, as a stripe
/// is, rather than of a box: nothing is read before its first element or behind its last, which somebody else may read.
pub fn disjoint(boxes: &[Bx], is_row: bool) -> Vec<Bx> {
    let refs = distinct(boxes.iter().collect(), 0);
    let Some(rank) = refs.first().map(|bx| bx.rank()) else { return Vec::new() };
    let found = slabs(&refs, 0, rank, (is_row, is_row));
    if found.len() > MOST_FOR_EACH * refs.len() && !is_row {
        return hull(found.iter()).into_iter().collect();
    }
    found
}

/// Those that differ from a dimension on.
fn distinct(mut boxes: Vec<&Bx>, from: usize) -> Vec<&Bx> {
    let key = |bx: &&Bx| (bx.start[from..].to_vec(), bx.shape[from..].to_vec());
    if boxes.len() > 1 {
        boxes.sort_by_cached_key(key);
        boxes.dedup_by(|a, b| a.start[from..] == b.start[from..] && a.shape[from..] == b.shape[from..]);
    }
    boxes
}

/// Disjoint boxes, of the dimensions from `axis` on. `ends`: whether nothing may come before the first element, and behind the
/// last.
fn slabs(boxes: &[&Bx], axis: usize, rank: usize, ends: (bool, bool)) -> Vec<Bx> {
    if axis == rank {
        return vec![Bx::new(Vec::new(), Vec::new())];
    }
    if let [one] = boxes {
        return vec![Bx::new(one.start[axis..].to_vec(), one.shape[axis..].to_vec())];
    }
    let mut edges: Vec<u64> = boxes.iter().flat_map(|bx| [bx.start[axis], bx.end(axis)]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut found: Vec<(u64, u64, Vec<Bx>)> = Vec::new();
    for pair in edges.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let inside: Vec<&Bx> =
            boxes.iter().copied().filter(|bx| bx.start[axis] <= a && bx.end(axis) >= b).collect();
        if inside.is_empty() {
            continue;
        }
        // What is neither the first nor the last slab lies between the first element and the last.
        let within = (ends.0 && Some(&a) == edges.first(), ends.1 && Some(&b) == edges.last());
        let inner = slabs(&distinct(inside, axis + 1), axis + 1, rank, within);
        match found.last_mut() {
            Some((_, end, same)) if *end == a && *same == inner => *end = b,
            _ => found.push((a, b, inner)),
        }
    }
    let each = found.into_iter().flat_map(|(a, b, inner)| {
        inner.into_iter().map(move |mut bx| {
            bx.start.insert(0, a);
            bx.shape.insert(0, b - a);
            bx
        })
    });
    as_hull(each.collect(), ends)
}

/// The hull of boxes, where that is not much more and goes no further; else the boxes.
fn as_hull(boxes: Vec<Bx>, ends: (bool, bool)) -> Vec<Bx> {
    if boxes.len() < 2 {
        return boxes;
    }
    let Some(whole) = hull(boxes.iter()) else { return boxes };
    // C order is that of the positions of corners.
    let last = |bx: &Bx| (0..bx.rank()).map(|d| bx.end(d)).collect::<Vec<u64>>();
    let begins = boxes.iter().map(|bx| &bx.start).min() == Some(&whole.start);
    let stops = boxes.iter().map(last).max() == Some(last(&whole));
    let total = boxes.iter().fold(0_u64, |n, bx| n.saturating_add(bx.len()));
    if (!ends.0 || begins) && (!ends.1 || stops) && whole.len() <= total.saturating_mul(MOST_MORE) {
        return vec![whole];
    }
    boxes
}

/// The smallest box around boxes.
pub(super) fn hull<'a>(mut boxes: impl Iterator<Item = &'a Bx>) -> Option<Bx> {
    let first = boxes.next()?.clone();
    Some(boxes.fold(first, |mut whole, bx| {
        for d in 0..bx.rank() {
            let end = whole.end(d).max(bx.end(d));
            whole.start[d] = whole.start[d].min(bx.start[d]);
            whole.shape[d] = end - whole.start[d];
        }
        whole
    }))
}
