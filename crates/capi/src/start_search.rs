//! Searches in collections, and registering in catalogs, in a form that starts them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::catalog::{Added, Adding, CatalogHandle};
use crate::collection::{Search, SearchHandle};
use crate::given::{self, Out, copy_out};
use crate::options::{self, Options};
use crate::outcome::Outcome;
use crate::request::RequestHandle;
use crate::start::Place;
use crate::status::{guarded, invalid};
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let work = unsafe { Adding::given(catalog, paths, count, collection, options) }?;
        let place = Place(added);
        let started = RequestHandle::counting(work.cancel(), move || {
            let place = place;
            let found = work.run()?;
            let sources = found.added + found.replaced + found.unchanged;
            if !place.0.is_null() {
                // SAFETY: the header asks to leave the memory alone until the request has ended.
                unsafe { Out::new(place.0, "added")?.set(found) };
            }
            Ok(sources)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (catalog, collection, (open, options)) = unsafe {
            let collection = given::text(collection, "collection")?.to_string();
            let catalog = Arc::clone(&given::handle(catalog, "catalog")?.0);
            (catalog, collection, options::open_options(options)?)
        };
        // SAFETY: as above.
        let asked = unsafe {
            let condition = given::optional_text(condition, "condition")?.map(str::to_string);
            (condition, given::optional_text(array, "array")?.map(str::to_string))
        };
        let started = RequestHandle::start(Arc::clone(&open.cancel), move || {
            Search::of(catalog, &collection, asked, (&open, options))
                .map(|s| Outcome::Search(SearchHandle(s)))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_search_start`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_search_start(
    search: *const SearchHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let search = Arc::clone(unsafe { &given::handle(search, "search")?.0 });
        let cancel = Arc::<AtomicBool>::default();
        let stop = Arc::clone(&cancel);
        let started = RequestHandle::counting(cancel, move || search.total(&stop))?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_search_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_search_query(
    search: *const SearchHandle,
    index: u64,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let search = Arc::clone(unsafe { &given::handle(search, "search")?.0 });
        let started = RequestHandle::start(Arc::default(), move || {
            search.one(index).map(|query| Outcome::Query(Arc::from(query)))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (search, array) = unsafe {
            (Arc::clone(&given::handle(search, "search")?.0), given::text(array, "array")?.to_string())
        };
        let mut target = Target::new(r#type, values, capacity, missing)?;
        let cancel = Arc::<AtomicBool>::default();
        let stop = Arc::clone(&cancel);
        let started = RequestHandle::counting(cancel, move || {
            // SAFETY: the header asks to leave the memory alone until the request has ended.
            unsafe { search.read(&array, (first, objects), &mut target, &stop) }
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (search, array) = unsafe {
            (Arc::clone(&given::handle(search, "search")?.0), given::text(array, "array")?.to_string())
        };
        if counts.is_null() || edges.is_null() {
            return Err(invalid(format!("counts or edges is NULL: room for {bins} and one more is needed")));
        }
        let bins = given::in_memory::<u64>(bins, "counts")?;
        let mut options = search.options();
        let cancel = Arc::clone(options.cancel.get_or_insert_default());
        let places = (Place(counts), Place(edges));
        let started = RequestHandle::counting(cancel, move || {
            let (counts, edges) = places;
            let found = search.histogram(&array, bins, (low, high), &options)?;
            // SAFETY: the header asks for room for all of them.
            unsafe {
                copy_out(&found.0, counts.0, bins as u64, "counts")?;
                copy_out(&found.1, edges.0, bins as u64 + 1, "edges")?;
            }
            Ok(found.0.iter().sum())
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}
