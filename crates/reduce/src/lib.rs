//! Reductions: what consumers ask of a producer's data, applied where the data lie, so that less is moved.
//!
//! After Scibox (Huang et al., 2014): its functions DR1 to DR8 (section IV, Table I) and what users ask for beyond them,
//! as typed objects ([`Reduction`]), as SQL of this product, as the paper's XML and as TOML ([`forms`]); and what several
//! of them have in common ([`merge`], section V): index boxes without overlap, plans once and in order, the size of
//! objects by cost. It opens no file and runs no query.
//!
//! ```
//! use sieva_reduce::{CompareOp, Condition, Reduction};
//!
//! // Of each variable its dimensions, outermost first.
//! let dims_of = |_: &str| Ok(vec!["time".to_owned(), "lat".to_owned()]);
//! // DR6: the values that are not below their mean (Table I).
//! let warm = Reduction::compare("TEMP", CompareOp::GtEq, Reduction::mean("TEMP"));
//! assert_eq!(warm.to_sql(&dims_of)?, "SELECT TEMP WHERE TEMP >= (SELECT avg(TEMP))");
//! // The maximum of the first ten steps.
//! let first = Reduction::max("TEMP").within(Condition::range("time", 0, 10));
//! assert_eq!(first.to_sql(&dims_of)?, "SELECT max(TEMP) WHERE idx(time) >= 0 AND idx(time) < 10");
//! # Ok::<(), sieva_types::Error>(())
//! ```

pub mod forms;
pub mod merge;
mod reduction;

pub use reduction::{
    Code, Condition, DatePart, Dim, DimsOf, Function, Key, MAX_CODE, MAX_NAME, MAX_NESTED, MAX_PARTS,
    Operand, Reduction, Select,
};
pub use sieva_plan::{CompareOp, Literal};
