//! Many small arrays as one collection: which objects, by the catalog; which elements of them, by their data.
//!
//! A collection is a named set of sources in a catalog. Its objects are the groups that hold the arrays of a query.
//! A query's conditions on keys (attributes and tags) are answered by the catalog without opening a file; what is left
//! of the condition is evaluated on the arrays of each object that remains, with names relative to its group. This is
//! the two-step evaluation of PDC (Tang et al., *PDC: querying objects by metadata and data*, section III), over files
//! as they are.

mod keys;
mod manifests;
mod names;
mod objects;
mod opener;
mod paths;
mod plan;
mod query;
mod rows;
mod run;
mod shape;
mod tasks;

use std::sync::Arc;

use sieva_catalog::Catalog;
use sieva_query::parse;
use sieva_types::{Error, ErrorKind, Result};

use crate::open::OpenOptions;
use crate::query::QueryOptions;
use names::Names;
pub use query::{CollectionBatches, CollectionQuery, CollectionStats};
pub use tasks::{CollectionPartial, CollectionTask, CollectionWork};

/// A collection of a catalog. Cheap to clone.
#[derive(Clone)]
pub struct Collection {
    catalog: Arc<Catalog>,
    name: Arc<str>,
    options: OpenOptions,
}

impl Collection {
    /// The collection `name` of the catalog at `url` (see [`Catalog::open`]); `options` say how its sources are opened.
    ///
    /// # Errors
    /// Those of [`Catalog::open_read_only`]; `unknown-attribute` where the catalog has no such collection.
    pub fn open(url: &str, name: &str, options: &OpenOptions) -> Result<Self> {
        Self::of(Arc::new(Catalog::open_read_only(url)?), name, options)
    }

    /// The collection `name` of a catalog that is open.
    ///
    /// # Errors
    /// As [`Collection::open`].
    pub fn of(catalog: Arc<Catalog>, name: &str, options: &OpenOptions) -> Result<Self> {
        let known = catalog.collections()?;
        if !known.iter().any(|c| c.name == name) {
            let all: Vec<&str> = known.iter().map(|c| c.name.as_str()).collect();
            let have = if all.is_empty() { "none".to_string() } else { all.join(", ") };
            return Err(Error::new(
                ErrorKind::UnknownAttribute,
                format!("no collection '{name}' in the catalog; it has {have}"),
            )
            .hint("make it with sieva catalog add DIR --collection NAME"));
        }
        Ok(Self { catalog, name: name.into(), options: options.clone() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The query of a SELECT over its objects; a FROM has to name this collection.
    ///
    /// Names are keys of the catalog, or arrays by their paths within the object; `object` is the path of the object
    /// and `source` the location of its file. The catalog is asked here, files are opened when rows are.
    ///
    /// # Errors
    /// `syntax-error`; `unknown-array` for a name that is neither; `ambiguous-name` for one that is both;
    /// `unsupported` for what cannot be asked of a collection.
    pub fn sql(&self, text: &str, options: &QueryOptions) -> Result<CollectionQuery> {
        let names = Names::load(&self.catalog, &self.name)?;
        let select = parse::parse_select_with(text, &|name| names.knows(name))?;
        let other = select.from.as_deref().or(select.collection.as_deref().filter(|&c| c != self.name()));
        if let Some(other) = other {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("FROM '{other}' in a query of the collection '{}'", self.name),
            )
            .hint(format!("write FROM collection('{}'), or leave FROM out", self.name)));
        }
        CollectionQuery::new(self, &names, select, options)
    }
}
