//! Quantised floating-point numbers: integers times a scale, with subtractive dithering (FITS standard 4.0, section
//! 10.2; the random numbers: appendix I; Pence, White and Seaman 2010, PASP 122, 1065).
//!
//! All is done in float64 and rounded once, in the order in which CFITSIO does it, so that results are its bits.

use std::sync::OnceLock;

use super::spec::Dither;

const RANDOMS: usize = 10_000;
/// Stands for exactly 0.0 in SUBTRACTIVE_DITHER_2.
const ZERO: i32 = -2_147_483_646;

/// Scale and zero point of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantum {
    /// Step.
    pub(super) scale: f64,
    /// Value of 0.
    pub(super) zero: f64,
    /// The integer that stands for no value.
    pub(super) blank: Option<i64>,
}

/// Random numbers of Park and Miller's generator from seed 1, as float32 ones.
fn randoms() -> &'static [f32] {
    static TABLE: OnceLock<Vec<f32>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut seed = 1_u64;
        let next = |_| {
            seed = seed * 16807 % 2_147_483_647;
            (seed as f64 / 2_147_483_647.0) as f32
        };
        (0..RANDOMS).map(next).collect()
    })
}

/// The values of a tile of number `tile` (from 0 on in the table).
pub(super) fn values(
    ints: impl Iterator<Item = i64>,
    q: Quantum,
    dither: Dither,
    tile: u64,
    mut put: impl FnMut(f64),
) {
    let (seed, zeros_are_exact) = match dither {
        Dither::No => {
            for int in ints {
                put(if Some(int) == q.blank { f64::NAN } else { int as f64 * q.scale + q.zero });
            }
            return;
        }
        Dither::One(seed) => (seed, false),
        Dither::Two(seed) => (seed, true),
    };
    let table = randoms();
    let mut row = ((tile as i128 + i128::from(seed) - 1).rem_euclid(RANDOMS as i128)) as usize;
    let begin = |row: usize| (table[row] * 500.0) as usize;
    let mut next = begin(row);
    for int in ints {
        put(if Some(int) == q.blank {
            f64::NAN
        } else if zeros_are_exact && int == i64::from(ZERO) {
            0.0
        } else {
            (int as f64 - f64::from(table[next]) + 0.5) * q.scale + q.zero
        });
        next += 1;
        if next == RANDOMS {
            row = (row + 1) % RANDOMS;
            next = begin(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_ends_where_the_standard_says() {
        // Appendix I: after 10000 steps the seed is 1043618065.
        let last = randoms()[RANDOMS - 1];
        assert_eq!(last, (1_043_618_065.0 / 2_147_483_647.0) as f32);
    }

    #[test]
    fn without_dither_it_is_a_scale() {
        let q = Quantum { scale: 0.5, zero: 10.0, blank: Some(-9) };
        let mut out = Vec::new();
        values([2, -9, -4].into_iter(), q, Dither::No, 0, |v| out.push(v));
        assert_eq!((out[0], out[2]), (11.0, 8.0));
        assert!(out[1].is_nan());
    }

    #[test]
    fn exact_zeros_are_of_the_second_method_only() {
        let q = Quantum { scale: 1.0, zero: 0.0, blank: None };
        let at = |dither| {
            let mut out = Vec::new();
            values([i64::from(ZERO)].into_iter(), q, dither, 3, |v| out.push(v));
            out[0]
        };
        assert_eq!(at(Dither::Two(1)), 0.0);
        assert!(at(Dither::One(1)) < -2e9);
    }
}
