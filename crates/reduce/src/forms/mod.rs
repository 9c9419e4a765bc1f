//! Forms of reductions as texts: the XML of the paper (Figure 2: `writer.xml`, `reader.xml`), and TOML.
//!
//! Both say the same, by the same words. A reduction has a `type`: the numbers 1 to 8 of Table I or a word for each, and
//! words for what is beyond them. Conditions and keys besides those of its type stand below it as `where` and `by`.
//!
//! | number | word | further attributes |
//! |---|---|---|
//! | | `whole` | |
//! | 1, 2, 3 | `max`, `min`, `mean` | |
//! | 4 | `range` | `dimension` (a place from 0, or a name), `start`, `end` (not among them); or as in Table I `dimensions` (from 1), `start_pos`, `end_pos` (among them) |
//! | 5 | `between` | `threshold1`, `threshold2` |
//! | 6 | `compare` | `op`, then `value`, or `function` and perhaps `of`; the same with a 2 behind them for a second bound |
//! | 7 | `by-other` | `variable1`, `threshold1`, `threshold2` |
//! | 8 | `code` | `cod` |
//! | | `count`, `sum`, `variance`, `sample-variance`, `std-dev`, `sample-std-dev` | |
//! | | `quantile` | `q` |
//! | | `histogram` | `bins`, `low`, `high` |
//! | | `block-mean` | `factors` |
//! | | `first`, `last` | `dimension` |
//! | | `sql` | `text` |
//!
//! All but `sql` have a `name`, the variable that is given. A `where` is a `range`, `first`, `last`, `between` or
//! `compare` with these attributes, and its `name` where it looks at another variable. A `compare` may have a `with` below it in place
//! of `value` or `function`: any reduction that is one value. A `by` has a `name`; a `part` of a date and a `name`; a `band` (its
//! width) and a `name`; a `dimension` and a `factor`; or `factors`.
//!
//! Table I has `Range(variable, dimensions, start_pos, end_pos)` and says neither where counting begins nor whether the
//! end counts. Its example, `Range(var_int_1Darray, 1, 100, 1000)` of a one-dimensional array, is taken as its first dimension,
//! counted from 1; `end_pos` is a position that is asked for, so it counts: at most one position more is given than was meant,
//! and nothing that was meant is left out. Positions count from 0, as in the C and the CoD of the paper. The threshold intervals are
//! open, as Table I writes them.

mod config;
mod node;
mod read;
mod toml;
mod write;
mod xml;

pub use config::{Attribute, Bounds, Config, Group, Variable};

/// Bytes of the longest text that is read.
pub const MAX_TEXT: usize = 4 << 20;
/// The most elements or tables of a text.
pub const MAX_ELEMENTS: usize = 20_000;
/// How deep elements may stand in one another.
pub const MAX_DEPTH: usize = 64;
/// The most attributes of an element.
pub const MAX_ATTRIBUTES: usize = 64;
/// Bytes of the longest value of an attribute, as it is written.
pub const MAX_VALUE: usize = 1 << 18;
