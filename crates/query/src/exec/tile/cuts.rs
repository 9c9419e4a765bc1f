//! Cutting a query's rows into boxes for others to work on.
//!
//! Boxes are made of whole regions of the largest array in use, so that no chunk is decoded for two of them, and what is
//! known of a region serves one. They depend on the query and on where the source's bytes lie, not on memory or threads.

use sieva_format::layout::Placement;
use sieva_types::{Bx, KeySet};

use crate::bind::{Bound, Condition};
use crate::exec::Execution;
use crate::exec::tile::region_shape;

impl Execution {
    /// At most `n` boxes that have each row once, in the order of their first rows; those outside of which ranges of
    /// positions leave nothing are cut, and the rest lies in the first and the last.
    pub fn cuts(&self, n: usize) -> Vec<Bx> {
        let (shape, area) = (&self.bound.rows.shape, &self.physical().area);
        if area.is_empty() {
            return vec![Bx::whole(shape)];
        }
        let steps = self.cut_steps(n as u64);
        let mut out = Vec::with_capacity(n.min(1 << 20));
        cut(&mut Bx::whole(shape), (area, &steps), 0, n.max(1) as u64, &mut out);
        out
    }

    /// Values of one array that cut the selected rows into about `n` equal parts, where a sorted replica by it gives all of
    /// them: its index in the schema, and the first key of each part but the first. No row of the replica is looked up twice
    /// then. `None` where there is none, or the rows are too few to be cut.
    pub fn key_cuts(&self, n: usize) -> Option<(usize, Vec<i128>)> {
        let path = self.physical().replica.as_ref().filter(|path| path.answers_all)?;
        let cuts = path.replica.replica.cuts(&path.keys, n);
        (!cuts.is_empty()).then_some((path.replica.key, cuts))
    }

    /// What cuts are multiples of, along each axis.
    fn cut_steps(&self, n: u64) -> Vec<u64> {
        let bound = &self.bound;
        let driver = (0..bound.arrays.len()).max_by_key(|&a| {
            let layout = self.readers[a].layout();
            (bound.arrays[a].axes.len(), layout.is_chunked(), layout.chunk_bytes, std::cmp::Reverse(a))
        });
        let ones = vec![1; bound.rows.shape.len()];
        let Some(driver) = driver else { return ones };
        let (layout, axes) = (self.readers[driver].layout(), &bound.arrays[driver].axes);
        let lengths: Vec<u64> = axes.iter().map(|&a| bound.rows.shape[a]).collect();
        let over = |own: &[u64]| {
            let mut steps = ones.clone();
            axes.iter().zip(own).for_each(|(&axis, &step)| steps[axis] = step.max(1));
            if let Placement::Parts(parts) = &layout.placement
                && let Some(&axis) = axes.get(parts.axis)
                && let Some(longest) = parts.starts.windows(2).map(|s| s[1] - s[0]).max()
            {
                steps[axis] = steps[axis].min(longest.max(1));
            }
            steps
        };
        let cells = |steps: &[u64]| {
            let each = self.physical().area.shape.iter().zip(steps).map(|(len, step)| len.div_ceil(*step));
            each.fold(1, u64::saturating_mul)
        };
        let regions = over(&region_shape(layout, &lengths));
        if cells(&regions) >= n {
            regions
        } else if layout.is_chunked() {
            over(&layout.chunk_shape)
        } else {
            ones
        }
    }
}

/// Cuts `bx` along `axis` and those behind it into `n` boxes or fewer.
fn cut(bx: &mut Bx, within: (&Bx, &[u64]), axis: usize, n: u64, out: &mut Vec<Bx>) {
    let (area, steps) = within;
    if n <= 1 || axis == bx.rank() {
        out.push(bx.clone());
        return;
    }
    let (first, end, step) = (area.start[axis], area.end(axis), steps[axis]);
    // Steps are counted from the origin, as chunks are.
    let (low, high) = (first / step, end.div_ceil(step));
    let cells = high - low;
    let parts = cells.min(n);
    let share = |of: u64, k: u64| (u128::from(of) * u128::from(k) / u128::from(parts)) as u64;
    let whole = (bx.start[axis], bx.end(axis));
    for k in 0..parts {
        let from = if k == 0 { whole.0 } else { (low + share(cells, k)) * step };
        let to = if k + 1 == parts { whole.1 } else { (low + share(cells, k + 1)) * step };
        (bx.start[axis], bx.shape[axis]) = (from, to - from);
        cut(bx, within, axis + 1, share(n, k + 1) - share(n, k), out);
    }
    (bx.start[axis], bx.shape[axis]) = (whole.0, whole.1 - whole.0);
}

impl Bound {
    /// All rows of a box that satisfy the condition, in no order and however many: what a part of the work is asked.
    #[must_use]
    pub fn within(mut self, bx: &Bx) -> Self {
        let mut parts: Vec<Condition> = Vec::new();
        for (axis, &dim) in self.rows.dims.iter().enumerate() {
            if (bx.start[axis], bx.shape[axis]) != (0, self.rows.shape[axis]) {
                parts.push(Condition::Position { dim, ranges: vec![(bx.start[axis], bx.end(axis))] });
            }
        }
        if !parts.is_empty() {
            match std::mem::replace(&mut self.condition, Condition::Always) {
                Condition::Always => {}
                Condition::All(own) => parts.extend(own),
                own => parts.push(own),
            }
            self.condition = if parts.len() == 1 { parts.swap_remove(0) } else { Condition::All(parts) };
        }
        self.unordered()
    }

    /// All rows whose value of an array, of a number in the schema, is one of `keys`, as [`Bound::within`]. `None` where the
    /// condition does not ask for a range of stored values of it, for all rows.
    #[must_use]
    pub fn of_keys(mut self, array: usize, keys: &KeySet) -> Option<Self> {
        let rank = self.rows.shape.len();
        let cut = |of: usize| {
            let bound = &self.arrays[of];
            bound.index == array && bound.axes.len() == rank && bound.axes.is_sorted()
        };
        let mut found = false;
        let parts = match &mut self.condition {
            Condition::All(parts) => parts.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        for part in parts {
            if let Condition::Stored { array, set, .. } = part
                && cut(*array)
            {
                (*set, found) = (set.intersection(keys), true);
            }
        }
        found.then(|| self.unordered())
    }

    /// All rows that satisfy the condition, in no order.
    fn unordered(mut self) -> Self {
        self.order_by.clear();
        (self.distinct, self.limit, self.offset) = (false, None, 0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(shape: &[u64], area: &Bx, steps: &[u64], n: u64) -> Vec<Bx> {
        let mut out = Vec::new();
        cut(&mut Bx::whole(shape), (area, steps), 0, n, &mut out);
        out
    }

    #[test]
    fn every_row_lies_in_one_box() {
        let shape = [7, 5, 6];
        for area in [Bx::whole(&shape), Bx::new(vec![2, 1, 3], vec![3, 4, 2])] {
            for (n, steps) in
                [(1, [1, 1, 1]), (2, [3, 5, 6]), (5, [2, 2, 2]), (40, [2, 2, 4]), (9999, [1, 1, 1])]
            {
                let all = cuts(&shape, &area, &steps, n);
                assert!(all.len() as u64 <= n);
                assert_eq!(all.iter().map(Bx::len).sum::<u64>(), 210);
                for (i, a) in all.iter().enumerate() {
                    assert!(!a.is_empty() && all[..i].iter().all(|b| a.intersect(b).is_none()));
                }
            }
        }
        assert_eq!(cuts(&shape, &Bx::whole(&shape), &[1, 1, 1], 9999).len(), 210);
    }

    #[test]
    fn cuts_lie_between_chunks_of_what_is_selected() {
        let all = cuts(&[100], &Bx::new(vec![35], vec![30]), &[10], 3);
        let ends: Vec<(u64, u64)> = all.iter().map(|b| (b.start[0], b.end(0))).collect();
        assert_eq!(ends, [(0, 40), (40, 50), (50, 100)]);
        assert_eq!(cuts(&[], &Bx::whole(&[]), &[], 4), [Bx::whole(&[])]);
    }
}
