//! From the text of a query to its answer: parse, resolve, plan, lower, optimize, execute. Knows file formats only by the trait.

pub mod aggregate;
pub mod ast;
pub mod bind;
pub mod code;
pub mod cost;
pub mod exec;
pub mod logical;
pub mod lower;
pub mod mask;
pub mod optimizer;
pub mod parse;
pub mod raw;
pub mod values;
