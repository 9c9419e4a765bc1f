//! What values take.

use super::{Values, Vector};
use crate::mask::Mask;

impl Vector {
    /// Bytes that they take.
    pub fn memory_bytes(&self) -> u64 {
        let values = match &self.values {
            Values::Bool(v) => v.capacity(),
            Values::I64(v) => 8 * v.capacity(),
            Values::U64(v) => 8 * v.capacity(),
            Values::F64(v) => 8 * v.capacity(),
            Values::Str(v) => v.memory_bytes(),
        };
        (values + self.valid.as_ref().map_or(0, Mask::memory_bytes)) as u64
    }
}
