//! The native module `sieva._native`: the engine's types for Python, thin wrappers only.
//!
//! What a method means is documented in `python/sieva/_native.pyi`, where Python users look.
#![allow(missing_docs)]

mod advise;
mod catalog;
mod collection;
mod collection_tasks;
mod convert;
mod encoded;
mod errors;
mod expr;
mod foreign;
mod foreign_values;
mod index;
mod index_job;
mod interrupt;
mod objects;
mod options;
mod plan;
mod published;
mod query;
mod ranks;
mod read_many;
mod references;
mod remote;
mod rows;
mod selection;
mod session;
mod share;
mod source;
mod stream;
mod tasks;

use pyo3::prelude::*;

/// The engine, as Python sees it.
#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use super::*;

    #[pymodule_export]
    use super::advise::{Advised, advise, advise_rule, advise_rules, flush_usage};
    #[pymodule_export]
    use super::catalog::{Catalog, catalog_location, default_catalog};
    #[pymodule_export]
    use super::collection::{Collection, CollectionQuery, collection_clause};
    #[pymodule_export]
    use super::collection_tasks::{CollectionPartial, CollectionTask};
    #[pymodule_export]
    use super::encoded::{Blocks, Encoded};
    #[pymodule_export]
    use super::errors::printable;
    #[pymodule_export]
    use super::expr::{Expr, select_text, without_from};
    #[pymodule_export]
    use super::index::{
        Histogram, build_index, calibrate, drop_index, drop_replicas, index_notes, index_status, save_learnt,
        verify_index,
    };
    #[pymodule_export]
    use super::index_job::{IndexJob, IndexTask, run_index_task};
    #[pymodule_export]
    use super::objects::Objects;
    #[pymodule_export]
    use super::options::{check_options, options, size};
    #[pymodule_export]
    use super::plan::Plan;
    #[pymodule_export]
    use super::published::{
        fetch_named, link_named, list_published, publish_file, publish_query, unpublish_named,
    };
    #[pymodule_export]
    use super::query::Query;
    #[pymodule_export]
    use super::ranks::{RankPlan, rank_pieces};
    #[pymodule_export]
    use super::read_many::read_many;
    #[pymodule_export]
    use super::references::{open_tables, references_json, references_tables};
    #[pymodule_export]
    use super::remote::{remote_option_rows, stores};
    #[pymodule_export]
    use super::rows::{RowWriter, formats, row_texts};
    #[pymodule_export]
    use super::selection::Selection;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::share::{Group, calibrate_store};
    #[pymodule_export]
    use super::source::{
        Source, check_allowed, check_name, from_clause, is_open_database, redacted, redacted_database,
        serve_worker, without_secrets,
    };

    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::tasks::{Partial, Task};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", sieva::VERSION)?;
        module.add("error_kinds", sieva::ErrorKind::ALL.map(sieva::ErrorKind::code).to_vec())
    }
}
