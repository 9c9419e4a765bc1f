//! Values that are kept as bytes: the group of each, where there are several, then each value.

use super::{Keep, Kept};
use crate::aggregate::accumulator::Accumulator;
use crate::aggregate::wire::Encoded;
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

impl<T: Keep> Encoded for Kept<T> {
    fn encode(&self, groups: usize, w: &mut Writer) {
        w.uint(self.values.len() as u64);
        if groups > 1 {
            self.group_of.iter().for_each(|&group| w.uint(group.into()));
        }
        self.values.iter().for_each(|&value| T::write(value, w));
    }

    fn decode(&mut self, groups: usize, rows: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        let n = r.index()?;
        if n > r.left() || n as u64 > rows || (n > 0 && groups == 0) {
            return Err(r.damaged(format!("{n} values in {} bytes, of {rows} rows", r.left())));
        }
        r.charge_values::<(T, u32)>(n + n / super::SPARE as usize)?;
        self.reserve(n);
        let mut group_of = Vec::with_capacity(if groups > 1 { n } else { 0 });
        for _ in 0..group_of.capacity().min(n) {
            let group = r.index()?;
            if group >= groups {
                return Err(r.damaged(format!("group {group} of {groups}")));
            }
            group_of.push(group);
        }
        for i in 0..n {
            let value = T::read(r)?;
            self.push(group_of.get(i).copied().unwrap_or_default(), value);
        }
        Ok(())
    }
}
