//! Which values of a result are there.

use super::{Shape, Vector};
use crate::mask::Mask;

/// The rows in which every operand has a value.
pub(super) fn all_valid(operands: &[&Vector], shape: Shape) -> Option<Mask> {
    let n = shape.len();
    let mut all: Option<Mask> = None;
    for valid in operands.iter().filter_map(|o| o.valid.as_ref()) {
        let each = if valid.len() == n { valid.clone() } else { Mask::filled(n, valid.get(0)) };
        match &mut all {
            Some(all) => all.and(&each),
            None => all = Some(each),
        }
    }
    all
}

/// Takes NaN out of the valid values.
pub(super) fn mark_nan(values: &[f64], valid: &mut Option<Mask>) {
    // One pass without branches: NaN is rare, and mostly there is none.
    if values.iter().fold(false, |any, x| any | x.is_nan()) {
        let numbers = Mask::from_fn(values.len(), |i| !values[i].is_nan());
        match valid {
            Some(valid) => valid.and(&numbers),
            None => *valid = Some(numbers),
        }
    }
}
