//! When columns are equal.

use super::Vector;

/// Vectors are equal if their types and rows are; what stands in a missing value's place does not matter.
impl PartialEq for Vector {
    fn eq(&self, other: &Self) -> bool {
        self.extent == other.extent
            && self.values.value_type() == other.values.value_type()
            && self.len() == other.len()
            && (0..self.len()).all(|i| self.scalar(i) == other.scalar(i))
    }
}
