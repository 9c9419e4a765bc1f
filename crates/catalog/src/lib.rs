//! What is known of sources: their objects, attributes and tags, statistics, augmentations and use.
//!
//! A [`Catalog`] lives in one SQLite file, or in a PostgreSQL database that many machines share; both give the same
//! answers. It never opens a source: who registers one hands over what was read of it as a [`SourceRecord`].
//!
//! Objects of a source (its groups and arrays) are numbered in the order of its tree, so that all that lies under an
//! object is one interval of numbers. What attributes say is kept as intervals too, so a question about attributes is
//! an intersection of intervals (`docs/design/009-catalog.md`).
//!
//! ```
//! use sieva_catalog::{Catalog, Filter, Find, ObjectRecord, SourceRecord};
//! # fn main() -> sieva_types::Result<()> {
//! let catalog = Catalog::open("sqlite::memory:")?;
//! let fiber = ObjectRecord::group("4055/57").attribute("RADEG", 153.17).attribute("DECDEG", 23.06);
//! let flux = ObjectRecord::array("4055/57/flux", "<f4", &[4620]);
//! catalog.ingest(&[SourceRecord::new("/data/h5boss.h5", "HDF5", 1 << 20, "v1").object(fiber).object(flux)])?;
//! let place = Filter::And(vec![Filter::equal("RADEG", 153.17), Filter::equal("DECDEG", 23.06)]);
//! let found = catalog.find(&Find::new(place).limit(10))?;
//! assert_eq!(found[0].path, "4055/57/flux");
//! # Ok(())
//! # }
//! ```

mod augmentations;
mod backend;
mod collections;
mod evaluate;
mod filter;
mod find;
mod forget;
mod ingest;
mod intervals;
mod known;
mod limits;
mod names;
mod packed;
mod pattern;
mod record;
mod show;
mod statistics;
mod tags;
mod terms;
mod tree;
mod until;
mod usage;
mod value;

use std::collections::HashMap;

use sieva_types::Result;

pub use augmentations::{Augmentation, AugmentationState, Rule};
pub use collections::CollectionInfo;
pub use filter::{Comparison, Filter};
pub use find::{Find, ObjectRef};
pub use ingest::IngestReport;
pub use known::{Known, SourceInfo};
pub use limits::MAX_MANIFEST;
pub use record::{ArrayStats, Attribute, ObjectKind, ObjectRecord, SourceRecord};
pub use show::{ObjectInfo, Origin};
pub use statistics::FoundStats;
pub use until::until;
pub use usage::Usage;
pub use value::Value;

/// A catalog, for many threads at once. Several processes may have it open; writers take turns.
///
/// Every method gives `io-error` where the database fails or stays locked for 30 s, `corrupt-file` where it is damaged,
/// `permission-denied` where it would have to write and must not, and `invalid-value` for names that are too
/// long or hold a zero byte. Only other errors are told at the methods.
#[derive(Debug)]
pub struct Catalog {
    pool: backend::Pool,
}

impl Catalog {
    /// Opens the catalog of a path, `sqlite:PATH`, `sqlite::memory:` or `postgresql://user@host/database`, and makes it
    /// where there is none. A catalog of an older version is brought to this one's. What may not be written is opened
    /// for reading.
    ///
    /// # Errors
    /// `unknown-format` for a database of something else, `unsupported` for one of a newer version, `invalid-value`
    /// for another URL.
    pub fn open(url: &str) -> Result<Self> {
        Ok(Self { pool: backend::Pool::open(url, false)? })
    }

    /// Opens a catalog that exists, for reading only: see [`Catalog::open`].
    ///
    /// # Errors
    /// As [`Catalog::open`]; `file-not-found` where there is none.
    pub fn open_read_only(url: &str) -> Result<Self> {
        Ok(Self { pool: backend::Pool::open(url, true)? })
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.pool.is_read_only()
    }

    /// Registers sources, or brings them up to date, in one transaction. One whose size, version, format and state are
    /// those that are known is left alone; another one is replaced wholly. Tags stay, and what they are on is found
    /// by its path. Large batches pay: about 20 000 objects.
    ///
    /// # Errors
    /// `invalid-value` for a path twice in one source or a value that is too long: nothing of the batch is registered.
    pub fn ingest(&self, batch: &[SourceRecord]) -> Result<IngestReport> {
        ingest::ingest(&self.pool, batch)
    }

    /// Forgets the source of this location, with its tags, augmentations, rules and collections; whether there was one.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn forget(&self, location: &str) -> Result<bool> {
        Ok(forget::forget(&self.pool, &known::Which::One(location))? > 0)
    }

    /// Forgets all sources whose location begins with `prefix`; their number.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn forget_prefix(&self, prefix: &str) -> Result<u64> {
        forget::forget(&self.pool, &known::Which::Prefix(prefix))
    }

    /// What is known of these locations; those that are not are left out. `manifests`: with those of their manifests that take
    /// so many bytes together, in the order of registration, as far as they go.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn known(&self, locations: &[&str], manifests: Option<u64>) -> Result<HashMap<String, Known>> {
        known::known(&self.pool, locations, manifests)
    }

    /// Keeps a source's manifest, or takes it away; it belongs to this `version` of the source. False where that is
    /// not the version that is known.
    ///
    /// # Errors
    /// `memory-limit` for one of more than [`MAX_MANIFEST`] bytes.
    pub fn set_manifest(&self, location: &str, version: &str, manifest: Option<&[u8]>) -> Result<bool> {
        known::set_manifest(&self.pool, location, version, manifest)
    }

    /// At most `limit` sources whose location begins with `prefix`, in order, after the location `after`.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn list(&self, prefix: &str, limit: usize, after: Option<&str>) -> Result<Vec<SourceInfo>> {
        known::list(&self.pool, prefix, limit, after)
    }

    /// All objects of a source in the order of its tree, the root first; `None` where the source is not known.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn show(&self, location: &str) -> Result<Option<(SourceInfo, Vec<ObjectInfo>)>> {
        show::show(&self.pool, location)
    }

    /// One object with its attributes and tags; `None` where there is none. The root of a source has the path `""`.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn object(&self, location: &str, path: &str) -> Result<Option<ObjectInfo>> {
        show::object(&self.pool, location, path)
    }

    /// Sets a tag on an object (path `""`: on the source); one of the same key is replaced.
    ///
    /// # Errors
    /// `file-not-found` for a source that is not registered, `unknown-array` for an object that it lacks.
    pub fn tag(&self, location: &str, path: &str, key: &str, value: impl Into<Value>) -> Result<()> {
        tags::set(&self.pool, location, &[(path, key, Some(value.into()))]).map(|_| ())
    }

    /// Sets tags (`None`: removes them) on objects of one source, as (path, key, value), in one transaction. The
    /// number of tags that this changed.
    ///
    /// # Errors
    /// As [`Catalog::tag`].
    pub fn tag_many(&self, location: &str, tags: &[(&str, &str, Option<Value>)]) -> Result<u64> {
        tags::set(&self.pool, location, tags)
    }

    /// Removes a tag; whether there was one. An attribute of the file is no tag and stays.
    ///
    /// # Errors
    /// As [`Catalog::tag`].
    pub fn untag(&self, location: &str, path: &str, key: &str) -> Result<bool> {
        Ok(tags::set(&self.pool, location, &[(path, key, None)])? > 0)
    }

    /// The objects that satisfy a filter, in order of their numbers. See [`Filter`] for what that means.
    ///
    /// # Errors
    /// `unknown-attribute` for a collection that does not exist; `memory-limit` where the parts of the filter are
    /// satisfied in more than 16 million separate places.
    pub fn find(&self, find: &Find) -> Result<Vec<ObjectRef>> {
        find::find(&self.pool, find)
    }

    /// The number of objects that [`Catalog::find`] would find without limit, with the same errors.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn count(&self, find: &Find) -> Result<u64> {
        find::count(&self.pool, find)
    }

    /// Makes a collection, or changes its description.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn create_collection(&self, name: &str, description: &str) -> Result<()> {
        collections::create(&self.pool, name, description)
    }

    /// Removes a collection; its sources stay. Whether there was one.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn remove_collection(&self, name: &str) -> Result<bool> {
        collections::remove(&self.pool, name)
    }

    /// All collections by name.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn collections(&self) -> Result<Vec<CollectionInfo>> {
        collections::list(&self.pool)
    }

    /// Puts registered sources into a collection; the number of those that were not in it.
    ///
    /// # Errors
    /// `unknown-attribute` for a collection that does not exist.
    pub fn collect(&self, name: &str, locations: &[&str]) -> Result<u64> {
        collections::collect(&self.pool, name, locations)
    }

    /// Puts all sources whose location begins with `prefix` into a collection, and those that are registered later.
    /// The number of those that were not in it.
    ///
    /// # Errors
    /// As [`Catalog::collect`].
    pub fn collect_prefix(&self, name: &str, prefix: &str) -> Result<u64> {
        collections::collect_prefix(&self.pool, name, prefix)
    }

    /// The arrays of a collection that satisfy a filter.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn objects_of(
        &self,
        collection: &str,
        filter: &Filter,
        limit: usize,
        after: Option<i64>,
    ) -> Result<Vec<ObjectRef>> {
        find::find(&self.pool, &Find::new(filter.clone()).collection(collection).limit(limit).after(after))
    }

    /// Keeps statistics of arrays of a source, as (path, statistics); they belong to this `version` of the source.
    /// False where that is not the version that is known.
    ///
    /// # Errors
    /// `unknown-array` for an array that the source lacks, `type-mismatch` for bounds that are no numbers.
    pub fn set_array_stats(
        &self,
        location: &str,
        version: &str,
        stats: &[(&str, ArrayStats)],
    ) -> Result<bool> {
        statistics::set(&self.pool, location, version, stats)
    }

    /// What is known of arrays of this name (path, or leaf name), in all sources of a collection or in all there are.
    ///
    /// # Errors
    /// `unknown-attribute` for a collection that does not exist.
    pub fn array_stats(&self, name: &str, collection: Option<&str>) -> Result<Vec<FoundStats>> {
        statistics::of_name(&self.pool, name, collection)
    }

    /// Sources that could hold a value within the closed bounds (`None`: open) in an array of this name (path, or leaf
    /// name): those whose statistics do not exclude it, and those that have such an array without statistics.
    ///
    /// # Errors
    /// `type-mismatch` for bounds that are no numbers; `unknown-attribute` for a collection that does not exist.
    pub fn could_contain(
        &self,
        name: &str,
        lower: Option<&Value>,
        upper: Option<&Value>,
        collection: Option<&str>,
    ) -> Result<Vec<String>> {
        statistics::could_contain(&self.pool, name, lower, upper, collection)
    }

    /// Records augmentations that were built; one of the same source, array, kind and store is replaced.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn record_augmentations(&self, built: &[Augmentation]) -> Result<()> {
        augmentations::record(&self.pool, built)
    }

    /// Makes what is known of one store of a source what is `there` now: what is new or changed is recorded, and what is
    /// not there any more counts as gone since `at` (seconds since 1970). Whether that changed anything; where it does not,
    /// nothing is written.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn sync_augmentations(
        &self,
        location: &str,
        store: &str,
        there: &[Augmentation],
        at: f64,
    ) -> Result<bool> {
        augmentations::sync(&self.pool, location, store, there, at)
    }

    /// Notes that what a store holds of a source was found to be of another state of it; whether that was news.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn set_augmentations_stale(&self, location: &str, store: &str, at: f64) -> Result<bool> {
        augmentations::set_stale(&self.pool, location, store, at)
    }

    /// The augmentations of all sources whose location begins with `prefix`.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn augmentations(&self, prefix: &str) -> Result<Vec<Augmentation>> {
        augmentations::list(&self.pool, prefix)
    }

    /// Forgets that an augmentation was built; whether it was known.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn drop_augmentation(&self, location: &str, path: &str, kind: &str) -> Result<bool> {
        augmentations::forget(&self.pool, location, path, kind)
    }

    /// Pins or forbids augmentations of a kind of an array, or takes that back.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn set_rule(&self, location: &str, path: &str, kind: &str, rule: Option<Rule>) -> Result<()> {
        augmentations::set_rule(&self.pool, location, path, kind, rule)
    }

    /// All rules of sources whose location begins with `prefix`, as (location, path, kind, rule).
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn rules(&self, prefix: &str) -> Result<Vec<(String, String, String, Rule)>> {
        augmentations::rules(&self.pool, prefix)
    }

    /// Appends what was asked; the oldest go where there are more than [`Catalog::set_usage_retention`] says.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn record_usage(&self, batch: &[Usage]) -> Result<()> {
        usage::record(&self.pool, batch)
    }

    /// At most `limit` latest uses of sources whose location begins with `prefix`, the latest first.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn usage(&self, prefix: &str, limit: usize) -> Result<Vec<Usage>> {
        usage::latest(&self.pool, prefix, limit)
    }

    /// How many uses are kept from now on; 100 000 where nothing was said.
    ///
    /// # Errors
    /// See [`Catalog`].
    pub fn set_usage_retention(&self, count: u64) -> Result<()> {
        usage::set_retention(&self.pool, count)
    }
}
