//! Conditions on one array, rewritten to what is stored.
//!
//! Each comparison of an array with a literal holds on a set of stored values that is a few intervals in
//! the order of the stored type: decoding (`stored * scale + offset`, rounded) is monotone, so its bounds
//! are found by bisection with the exact comparison, once, and the data are then tested as they are
//! stored: nothing is unpacked or widened. Missing values are single stored values, cut out of the
//! intervals. Boolean combinations of conditions on one array are set operations on the intervals.

mod kernel;
mod keys;
mod order;

pub use kernel::RawTest;
pub use keys::{Comparison, StoredDomain};
pub use order::compare_exact;
pub(crate) use order::value_of_key;
pub use sieva_types::KeySet;
