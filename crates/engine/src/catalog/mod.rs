//! The catalog and the files that it knows: registering what lies in directories, and opening by what is known.
//!
//! | file | does |
//! |---|---|
//! | `place.rs` | where the catalog is, how sources are named in it, when one has changed |
//! | `work.rs` | tasks that many threads share |
//! | `add.rs` | walks directories and registers what is found, on many threads |
//! | `walk.rs` | what each of them does with a directory and with files |
//! | `batch.rs` | records that are registered in one transaction |
//! | `one.rs` | what is registered of one source |
//! | `attributes.rs` | attributes of a file as values of the catalog |
//! | `statistics.rs` | what zone maps say of whole arrays |
//! | `prune.rs` | sources whose files are gone |
//! | `known.rs`, `lazy.rs` | opening without parsing |
//! | `filter.rs` | conditions of the query language as the catalog's own |

mod add;
mod attributes;
mod batch;
pub(crate) mod filter;
pub(crate) mod known;
mod lazy;
mod one;
pub(crate) mod place;
mod prune;
mod statistics;
mod walk;
mod work;

pub use add::{AddOptions, AddReport, add};
pub use filter::parse_filter;
pub(crate) use lazy::LazyFile;
pub use place::{default_url, existing_url, location};
pub use prune::vanished;
pub use sieva_catalog::{
    ArrayStats, Augmentation, AugmentationState, Catalog, CollectionInfo, Filter, Find, FoundStats, Known,
    ObjectInfo, ObjectKind, ObjectRecord, ObjectRef, Origin, Rule, SourceInfo, SourceRecord, Usage, Value,
    until,
};
