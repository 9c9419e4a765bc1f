//! Rows of rare bins, listed beside the tree.
//!
//! A rare bin lies deep in the tree, and its rows come back through nodes that have some two bits for each row of the
//! region. The bins at the two ends of the present values, which conditions on a tail ask for, are listed instead where
//! that takes little room: neighbours make a *group*, which is one leaf of the tree, and each of its bins has the
//! ascending numbers of its rows. A condition that takes or leaves all other bins reads lists alone.
//!
//! A list is in the code of Elias and Fano (Elias, Efficient storage and retrieval by content and address of static files,
//! J. ACM 21, 1974): a byte k, the low k bits of each row, then what is left of the rows as a bit stream of a zero for each
//! step of 2^k rows and a one for each row. Rows that lie by chance take half a bit more than by the gaps, but none waits for
//! the one before to be found. Lists of gaps (see [`super::gaps`]) are read still.

use std::ops::Range;

use super::binning::Class;
use super::groups::Group;

/// Regions of fewer rows have no lists: their tree is little more than a page.
const MIN_ROWS: u64 = 8192;
/// A listed bin has at most this share of the rows (1/16).
const RARE: u64 = 16;
/// What lists may add to the bits of the tree: 1/21.
const BUDGET: f64 = 1.0 / 21.0;
/// What of it is kept for the lower end.
const LOWER: f64 = 1.0 / 16.0;
/// Bits that a run of one bin along the rows takes at most in vectors of runs.
const RUN_BITS: f64 = 12.0;
/// Bits of an entry of the head, and of filling up the last byte.
const ENTRY_BITS: f64 = 60.0;
/// The most low bits of a gap: a region has at most 2^31 rows.
pub(super) const MAX_LOW_BITS: u32 = 31;

/// Chooses which leaves are listed: at most a group at either end of the present bins, the upper one first, as conditions ask
/// for what is large. `runs` is the number of runs of one leaf along the rows.
pub(super) fn choose(leaves: &[(Class, Group)], rows: u64, runs: u64) -> Vec<Range<usize>> {
    let first = leaves.partition_point(|leaf| leaf.0 < Class::Present);
    if rows < MIN_ROWS || leaves.len() - first < 8 {
        return Vec::new();
    }
    let entropy: f64 = leaves.iter().map(|leaf| leaf.1.count as f64 * bits(rows, leaf.1.count)).sum();
    let tree = entropy.min(runs as f64 * RUN_BITS);
    // Where vectors are runs, a leaf less saves as little as it costs.
    let worth = if entropy > 0.0 { tree / entropy } else { 0.0 };
    let count = |leaf: usize| leaves[leaf].1.count;
    let left = tree * BUDGET;
    // At least half of the bins stay in the tree.
    let most = (leaves.len() - first) / 2;
    let upper = (leaves.len() - most..leaves.len()).rev().map(count);
    let (high, took) = take(upper, rows, worth, left * (1.0 - LOWER));
    let lower = (first..first + most - high).map(count);
    let (low, _) = take(lower, rows, worth, left - took);
    [first..first + low, leaves.len() - high..leaves.len()].into_iter().filter(|g| !g.is_empty()).collect()
}

/// How many leaves of such counts, from an end on, are listed for at most so many bits, and the bits that they take.
fn take(counts: impl Iterator<Item = u64>, rows: u64, worth: f64, most: f64) -> (usize, f64) {
    let (mut leaves, mut took, mut weight) = (0, 0.0, 0);
    for n in counts {
        let together = weight + n;
        let saved = if weight == 0 {
            0.0
        } else {
            worth * (weight as f64 * bits(together, weight) + n as f64 * bits(together, n))
        };
        let more = took + length(rows, n, low_bits(rows, n)) as f64 + ENTRY_BITS - saved;
        if more > most || n > rows / RARE {
            break;
        }
        (leaves, took, weight) = (leaves + 1, more, together);
    }
    (leaves, took)
}

/// Bits that tell a part from the whole.
fn bits(whole: u64, part: u64) -> f64 {
    (whole as f64 / part as f64).log2()
}

/// The low bits of a row that make the shortest list of `count` among `rows`.
fn low_bits(rows: u64, count: u64) -> u32 {
    let near = (rows / count.max(1)).max(1).ilog2().min(MAX_LOW_BITS);
    let least = near.saturating_sub(1)..=(near + 1).min(MAX_LOW_BITS);
    least.min_by_key(|&low| length(rows, count, low)).unwrap_or(near)
}

/// Bits of a list but for its first byte.
fn length(rows: u64, count: u64, low: u32) -> u64 {
    count * u64::from(low) + steps(rows, count, low)
}

/// Bits that are left of the rows without their low ones.
fn steps(rows: u64, count: u64, low: u32) -> u64 {
    count + (rows.saturating_sub(1) >> low)
}

/// Bytes that a list of `count` among `rows` takes at most, of rows or of gaps, whatever its k: each has at most 31 low bits
/// and a one, and the zeros are fewer than the rows.
pub(super) fn longest(rows: u64, count: u64) -> u64 {
    2 + (rows + count * u64::from(MAX_LOW_BITS + 1)).div_ceil(8)
}

/// Appends the list of these rows, which ascend, of a region of `rows`.
pub(super) fn put(places: &[u32], rows: u64, out: &mut Vec<u8>) {
    let count = places.len() as u64;
    let low = low_bits(rows, count);
    out.push(low as u8);
    let (mut held, mut length) = (0_u64, 0_u32);
    for &place in places {
        push(u64::from(place) & ((1 << low) - 1), low, &mut held, &mut length, out);
    }
    if length > 0 {
        out.push(held as u8);
    }
    let start = out.len();
    out.resize(start + steps(rows, count, low).div_ceil(8) as usize, 0);
    for (i, &place) in places.iter().enumerate() {
        let at = (place >> low) as usize + i;
        out[start + at / 8] |= 1 << (at % 8);
    }
}

/// Appends `n` bits, at most 32; fewer than 8 are held back.
pub(super) fn push(value: u64, n: u32, held: &mut u64, length: &mut u32, out: &mut Vec<u8>) {
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
    let (&low, lows) = list.split_first()?;
    let low = u32::from(low);
    if low > MAX_LOW_BITS {
        return None;
    }
    let at = usize::try_from((count * u64::from(low)).div_ceil(8)).ok()?;
    let highs = lows.get(at..)?;
    if highs.len() as u64 != steps(rows, count, low).div_ceil(8) {
        return None;
    }
    let mask = (1_u64 << low) - 1;
    let (mut found, mut next, mut base) = (0_u64, 0_u64, 0_u64);
    for chunk in highs.chunks(8) {
        let mut word = word_at(chunk, 0);
        while word != 0 {
            let step = base + u64::from(word.trailing_zeros());
            let bit = found * u64::from(low);
            // Of a number of at most 31 bits that begins in the first of eight bytes; more bytes than its own do no harm.
            let rest = word_at(lows, (bit / 8) as usize) >> (bit % 8) & mask;
            let place = (step - found) << low | rest;
            if place < next || place >= rows {
                return None;
            }
            f(place);
            next = place + 1;
            found += 1;
            word &= word - 1;
        }
        base += 64;
    }
    (found == count).then_some(())
}

/// The eight bytes from a place on as a number, those past the end zeros.
#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let rest = bytes.get(at..).unwrap_or_default();
            rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
        }
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
    }

    #[test]
    fn tails_are_listed_and_bins_of_smooth_rows_are_not() {
        let leaf = |count| (Class::Present, Group { low: 0, high: 0, count });
        let mut leaves: Vec<_> = (0..90).map(|_| leaf(700)).collect();
        leaves.extend([300, 100, 30, 10, 2].map(leaf));
        let rows = leaves.iter().map(|l| l.1.count).sum();
        let groups = choose(&leaves, rows, rows);
        assert!(groups.iter().any(|g| g.end == leaves.len() && g.start <= 90), "{groups:?}");
        // What is small at the lower end is listed as well.
        let both = [vec![leaf(1); 6], leaves.clone()].concat();
        assert_eq!(choose(&both, rows + 6, rows).len(), 2);
        assert_eq!(choose(&leaves, rows, 100), []);
        assert_eq!(choose(&leaves[90..], rows, rows), []);
    }
}
