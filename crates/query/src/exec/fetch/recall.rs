//! Values that an earlier query of the session fetched at the same positions, or that evaluating read there.

use sieva_format::buffer::Buffer;
use sieva_types::Result;

use crate::exec::fetch::Gatherer;

impl Gatherer {
    /// The stored values of an array at its positions `own`: as they were fetched before, or fetched now and kept.
    pub(in crate::exec) fn recalled(
        &self,
        array: usize,
        shape: &[u64],
        own: &[u64],
        size: usize,
        out: &mut Buffer,
    ) -> Result<()> {
        let reader = self.execution().reader(array);
        if reader.recall_hits(own, out.bytes_mut()) {
            return Ok(());
        }
        let key = reader.values_key(own);
        if key.is_some_and(|key| reader.recall(key, out.bytes_mut())) {
            return Ok(());
        }
        self.scattered(array, shape, own, size, out)?;
        if let Some(key) = key {
            reader.keep_values(key, out.bytes());
        }
        Ok(())
    }
}
