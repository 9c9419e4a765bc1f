//! Catalogs: opening, closing, registering sources; their collections.

use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::catalog::{self, AddOptions};
use sieva::{Catalog, Collection, Result};

use crate::asked::{Asked, Gathered};
use crate::given::{self, Out};
use crate::options::{self, Options};
use crate::session::SessionHandle;
use crate::source::{SourceHandle, first_thread};
use crate::status::{guarded, invalid};

/// `sieva_catalog`.
pub struct CatalogHandle(pub Arc<Catalog>);

/// `sieva_added`
#[repr(C)]
pub struct Added {
    /// Sources that were not known.
    pub added: u64,
    /// Sources that had changed.
    pub replaced: u64,
    /// Sources that were as they are known.
    pub unchanged: u64,
    /// Groups and arrays of those added or replaced.
    pub objects: u64,
    /// Files of other formats.
    pub others: u64,
    /// Sources that are registered as damaged.
    pub damaged: u64,
    /// What could not be looked at.
    pub unreadable: u64,
}

/// `sieva_catalog_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_catalog_open(
    url: *const c_char,
    read_only: i32,
    catalog: *mut *mut CatalogHandle,
) -> i32 {
    guarded(|| {
        first_thread();
        let out = Out::handle(catalog, "catalog")?;
        let url = if url.is_null() {
            catalog::default_url()?
        } else {
            // SAFETY: the promises of sieva.h.
            unsafe { given::text(url, "url") }?.to_string()
        };
        let opened = if read_only == 0 { Catalog::open(&url) } else { Catalog::open_read_only(&url) }?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(CatalogHandle(Arc::new(opened)))) };
        Ok(())
    })
}

/// `sieva_catalog_close`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_catalog_close(catalog: *mut CatalogHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(catalog) }
}

/// `sieva_catalog_add`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_catalog_add(
    catalog: *const CatalogHandle,
    paths: *const *const c_char,
    count: u64,
    collection: *const c_char,
    options: *const Options,
    added: *mut Added,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let work = unsafe { Adding::given(catalog, paths, count, collection, options) }?;
        let found = work.run()?;
        if !added.is_null() {
            // SAFETY: as above.
            unsafe { Out::new(added, "added")?.set(found) };
        }
        Ok(())
    })
}

/// Sources that are to be registered, and how.
pub struct Adding {
    catalog: Arc<Catalog>,
    paths: Vec<String>,
    how: AddOptions,
}

impl Adding {
    /// What the caller wants registered.
    ///
    /// # Errors
    /// `invalid-value`.
    ///
    /// # Safety
    /// The promises of sieva.h for `sieva_catalog_add()`.
    pub unsafe fn given(
        catalog: *const CatalogHandle,
        paths: *const *const c_char,
        count: u64,
        collection: *const c_char,
        options: *const Options,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let (catalog, (open, query)) =
            unsafe { (given::handle(catalog, "catalog")?, options::open_options(options)?) };
        // SAFETY: as above.
        let paths = unsafe { given::values(paths, count, "paths") }?;
        // SAFETY: as above.
        let names = paths.iter().map(|&p| unsafe { given::text(p, "a path") }.map(str::to_string));
        let names = names.collect::<Result<Vec<String>>>()?;
        if names.is_empty() {
            return Err(invalid("no path to register"));
        }
        // SAFETY: as above.
        let collection = unsafe { given::optional_text(collection, "collection") }?;
        let default = AddOptions::default();
        let how = AddOptions {
            jobs: query.threads.unwrap_or(default.jobs),
            collections: collection.map(str::to_string).into_iter().collect(),
            cancel: Arc::clone(&open.cancel),
            open,
            ..default
        };
        Ok(Self { catalog: Arc::clone(&catalog.0), paths: names, how })
    }

    /// Stops it when it is set.
    pub fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.how.cancel)
    }

    /// Registers them.
    ///
    /// # Errors
    /// As `sieva_catalog_add()`.
    pub fn run(&self) -> Result<Added> {
        let report = catalog::add(&self.catalog, &self.paths, &self.how)?;
        Ok(Added {
            added: report.added,
            replaced: report.replaced,
            unchanged: report.unchanged,
            objects: report.objects,
            others: report.others,
            damaged: report.damaged.len() as u64,
            unreadable: report.unreadable.len() as u64,
        })
    }
}

/// `sieva_collection_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_collection_open(
    session: *const SessionHandle,
    catalog: *const CatalogHandle,
    collection: *const c_char,
    options: *const Options,
    source: *mut *mut SourceHandle,
) -> i32 {
    guarded(|| {
        first_thread();
        let out = Out::handle(source, "source")?;
        // SAFETY: the promises of sieva.h.
        let (session, catalog, name, (mut open, options)) = unsafe {
            let name = given::text(collection, "collection")?;
            (session.as_ref(), catalog.as_ref(), name, options::open_options(options)?)
        };
        if let Some(session) = session {
            open.session = session.session().clone();
        }
        let opened = match catalog {
            Some(catalog) => Collection::of(Arc::clone(&catalog.0), name, &open)?,
            None => Collection::without_catalog(name, &open),
        };
        // SAFETY: as above.
        unsafe { out.set(Box::new(SourceHandle(Asked::Collection(Gathered::new(opened, options))))) };
        Ok(())
    })
}
