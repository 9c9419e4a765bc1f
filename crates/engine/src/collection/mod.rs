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
mod selection;
mod shape;
mod tasks;

use std::sync::Arc;

use sieva_catalog::Catalog;
use sieva_query::parse;
use sieva_types::{Error, ErrorKind, Result};

use crate::open::OpenOptions;
use crate::query::QueryOptions;
use crate::text::is_select;
use names::Names;
pub use query::{CollectionBatches, CollectionQuery, CollectionStats};
use run::Did;
pub use selection::{CollectionSelection, SelectedObject};
pub use tasks::{CollectionPartial, CollectionTask, CollectionWork};

/// A collection of a catalog. Cheap to clone.
#[derive(Clone)]
pub struct Collection {
    /// None: it runs what others have planned.
    catalog: Option<Arc<Catalog>>,
    name: Arc<str>,
    options: OpenOptions,
    did: Arc<Did>,
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
        Ok(Self { catalog: Some(catalog), ..Self::without_catalog(name, options) })
    }

    /// The collection `name`, where nobody asks its catalog: it runs tasks and takes selections that carry what opening
    /// their sources needs ([`CollectionQuery::carrying`]). For processes that work for the one that has the catalog.
    #[must_use]
    pub fn without_catalog(name: &str, options: &OpenOptions) -> Self {
        Self { catalog: None, name: name.into(), options: options.clone(), did: Arc::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many sources its queries opened so far, the bytes that they read of them, and in how many requests.
    pub fn traffic(&self) -> (u64, u64, u64) {
        let did = self.did.so_far();
        (did.sources_opened, did.bytes_read, did.requests)
    }

    fn catalog(&self) -> Result<&Arc<Catalog>> {
        self.catalog.as_ref().ok_or_else(|| {
            let message = format!("the collection '{}' was opened without its catalog", self.name);
            Error::new(ErrorKind::Unsupported, message)
                .hint("it runs tasks that were made where the catalog is; ask there")
        })
    }

    fn names(&self) -> Result<Names<'_>> {
        Names::load(self.catalog()?, &self.name)
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
        let names = self.names()?;
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

    /// The query of a text that is a whole SELECT, or a condition alone: its columns are those of `SELECT *`.
    ///
    /// # Errors
    /// As [`Collection::sql`].
    pub fn ask(&self, text: &str, options: &QueryOptions) -> Result<CollectionQuery> {
        if is_select(text) { self.sql(text, options) } else { self.objects(Some(text), None, options) }
    }
}
