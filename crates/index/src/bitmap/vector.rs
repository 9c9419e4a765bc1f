//! The bit vector of a node, in one of three forms: the shortest, but plain bits unless another form saves a
//! third: a place takes as long to decode as dozens of plain bytes.
//!
//! | tag | payload |
//! |---|---|
//! | 0 | the bits, eight to a byte from the least significant on; the last byte filled with zeros |
//! | 1 | bytes n (varint), then the places where the bits change (before the first bit there is a 0) |
//! | 2 | bytes n (varint), then the places of the ones |
//! | 3 | bytes n (varint), then the places of the zeros |
//!
//! Places are the gaps between them: the first itself, then the number of bits skipped, as varints. Of
//! vectors of at most [`UNTAGGED`] bits there are the bits only. Runs are for fields that are smooth along the
//! rows, places for bins that hold most rows or hardly any.

use super::varint;

/// Vectors of so many bits have no tag.
pub(super) const UNTAGGED: u64 = 64;

const PLAIN: u8 = 0;
const RUNS: u8 = 1;
const ONES: u8 = 2;
const ZEROS: u8 = 3;

/// Appends the vector of `rows` bits in `words` (none set past the end), `ones` of them set.
pub(super) fn encode(words: &[u64], rows: usize, ones: usize, gaps: &mut Vec<u8>, out: &mut Vec<u8>) {
    let bytes = rows.div_ceil(8);
    if rows as u64 > UNTAGGED {
        let changes = count_changes(words, rows);
        let (tag, places) = [(RUNS, changes), (ONES, ones), (ZEROS, rows - ones)]
            .into_iter()
            .min_by_key(|form| form.1)
            .unwrap_or((RUNS, changes));
        // A place takes a byte at least.
        let worth = bytes / 3 * 2;
        if places < worth {
            gaps.clear();
            put_places(words, rows, tag, gaps);
            if gaps.len() < worth {
                out.push(tag);
                varint::put(gaps.len() as u64, out);
                out.extend_from_slice(gaps);
                return;
            }
        }
        out.push(PLAIN);
    }
    let start = out.len();
    out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    out.truncate(start + bytes);
}

/// Bits that differ from the one before them.
fn count_changes(words: &[u64], rows: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        #[target_feature(enable = "popcnt")]
        fn counted(words: &[u64], rows: usize) -> usize {
            changes(words, rows)
        }
        // SAFETY: the feature was just detected.
        return unsafe { counted(words, rows) };
    }
    changes(words, rows)
}

#[inline(always)]
fn changes(words: &[u64], rows: usize) -> usize {
    let mut last = 0;
    let mut count = 0;
    for &word in words {
        count += (word ^ (word << 1 | last)).count_ones() as usize;
        last = word >> 63;
    }
    // A one at the end, if bits follow in its word, was taken for a change back to 0.
    let end = rows % 64;
    count - words.last().map_or(0, |w| usize::from(end > 0 && w >> (end - 1) & 1 == 1))
}

fn put_places(words: &[u64], rows: usize, tag: u8, gaps: &mut Vec<u8>) {
    let (mut last, mut next) = (0, 0);
    for (i, &word) in words.iter().enumerate() {
        let mut marks = match tag {
            RUNS => word ^ (word << 1 | last),
            ONES => word,
            _ => !word,
        };
        if i + 1 == words.len() {
            marks &= last_mask(rows);
        }
        last = word >> 63;
        while marks != 0 {
            let place = i * 64 + marks.trailing_zeros() as usize;
            varint::put((place - next) as u64, gaps);
            next = place + 1;
            marks &= marks - 1;
        }
    }
}

/// The bits of the last word of so many rows.
pub(super) fn last_mask(rows: usize) -> u64 {
    u64::MAX >> ((64 - rows % 64) % 64)
}

/// Takes the stored form of a vector of `rows` bits from the front of `bytes`; `None` where they end early.
pub(super) fn take<'a>(bytes: &mut &'a [u8], rows: u64) -> Option<&'a [u8]> {
    let all = *bytes;
    let length = if rows > UNTAGGED {
        let (&tag, mut rest) = all.split_first()?;
        let payload = if tag == PLAIN { rows.div_ceil(8) } else { varint::take(&mut rest)? };
        ((all.len() - rest.len()) as u64).checked_add(payload)?
    } else {
        rows.div_ceil(8)
    };
    let (own, rest) = all.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(own)
}

/// The vector of `rows` bits that [`take`] cut out, a word for each 64, bits past the end 0. `None` where the
/// bytes are no such vector, or one with another number of ones than `ones`.
pub(super) fn decode(stored: &[u8], rows: usize, ones: u64, words: &mut Vec<u64>) -> Option<()> {
    words.clear();
    let (tag, payload) = if rows as u64 > UNTAGGED {
        let (&tag, mut rest) = stored.split_first()?;
        if tag != PLAIN {
            varint::take(&mut rest)?;
        }
        (tag, rest)
    } else {
        (PLAIN, stored)
    };
    if tag == PLAIN {
        if payload.len() != rows.div_ceil(8) {
            return None;
        }
        let (whole, tail) = payload.as_chunks::<8>();
        words.extend(whole.iter().map(|b| u64::from_le_bytes(*b)));
        if !tail.is_empty() {
            let mut last = [0; 8];
            last[..tail.len()].copy_from_slice(tail);
            words.push(u64::from_le_bytes(last));
        }
    } else if tag > ZEROS {
        return None;
    } else {
        words.resize(rows.div_ceil(64), if tag == ZEROS { u64::MAX } else { 0 });
        take_places(payload, rows, tag, words)?;
    }
    if let Some(last) = words.last_mut() {
        *last &= last_mask(rows);
    }
    (count_ones(words) == ones).then_some(())
}

fn take_places(payload: &[u8], rows: usize, tag: u8, words: &mut [u64]) -> Option<()> {
    match tag {
        ONES => each_place(payload, rows, |place| words[place / 64] |= 1 << (place % 64)),
        ZEROS => each_place(payload, rows, |place| words[place / 64] &= !(1 << (place % 64))),
        _ => {
            let mut start = None;
            each_place(payload, rows, |place| match start.take() {
                Some(from) => fill(words, from, place),
                None => start = Some(place),
            })?;
            if let Some(from) = start {
                fill(words, from, rows);
            }
            Some(())
        }
    }
}

#[inline(always)]
fn each_place(mut payload: &[u8], rows: usize, mut f: impl FnMut(usize)) -> Option<()> {
    let mut next = 0_u64;
    while !payload.is_empty() {
        let place = next.checked_add(varint::take(&mut payload)?).filter(|&p| p < rows as u64)?;
        next = place + 1;
        f(place as usize);
    }
    Some(())
}

/// Sets the bits `from..to`, which is not empty.
fn fill(words: &mut [u64], from: usize, to: usize) {
    let (first, last) = (from / 64, (to - 1) / 64);
    let (head, tail) = (u64::MAX << (from % 64), last_mask(to));
    if first == last {
        words[first] |= head & tail;
        return;
    }
    words[first] |= head;
    words[first + 1..last].fill(u64::MAX);
    words[last] |= tail;
}

/// Number of ones.
pub(super) fn count_ones(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vpopcntdq") && is_x86_feature_detected!("avx512f") {
            #[target_feature(enable = "avx512f,avx512vpopcntdq")]
            fn wide(words: &[u64]) -> u64 {
                words.iter().map(|w| u64::from(w.count_ones())).sum()
            }
            // SAFETY: the features were just detected.
            return unsafe { wide(words) };
        }
        if is_x86_feature_detected!("popcnt") {
            #[target_feature(enable = "popcnt")]
            fn counted(words: &[u64]) -> u64 {
                words.iter().map(|w| u64::from(w.count_ones())).sum()
            }
            // SAFETY: the feature was just detected.
            return unsafe { counted(words) };
        }
    }
    words.iter().map(|w| u64::from(w.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(bits: &[bool]) -> Vec<u64> {
        let mut words = vec![0; bits.len().div_ceil(64)];
        bits.iter().enumerate().for_each(|(i, &b)| words[i / 64] |= u64::from(b) << (i % 64));
        words
    }

    fn check(bits: &[bool]) -> u8 {
        let words = pack(bits);
        let ones = bits.iter().filter(|&&b| b).count();
        let (mut gaps, mut stored, mut back) = (Vec::new(), Vec::new(), Vec::new());
        encode(&words, bits.len(), ones, &mut gaps, &mut stored);
        assert!(stored.len() <= bits.len().div_ceil(8) + 1);
        stored.push(7); // what follows is not touched
        let mut rest = &stored[..];
        let own = take(&mut rest, bits.len() as u64).unwrap();
        assert_eq!(rest, [7]);
        decode(own, bits.len(), ones as u64, &mut back).unwrap();
        assert_eq!(back, words);
        assert_eq!(decode(own, bits.len(), ones as u64 + 1, &mut back), None);
        stored[0]
    }

    #[test]
    fn each_form_is_used() {
        assert_eq!(check(&(0..1000).map(|i| i / 200 % 2 == 1).collect::<Vec<_>>()), RUNS);
        assert_eq!(check(&(0..1000).map(|i| i / 200 % 2 == 0).collect::<Vec<_>>()), RUNS);
        assert_eq!(check(&(0..1000).map(|i| i % 50 == 1).collect::<Vec<_>>()), ONES);
        assert_eq!(check(&(0..1000).map(|i| i % 50 != 1).collect::<Vec<_>>()), ZEROS);
        assert_eq!(check(&(0..1000).map(|i| i * i % 7 < 3).collect::<Vec<_>>()), PLAIN);
    }

    proptest! {
        #[test]
        fn vectors_come_back(runs in proptest::collection::vec(1..90_usize, 0..30), sparse in proptest::collection::vec(0..40_u8, 0..700)) {
            check(&runs.iter().enumerate().flat_map(|(i, &n)| vec![i % 2 == 1; n]).collect::<Vec<_>>());
            for one in [0, 1, 20, 39] {
                check(&sparse.iter().map(|&b| b <= one).collect::<Vec<_>>());
            }
        }

        #[test]
        fn foreign_bytes_are_refused_or_read(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), tag in 0..5_u8, rows in 0..300_usize, ones in 0..300_u64) {
            if let Some(first) = bytes.first_mut() {
                *first = tag;
            }
            let mut words = Vec::new();
            if decode(&bytes, rows, ones, &mut words).is_some() {
                prop_assert_eq!(words.len(), rows.div_ceil(64));
                prop_assert_eq!(count_ones(&words), ones);
            }
            let mut rest = &bytes[..];
            let _ = take(&mut rest, rows as u64);
        }
    }
}
