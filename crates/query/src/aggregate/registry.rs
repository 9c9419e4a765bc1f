//! Which accumulators there are: a new one is a file of its own and a line here.

use sieva_types::Result;

use super::accumulator::{Accumulator, internal};
use super::{Aggregate, counts, distinct, extremes, histogram, kept, sums, variances};
use crate::values::ValueType;

type Maker = fn(&Aggregate, ValueType) -> Option<Box<dyn Accumulator>>;

/// What makes the accumulators; the first that knows an aggregate of a type is asked.
const MAKERS: &[Maker] =
    &[counts::make, distinct::make, extremes::make, sums::make, variances::make, kept::make, histogram::make];

/// The accumulator of an aggregate of values of type `input` (`None`: the untyped NULL, or no argument), of no groups.
///
/// # Errors
/// `type-mismatch` if the aggregate needs numbers and the argument is text; `internal-error` if
/// [`Aggregate::needs_range`].
pub fn accumulator(aggregate: &Aggregate, input: Option<ValueType>) -> Result<Box<dyn Accumulator>> {
    aggregate.result_type(input)?;
    if aggregate.needs_range() {
        return Err(internal("a histogram without its range"));
    }
    let input = input.unwrap_or(ValueType::F64);
    let made = MAKERS.iter().find_map(|make| make(aggregate, input));
    made.ok_or_else(|| internal(&format!("nothing computes {} of {input}", aggregate.name())))
}
