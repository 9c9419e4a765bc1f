//! Many files as one source: joined along a dimension, or one variable each, or both (a climate archive).
//!
//! Files are opened in parallel for their outline (schema and the values of coordinates), compared, and closed again;
//! data are read by opening the files that a query touches. The physical descriptor of SDQuery (Su et al., SC13,
//! section 3.3) says which file holds what: here it is each array's list of pieces.
//!
//! | file | does |
//! |---|---|
//! | `outline.rs` | what of one file decides how it fits to others |
//! | `axis.rs` | which dimension a group of files is joined along, and in which order |
//! | `plan.rs` | schema and pieces of the whole; what does not fit is named |
//! | `check.rs` | the comparisons behind it |
//! | `unpack.rs` | values of files that are packed or dated differently |
//! | `source.rs` | the [`ArraySource`](crate::ArraySource), which opens files as they are needed |

mod axis;
mod check;
mod outline;
mod plan;
mod source;
mod unpack;

pub use source::{JoinOptions, JoinedSource, Opener};
pub use unpack::Unpack;
