//! Counts as bytes: a number for each group.

use super::{Count, Counts};
use crate::aggregate::wire::{Encoded, read_count};
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

impl Counts {
    /// The counts of the first groups.
    pub(in crate::aggregate) fn settled(&self, groups: usize) -> impl Iterator<Item = u64> + '_ {
        let mut level = 0;
        self.own.iter().zip(&self.steps).take(groups).map(move |(own, step)| {
            level += step;
            (own + level) as u64
        })
    }
}

impl Encoded for Count {
    fn encode(&self, groups: usize, w: &mut Writer) {
        self.counts.settled(groups).for_each(|n| w.uint(n));
    }

    fn decode(&mut self, groups: usize, rows: u64, r: &mut Reader<'_>) -> Result<()> {
        self.counts.resize(groups);
        for group in 0..groups {
            self.counts.add(group, read_count(r, rows)? as i64);
        }
        Ok(())
    }
}
