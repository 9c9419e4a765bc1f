//! The rows that a replica gives, in the order of the source, into which several threads put them.
//!
//! Parts of the rows are cut by the upper digit of their positions as they are read, each by one thread. What has the same
//! digit in all parts is then sorted by one thread, in a piece of memory that a cache holds.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use sieva_types::{Buffer, Result};

use crate::exec::access_path::Replica;
use crate::exec::access_path::replica_parts::{Part, shared_out};
use crate::exec::order::radix::{self, Packing};
use crate::exec::pool::fold;
use crate::exec::threads::lock;
use crate::mask::Mask;

/// About so many rows have the same upper digit; and bits of that digit at most.
const SHARE_BITS: u32 = 9;
const MOST_DIGIT_BITS: u32 = 11;

/// Where rows lie in the source, ascending, and for each its place among the rows in the order of the replica.
pub enum SourceOrder {
    /// Both in a word.
    Packed(Packing, Buffer),
    /// Where they do not fit one: positions and places.
    Apart(Vec<u64>, Vec<u32>),
}

impl SourceOrder {
    /// That of the chosen rows of a replica's parts.
    ///
    /// # Errors
    /// `corrupt-index`, `io-error`, `cancelled`.
    pub fn of(
        replica: &Replica,
        parts: &[Part],
        kept: Option<&Mask>,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self> {
        let len: usize = parts.iter().map(|p| p.chosen).sum();
        if let Some(packing) = Packing::of(replica.replica.rows(), len as u64) {
            return Ok(Self::Packed(packing, ranked(replica, parts, kept, packing, threads, cancel)?));
        }
        let mut pairs = Vec::with_capacity(len);
        for_each_position(replica, parts, kept, |position| pairs.push((position, pairs.len() as u32)))?;
        pairs.sort_unstable();
        let (positions, places) = pairs.into_iter().unzip();
        Ok(Self::Apart(positions, places))
    }

    /// The memory that it takes, where that can be used again; nothing is left of it.
    pub fn take_memory(&mut self) -> Option<Buffer> {
        match std::mem::replace(self, Self::Apart(Vec::new(), Vec::new())) {
            Self::Packed(_, words) => Some(words),
            Self::Apart(..) => None,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Packed(_, words) => words.as_slice::<u64>().len(),
            Self::Apart(positions, _) => positions.len(),
        }
    }

    /// The position of a row.
    pub fn position(&self, row: usize) -> u64 {
        match self {
            Self::Packed(packing, words) => packing.position(words.as_slice::<u64>()[row]),
            Self::Apart(positions, _) => positions[row],
        }
    }

    /// The first row at a position or behind it.
    pub fn first_at_least(&self, position: u64) -> usize {
        match self {
            Self::Packed(packing, words) => {
                words.as_slice::<u64>().partition_point(|&w| packing.position(w) < position)
            }
            Self::Apart(positions, _) => positions.partition_point(|&p| p < position),
        }
    }

    /// Copies the elements of `N` bytes of some rows, which stand in `values` in the order of the replica.
    pub fn take<const N: usize>(&self, values: &[u8], rows: Range<usize>, out: &mut [u8]) {
        let (values, out) = (values.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
        match self {
            Self::Packed(packing, words) => {
                let words = &words.as_slice::<u64>()[rows];
                out.iter_mut().zip(words).for_each(|(slot, &w)| *slot = values[packing.place(w)]);
            }
            Self::Apart(_, places) => {
                out.iter_mut().zip(&places[rows]).for_each(|(slot, &p)| *slot = values[p as usize]);
            }
        }
    }
}

/// Calls `with` for the position in the source of each chosen row, in the order of the replica.
pub fn for_each_position(
    replica: &Replica,
    parts: &[Part],
    kept: Option<&Mask>,
    mut with: impl FnMut(u64),
) -> Result<()> {
    let mut positions = Vec::new();
    for part in parts {
        replica.replica.positions(part.rows.clone(), &mut positions)?;
        part.for_each_chosen(kept, |row| with(positions[row]));
    }
    Ok(())
}

/// The words of a part, those with the same upper digit side by side: `starts[d]` is where those of digit `d` begin.
struct Cut<'a> {
    words: &'a [u64],
    starts: Vec<u32>,
}

/// The chosen rows as words of `packing`, ascending.
fn ranked(
    replica: &Replica,
    parts: &[Part],
    kept: Option<&Mask>,
    packing: Packing,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Buffer> {
    let len: usize = parts.iter().map(|p| p.chosen).sum();
    let digit = Digit::of(len, packing);
    let mut words = replica.spare.take(8 * len);
    let starts = {
        let outs = shared_out(words.as_mut_slice::<u64>(), parts.iter().map(|p| p.chosen));
        let starts: Vec<Mutex<Vec<u32>>> = parts.iter().map(|_| Mutex::default()).collect();
        fold(parts.len(), threads, cancel, <(Vec<u64>, Vec<u64>)>::default, |(positions, words), i| {
            let part = &parts[i];
            replica.replica.positions(part.rows.clone(), positions)?;
            let mut place = part.chosen_before as u64;
            words.clear();
            part.for_each_chosen(kept, |row| {
                words.push(packing.word(positions[row], place));
                place += 1;
            });
            *lock(&starts[i]) = digit.cut(words, &mut lock(&outs[i]));
            Ok(())
        })?;
        starts
    };
    let mut cuts = Vec::with_capacity(parts.len());
    for (part, starts) in parts.iter().zip(starts) {
        let own = part.chosen_before..part.chosen_before + part.chosen;
        let starts = starts.into_inner().unwrap_or_else(PoisonError::into_inner);
        cuts.push(Cut { words: &words.as_slice()[own], starts });
    }
    let mut sorted = replica.spare.take(8 * len);
    let groups = digit.groups(&cuts, len / (4 * threads.max(1)));
    let outs = shared_out(sorted.as_mut_slice::<u64>(), groups.iter().map(|(_, n)| *n));
    fold(groups.len(), threads, cancel, Vec::new, |scratch, g| {
        let mut out = lock(&outs[g]);
        let mut at = 0;
        for d in groups[g].0.clone() {
            let from = at;
            for cut in &cuts {
                let run = &cut.words[cut.starts[d] as usize..cut.starts[d + 1] as usize];
                out[at..at + run.len()].copy_from_slice(run);
                at += run.len();
            }
            radix::sort(&mut out[from..at], scratch, packing.place_bits, digit.shift);
        }
        Ok(())
    })?;
    drop(outs);
    drop(cuts);
    replica.spare.give(words);
    Ok(sorted)
}

/// The upper digit of positions.
struct Digit {
    /// It is what is left of a word shifted by this.
    shift: u32,
    /// Numbers that it has.
    values: usize,
}

impl Digit {
    fn of(len: usize, packing: Packing) -> Self {
        let wanted = len.max(1).ilog2().saturating_sub(SHARE_BITS);
        let bits = wanted.min(MOST_DIGIT_BITS).min(packing.position_bits);
        Self { shift: packing.place_bits + packing.position_bits - bits, values: 1 << bits }
    }

    fn of_word(&self, word: u64) -> usize {
        word.checked_shr(self.shift).unwrap_or(0) as usize
    }

    /// Puts words with the same digit side by side, and returns where those of each digit begin.
    fn cut(&self, words: &[u64], out: &mut [u64]) -> Vec<u32> {
        let mut starts = vec![0_u32; self.values + 1];
        words.iter().for_each(|&w| starts[self.of_word(w) + 1] += 1);
        for d in 0..self.values {
            starts[d + 1] += starts[d];
        }
        let mut next = starts.clone();
        for &word in words {
            let slot = &mut next[self.of_word(word)];
            out[*slot as usize] = word;
            *slot += 1;
        }
        starts
    }

    /// Digits that one thread sorts, with how many words they have: about `share` or more.
    fn groups(&self, cuts: &[Cut<'_>], share: usize) -> Vec<(Range<usize>, usize)> {
        let (mut groups, mut first, mut n) = (Vec::new(), 0, 0);
        for d in 0..self.values {
            n += cuts.iter().map(|c| (c.starts[d + 1] - c.starts[d]) as usize).sum::<usize>();
            if n > share || d + 1 == self.values {
                groups.push((first..d + 1, n));
                (first, n) = (d + 1, 0);
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What both ways of keeping the order say of rows at these positions, in the order of a replica.
    fn orders(positions: &[u64], limit: u64) -> [SourceOrder; 2] {
        let packing = Packing::of(limit, positions.len() as u64).unwrap();
        let mut pairs: Vec<(u64, u32)> = positions.iter().copied().zip(0..).collect();
        pairs.sort_unstable();
        let mut words = Buffer::zeros(8 * pairs.len());
        for (word, &(p, i)) in words.as_mut_slice().iter_mut().zip(&pairs) {
            *word = packing.word(p, i.into());
        }
        let (positions, places) = pairs.into_iter().unzip();
        [SourceOrder::Packed(packing, words), SourceOrder::Apart(positions, places)]
    }

    #[test]
    fn both_ways_of_keeping_an_order_agree() {
        let values: Vec<u8> = [7_u16, 8, 9, 10].iter().flat_map(|v| v.to_ne_bytes()).collect();
        for mut order in orders(&[40, 3, 99, 0], 100) {
            assert_eq!(order.len(), 4);
            assert_eq!((0..4).map(|i| order.position(i)).collect::<Vec<_>>(), [0, 3, 40, 99]);
            assert_eq!([0, 1, 41, 100].map(|p| order.first_at_least(p)), [0, 1, 3, 4]);
            let mut out = [0; 6];
            order.take::<2>(&values, 1..4, &mut out);
            assert_eq!(
                out.as_chunks::<2>().0.iter().map(|b| u16::from_ne_bytes(*b)).collect::<Vec<_>>(),
                [8, 7, 9]
            );
            order.take_memory();
            assert_eq!(order.len(), 0);
        }
    }

    proptest! {
        #[test]
        fn words_are_cut_by_their_digit_and_shared_out(
            positions in prop::collection::vec(0_u64..100_000, 0..3000),
            at in 0_usize..3000,
            share in 0_usize..2000,
        ) {
            let packing = Packing::of(100_000, positions.len() as u64).unwrap();
            let words: Vec<u64> = positions.iter().zip(0..).map(|(&p, i)| packing.word(p, i)).collect();
            let digit = Digit::of(words.len(), packing);
            let (mut outs, at) = (words.clone(), at.min(words.len()));
            let (first, second) = outs.split_at_mut(at);
            let starts = [digit.cut(&words[..at], first), digit.cut(&words[at..], second)];
            let cuts = [
                Cut { words: first, starts: starts[0].clone() },
                Cut { words: second, starts: starts[1].clone() },
            ];
            for cut in &cuts {
                prop_assert_eq!(cut.starts.len(), digit.values + 1);
                prop_assert!(cut.words.is_sorted_by_key(|&w| digit.of_word(w)));
                prop_assert_eq!(cut.starts[digit.values] as usize, cut.words.len());
            }
            let groups = digit.groups(&cuts, share);
            prop_assert_eq!(groups.iter().map(|(_, n)| n).sum::<usize>(), words.len());
            prop_assert_eq!(groups.last().unwrap().0.end, digit.values);
            prop_assert!(groups.windows(2).all(|w| w[0].0.end == w[1].0.start));
        }
    }
}
