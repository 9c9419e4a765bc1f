//! Different numbers as bytes: of each group how many, and the values in their order.

use super::DistinctNumbers;
use crate::aggregate::accumulator::Accumulator;
use crate::aggregate::wire::Encoded;
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

impl Encoded for DistinctNumbers {
    fn encode(&self, groups: usize, w: &mut Writer) {
        let mut all: Vec<&(u32, u64)> = self.set.iter().collect();
        all.sort_unstable();
        let mut rest = &all[..];
        for group in 0..groups {
            let (own, others) = rest.split_at(rest.partition_point(|(of, _)| *of as usize <= group));
            w.list(own, |w, (_, value)| w.uint(*value));
            rest = others;
        }
    }

    fn decode(&mut self, groups: usize, _: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        for group in 0..groups {
            for value in r.list(Reader::uint)? {
                // Its place in the table, which is twice as large for a moment while it grows.
                r.charge(4 * size_of::<(u32, u64)>())?;
                self.insert(group, value);
            }
        }
        Ok(())
    }
}
