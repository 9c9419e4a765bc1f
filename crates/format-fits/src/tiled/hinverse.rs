//! The inverse H-transform, with smoothing where it is asked for (White 1992; the order of roundings is that of the
//! encoder, which makes the transform exact).

/// The coefficients of one 2 x 2 block: sum, differences along each axis, diagonal difference.
struct Roundings {
    /// The bit below which the diagonal difference is rounded, and the one of the others.
    bit0: i64,
    bit1: i64,
}

/// Rounds to a multiple of `bit`, halves up for numbers from 0 on and down in size below.
fn round(v: i64, bit: i64) -> i64 {
    let up = bit >> 1;
    let nudge = if v >= 0 { up } else { up - 1 };
    v.wrapping_add(nudge) & bit.wrapping_neg()
}

/// Transforms coefficients of `nx` rows and `ny` columns into pixels. `smooth`: the scale to smooth by.
pub(super) fn inverse(a: &mut [i64], nx: usize, ny: usize, smooth: Option<i64>) {
    let levels = usize::BITS - (nx.max(ny) - 1).leading_zeros();
    if levels == 0 {
        return;
    }
    let bit0 = 1_i64 << (levels - 1);
    a[0] = round(a[0], bit0 << 2);
    let mut r = Roundings { bit0, bit1: bit0 << 1 };
    let mut scratch = vec![0_i64; nx.max(ny).div_ceil(2)];
    for level in (0..levels).rev() {
        let (top_x, top_y) = (nx.div_ceil(1 << level), ny.div_ceil(1 << level));
        for i in 0..top_x {
            unshuffle(&mut a[i * ny..], top_y, 1, &mut scratch);
        }
        for j in 0..top_y {
            unshuffle(&mut a[j..], top_x, ny, &mut scratch);
        }
        if let Some(scale) = smooth {
            super::hsmooth::smooth(a, top_x, top_y, ny, scale);
        }
        // The last level divides by 4 and no longer rounds differences of the diagonal.
        let shift = if level == 0 { 2 } else { 1 };
        blocks(a, top_x, top_y, ny, &r, shift);
        r = Roundings { bit0: r.bit0 >> 1, bit1: r.bit0 };
    }
}

/// Puts the second half of `n` elements at `stride` between those of the first.
fn unshuffle(a: &mut [i64], n: usize, stride: usize, scratch: &mut [i64]) {
    let half = n.div_ceil(2);
    for (i, slot) in scratch.iter_mut().enumerate().take(n - half) {
        *slot = a[(half + i) * stride];
    }
    for i in (0..half).rev() {
        a[2 * i * stride] = a[i * stride];
    }
    for (i, v) in scratch.iter().enumerate().take(n - half) {
        a[(2 * i + 1) * stride] = *v;
    }
}

/// Replaces each 2 x 2 block of coefficients by what they make.
fn blocks(a: &mut [i64], top_x: usize, top_y: usize, ny: usize, r: &Roundings, shift: u32) {
    for i in (0..top_x - top_x % 2).step_by(2) {
        let (s0, s1) = (i * ny, i * ny + ny);
        for j in (0..top_y - top_y % 2).step_by(2) {
            let made = full([a[s0 + j], a[s0 + j + 1], a[s1 + j], a[s1 + j + 1]], r, shift);
            [a[s0 + j], a[s0 + j + 1], a[s1 + j], a[s1 + j + 1]] = made;
        }
        if top_y % 2 == 1 {
            let j = top_y - 1;
            [a[s0 + j], a[s1 + j]] = pair(a[s0 + j], a[s1 + j], r, shift);
        }
    }
    if top_x % 2 == 1 {
        let s0 = (top_x - 1) * ny;
        for j in (0..top_y - top_y % 2).step_by(2) {
            [a[s0 + j], a[s0 + j + 1]] = pair(a[s0 + j], a[s0 + j + 1], r, shift);
        }
        if top_y % 2 == 1 {
            a[s0 + top_y - 1] >>= shift;
        }
    }
}

/// A number moved away from 0 by `step`, or towards it by a negative one.
fn away(v: i64, step: i64) -> i64 {
    if v >= 0 { v.wrapping_add(step) } else { v.wrapping_sub(step) }
}

/// Four pixels of sum, difference along the fast axis, along the slow one, and diagonal difference.
fn full([h0, hy, hx, hc]: [i64; 4], r: &Roundings, shift: u32) -> [i64; 4] {
    let hc = if shift == 2 { hc } else { round(hc, r.bit0) };
    let low0 = hc & r.bit0;
    let hx = away(round(hx, r.bit1), -low0);
    let hy = away(round(hy, r.bit1), -low0);
    let low1 = (hc ^ hx ^ hy) & r.bit1;
    let h0 = if h0 >= 0 {
        h0.wrapping_add(low0).wrapping_sub(low1)
    } else {
        h0.wrapping_add(if low0 == 0 { low1 } else { low0 - low1 })
    };
    let (sum, difference) = (hx.wrapping_add(hy), hx.wrapping_sub(hy));
    let (plus, minus) = (h0.wrapping_add(hc), h0.wrapping_sub(hc));
    [
        plus.wrapping_sub(sum) >> shift,
        minus.wrapping_sub(difference) >> shift,
        minus.wrapping_add(difference) >> shift,
        plus.wrapping_add(sum) >> shift,
    ]
}

/// Two pixels of a block that the edge cuts.
fn pair(h0: i64, h: i64, r: &Roundings, shift: u32) -> [i64; 2] {
    let h = round(h, r.bit1);
    let h0 = away(h0, -(h & r.bit1));
    [h0.wrapping_sub(h) >> shift, h0.wrapping_add(h) >> shift]
}
