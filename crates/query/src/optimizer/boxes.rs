//! Coordinate boxes: a range of positions along a dimension is a slice of the rows, and nothing else is left of it.

use sieva_types::Bx;

use crate::bind::{Bound, Condition};

/// Cuts `area` by a condition that is one range of positions; false where it is none.
pub(super) fn cut_by(bound: &Bound, condition: &Condition, area: &mut Bx) -> bool {
    let Condition::Position { dim, ranges } = condition else { return false };
    let [(first, end)] = ranges[..] else { return false };
    cut(area, bound.rows.axis(*dim).unwrap_or_default(), first, end);
    true
}

/// Keeps the positions `first..end` of an axis.
pub(crate) fn cut(area: &mut Bx, axis: usize, first: u64, end: u64) {
    let low = first.max(area.start[axis]);
    area.shape[axis] = end.min(area.end(axis)).saturating_sub(low);
    area.start[axis] = low;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_leave_what_lies_in_all_of_them() {
        let mut area = Bx::new(vec![2, 10], vec![5, 8]);
        cut(&mut area, 1, 0, 14);
        cut(&mut area, 0, 3, 99);
        assert_eq!(
            area,
            Bx::new(vec![2, 10], vec![5, 4]).intersect(&Bx::new(vec![3, 0], vec![9, 99])).unwrap()
        );
        cut(&mut area, 1, 20, 30);
        assert!(area.is_empty());
    }
}
