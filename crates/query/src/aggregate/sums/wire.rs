//! Sums and means as bytes: of each group the count and the exact sum.

use super::{Floats, Integers};
use crate::aggregate::accumulator::Accumulator;
use crate::aggregate::wire::{Encoded, read_count};
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

impl Encoded for Floats {
    fn encode(&self, groups: usize, w: &mut Writer) {
        for (group, count) in self.counts.settled(groups).enumerate() {
            w.uint(count);
            self.sums.write(group, w);
        }
    }

    fn decode(&mut self, groups: usize, rows: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        for group in 0..groups {
            self.counts.add(group, read_count(r, rows)? as i64);
            self.sums.read(group, r)?;
        }
        Ok(())
    }
}

impl Encoded for Integers {
    fn encode(&self, groups: usize, w: &mut Writer) {
        for (group, count) in self.counts.settled(groups).enumerate() {
            w.uint(count);
            w.int(self.sum(group));
        }
    }

    fn decode(&mut self, groups: usize, rows: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        for group in 0..groups {
            let count = read_count(r, rows)?;
            let sum = r.int()?;
            // So sums of different rows never leave 128 bits.
            if sum.unsigned_abs() > u128::from(count) << 64 {
                return Err(r.damaged(format!("{sum} is no sum of {count} integers")));
            }
            self.counts.add(group, count as i64);
            if i64::try_from(sum).is_err() {
                r.charge(2 * size_of::<(u32, i128)>())?;
            }
            self.add_wide_or_low(group, sum);
        }
        Ok(())
    }
}
