//! Smoothing between levels of the inverse H-transform: differences are moved towards what the neighbours suggest, by
//! no more than half the scale by which they were rounded (White 1992, section on smoothing).

/// Smooths the coefficients of one level: `top_x` rows at stride `ny`, `top_y` columns.
pub(super) fn smooth(a: &mut [i64], top_x: usize, top_y: usize, ny: usize, scale: i64) {
    let most = scale >> 1;
    if most <= 0 {
        return;
    }
    // Differences along the slow axis, then along the fast one.
    for i in (2..top_x.saturating_sub(2)).step_by(2) {
        for j in (0..top_y).step_by(2) {
            let s = i * ny + j;
            slope(a, s, 2 * ny, ny, most);
        }
    }
    for i in (0..top_x).step_by(2) {
        for j in (2..top_y.saturating_sub(2)).step_by(2) {
            slope(a, i * ny + j, 2, 1, most);
        }
    }
    for i in (2..top_x.saturating_sub(2)).step_by(2) {
        for j in (2..top_y.saturating_sub(2)).step_by(2) {
            curvature(a, i * ny + j, ny, most);
        }
    }
}

/// Moves the difference at `s + of` towards the slope of the sums at `s - step`, `s` and `s + step`, where these are
/// monotonous.
fn slope(a: &mut [i64], s: usize, step: usize, of: usize, most: i64) {
    let Some(&old) = a.get(s + of) else { return };
    let (before, here, after) = (a[s - step], a[s], a[s + step]);
    let (up, down) = (after.wrapping_sub(here), here.wrapping_sub(before));
    let high = up.min(down).max(0).wrapping_shl(2);
    let low = up.max(down).min(0).wrapping_shl(2);
    if low < high {
        let wanted = after.wrapping_sub(before).min(high).max(low);
        a[s + of] = old.wrapping_add(step_towards(wanted.wrapping_sub(old.wrapping_shl(3)), 3, most));
    }
}

/// `distance / 2^shift` towards 0, `most` at most.
fn step_towards(distance: i64, shift: u32, most: i64) -> i64 {
    let step = if distance >= 0 { distance } else { distance.wrapping_add((1 << shift) - 1) } >> shift;
    step.min(most).max(-most)
}

/// Moves the diagonal difference of the block at `s` towards the curvature of the sums around it.
fn curvature(a: &mut [i64], s: usize, ny: usize, most: i64) {
    let Some(&old) = a.get(s + ny + 1) else { return };
    let (mm, pm) = (a[s - 2 * ny - 2], a[s + 2 * ny - 2]);
    let (mp, pp) = (a[s - 2 * ny + 2], a[s + 2 * ny + 2]);
    let here = a[s];
    let (x2, y2) = (a[s + ny].wrapping_shl(1), a[s + 1].wrapping_shl(1));
    let (sum, difference) = (x2.wrapping_add(y2), x2.wrapping_sub(y2));
    let (to_pp, from_pm) = (pp.wrapping_sub(here), here.wrapping_sub(pm));
    let (from_mp, to_mm) = (here.wrapping_sub(mp), mm.wrapping_sub(here));
    let high = to_pp
        .max(0)
        .wrapping_sub(sum)
        .min(from_pm.max(0).wrapping_add(difference))
        .min(from_mp.max(0).wrapping_sub(difference).min(to_mm.max(0).wrapping_add(sum)));
    let low = to_pp
        .min(0)
        .wrapping_sub(sum)
        .max(from_pm.min(0).wrapping_add(difference))
        .max(from_mp.min(0).wrapping_sub(difference).max(to_mm.min(0).wrapping_add(sum)));
    let (high, low) = (high.wrapping_shl(4), low.wrapping_shl(4));
    if low < high {
        let wanted = pp.wrapping_add(mm).wrapping_sub(mp).wrapping_sub(pm).min(high).max(low);
        a[s + ny + 1] = old.wrapping_add(step_towards(wanted.wrapping_sub(old.wrapping_shl(6)), 6, most));
    }
}
