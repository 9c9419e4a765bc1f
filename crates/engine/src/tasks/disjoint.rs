//! Whether boxes have rows in common, in a time that who made them up cannot stretch.
//!
//! The boxes of tasks are cut from one row space, again and again along planes: so they are taken apart along planes that cut
//! none of them. What no plane takes apart is compared pair by pair, of which there are few or none.

use sieva_types::Bx;

/// Boxes that are put in order for each box that there is, and those that are always allowed.
const SORTED_PER_BOX: usize = 512;
const SORTED_LEAST: usize = 1 << 20;
/// Pairs that are compared.
const MOST_PAIRS: usize = 1 << 24;

/// What was found of boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Disjoint,
    Overlapping,
    /// More work than boxes of tasks take.
    TooMuch,
}

/// Whether any two of the boxes, which are of one rank, have a row in common.
pub(super) fn disjoint<'b>(boxes: impl Iterator<Item = &'b Bx>) -> Found {
    let mut boxes: Vec<&Bx> = boxes.filter(|bx| !bx.is_empty()).collect();
    let mut sorted = boxes.len().saturating_mul(SORTED_PER_BOX).max(SORTED_LEAST);
    let mut pairs = MOST_PAIRS;
    let all = 0..boxes.len();
    let mut parts = Vec::from([all]);
    while let Some(part) = parts.pop() {
        let own = &mut boxes[part.clone()];
        if own.len() < 2 {
            continue;
        }
        let mut is_cut = false;
        for d in 0..own[0].rank() {
            match sorted.checked_sub(own.len()) {
                Some(left) => sorted = left,
                None => return Found::TooMuch,
            }
            own.sort_unstable_by_key(|bx| bx.start[d]);
            let before = parts.len();
            let (mut start, mut end) = (0, own[0].end(d));
            for (i, bx) in own.iter().enumerate().skip(1) {
                if bx.start[d] >= end {
                    parts.push(part.start + start..part.start + i);
                    start = i;
                }
                end = end.max(bx.end(d));
            }
            if parts.len() > before {
                parts.push(part.start + start..part.end);
                is_cut = true;
                break;
            }
        }
        if is_cut {
            continue;
        }
        for (i, bx) in own.iter().enumerate() {
            match pairs.checked_sub(i) {
                Some(left) => pairs = left,
                None => return Found::TooMuch,
            }
            if own[..i].iter().any(|other| overlaps(bx, other)) {
                return Found::Overlapping;
            }
        }
    }
    Found::Disjoint
}

fn overlaps(a: &Bx, b: &Bx) -> bool {
    (0..a.rank()).all(|d| a.start[d] < b.end(d) && b.start[d] < a.end(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bx(start: [u64; 2], shape: [u64; 2]) -> Bx {
        Bx::new(start.to_vec(), shape.to_vec())
    }

    #[test]
    fn it_says_what_all_pairs_say() {
        let mut state = 5_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        let mut seen = [0; 2];
        for _ in 0..2000 {
            let n = 2 + below(5);
            let boxes: Vec<Bx> =
                (0..n).map(|_| bx([below(12), below(12)], [below(5), 1 + below(4)])).collect();
            let pairs = || (0..boxes.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let is_twice = pairs().any(|(i, j)| boxes[i].intersect(&boxes[j]).is_some());
            let wanted = if is_twice { Found::Overlapping } else { Found::Disjoint };
            assert_eq!(disjoint(boxes.iter()), wanted, "{boxes:?}");
            seen[usize::from(is_twice)] += 1;
        }
        assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
        // Four around a fifth, which no plane takes apart.
        let wheel =
            [([0, 0], [2, 1]), ([0, 1], [1, 2]), ([1, 2], [2, 1]), ([2, 0], [1, 2]), ([1, 1], [1, 1])];
        let wheel: Vec<Bx> = wheel.iter().map(|&(start, shape)| bx(start, shape)).collect();
        assert_eq!(disjoint(wheel.iter()), Found::Disjoint);
        let point = Bx::new(vec![], vec![]);
        assert_eq!(disjoint([&point, &point].into_iter()), Found::Overlapping);
        assert_eq!(disjoint([&point].into_iter()), Found::Disjoint);
    }

    #[test]
    fn many_of_a_grid_are_told_apart_and_what_is_made_to_be_slow_is_given_up() {
        let grid: Vec<Bx> = (0..90_000).rev().map(|i| bx([i % 300 * 2, i / 300 * 3], [2, 3])).collect();
        assert_eq!(disjoint(grid.iter()), Found::Disjoint);
        assert_eq!(disjoint(grid.iter().chain(&grid[7..8])), Found::Overlapping);
        // Each plane takes one off: a staircase of strips, across and along by turns.
        let n = 40_000_u64;
        let stairs: Vec<Bx> = (0..n)
            .map(|i| match i % 2 {
                0 => bx([i, i], [1, 2 * n - i]),
                _ => bx([i, i], [2 * n - i, 1]),
            })
            .collect();
        assert_eq!(disjoint(stairs.iter()), Found::TooMuch);
        // Crosses: no plane takes any two apart.
        let crosses: Vec<Bx> = (0..6000).map(|i| bx([i, 6000 - i], [6000, 6000])).collect();
        assert_eq!(disjoint(crosses.iter()), Found::Overlapping);
    }
}
