//! Sums of groups as bytes.

use super::Pairs;
use sieva_types::Result;
use sieva_types::exact::Sum;
use sieva_types::wire::{Reader, Writer};

impl Pairs {
    /// The sum of a group in its one form.
    pub(in crate::aggregate) fn form(&self, group: usize) -> Sum {
        let plain = match self.wide.is_empty() || !self.wide.contains_key(&(group as u32)) {
            true => Sum::of_pair(self.high[group], self.low[group]),
            false => None,
        };
        plain.unwrap_or_else(|| Sum::of(self.exact(group)))
    }

    /// Writes the sum of a group.
    pub(in crate::aggregate) fn write(&self, group: usize, w: &mut Writer) {
        self.form(group).write(w);
    }

    /// Sets the sum of a group, which knows of no value yet.
    pub(in crate::aggregate) fn read(&mut self, group: usize, r: &mut Reader<'_>) -> Result<()> {
        match Sum::read(r)? {
            Sum::Pair(high, low) => (self.high[group], self.low[group]) = (high, low),
            Sum::Wide(sum) => {
                r.charge(size_of::<(u32, super::ExactSum)>())?;
                self.add_sum(group, &sum);
            }
        }
        Ok(())
    }
}
