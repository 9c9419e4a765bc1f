//! Lists of rows by their gaps, as indexes of version 2 have them: read, and written no more.
//!
//! A list is a byte k, then a bit stream, from the least significant bit of a byte on: of each gap to the row before, its
//! quotient by 2^k in unary (zeros, then a one) and its low k bits (Rice & Plaunt, Adaptive variable-length coding for
//! efficient compression of spacecraft television data, IEEE Trans. Commun. 19, 1971).

use super::lists::MAX_LOW_BITS;

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
pub(super) mod tests {
    use super::super::lists::{longest, push};
    use super::*;
    use proptest::prelude::*;

    /// The low bits of a gap that make the shortest list of `count` among `rows`, about: log2 of ln 2 times the mean gap.
    fn low_bits(rows: u64, count: u64) -> u32 {
        let mean = rows.saturating_sub(count) / count.max(1);
        ((mean * 45_426) >> 16).max(1).ilog2().min(MAX_LOW_BITS)
    }

    /// Appends the list of these rows, which ascend, of a region of `rows`.
    pub(in crate::bitmap) fn put(places: &[u32], rows: u64, out: &mut Vec<u8>) {
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
}
