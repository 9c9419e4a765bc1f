//! Rows of rare bins, listed beside the tree.
//!
//! A rare bin lies deep in the tree, and its rows come back through nodes that have some two bits for each row of the
//! region. The bins at the two ends of the present values, which conditions on a tail ask for, are listed instead where
//! that takes little room: neighbours make a *group*, which is one leaf of the tree, and each of its bins has the
//! ascending numbers of its rows. A condition that takes or leaves all other bins reads lists alone.
//!
//! A list is a byte k, then a bit stream, from the least significant bit of a byte on: of each gap to the row before, its
//! quotient by 2^k in unary (zeros, then a one) and its low k bits (Rice & Plaunt, Adaptive variable-length coding for
//! efficient compression of spacecraft television data, IEEE Trans. Commun. 19, 1971). Rows that lie by chance take about
//! 1.5 bits more than the entropy of their bin.

use std::ops::Range;

use super::binning::Class;
use super::groups::Group;

/// Regions of fewer rows have no lists: their tree is little more than a page.
const MIN_ROWS: u64 = 8192;
/// A listed bin has at most this share of the rows (1/32).
const RARE: u64 = 32;
/// What lists may add to the bits of the tree: 1/24.
const BUDGET: f64 = 1.0 / 24.0;
/// Bits that a run of one bin along the rows takes at most in vectors of runs.
const RUN_BITS: f64 = 12.0;
/// Bits of an entry of the head, and of filling up the last byte.
const ENTRY_BITS: f64 = 60.0;
/// The most low bits of a gap: a region has at most 2^31 rows.
pub(super) const MAX_LOW_BITS: u32 = 31;

/// Chooses which leaves are listed: at most a group at either end of the present bins. `runs` is the number of runs of
/// one leaf along the rows.
pub(super) fn choose(leaves: &[(Class, Group)], rows: u64, runs: u64) -> Vec<Range<usize>> {
    let first = leaves.partition_point(|leaf| leaf.0 < Class::Present);
    if rows < MIN_ROWS || leaves.len() - first < 8 {
        return Vec::new();
    }
    let count = |leaf: usize| leaves[leaf].1.count;
    let entropy: f64 = leaves.iter().map(|leaf| leaf.1.count as f64 * bits(rows, leaf.1.count)).sum();
    let tree = entropy.min(runs as f64 * RUN_BITS);
    // Where vectors are runs, a leaf less saves as little as it costs.
    let worth = if entropy > 0.0 { tree / entropy } else { 0.0 };
    let mut left = tree * BUDGET;
    let (mut low, mut high) = (first, leaves.len());
    let mut weights = [0_u64; 2];
    // At least half of the bins stay in the tree.
    while high - low > (leaves.len() - first).div_ceil(2) {
        let upper = count(high - 1) <= count(low);
        let (leaf, weight) = if upper { (high - 1, &mut weights[1]) } else { (low, &mut weights[0]) };
        let n = count(leaf);
        let listed = n as f64 * (f64::from(low_bits(rows, n)) + 1.8) + ENTRY_BITS;
        let together = *weight + n;
        let saved = if *weight == 0 {
            0.0
        } else {
            worth * (*weight as f64 * bits(together, *weight) + n as f64 * bits(together, n))
        };
        left -= listed - saved;
        if left < 0.0 || n > rows / RARE {
            break;
        }
        *weight = together;
        if upper { high -= 1 } else { low += 1 }
    }
    [first..low, high..leaves.len()].into_iter().filter(|g| !g.is_empty()).collect()
}

/// Bits that tell a part from the whole.
fn bits(whole: u64, part: u64) -> f64 {
    (whole as f64 / part as f64).log2()
}

/// The low bits of a gap that make the shortest list of `count` among `rows`, about: log2 of ln 2 times the mean gap.
pub(super) fn low_bits(rows: u64, count: u64) -> u32 {
    let mean = rows.saturating_sub(count) / count.max(1);
    ((mean * 45_426) >> 16).max(1).ilog2().min(MAX_LOW_BITS)
}

/// Bytes that a list of `count` among `rows` takes at most, whatever its k: each gap has at most 31 low bits and a one,
/// and the quotients add up to less than the rows.
pub(super) fn longest(rows: u64, count: u64) -> u64 {
    1 + (rows + count * u64::from(MAX_LOW_BITS + 1)).div_ceil(8)
}

/// Appends the list of these rows, which ascend, of a region of `rows`.
pub(super) fn put(places: &[u32], rows: u64, out: &mut Vec<u8>) {
    let low = low_bits(rows, places.len() as u64);
    out.push(low as u8);
    let (mut held, mut length) = (0_u64, 0_u32);
    let mut next = 0;
    for &place in places {
        let gap = u64::from(place - next);
        next = place + 1;
        let mut zeros = gap >> low;
        while zeros >= 8 {
            push(0, 8, &mut held, &mut length, out);
            zeros -= 8;
        }
        push(1 << zeros, zeros as u32 + 1, &mut held, &mut length, out);
        push(gap & ((1 << low) - 1), low, &mut held, &mut length, out);
    }
    if length > 0 {
        out.push(held as u8);
    }
}

/// Appends `n` bits, at most 32; fewer than 8 are held back.
fn push(value: u64, n: u32, held: &mut u64, length: &mut u32, out: &mut Vec<u8>) {
    *held |= value << *length;
    *length += n;
    while *length >= 8 {
        out.push(*held as u8);
        *held >>= 8;
        *length -= 8;
    }
}

/// Calls `f` with each of `count` rows of a list; `None` where the bytes are no such list of a region of `rows`.
#[inline(always)]
fn each(list: &[u8], rows: u64, count: u64, mut f: impl FnMut(u64)) -> Option<()> {
    let (&low, mut rest) = list.split_first()?;
    let low = u32::from(low);
    if low > MAX_LOW_BITS {
        return None;
    }
    let mask = (1_u64 << low) - 1;
    let (mut held, mut length) = (0_u64, 0_u32);
    let mut next = 0_u64;
    for _ in 0..count {
        let mut quotient = 0_u64;
        loop {
            // At least 57 bits are held now, or all that are left.
            refill(&mut rest, &mut held, &mut length);
            let zeros = held.trailing_zeros().min(length);
            quotient += u64::from(zeros);
            if quotient > rows {
                return None;
            }
            held = held.checked_shr(zeros).unwrap_or(0);
            length -= zeros;
            if length > 0 {
                break;
            }
            if rest.is_empty() {
                return None;
            }
        }
        held >>= 1;
        length -= 1;
        if length < low {
            refill(&mut rest, &mut held, &mut length);
            if length < low {
                return None;
            }
        }
        // Neither is above 2^31, so nothing overflows.
        let place = next + ((quotient << low) | (held & mask));
        held >>= low;
        length -= low;
        if place >= rows {
            return None;
        }
        f(place);
        next = place + 1;
    }
    (rest.is_empty() && length < 8 && held == 0).then_some(())
}

#[inline(always)]
fn refill(rest: &mut &[u8], held: &mut u64, length: &mut u32) {
    if *length >= 56 {
        return;
    }
    if let Some((word, _)) = rest.split_first_chunk::<8>() {
        *held |= u64::from_le_bytes(*word) << *length;
        let bytes = (63 - *length) / 8;
        *rest = &rest[bytes as usize..];
        *length += bytes * 8;
        // Bits above those that count come again with the next bytes.
        *held &= u64::MAX >> (64 - *length);
        return;
    }
    while *length < 56
        && let Some((&byte, after)) = rest.split_first()
    {
        *held |= u64::from(byte) << *length;
        *length += 8;
        *rest = after;
    }
}

/// Sets the bits of a list's rows, or clears them; `None` as of damage.
pub(super) fn mark(list: &[u8], rows: u64, count: u64, set: bool, out: &mut [u64]) -> Option<()> {
    if set {
        each(list, rows, count, |place| out[place as usize / 64] |= 1 << (place % 64))
    } else {
        each(list, rows, count, |place| out[place as usize / 64] &= !(1 << (place % 64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows_of(list: &[u8], rows: u64, count: u64) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        each(list, rows, count, |place| found.push(place as u32)).map(|()| found)
    }

    proptest! {
        #[test]
        fn lists_come_back(mut places in proptest::collection::vec(0..1_u32 << 20, 0..300), tail in 0..2000_u32) {
            places.extend(5000..5000 + tail);
            places.sort_unstable();
            places.dedup();
            let (rows, count) = (1 << 20, places.len() as u64);
            let mut list = Vec::new();
            put(&places, rows, &mut list);
            prop_assert!(list.len() as u64 <= longest(rows, count));
            prop_assert_eq!(rows_of(&list, rows, count), Some(places.clone()));
            prop_assert_eq!(rows_of(&list, rows, count + 1), None);
            if let Some(&last) = places.last() {
                prop_assert_eq!(rows_of(&list, last.into(), count), None);
                prop_assert_eq!(rows_of(&list[..list.len() - 1], rows, count), None);
            }
        }

        #[test]
        fn foreign_lists_are_refused_or_ascend(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), low in 0..40_u8, rows in 1..5000_u64, count in 0..40_u64) {
            if let Some(first) = bytes.first_mut() {
                *first = low;
            }
            if let Some(found) = rows_of(&bytes, rows, count) {
                prop_assert_eq!(found.len() as u64, count);
                prop_assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|&p| u64::from(p) < rows));
            }
        }
    }

    #[test]
    fn the_most_distant_row_of_the_largest_region_has_a_list() {
        let rows = super::super::MAX_ROWS;
        for place in [0, 1, rows as u32 - 1] {
            let mut list = Vec::new();
            put(&[place], rows, &mut list);
            assert_eq!(rows_of(&list, rows, 1), Some(vec![place]));
        }
        let low = [&[0][..], &[0; 100], &[1]].concat();
        assert_eq!(rows_of(&low, 1000, 1), Some(vec![800]));
        assert_eq!(rows_of(&low, 800, 1), None);
    }

    #[test]
    fn tails_are_listed_and_bins_of_smooth_rows_are_not() {
        let leaf = |count| (Class::Present, Group { low: 0, high: 0, count });
        let mut leaves: Vec<_> = (0..90).map(|_| leaf(700)).collect();
        leaves.extend([300, 100, 30, 10, 2].map(leaf));
        let rows = leaves.iter().map(|l| l.1.count).sum();
        let groups = choose(&leaves, rows, rows);
        assert!(groups.iter().any(|g| g.end == leaves.len() && g.start <= 90), "{groups:?}");
        assert_eq!(choose(&leaves, rows, 100), []);
        assert_eq!(choose(&leaves[90..], rows, rows), []);
    }
}
