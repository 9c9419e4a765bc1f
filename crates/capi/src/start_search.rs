//! Searches in collections, and registering in catalogs, in a form that starts them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use crate::catalog::{Added, Adding, CatalogHandle};
use crate::collection::{Search, SearchHandle};
use crate::given::{self, Out, copy_out};
use crate::histogram;
use crate::options::{self, Options};
use crate::outcome::Outcome;
use crate::request::{RequestHandle, starting};
use crate::start::Place;
use crate::target::Target;

/// `sieva_start_catalog_add`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_catalog_add(
    catalog: *const CatalogHandle,
    paths: *const *const c_char,
    count: u64,
    collection: *const c_char,
    options: *const Options,
    added: *mut Added,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let work = Adding::given(catalog, paths, count, collection, options)?;
            let place = Place(added);
            RequestHandle::counting(work.cancel(), move |_| {
                let place = place;
                let found = work.run()?;
                let sources = found.added + found.replaced + found.unchanged;
                if !place.0.is_null() {
                    Out::new(place.0, "added")?.set(found);
                }
                Ok(sources)
            })
        })
    }
}

/// `sieva_start_search_create`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_search_create(
    catalog: *const CatalogHandle,
    collection: *const c_char,
    condition: *const c_char,
    array: *const c_char,
    options: *const Options,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let collection = given::text(collection, "collection")?.to_string();
            let catalog = Arc::clone(&given::handle(catalog, "catalog")?.0);
            let (open, options) = options::open_options(options)?;
            let condition = given::optional_text(condition, "condition")?.map(str::to_string);
            let asked = (condition, given::optional_text(array, "array")?.map(str::to_string));
            RequestHandle::start(Arc::clone(&open.cancel), move |_| {
                Search::of(catalog, &collection, asked, (&open, options))
                    .map(|s| Outcome::Search(SearchHandle(s)))
            })
        })
    }
}

/// `sieva_search_start`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_start(
    search: *const SearchHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let search = Arc::clone(&given::handle(search, "search")?.0);
            RequestHandle::counting(Arc::default(), move |stop| search.total(stop))
        })
    }
}

/// `sieva_start_search_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_search_query(
    search: *const SearchHandle,
    index: u64,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let search = Arc::clone(&given::handle(search, "search")?.0);
            RequestHandle::start(Arc::default(), move |_| {
                search.one(index).map(|query| Outcome::Query(Arc::from(query)))
            })
        })
    }
}

/// `sieva_start_search_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_search_read(
    search: *const SearchHandle,
    array: *const c_char,
    first: u64,
    objects: u64,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let search = Arc::clone(&given::handle(search, "search")?.0);
            let array = given::text(array, "array")?.to_string();
            let mut target = Target::new(r#type, values, capacity, missing)?;
            RequestHandle::counting(Arc::default(), move |stop| {
                search.read(&array, (first, objects), &mut target, stop)
            })
        })
    }
}

/// `sieva_start_search_histogram`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_search_histogram(
    search: *const SearchHandle,
    array: *const c_char,
    bins: u64,
    low: f64,
    high: f64,
    counts: *mut u64,
    edges: *mut f64,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let search = Arc::clone(&given::handle(search, "search")?.0);
            let array = given::text(array, "array")?.to_string();
            let bins = histogram::room(bins, counts, edges)?;
            let mut options = search.options();
            let cancel = Arc::clone(options.cancel.get_or_insert_default());
            let places = (Place(counts), Place(edges));
            RequestHandle::counting(cancel, move |_| {
                let (counts, edges) = places;
                let found = search.histogram(&array, bins, (low, high), &options)?;
                copy_out(&found.0, counts.0, bins as u64, "counts")?;
                copy_out(&found.1, edges.0, bins as u64 + 1, "edges")?;
                Ok(found.0.iter().sum())
            })
        })
    }
}
