//! Between a query's tree and the logical plan ([`sieva_plan::Plan`]): names to ids, and back to a tree.
//!
//! A plan is made of a query that was bound for it (see [`crate::bind::Subqueries`]): each condition as it was asked,
//! not yet as sets of stored values, and subqueries as plans of their own.

mod from_bound;
mod order;
mod to_select;

pub use from_bound::plan_of;
pub use to_select::select_of;
