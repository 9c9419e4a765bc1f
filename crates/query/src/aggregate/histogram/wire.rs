//! Histograms as bytes: the counts of all groups, those of one behind the other.

use super::Histograms;
use crate::aggregate::accumulator::Accumulator;
use crate::aggregate::wire::{Encoded, read_count};
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

impl Encoded for Histograms {
    fn encode(&self, groups: usize, w: &mut Writer) {
        self.counts.iter().take(groups * self.bins.count).for_each(|&n| w.uint(n));
    }

    fn decode(&mut self, groups: usize, rows: u64, r: &mut Reader<'_>) -> Result<()> {
        let n = groups.saturating_mul(self.bins.count);
        if n > r.left() {
            return Err(r.damaged(format!("{n} counts in {} bytes", r.left())));
        }
        self.resize(groups);
        for count in self.counts.iter_mut().take(n) {
            *count = read_count(r, rows)?;
        }
        Ok(())
    }
}
