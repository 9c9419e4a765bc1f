//! Variances as bytes: of each group the count, the sum, and the sums of squares.

use super::Variances;
use crate::aggregate::accumulator::Accumulator;
use crate::aggregate::moments::Moments;
use crate::aggregate::wire::{Encoded, read_count};
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

impl Encoded for Variances {
    fn encode(&self, groups: usize, w: &mut Writer) {
        for (group, count) in self.counts.settled(groups).enumerate() {
            match self.wide.get(&(group as u32)) {
                None => {
                    w.uint(count);
                    self.sums.write(group, w);
                    self.squares.write(group, w);
                    w.flag(false);
                }
                Some(wide) => {
                    let mut all = Moments::of(count, self.sums.exact(group), self.squares.exact(group));
                    all.merge(wide);
                    all.write(w);
                }
            }
        }
    }

    fn decode(&mut self, groups: usize, rows: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        for group in 0..groups {
            self.counts.add(group, read_count(r, rows)? as i64);
            self.sums.read(group, r)?;
            self.squares.read(group, r)?;
            if let Some(scaled) = Moments::read_scaled(r)? {
                self.wide.insert(group as u32, scaled);
            }
        }
        Ok(())
    }
}
