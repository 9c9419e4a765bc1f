//! Searches: objects of a collection by their attributes and tags, and elements of their arrays by value.

use std::ffi::{c_char, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use sieva::ast::{Expr, Shared};
use sieva::catalog::ObjectKind;
use sieva::{Collection, CollectionQuery, Error, ErrorKind, OpenOptions, QueryOptions, Result};

use crate::catalog::CatalogHandle;
use crate::given::{self, Out, copy_out};
use crate::histogram;
use crate::objects::{KINDS, Listed, Object};
use crate::options::{self, Options};
use crate::query::QueryHandle;
use crate::region;
use crate::source::Opened;
use crate::status::{guarded, invalid};
use crate::target::Target;

/// `sieva_search`.
#[derive(Clone)]
pub struct SearchHandle(pub Arc<Search>);

/// What is searched for.
pub struct Search {
    collection: Collection,
    query: CollectionQuery,
    condition: Option<String>,
    array: Option<String>,
    options: QueryOptions,
    /// The objects in C's form.
    listed: Listed,
    /// Hits of each, once they were asked for.
    counts: OnceLock<Vec<u64>>,
}

impl SearchHandle {
    /// How many objects the catalog left.
    pub fn count(&self) -> u64 {
        self.0.listed.len()
    }
}

impl Search {
    /// The objects of a collection that the catalog leaves.
    ///
    /// # Errors
    /// As `sieva_search_create()`.
    pub fn of(
        catalog: Arc<sieva::Catalog>,
        collection: &str,
        (condition, array): (Option<String>, Option<String>),
        (open, options): (&OpenOptions, QueryOptions),
    ) -> Result<Arc<Self>> {
        let collection = Collection::of(catalog, collection, open)?;
        let query =
            collection.objects(condition.as_deref(), array.as_deref(), &options).map_err(|e| {
                match e.kind() {
                ErrorKind::Unsupported if array.is_none() => e.hint(
                    "give the array whose elements are meant; sieva_tag_query() finds objects by keys alone",
                ),
                _ => e,
            }
            })?;
        let group = KINDS.iter().find(|k| k.0 == ObjectKind::Group).map_or(0, |k| k.1);
        let listed = Listed::of(query.objects().map(|(source, path)| (source, path, group)));
        Ok(Arc::new(Self { collection, query, condition, array, options, listed, counts: OnceLock::new() }))
    }

    /// Reads an array at the hits of a range of objects into the caller's memory; their number.
    ///
    /// # Errors
    /// As `sieva_search_read()`.
    ///
    /// # Safety
    /// The target's memory must be as its maker said.
    pub unsafe fn read(
        &self,
        array: &str,
        (first, objects): (u64, u64),
        target: &mut Target,
        cancel: &AtomicBool,
    ) -> Result<u64> {
        let range = self.range(first, objects)?;
        let n = self.counts(cancel)?[range.clone()].iter().sum();
        target.check_room(n)?;
        let (mut got, stale) = (0, || {
            Error::new(ErrorKind::StaleSource, "the objects were changed since their hits were counted")
                .hint("make the search again")
        });
        self.query.read(range, array, cancel, |column| {
            got += column.len() as u64;
            if got > n {
                return Err(stale());
            }
            // SAFETY: the caller's promise; there is room for all.
            unsafe { target.put(&column) }
        })?;
        if got == n { Ok(n) } else { Err(stale()) }
    }

    /// The histogram of an array at all hits.
    ///
    /// # Errors
    /// As `sieva_search_histogram()`.
    pub fn histogram(
        &self,
        array: &str,
        bins: usize,
        (low, high): (f64, f64),
        options: &QueryOptions,
    ) -> Result<(Vec<u64>, Vec<f64>)> {
        let range = Some((low, high)).filter(|_| !(low.is_nan() && high.is_nan()));
        self.collection.histogram(self.condition.as_deref(), array, bins, range, options)
    }

    /// What it is run with.
    pub fn options(&self) -> QueryOptions {
        self.options.clone()
    }

    /// The hits of each object; evaluated once, unless `cancel` ends it.
    fn counts(&self, cancel: &AtomicBool) -> Result<&[u64]> {
        if let Some(known) = self.counts.get() {
            return Ok(known);
        }
        let found = self.query.counts(cancel)?.into_iter().map(Option::unwrap_or_default).collect();
        Ok(self.counts.get_or_init(|| found))
    }

    /// All hits; evaluated once, unless `cancel` ends it.
    ///
    /// # Errors
    /// As `sieva_search_nhits()`.
    pub fn total(&self, cancel: &AtomicBool) -> Result<u64> {
        Ok(self.counts(cancel)?.iter().sum())
    }

    /// The range of `objects` objects from number `first` on.
    fn range(&self, first: u64, objects: u64) -> Result<std::ops::Range<usize>> {
        let (all, end) = (self.listed.len(), first.checked_add(objects));
        match end.filter(|&end| end <= all) {
            Some(end) => Ok(first as usize..end as usize),
            None => Err(invalid(format!("{objects} objects from {first} on: there are {all} in all"))),
        }
    }

    /// The query of one object.
    ///
    /// # Errors
    /// As `sieva_search_query()`.
    pub fn one(&self, index: u64) -> Result<Box<QueryHandle>> {
        let number = usize::try_from(index).unwrap_or(usize::MAX);
        let (group, found) = (self.query.objects().nth(number), self.query.object(number)?);
        let group = group.map_or("", |(_, path)| path).to_string();
        let Some((source, condition)) = found else {
            let message = format!("object '{group}' lacks an array of the search");
            return Err(Error::new(ErrorKind::UnknownArray, message).hint("it has no hits: pass over it"));
        };
        let whole = match &self.array {
            None => None,
            Some(array) => Some(region::whole(source.schema(), source.resolve_within(&group, array)?)?),
        };
        // The array first: its dimensions are those of the rows.
        let condition = Expr::and(whole.into_iter().chain(condition));
        let opened = Opened::new(source, self.options.clone(), group);
        Ok(QueryHandle::new(&opened, Shared::single(condition), self.options.clone()))
    }
}

/// `sieva_search_create`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_create(
    catalog: *const CatalogHandle,
    collection: *const c_char,
    condition: *const c_char,
    array: *const c_char,
    options: *const Options,
    search: *mut *mut SearchHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(search, "search")?;
        // SAFETY: the promises of sieva.h.
        let (catalog, collection, (open, options)) = unsafe {
            let collection = given::text(collection, "collection")?;
            (given::handle(catalog, "catalog")?, collection, options::open_options(options)?)
        };
        // SAFETY: as above.
        let (condition, array) =
            unsafe { (given::optional_text(condition, "condition")?, given::optional_text(array, "array")?) };
        let asked = (condition.map(str::to_string), array.map(str::to_string));
        let made = Search::of(Arc::clone(&catalog.0), collection, asked, (&open, options))?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(SearchHandle(made))) };
        Ok(())
    })
}

/// `sieva_search_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_count(search: *const SearchHandle, objects: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(objects, "objects")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(search, "search")?.count()) };
        Ok(())
    })
}

/// `sieva_search_object`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_object(
    search: *const SearchHandle,
    index: u64,
    object: *mut Object,
) -> i32 {
    guarded(|| {
        let out = Out::new(object, "object")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(search, "search")?.0.listed.get(index)?) };
        Ok(())
    })
}

/// `sieva_search_nhits`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_nhits(search: *const SearchHandle, nhits: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(nhits, "nhits")?;
        // SAFETY: the promises of sieva.h.
        let total = unsafe { given::handle(search, "search") }?.0.total(&AtomicBool::new(false))?;
        // SAFETY: as above.
        unsafe { out.set(total) };
        Ok(())
    })
}

/// `sieva_search_hits`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_hits(
    search: *const SearchHandle,
    first: u64,
    objects: u64,
    nhits: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let search = unsafe { &given::handle(search, "search")?.0 };
        let range = search.range(first, objects)?;
        let counts = &search.counts(&AtomicBool::new(false))?[range];
        // SAFETY: as above.
        unsafe { copy_out(counts, nhits, objects, "nhits") }
    })
}

/// `sieva_search_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_query(
    search: *const SearchHandle,
    index: u64,
    query: *mut *mut QueryHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(query, "query")?;
        // SAFETY: the promises of sieva.h.
        let one = unsafe { given::handle(search, "search") }?.0.one(index)?;
        // SAFETY: as above.
        unsafe { out.set(one) };
        Ok(())
    })
}

/// `sieva_search_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_read(
    search: *const SearchHandle,
    array: *const c_char,
    first: u64,
    objects: u64,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let (search, array) = unsafe { (&given::handle(search, "search")?.0, given::text(array, "array")?) };
        let mut target = Target::new(r#type, values, capacity, missing)?;
        // SAFETY: as above.
        let n = unsafe { search.read(array, (first, objects), &mut target, &AtomicBool::new(false)) }?;
        // SAFETY: as above.
        unsafe { out.set(n) };
        Ok(())
    })
}

/// `sieva_search_histogram`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_histogram(
    search: *const SearchHandle,
    array: *const c_char,
    bins: u64,
    low: f64,
    high: f64,
    counts: *mut u64,
    edges: *mut f64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (search, array) = unsafe { (&given::handle(search, "search")?.0, given::text(array, "array")?) };
        let bins = histogram::room(bins, counts, edges)?;
        let found = search.histogram(array, bins, (low, high), &search.options)?;
        // SAFETY: as above.
        unsafe {
            copy_out(&found.0, counts, bins as u64, "counts")?;
            copy_out(&found.1, edges, bins as u64 + 1, "edges")
        }
    })
}

/// `sieva_search_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_free(search: *mut SearchHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(search) }
}
