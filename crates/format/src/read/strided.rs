//! Copies between blocks that are laid out by byte strides.

/// Bytes of elements that are written by one copy of those before.
const REPEATED: usize = 32 << 10;

/// One side of a copy: where its first element lies and the byte stride of each dimension.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Byte offset of the block's first element.
    pub base: usize,
    /// Byte strides, outermost first.
    pub strides: &'a [u64],
}

/// Copies the block of `shape` (elements of `size` bytes) from `src` to `dst`.
///
/// Every offset is bounds-checked by the slices; the caller has checked that the strides fit.
pub fn copy(shape: &[u64], size: usize, src: &[u8], from: Side, dst: &mut [u8], to: Side) {
    let (rank, run) = dense_suffix(shape, size, from.strides, to.strides);
    let run_bytes = run * size;
    for_each_run(&shape[..rank], from, to, &mut |s, d| {
        if rank > 0 && run == 1 {
            return; // handled below by the strided inner loop
        }
        dst[d..d + run_bytes].copy_from_slice(&src[s..s + run_bytes]);
    });
    if rank > 0 && run == 1 {
        copy_elements(&shape[..rank], size, src, from, dst, to);
    }
}

/// Fills the block of `shape` in `dst` with `element`.
pub fn fill(shape: &[u64], element: &[u8], dst: &mut [u8], to: Side) {
    let size = element.len();
    let (rank, run) = dense_suffix(shape, size, to.strides, to.strides);
    for_each_run(&shape[..rank], to, to, &mut |_, d| {
        repeat(element, &mut dst[d..d + run * size]);
    });
}

/// Fills `out`, which is of whole elements, with `element`.
pub fn repeat(element: &[u8], out: &mut [u8]) {
    let (size, mut done) = (element.len().max(1), element.len().min(out.len()));
    out[..done].copy_from_slice(&element[..done]);
    // As much as there is, within the cache.
    let most = (REPEATED / size).max(1) * size;
    while done > 0 && done < out.len() {
        let n = done.min(most).min(out.len() - done);
        out.copy_within(..n, done);
        done += n;
    }
}

/// The number of outer dimensions, and the elements of the dense run that the inner ones form on both sides.
fn dense_suffix(shape: &[u64], size: usize, a: &[u64], b: &[u64]) -> (usize, usize) {
    let mut rank = shape.len();
    let mut run = 1_u64;
    while rank > 0 && a[rank - 1] == run * size as u64 && b[rank - 1] == run * size as u64 {
        run *= shape[rank - 1];
        rank -= 1;
    }
    (rank, run as usize)
}

fn for_each_run(shape: &[u64], from: Side, to: Side, f: &mut impl FnMut(usize, usize)) {
    match shape {
        [] => f(from.base, to.base),
        [n, inner @ ..] => {
            let (s, d) = (from.strides[0] as usize, to.strides[0] as usize);
            for i in 0..*n as usize {
                for_each_run(
                    inner,
                    Side { base: from.base + i * s, strides: &from.strides[1..] },
                    Side { base: to.base + i * d, strides: &to.strides[1..] },
                    f,
                );
            }
        }
    }
}

/// The innermost dimension is not dense on one side: one tight loop per row of it.
fn copy_elements(shape: &[u64], size: usize, src: &[u8], from: Side, dst: &mut [u8], to: Side) {
    let last = shape.len() - 1;
    let (n, s, d) = (shape[last] as usize, from.strides[last] as usize, to.strides[last] as usize);
    for_each_run(&shape[..last], from, to, &mut |a, b| match size {
        1 => row::<1>(n, src, a, s, dst, b, d),
        2 => row::<2>(n, src, a, s, dst, b, d),
        4 => row::<4>(n, src, a, s, dst, b, d),
        8 => row::<8>(n, src, a, s, dst, b, d),
        _ => {
            for i in 0..n {
                dst[b + i * d..b + i * d + size].copy_from_slice(&src[a + i * s..a + i * s + size]);
            }
        }
    });
}

fn row<const N: usize>(n: usize, src: &[u8], a: usize, s: usize, dst: &mut [u8], b: usize, d: usize) {
    for i in 0..n {
        dst[b + i * d..b + i * d + N].copy_from_slice(&src[a + i * s..a + i * s + N]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::c_strides;

    #[test]
    fn a_box_is_cut_out_of_a_block() {
        let src: Vec<u8> = (0..24).collect();
        let mut dst = vec![0; 4];
        let (from, to) = (c_strides(&[4, 6], 1), c_strides(&[2, 2], 1));
        copy(
            &[2, 2],
            1,
            &src,
            Side { base: 6 + 2, strides: &from },
            &mut dst,
            Side { base: 0, strides: &to },
        );
        assert_eq!(dst, [8, 9, 14, 15]);
    }

    #[test]
    fn members_are_picked_from_items() {
        let src: Vec<u8> = (0..30).collect();
        let mut dst = vec![0; 6];
        copy(&[3], 2, &src, Side { base: 4, strides: &[10] }, &mut dst, Side { base: 0, strides: &[2] });
        assert_eq!(dst, [4, 5, 14, 15, 24, 25]);
    }

    #[test]
    fn rank_zero_is_one_element() {
        let mut dst = vec![0; 2];
        copy(&[], 2, &[7, 8], Side { base: 0, strides: &[] }, &mut dst, Side { base: 0, strides: &[] });
        assert_eq!(dst, [7, 8]);
    }

    #[test]
    fn an_element_of_any_size_is_repeated() {
        for size in [1, 2, 3, 8, 40_000] {
            let element: Vec<u8> = (1..=size).map(|i| i as u8).collect();
            for n in [0, 1, 2, 7, 20_000 / size + 3] {
                let mut out = vec![0; n * size];
                repeat(&element, &mut out);
                assert_eq!(out, element.repeat(n), "{n} of {size}");
            }
        }
        repeat(&[], &mut []);
    }

    #[test]
    fn fill_keeps_to_its_box() {
        let mut dst = vec![0; 9];
        let to = c_strides(&[3, 3], 1);
        fill(&[2, 2], &[5], &mut dst, Side { base: 4, strides: &to });
        assert_eq!(dst, [0, 0, 0, 0, 5, 5, 0, 5, 5]);
    }
}
