//! Masks over some dimensions of a box, applied to all of it: conditions are evaluated on their own
//! dimensions alone and never on rows.

use sieva_types::Bx;

use super::Mask;

/// Keeps the positions of `mask` (over a box of `shape`) at which `other` is set, where `other` covers only
/// the dimensions `axes` (ascending) of the box.
pub fn and_broadcast(mask: &mut Mask, shape: &[u64], other: &Mask, axes: &[usize]) {
    let mut strides = vec![None; shape.len()];
    let mut stride = 1;
    for &axis in axes.iter().rev() {
        strides[axis] = Some(stride);
        stride *= shape[axis] as usize;
    }
    walk(mask, shape, &strides, other, 0, 0);
}

/// At each level: what is left covers all, none, or some of the remaining dimensions.
fn walk(mask: &mut Mask, shape: &[u64], strides: &[Option<usize>], other: &Mask, at: usize, from: usize) {
    let n = shape.iter().product::<u64>() as usize;
    if strides.iter().all(Option::is_none) {
        if !other.get(from) {
            mask.clear_range(at, n);
        }
        return;
    }
    if strides.iter().all(Option::is_some) {
        mask.and_range(at, other, from, n);
        return;
    }
    let inner = n / shape[0].max(1) as usize;
    for i in 0..shape[0] as usize {
        let from = from + strides[0].map_or(0, |s| i * s);
        walk(mask, &shape[1..], &strides[1..], other, at + i * inner, from);
    }
}

/// The part of `mask` (over a box of `shape`) that lies in `bx` (relative to that box).
pub fn slice_box(mask: &Mask, shape: &[u64], bx: &Bx) -> Mask {
    let mut out = Mask::zeros(bx.len() as usize);
    let mut written = 0;
    rows(shape, bx, 0, &mut |from, n| {
        out.or_range(written, mask, from, n);
        written += n;
    });
    out
}

/// Calls `f(linear start, length)` for each contiguous piece of `bx` within a box of `shape`.
fn rows(shape: &[u64], bx: &Bx, at: usize, f: &mut impl FnMut(usize, usize)) {
    // Dimensions from `whole` on are covered entirely: one piece spans them and the one before.
    let mut whole = shape.len();
    while whole > 0 && bx.start[whole - 1] == 0 && bx.shape[whole - 1] == shape[whole - 1] {
        whole -= 1;
    }
    let inner: u64 = shape[whole..].iter().product();
    recurse(shape, bx, whole, inner as usize, 0, at, f);
}

fn recurse(
    shape: &[u64],
    bx: &Bx,
    whole: usize,
    inner: usize,
    d: usize,
    at: usize,
    f: &mut impl FnMut(usize, usize),
) {
    if whole == 0 {
        return f(at, inner);
    }
    let stride: usize = shape[d + 1..].iter().product::<u64>() as usize;
    if d + 1 == whole {
        return f(at + bx.start[d] as usize * stride, bx.shape[d] as usize * inner);
    }
    for i in bx.start[d]..bx.end(d) {
        recurse(shape, bx, whole, inner, d + 1, at + i as usize * stride, f);
    }
}

/// Whether any position is set along each index of each dimension: the shadow of `mask` on its axes.
pub fn project(mask: &Mask, shape: &[u64]) -> Vec<Mask> {
    let mut shadows: Vec<Mask> = shape.iter().map(|&n| Mask::zeros(n as usize)).collect();
    let Some(row) = shape.last().map(|&n| n as usize).filter(|&n| n > 0) else { return shadows };
    for r in 0..mask.len() / row {
        let mut any = Mask::zeros(row);
        any.or_range(0, mask, r * row, row);
        if any.none() {
            continue;
        }
        let mut rest = r;
        for d in (0..shape.len() - 1).rev() {
            shadows[d].set(rest % shape[d] as usize);
            rest /= shape[d] as usize;
        }
        let last = shadows.len() - 1;
        shadows[last].or(&any);
    }
    shadows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strategy() -> impl Strategy<Value = (Vec<u64>, Vec<usize>, Vec<bool>, Vec<bool>)> {
        (proptest::collection::vec(1..7_u64, 1..5), any::<u8>()).prop_flat_map(|(shape, pick)| {
            let axes: Vec<usize> = (0..shape.len()).filter(|a| pick >> a & 1 == 1).collect();
            let n = shape.iter().product::<u64>() as usize;
            let m = axes.iter().map(|&a| shape[a]).product::<u64>() as usize;
            let bits = |n| proptest::collection::vec(any::<bool>(), n);
            (Just(shape), Just(axes), bits(n), bits(m))
        })
    }

    fn mask(bits: &[bool]) -> Mask {
        let mut m = Mask::zeros(bits.len());
        (0..bits.len()).filter(|&i| bits[i]).for_each(|i| m.set(i));
        m
    }

    fn unravel(mut i: usize, shape: &[u64]) -> Vec<usize> {
        let mut out = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            out[d] = i % shape[d] as usize;
            i /= shape[d] as usize;
        }
        out
    }

    proptest! {
        #[test]
        fn broadcast_agrees_with_indices((shape, axes, whole, part) in strategy()) {
            let mut got = mask(&whole);
            and_broadcast(&mut got, &shape, &mask(&part), &axes);
            for (i, &was) in whole.iter().enumerate() {
                let index = unravel(i, &shape);
                let j = axes.iter().fold(0, |j, &a| j * shape[a] as usize + index[a]);
                prop_assert_eq!(got.get(i), was && part[j]);
            }
            for (d, shadow) in project(&mask(&whole), &shape).iter().enumerate() {
                for k in 0..shape[d] as usize {
                    prop_assert_eq!(shadow.get(k), (0..whole.len()).any(|i| whole[i] && unravel(i, &shape)[d] == k));
                }
            }
        }

        #[test]
        fn slices_agree_with_indices((shape, _, whole, _) in strategy(), cut in any::<u64>()) {
            let start: Vec<u64> = shape.iter().map(|&n| cut % n).collect();
            let extent: Vec<u64> = shape.iter().zip(&start).map(|(&n, &s)| 1 + (cut / 7) % (n - s)).collect();
            let bx = Bx::new(start, extent);
            let got = slice_box(&mask(&whole), &shape, &bx);
            for j in 0..got.len() {
                let index = unravel(j, &bx.shape);
                let i = index.iter().zip(&bx.start).zip(&shape).fold(0, |i, ((&k, &s), &n)| i * n as usize + k + s as usize);
                prop_assert_eq!(got.get(j), whole[i]);
            }
        }
    }
}
