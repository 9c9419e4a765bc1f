//! Boxes cut into smaller ones, so that what is read of them fits into a buffer.

use sieva_types::Bx;

/// Most bytes of a buffer of items, between what is stored and the caller's.
pub(crate) const BUFFER_LIMIT: u64 = 16 << 20;

/// Cuts a box into boxes of at most `limit` positions (at least one) that follow each other in C order.
pub(crate) fn slabs(bx: &Bx, limit: u64) -> Vec<Bx> {
    let mut out = Vec::new();
    let mut todo = vec![(bx.clone(), 0)];
    while let Some((part, d)) = todo.pop() {
        if part.len() <= limit || d == part.rank() {
            out.push(part);
            continue;
        }
        let row: u64 = part.shape[d + 1..].iter().product();
        let step = (limit / row.max(1)).max(1);
        let cut = |from: u64| {
            let mut piece = part.clone();
            piece.start[d] += from;
            piece.shape[d] = step.min(part.shape[d] - from);
            (piece, if step == 1 { d + 1 } else { d })
        };
        let starts: Vec<u64> = (0..part.shape[d].div_ceil(step)).map(|i| i * step).collect();
        todo.extend(starts.into_iter().rev().map(cut));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_cover_the_box_in_order() {
        let bx = Bx::new(vec![1, 2, 0], vec![3, 4, 5]);
        for limit in [1, 3, 5, 7, 20, 21, 60, 100] {
            let mut next = 0;
            for slab in slabs(&bx, limit) {
                assert!(slab.len() <= limit, "{limit}: {slab:?}");
                let first = slab
                    .start
                    .iter()
                    .zip(&bx.start)
                    .zip(&bx.shape)
                    .fold(0, |n, ((s, b), len)| n * len + s - b);
                assert_eq!(first, next, "{limit}");
                next += slab.len();
            }
            assert_eq!(next, 60, "{limit}");
        }
        assert_eq!(slabs(&Bx::whole(&[]), 1), [Bx::whole(&[])]);
    }
}
