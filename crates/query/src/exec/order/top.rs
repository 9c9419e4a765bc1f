//! The first rows of an order, of those that were seen.

use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_types::Result;

use super::encoded::Encoded;
use super::sort::make_room;
use crate::exec::pool::check;

/// Rows that are kept beyond those that are wanted before the others are dropped: at least so many.
const SPARE: usize = 1 << 12;
/// Bytes of a row's number while rows are dropped.
pub const INDEX_BYTES: u64 = size_of::<usize>() as u64;

/// A row of which it is known that as many as are wanted come before it, or are it.
#[derive(Debug)]
pub struct RowBound {
    /// Its keys.
    pub keys: Vec<u8>,
    /// Its position.
    pub position: u64,
}

impl RowBound {
    fn compare(&self, keys: &[u8], position: u64) -> Ordering {
        keys.cmp(&self.keys).then(position.cmp(&self.position))
    }
}

/// The least bound that any thread knows.
#[derive(Debug, Default)]
pub struct SharedBound(Mutex<Option<Arc<RowBound>>>);

impl SharedBound {
    /// The bound.
    pub fn get(&self) -> Option<Arc<RowBound>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The first rows of those that were seen, equal ones by position.
#[derive(Debug)]
pub struct Top {
    /// How many are wanted.
    pub most: usize,
    width: Option<usize>,
    keys: Encoded,
    positions: Vec<u64>,
    bound: Option<Arc<RowBound>>,
}

impl Top {
    /// None seen yet; `most` are wanted, whose keys have `width` bytes.
    pub fn new(most: usize, width: Option<usize>) -> Self {
        Self { most, width, keys: Encoded::new(width), positions: Vec::new(), bound: None }
    }

    /// One of the same kind that has seen nothing.
    pub fn empty(&self) -> Self {
        Self::new(self.most, self.width)
    }

    /// Bytes that are held at most where so many rows are wanted, whose keys have so many bytes: with room for more, and while
    /// others are dropped.
    pub fn bytes_kept(most: u64, keys: u64) -> u64 {
        let full = most.saturating_add((most / 2).max(SPARE as u64));
        let held = full.saturating_add(full / 8).saturating_mul(keys + 8 + INDEX_BYTES);
        held.saturating_add(most.saturating_mul(keys + 8))
    }

    fn spare(most: usize) -> usize {
        SPARE.max(most / 2)
    }

    /// Bytes of a row's keys.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// A row behind which none is among the first.
    pub fn bound(&self) -> Option<&Arc<RowBound>> {
        self.bound.as_ref()
    }

    /// Takes over a bound that another thread found.
    pub fn tighten(&mut self, shared: &SharedBound) {
        if let Some(other) = shared.get()
            && self.bound.as_ref().is_none_or(|b| b.compare(&other.keys, other.position).is_lt())
        {
            self.bound = Some(other);
        }
    }

    /// Tells the others of its bound.
    pub fn share(&self, shared: &SharedBound) {
        let Some(mine) = &self.bound else { return };
        let mut known = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|b| b.compare(&mine.keys, mine.position).is_lt()) {
            *known = Some(Arc::clone(mine));
        }
    }

    /// Takes in rows.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn add(&mut self, keys: &Encoded, positions: &[u64], cancel: &AtomicBool) -> Result<()> {
        let full = self.most.saturating_add(Self::spare(self.most));
        for (i, &position) in positions.iter().enumerate() {
            let row = keys.row(i);
            // The bound itself may be another thread's row, which comes when what was kept is put together.
            if self.bound.as_ref().is_some_and(|b| b.compare(row, position).is_gt()) {
                continue;
            }
            self.keys.push(row);
            make_room(&mut self.positions, 1);
            self.positions.push(position);
            if self.positions.len() >= full {
                check(cancel)?;
                self.cut();
            }
        }
        // While there is no bound, one is worth more than the time that it takes.
        let (n, more) = (self.positions.len(), if self.bound.is_some() { (self.most / 2).max(1) } else { 0 });
        if n > 0 && n >= self.most.saturating_add(more) {
            self.cut();
        }
        Ok(())
    }

    /// Takes in what another one kept.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn take_in(&mut self, other: Self, cancel: &AtomicBool) -> Result<()> {
        if self.positions.is_empty() {
            *self = other;
            return Ok(());
        }
        self.add(&other.keys, &other.positions, cancel)
    }

    /// Keeps as many as are wanted; the last of them is a bound.
    fn cut(&mut self) {
        if self.positions.len() < self.most.max(1) || self.most == 0 {
            return;
        }
        let mut order: Vec<usize> = (0..self.positions.len()).collect();
        let (_, last, _) = order.select_nth_unstable_by(self.most - 1, |&a, &b| self.compare(a, b));
        let bound = RowBound { keys: self.keys.row(*last).to_vec(), position: self.positions[*last] };
        order.truncate(self.most);
        let mut keys = Encoded::new(self.width);
        order.iter().for_each(|&i| keys.push(self.keys.row(i)));
        (self.positions, self.keys) = (order.iter().map(|&i| self.positions[i]).collect(), keys);
        if self.bound.as_ref().is_none_or(|b| b.compare(&bound.keys, bound.position).is_lt()) {
            self.bound = Some(Arc::new(bound));
        }
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.keys.row(a).cmp(self.keys.row(b)).then(self.positions[a].cmp(&self.positions[b]))
    }

    /// The positions of the rows, in order.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn finish(mut self, cancel: &AtomicBool) -> Result<Vec<u64>> {
        check(cancel)?;
        self.cut();
        let mut order: Vec<usize> = (0..self.positions.len()).collect();
        order.sort_unstable_by(|&a, &b| self.compare(a, b));
        order.truncate(self.most);
        Ok(order.into_iter().map(|i| self.positions[i]).collect())
    }

    /// Bytes that it takes, those of dropping rows included.
    pub fn memory_bytes(&self) -> u64 {
        let each = size_of::<u64>() as u64 + INDEX_BYTES;
        self.keys.memory_bytes() as u64 + each * self.positions.capacity() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(values: &[u8]) -> Encoded {
        let mut keys = Encoded::new(Some(1));
        values.iter().for_each(|&v| keys.push(&[v]));
        keys
    }

    #[test]
    fn a_bound_that_another_thread_holds_is_not_lost() {
        let (cancel, shared) = (AtomicBool::new(false), SharedBound::default());
        let mut tops = [Top::new(1, Some(1)), Top::new(1, Some(1))];
        for (top, position) in tops.iter_mut().zip([12, 10]) {
            top.add(&encoded(&[0]), &[position], &cancel).unwrap();
            top.share(&shared);
        }
        tops[0].tighten(&shared);
        let mut all = Top::new(1, Some(1));
        tops.into_iter().for_each(|top| all.take_in(top, &cancel).unwrap());
        assert_eq!(all.finish(&cancel).unwrap(), [10]);
    }

    proptest! {
        #[test]
        fn the_first_rows_are_those_of_the_whole_order(
            values in prop::collection::vec(0..6_u8, 0..300), most in 0..40_usize, threads in 1..4_usize, step in 1..50_usize,
        ) {
            let cancel = AtomicBool::new(false);
            let mut want: Vec<u64> = (0..values.len() as u64).collect();
            want.sort_by_key(|&i| values[i as usize]);
            want.truncate(most);
            let shared = SharedBound::default();
            let mut tops: Vec<Top> = (0..threads).map(|_| Top::new(most, Some(1))).collect();
            // Tiles from the last to the first, as zone maps may order them.
            let starts: Vec<usize> = (0..values.len()).step_by(step).collect();
            for (i, &start) in starts.iter().rev().enumerate() {
                let end = (start + step).min(values.len());
                let positions: Vec<u64> = (start as u64..end as u64).collect();
                let top = &mut tops[i % threads];
                top.tighten(&shared);
                top.add(&encoded(&values[start..end]), &positions, &cancel).unwrap();
                top.share(&shared);
            }
            let mut all = Top::new(most, Some(1));
            tops.into_iter().for_each(|top| all.take_in(top, &cancel).unwrap());
            prop_assert_eq!(all.finish(&cancel).unwrap(), want);
        }
    }
}
