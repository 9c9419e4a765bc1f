//! From the rows of a node's children to the rows of the node.
//!
//! Row k of the right child is where the node's vector has its k-th one, row k of the left child where it has
//! its k-th zero: bits of a child are deposited at the ones (or zeros) of the node, 64 rows at a time, which
//! is one instruction (`pdep`) where there is BMI2.

use super::vector::last_mask;

/// Which rows of a child are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    None,
    All,
    /// A bit per row, and at least one more word than these take.
    Some(&'a [u64]),
}

/// The wanted rows of a node of `rows` rows, whose vector is `words`.
pub(super) fn combine(words: &[u64], rows: usize, left: Side<'_>, right: Side<'_>, out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
    {
        #[target_feature(enable = "bmi1,bmi2,popcnt")]
        fn deposited(words: &[u64], left: Side<'_>, right: Side<'_>, out: &mut [u64]) {
            run(words, left, right, out, |bits, places| std::arch::x86_64::_pdep_u64(bits, places));
        }
        // SAFETY: the features were just detected.
        unsafe { deposited(words, left, right, out) };
        mask(out, rows);
        return;
    }
    run(words, left, right, out, deposit);
    mask(out, rows);
}

/// Bits past the end belong to no child, but are zeros of the node.
fn mask(out: &mut [u64], rows: usize) {
    if let Some(last) = out.last_mut() {
        *last &= last_mask(rows);
    }
}

/// The low bits of `bits`, in order, at the places of the ones of `places`.
fn deposit(mut bits: u64, mut places: u64) -> u64 {
    let mut out = 0;
    while places != 0 {
        let place = places & places.wrapping_neg();
        out |= place & (bits & 1).wrapping_neg();
        bits >>= 1;
        places ^= place;
    }
    out
}

#[inline(always)]
fn run(
    words: &[u64],
    left: Side<'_>,
    right: Side<'_>,
    out: &mut [u64],
    deposit: impl Fn(u64, u64) -> u64 + Copy,
) {
    let fill = |out: &mut [u64], f: fn(u64) -> u64| out.iter_mut().zip(words).for_each(|(o, &w)| *o = f(w));
    match (left, right) {
        (Side::None, Side::None) => out.fill(0),
        (Side::All, Side::All) => out.fill(u64::MAX),
        (Side::None, Side::All) => fill(out, |w| w),
        (Side::All, Side::None) => fill(out, |w| !w),
        (Side::None, Side::Some(bits)) => spread(words, bits, out, |w| w, |_, _| 0, deposit),
        (Side::All, Side::Some(bits)) => spread(words, bits, out, |w| w, |w, _| !w, deposit),
        (Side::Some(bits), Side::None) => spread(words, bits, out, |w| !w, |_, _| 0, deposit),
        (Side::Some(bits), Side::All) => spread(words, bits, out, |w| !w, |w, _| w, deposit),
        (Side::Some(low), Side::Some(high)) => {
            spread(words, low, out, |w| !w, |_, _| 0, deposit);
            spread(words, high, out, |w| w, |_, old| old, deposit);
        }
    }
}

/// Sets `out` to `base` of the node's word and the old one, and the child's bits at the ones of `places`.
#[inline(always)]
fn spread(
    words: &[u64],
    child: &[u64],
    out: &mut [u64],
    places: impl Fn(u64) -> u64,
    base: impl Fn(u64, u64) -> u64,
    deposit: impl Fn(u64, u64) -> u64,
) {
    let mut at = 0;
    for (&word, out) in words.iter().zip(out) {
        let places = places(word);
        let (low, shift) = (at / 64, at % 64);
        // Past the child's end come only the bits past the node's end, which do not count.
        let (now, next) = match child.get(low..low + 2) {
            Some(&[now, next]) => (now, next),
            _ => (child.get(low).copied().unwrap_or(0), 0),
        };
        let bits = now >> shift | next << 1 << (63 - shift);
        *out = base(word, *out) | deposit(bits, places);
        at += places.count_ones() as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(bits: &[bool]) -> Vec<u64> {
        let mut words = vec![0; bits.len().div_ceil(64) + 1];
        bits.iter().enumerate().for_each(|(i, &b)| words[i / 64] |= u64::from(b) << (i % 64));
        words
    }

    proptest! {
        #[test]
        fn children_go_to_their_places(node in proptest::collection::vec(any::<bool>(), 0..300), seed: u64) {
            let ones = node.iter().filter(|&&b| b).count();
            let bits = |n: usize, salt: u64| -> Vec<bool> {
                (0..n as u64).map(|i| (i + salt).wrapping_mul(seed | 1).count_ones() % 2 == 1).collect()
            };
            let (low, high) = (bits(node.len() - ones, 1), bits(ones, 7));
            let (low_words, high_words) = (pack(&low), pack(&high));
            let (none, all) = (vec![false; node.len()], vec![true; node.len()]);
            let words = node.len().div_ceil(64);
            let lefts = [(Side::None, &none), (Side::All, &all), (Side::Some(&low_words), &low)];
            let rights = [(Side::None, &none), (Side::All, &all), (Side::Some(&high_words), &high)];
            for (left, left_bits) in lefts {
                for (right, right_bits) in rights {
                    let (mut l, mut r) = (left_bits.iter(), right_bits.iter());
                    let want: Vec<bool> = node.iter().map(|&b| *if b { r.next() } else { l.next() }.unwrap()).collect();
                    let mut out = vec![u64::MAX; words];
                    combine(&pack(&node)[..words], node.len(), left, right, &mut out);
                    prop_assert_eq!(&out[..], &pack(&want)[..words]);
                    let mut plain = vec![u64::MAX; words];
                    run(&pack(&node)[..words], left, right, &mut plain, deposit);
                    mask(&mut plain, node.len());
                    prop_assert_eq!(plain, out);
                }
            }
        }
    }
}
