//! The logical plan: a question about a source as data, that can be sent, compared, priced, kept and run elsewhere.
//!
//! A [`Plan`] is a [`Scan`] of the arrays that a question names, and the [`Step`]s that are done with its rows, in
//! order. Columns are ids, not texts: names were looked up in the source's schema when the plan was made, dates are
//! numbers of the file's calendar, and nothing was read or run for it. Equal questions have equal plans
//! ([`Plan::canonical`]), equal bytes ([`Plan::to_bytes`]) and the same [`Plan::id`].
//!
//! It knows no file, no index and no thread: what a plan means for a source is said by whoever binds it.
//!
//! ```
//! use sieva_plan::{Column, ColumnId, CompareOp, Expr, Literal, Output, Plan, Scan, Step, Type};
//!
//! let temp = Column::of_array("TEMP", Type::Float64, &["z", "y", "x"]);
//! let warm = Expr::compare(CompareOp::Gt, Expr::Column(ColumnId(0)), Expr::Literal(Literal::Int(5)));
//! let plan = Plan {
//!     scan: Scan::given(vec![temp], &["z", "y", "x"]),
//!     steps: vec![Step::Filter(warm), Step::Project(vec![Output::new("TEMP", Expr::Column(ColumnId(0)))])],
//! };
//! let bytes = plan.to_bytes()?;
//! assert_eq!(Plan::from_bytes(&bytes)?, plan.canonical());
//! # Ok::<(), sieva_types::Error>(())
//! ```

mod canonical;
mod check;
mod expr;
mod given;
mod json;
mod plan;
mod wire;

pub use expr::{BinaryOp, ColumnId, CompareOp, Expr, Literal, MAX_DEPTH};
pub use given::{given_name, written_name};
pub use plan::{Call, Column, ColumnKind, Output, Plan, Scan, SortKey, SourceRef, Step, Type};
