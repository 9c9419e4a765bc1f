//! sieva: questions about scientific data files, answered in place.
//!
//! Open a [`Source`], ask it with [`Source::sql`] or [`Source::query`], and take what comes back as a count,
//! a [`Selection`], columns, or Arrow record batches. Files are never changed.
//!
//! ```no_run
//! # fn main() -> sieva::Result<()> {
//! let source = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?;
//! let query = source.sql("SELECT TEMP WHERE TEMP > 25 AND z_t < 5000", &sieva::QueryOptions::default())?;
//! println!("{} hits", query.count()?);
//! for batch in query.batches(65_536)? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok(())
//! # }
//! ```

mod advise;
mod arrow;
mod augment;
mod bp;
pub mod catalog;
mod collection;
mod conditions;
mod explain;
mod foreign;
mod formats;
mod frame;
mod identity;
mod layout_plan;
mod logical;
mod manifest_cache;
mod memory;
mod multi_file;
mod open;
pub mod options;
mod query;
mod read_many;
mod read_run;
mod references;
mod result_columns;
mod run;
mod schema;
mod session;
mod shared_manifest;
mod shares;
mod stats;
mod subqueries;
mod tasks;
mod text;
mod worker;

pub use advise::{
    Advice, AdviseOptions, Done, Item, NamedRule, Verdict, advise, apply as apply_advice, flush_usage, rules,
    set_rule,
};
pub use shares::BoxPart;

pub use arrow::Batches;
pub use augment::{
    ArrayStatus, BuildOptions, BuildPrice, BuildReport, Calibration, CarriedZoneMaps, GlobalHistogram,
    IndexJob, IndexKind, IndexStatus, IndexTask, Learn, Progress, ReplicaStatus, VerifyReport,
};
pub use augment::{KnownAugmentation, augmentations};
pub use collection::{
    Collection, CollectionBatches, CollectionPartial, CollectionQuery, CollectionSelection, CollectionStats,
    CollectionTask, CollectionWork, SelectedObject,
};
pub use conditions::Points;
pub use formats::is_bp_file;
pub use identity::Identity;
pub use layout_plan::{FileTouched, LayoutPlan, ServerTouched, StripeTouched, Traffic};
pub use logical::plan_text;
pub use multi_file::{expand, expand_within};
pub use open::{OpenOptions, Source};
pub use query::{Query, QueryOptions};
pub use read_many::{Part, Request};
pub use result_columns::{FieldSource, ResultColumns, RowField};
pub use run::{Ran, RunOptions, RunStats};
pub use session::{Session, SessionOptions, SessionStats};
pub use shared_manifest::SharedManifest;
pub use sieva_catalog::Catalog;
pub use sieva_format::decoding::{Decoding, Number};
pub use sieva_format::foreign::{
    ForeignArray, ForeignReader, ForeignSource, ForeignStore, Loan, MemoryArrays, MemoryValues,
};
/// Reference sets of kerchunk.
pub use sieva_format::manifest::kerchunk;
pub use sieva_format::physical::{Share, SubCorrelation, ranks};
pub use sieva_format::read::CacheStats;
pub use sieva_format::schema::{ArrayInfo, Attr, AttrValue, Dimension, Naming, Schema};
pub use sieva_format::schema::{GroupInfo, StorageInfo};
pub use sieva_format::{ArraySource, BlockBounds};
pub use sieva_isolate::WorkerLimits;
pub use sieva_plan::{Plan, SourceRef as PlanSource};
pub use sieva_query::bind::{column_name, is_time};
pub use sieva_query::code::Functions;
pub use sieva_query::exec::{Access, Column, Data, FetchWay, Shared, threads};
pub use sieva_query::mask::Mask;
pub use sieva_query::optimizer::{Expected, Price, UNBOUNDED};
pub use sieva_query::values::{Scalar, ValueType};
pub use sieva_query::{ast, parse, with_data};
pub use sieva_store::{
    Piece, RemoteOption, RemoteOptions, RemoteValue, Store, Striping, check_name, guard, local, objects,
    redacted, redacted_database, unnamed_file, without_secrets,
};
pub use sieva_types::keys;
pub use sieva_types::{
    Bx, DType, Error, ErrorKind, Result, Selection, Texts, lookup3, printable, printable_lines,
};
pub use stats::{Phase, QueryStats};
pub use tasks::{Partial, Task, TaskKind, Work};
pub use worker::serve_isolated;

/// Version of this crate and of everything built from it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
