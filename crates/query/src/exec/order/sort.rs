//! All rows in the order of their keys: in memory, or in runs on disk where they do not fit.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use sieva_types::Result;

use super::encoded::Encoded;
use super::merge::{Next, merge};
use super::positions::PositionList;
use super::runs::Cursor;
use super::spill::SpillFile;
use crate::exec::ExecOptions;
use crate::exec::pool::{check, fold};

/// Rows that are sorted between two looks at whether the query was stopped.
const PIECE: usize = 1 << 20;
/// Rows that are put together between two looks.
const MERGED: usize = 1 << 16;
/// Memory that runs have however low the limit is: less would make too many of them.
const LEAST_RUN: u64 = 4 << 20;
/// Bytes of a run that are read at once, at least and at most.
const READ: Range<u64> = 1 << 12..1 << 20;

/// The first bytes of a row's keys, and its number.
type Entry = (u64, u64);

/// Rows that are collected and then put in order, equal ones in the order in which they came.
pub struct Sorter {
    options: ExecOptions,
    /// Bytes that it may hold.
    room: u64,
    /// What is sorted, for messages.
    what: String,
    width: Option<usize>,
    keys: Encoded,
    positions: Vec<u64>,
    runs: Option<(SpillFile, Vec<Range<u64>>)>,
}

impl Sorter {
    /// Nothing yet, of keys of `width` bytes; `room` bytes may be held.
    pub fn new(options: &ExecOptions, width: Option<usize>, room: u64, what: String) -> Self {
        let (options, keys) = (options.clone(), Encoded::new(width));
        Self { options, room, what, width, keys, positions: Vec::new(), runs: None }
    }

    /// Takes in rows whose positions are greater than those of all before them.
    ///
    /// # Errors
    /// `memory-limit` where they do not fit, on disk neither; `io-error`, `cancelled`.
    pub fn add(&mut self, keys: &Encoded, positions: &[u64]) -> Result<()> {
        let need = needed(
            (self.keys.used_bytes() + keys.used_bytes()) as u64,
            (self.positions.len() + positions.len()) as u64,
        );
        if self.options.spill == 0 {
            self.options.room().check(need, &self.what).map_err(|e| e.hint(HINT))?;
        } else if need > self.room.max(LEAST_RUN) && !self.positions.is_empty() {
            self.spill()?;
        }
        self.keys.append(keys);
        make_room(&mut self.positions, positions.len());
        self.positions.extend_from_slice(positions);
        Ok(())
    }

    /// The positions of the first `most` rows, in order.
    ///
    /// # Errors
    /// As [`Sorter::add`].
    pub fn finish(self, most: u64) -> Result<PositionList> {
        let mut n = 0;
        if self.runs.is_none() {
            let mut positions =
                Vec::with_capacity(self.positions.len().min(usize::try_from(most).unwrap_or(usize::MAX)));
            self.each(|_, position| {
                if n < most {
                    positions.push(position);
                    n += 1;
                }
                Ok(n < most)
            })?;
            return Ok(PositionList::Held(positions));
        }
        let spilled = self.runs.as_ref().map_or(0, |(file, _)| file.len()) + self.positions.len() as u64 * 8;
        let mut out = SpillFile::new(
            &std::env::temp_dir(),
            self.options.spill.saturating_sub(spilled + self.keys.used_bytes() as u64),
        )?;
        self.each(|_, position| {
            if n < most {
                out.append(&position.to_le_bytes())?;
                n += 1;
            }
            Ok(n < most)
        })?;
        PositionList::spilled(out, n)
    }

    /// Calls `take` with keys and position of each row, in order, for as long as it wants more.
    ///
    /// # Errors
    /// As [`Sorter::add`]; those of `take`.
    pub fn each(mut self, mut take: impl FnMut(&[u8], u64) -> Result<bool>) -> Result<()> {
        if self.runs.is_none() {
            return self.in_order(|i| take(self.keys.row(i), self.positions[i]));
        }
        if !self.positions.is_empty() {
            self.spill()?;
        }
        let Some((file, runs)) = &self.runs else { return Ok(()) };
        let share = self.room.max(LEAST_RUN) / runs.len().max(1) as u64;
        let size = share.clamp(READ.start, READ.end) as usize;
        let mut cursors = Vec::with_capacity(runs.len());
        for run in runs {
            let mut cursor = Cursor::new(file, run.clone(), self.width, size);
            if cursor.advance()? {
                cursors.push(cursor);
            }
        }
        let mut n = 0_usize;
        merge(
            cursors,
            |a, b| a.compare(b).is_lt(),
            |cursor| {
                if n.is_multiple_of(MERGED) {
                    check(&self.options.cancel)?;
                }
                n += 1;
                let wants_more = take(cursor.keys(), cursor.position())?;
                Ok(match wants_more {
                    false => Next::Stop,
                    true if cursor.advance()? => Next::More,
                    true => Next::End,
                })
            },
        )
    }

    /// Writes what is held as a run.
    fn spill(&mut self) -> Result<()> {
        let (mut file, mut runs) = match self.runs.take() {
            Some(known) => known,
            None => (SpillFile::new(&std::env::temp_dir(), self.options.spill)?, Vec::new()),
        };
        let start = file.len();
        self.in_order(|i| {
            let row = self.keys.row(i);
            if self.width.is_none() {
                file.append(&(row.len() as u64).to_le_bytes())?;
            }
            file.append(row)?;
            file.append(&self.positions[i].to_le_bytes())?;
            Ok(true)
        })?;
        file.flush()?;
        runs.push(start..file.len());
        self.runs = Some((file, runs));
        (self.keys, self.positions) = (Encoded::new(self.width), Vec::new());
        Ok(())
    }

    /// Calls `take` with the number of each row that is held, in order, for as long as it wants more.
    fn in_order(&self, mut take: impl FnMut(usize) -> Result<bool>) -> Result<()> {
        let (options, n) = (&self.options, self.positions.len());
        let mut entries: Vec<Entry> = (0..n).map(|i| (prefix(self.keys.row(i)), i as u64)).collect();
        let pieces: Vec<_> = entries.chunks_mut(PIECE).map(Mutex::new).collect();
        fold(
            pieces.len(),
            options.threads,
            &options.cancel,
            || (),
            |(), i| {
                let mut piece = pieces[i].lock().unwrap_or_else(PoisonError::into_inner);
                piece.sort_unstable_by(|a, b| self.compare(*a, *b));
                Ok(())
            },
        )?;
        drop(pieces);
        let mut taken = 0_usize;
        let heads: Vec<&[Entry]> = entries.chunks(PIECE).collect();
        merge(
            heads,
            |a, b| self.compare(a[0], b[0]).is_lt(),
            |head| {
                if taken.is_multiple_of(MERGED) {
                    check(&options.cancel)?;
                }
                taken += 1;
                let wants_more = take(head[0].1 as usize)?;
                *head = &head[1..];
                Ok(if !wants_more {
                    Next::Stop
                } else if head.is_empty() {
                    Next::End
                } else {
                    Next::More
                })
            },
        )
    }

    fn compare(&self, a: Entry, b: Entry) -> Ordering {
        a.0.cmp(&b.0).then_with(|| {
            let (x, y) = (a.1 as usize, b.1 as usize);
            self.keys.row(x).cmp(self.keys.row(y)).then(x.cmp(&y))
        })
    }
}

/// What to do where sorting may not spill as much as it takes.
pub const HINT: &str = "ask for less, or raise the limit of memory (--memory, memory= in Python) or of what is spilled (spill= in Python)";

/// Bytes of so many rows whose keys have so many bytes: with their entries, the positions in order, and room for more.
pub fn needed(keys: u64, rows: u64) -> u64 {
    let each = 9 + size_of::<Entry>() as u64 + 8;
    (keys + keys / 8).saturating_add(rows.saturating_mul(each))
}

/// The first eight bytes.
fn prefix(row: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = row.len().min(8);
    bytes[..n].copy_from_slice(&row[..n]);
    u64::from_be_bytes(bytes)
}

/// Room for more, an eighth beyond what is needed: what is left free counts as memory.
pub fn make_room<T>(all: &mut Vec<T>, more: usize) {
    if all.len() + more > all.capacity() {
        all.reserve_exact(more + (all.len() + more) / 8);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(texts: &[Vec<u8>], step: usize, options: &ExecOptions, most: u64) -> Result<Vec<u64>> {
        let width = texts.iter().all(|t| t.len() == 3).then_some(3);
        let mut sorter = Sorter::new(options, width, options.room().bytes, "rows".into());
        for (k, part) in texts.chunks(step).enumerate() {
            let mut keys = Encoded::new(width);
            part.iter().for_each(|t| keys.push(t));
            let first = (k * step) as u64;
            sorter.add(&keys, &(first..first + part.len() as u64).collect::<Vec<_>>())?;
            if options.spill > 0 && k % 3 == 1 {
                sorter.spill()?;
            }
        }
        let list = sorter.finish(most)?;
        list.read(0..list.len())
    }

    proptest! {
        #[test]
        fn rows_are_sorted_in_memory_and_on_disk(
            texts in prop_oneof![
                prop::collection::vec(prop::collection::vec(0..3_u8, 3), 1..200),
                prop::collection::vec(prop::collection::vec(0..3_u8, 0..12), 1..200),
            ],
            step in 1..60_usize, most in 0..250_u64,
        ) {
            let mut want: Vec<u64> = (0..texts.len() as u64).collect();
            want.sort_by_key(|&i| &texts[i as usize]);
            want.truncate(most as usize);
            for spill in [0, 4 << 20] {
                let options = ExecOptions { spill, threads: 2, ..ExecOptions::default() };
                prop_assert_eq!(&sorted(&texts, step, &options, most).unwrap(), &want);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let texts = vec![vec![0; 1000]; 2000];
        let options = ExecOptions { spill: 0, memory: 1 << 20, ..ExecOptions::default() };
        let e = sorted(&texts, 100, &options, 9).unwrap_err();
        assert!(e.message().starts_with("rows would take"), "{e}");
        let options = ExecOptions { spill: 1 << 20, ..options };
        let e = sorted(&texts, 100, &options, 9).unwrap_err();
        assert!(e.message().contains("spilled"), "{e}");
        let options = ExecOptions { spill: 4 << 20, ..options };
        assert_eq!(sorted(&texts, 100, &options, 3).unwrap(), [0, 1, 2]);
        options.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(sorted(&texts, 100, &options, 9).is_err());
    }
}
