//! Between a query's tree and the logical plan ([`sieva_plan::Plan`]): names to ids, and back to a tree that can be printed.
//!
//! A tree is resolved ([`crate::bind`]), and what comes of it is written as a plan: each condition as it was asked, not yet
//! as sets of stored values, and subqueries as plans of their own. [`crate::lower`] makes the plan ready to be run.

mod from_bound;
mod named;
mod of_object;
mod order;
mod to_select;

use sieva_format::schema::Schema;
use sieva_types::Result;

use crate::ast::{Expr, Select};
use crate::bind::{BindOptions, Bound, Planned, resolve_rows, resolve_select};
use from_bound::as_asked;
pub use from_bound::{call_of, plan_of};
pub use named::{Meaning, NamedColumns, plan_condition};
pub use of_object::{ObjectNames, plan_of_object};
pub use to_select::{condition_of, filter_of, select_of};

/// The plan of a SELECT as it was asked, not yet in its one form, over the source that is given when it is run.
///
/// # Errors
/// `unknown-array`, `ambiguous-name`, `type-mismatch` and the like, listing what would have been valid;
/// `unaligned-dimensions` for arrays that do not line up; `invalid-value` for one that is nested too deep.
pub fn plan_select(schema: &Schema, select: &Select, options: &BindOptions<'_>) -> Result<Planned> {
    planned(schema, &resolve_select(schema, select, options)?, options.cross || select.cross)
}

/// The plan of a condition and of what is read of its rows (`None`: the coordinates, then the arrays in the condition).
/// The rows have at least the dimensions `base`, indices in the schema, in this order.
///
/// # Errors
/// As [`plan_select`].
pub fn plan_rows(
    schema: &Schema,
    base: &[usize],
    condition: Option<&Expr>,
    select: Option<&[Expr]>,
    options: &BindOptions<'_>,
) -> Result<Planned> {
    planned(schema, &resolve_rows(schema, base, condition, select, options)?, options.cross)
}

fn planned(schema: &Schema, resolved: &Bound, cross: bool) -> Result<Planned> {
    let value_type = resolved.outputs.first().and_then(|o| resolved.type_of(&o.value));
    Ok((as_asked(schema, resolved, cross)?, value_type))
}
