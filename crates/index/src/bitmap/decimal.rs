//! Numbers of few significant decimal digits, as the stored values nearest to them.
//!
//! A number of p digits is d * 10^e with 10^(p-1) <= d < 10^p (integers: also d < 10^(p-1) with e = 0). A
//! condition on a stored value x and such a number b, whatever the comparison and whether b is taken as the
//! real number or rounded to any float type at least as wide as the stored one, parts the stored values
//! either just below or just above the stored value nearest to b: no other stored value lies between the
//! two. So that value as a bin of its own (a *point*) answers all of them.

use std::fmt::Write;

use super::ordinal::{Kind, Scale};

/// d * 10^e.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

/// Digits that tell all values of a type apart.
pub(super) fn max_digits(kind: Kind) -> u32 {
    match kind {
        Kind::Integer => 20,
        Kind::Single => 9,
        Kind::Double => 17,
    }
}

/// How many numbers of `digits` digits lie between two magnitudes, give or take one; saturating.
pub(super) fn span(kind: Kind, low: u64, high: u64, digits: u32) -> u64 {
    let number = |m| {
        let at = first(kind, m, digits);
        i128::from(at.exponent) * 9 * 10_i128.pow(digits - 1) + i128::from(at.digits)
    };
    u64::try_from(number(high) - number(low) + 1).unwrap_or(u64::MAX)
}

/// Appends the ordinals of the points of `digits` digits between two finite magnitudes other than 0, both
/// ends included.
pub(super) fn points(
    scale: &Scale,
    (low, high): (u64, u64),
    negative: bool,
    digits: u32,
    out: &mut Vec<u64>,
) {
    let mut at = first(scale.kind, low, digits);
    let mut last = None;
    while let Some(m) = nearest(scale.kind, at).filter(|&m| m <= high) {
        if last == Some(m) {
            // Numbers lie closer than stored values here: of denormals up to 10^16 of 17 digits are nearest to one.
            let next = first(scale.kind, m + 1, digits);
            if (next.exponent, next.digits) > (at.exponent, at.digits) {
                at = next;
                continue;
            }
        } else if m >= low {
            out.push(scale.at(m, negative));
        }
        last = Some(m);
        let Some(above) = at.digits.checked_add(1) else { return };
        at.digits = above;
        if u128::from(at.digits) == 10_u128.pow(digits) {
            at = Decimal { digits: at.digits / 10, exponent: at.exponent + 1 };
        }
    }
}

/// A number of `digits` digits such that no smaller one has its point at or above the magnitude: the
/// nearest for floats (were the point of a smaller one at the magnitude, then so would be that of the
/// nearest), the next below for integers.
fn first(kind: Kind, magnitude: u64, digits: u32) -> Decimal {
    if kind == Kind::Integer {
        let length = magnitude.checked_ilog10().map_or(1, |n| n + 1);
        let exponent = length.saturating_sub(digits);
        return Decimal { digits: magnitude / 10_u64.pow(exponent), exponent: exponent as i32 };
    }
    let mut text = String::with_capacity(32);
    let places = digits as usize - 1;
    // Writing to a string does not fail.
    let _ = if kind == Kind::Single {
        write!(text, "{:.places$e}", f32::from_bits(magnitude as u32))
    } else {
        write!(text, "{:.places$e}", f64::from_bits(magnitude))
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let value = mantissa.bytes().filter(u8::is_ascii_digit).fold(0, |n, c| n * 10 + u64::from(c - b'0'));
    Decimal { digits: value, exponent: exponent.parse::<i32>().unwrap_or(0) - places as i32 }
}

/// The magnitude of the stored value nearest to a number; `None` past the range of integers.
fn nearest(kind: Kind, number: Decimal) -> Option<u64> {
    let Decimal { digits, exponent } = number;
    match kind {
        Kind::Integer => 10_u64.checked_pow(exponent as u32)?.checked_mul(digits),
        Kind::Single => Some(nearest_single(digits, exponent).to_bits().into()),
        Kind::Double => Some(nearest_double(digits, exponent).to_bits()),
    }
}

/// Where both numbers are exact in the type, one operation rounds as it should (Clinger, How to read
/// floating point numbers accurately, PLDI 1990, section 3); else the standard library parses it.
fn nearest_single(digits: u64, exponent: i32) -> f32 {
    const TENS: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
    let power = TENS.get(exponent.unsigned_abs() as usize).filter(|_| digits < 1 << 24);
    match power {
        Some(power) if exponent < 0 => digits as f32 / power,
        Some(power) => digits as f32 * power,
        None => format!("{digits}e{exponent}").parse().unwrap_or(f32::INFINITY),
    }
}

/// As [`nearest_single`].
fn nearest_double(digits: u64, exponent: i32) -> f64 {
    const TENS: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    let power = TENS.get(exponent.unsigned_abs() as usize).filter(|_| digits < 1 << 53);
    match power {
        Some(power) if exponent < 0 => digits as f64 / power,
        Some(power) => digits as f64 * power,
        None => format!("{digits}e{exponent}").parse().unwrap_or(f64::INFINITY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sieva_types::DType;

    #[test]
    fn points_of_a_range() {
        let scale = Scale::of(DType::F32).unwrap();
        let mut out = Vec::new();
        points(&scale, (0.95_f32.to_bits().into(), 1.25_f32.to_bits().into()), false, 2, &mut out);
        let values: Vec<f32> = out.iter().map(|&o| f32::from_bits(scale.magnitude(o) as u32)).collect();
        assert_eq!(values, [0.95, 0.96, 0.97, 0.98, 0.99, 1.0, 1.1, 1.2]);
        out.clear();
        points(&scale, (1, 4), true, 2, &mut out); // denormals: each is the nearest to some number
        assert_eq!(out, [1, 2, 3, 4].map(|m| scale.at(m, true)));
        let scale = Scale::of(DType::F64).unwrap();
        out.clear();
        points(&scale, (1, 3), false, 17, &mut out);
        points(&scale, ((1 << 52) - 1, (1 << 52) + 1), false, 17, &mut out);
        let two = [1, 2, 3, (1 << 52) - 1, 1 << 52, (1 << 52) + 1];
        assert_eq!(out, two.map(|m| scale.at(m, false)));
        let scale = Scale::of(DType::I64).unwrap();
        out.clear();
        points(&scale, (98, 125), true, 2, &mut out);
        assert_eq!(out, [98, 99, 100, 110, 120].map(|m| scale.at(m, true)));
        out.clear();
        points(&Scale::of(DType::U64).unwrap(), (u64::MAX - 2, u64::MAX), false, 20, &mut out);
        assert_eq!(out, [u64::MAX - 2, u64::MAX - 1, u64::MAX]);
    }

    proptest! {
        #[test]
        fn one_operation_rounds_as_parsing_does(digits in 1..1_u64 << 54, exponent in -340..320_i32) {
            for exponent in [exponent, exponent % 25] {
                for digits in [digits, digits % 1000, digits % (1 << 25)] {
                    let text = format!("{digits}e{exponent}");
                    prop_assert_eq!(nearest_single(digits, exponent).to_bits(), text.parse::<f32>().unwrap().to_bits());
                    prop_assert_eq!(nearest_double(digits, exponent).to_bits(), text.parse::<f64>().unwrap().to_bits());
                }
            }
        }

        #[test]
        fn no_point_is_left_out(m in 1..f32::INFINITY.to_bits(), wide in 0..100_u32, digits in 1..4_u32) {
            let scale = Scale::of(DType::F32).unwrap();
            let high = (m + wide).min(f32::INFINITY.to_bits() - 1);
            let mut out = Vec::new();
            points(&scale, (m.into(), high.into()), false, digits, &mut out);
            let around = first(Kind::Single, m.into(), digits);
            for d in around.digits.saturating_sub(300)..around.digits + 3 {
                let point = nearest(Kind::Single, Decimal { digits: d, ..around }).unwrap();
                if (d < 10_u64.pow(digits)) && u64::from(m) <= point && point <= high.into() {
                    prop_assert!(out.contains(&scale.at(point, false)));
                }
            }
        }
    }
}
