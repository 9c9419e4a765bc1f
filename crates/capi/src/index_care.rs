//! Building indexes with options, what there is of them, comparing them with the data, and dropping them.

use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::{BuildOptions, Result, VerifyReport};

use crate::given::{self, Out};
use crate::index::kinds_of;
use crate::index_options::{IndexOptions, IndexReport};
use crate::outcome::Outcome;
use crate::request::{RequestHandle, starting};
use crate::source::{Opened, SourceHandle, opened};
use crate::start::Place;
use crate::status::guarded;

/// What is to be built of which arrays.
pub struct Building {
    /// What it is built of.
    pub source: Arc<Opened>,
    /// Paths; none: all numeric arrays.
    pub arrays: Vec<String>,
    /// How.
    pub options: BuildOptions,
}

impl Building {
    /// What the caller wants built.
    ///
    /// # Errors
    /// `invalid-value`, `unknown-array`.
    ///
    /// # Safety
    /// The promises of sieva.h for `sieva_index_build_with()`.
    pub unsafe fn given(
        source: *const SourceHandle,
        (arrays, count): (*const *const c_char, u64),
        kinds: u32,
        options: *const IndexOptions,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let source = Arc::clone(unsafe { opened(source) }?);
        let kinds = kinds_of(kinds)?;
        // SAFETY: as above.
        let (arrays, options) =
            unsafe { (paths(&source, (arrays, count))?, IndexOptions::read(options, &source)?) };
        Ok(Self { source, arrays, options: BuildOptions { kinds, ..options } })
    }

    fn run(&self) -> Result<IndexReport> {
        Ok(IndexReport::built(&self.source.source.build_index(&self.arrays, &self.options)?))
    }
}

/// The paths of arrays that the caller names.
///
/// # Safety
/// There must be as many names, each with a NUL at its end.
unsafe fn paths(source: &Opened, (names, count): (*const *const c_char, u64)) -> Result<Vec<String>> {
    // SAFETY: the caller's promise.
    let names = unsafe { given::values(names, count, "arrays") }?;
    let path = |name: *const c_char| {
        // SAFETY: as above.
        let index = unsafe { source.array(name) }?;
        Ok(source.source.schema().arrays[index].path.clone())
    };
    names.into_iter().map(path).collect()
}

fn verified(source: &Opened, all: bool, cancel: &AtomicBool) -> Result<VerifyReport> {
    source.source.verify_index(all, cancel, &|_| ())
}

/// The flag that stops what is asked of a source without options.
fn stop_of(source: &Opened) -> Arc<AtomicBool> {
    source.options.cancel.clone().unwrap_or_default()
}

/// `sieva_index_build_with`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_build_with(
    source: *const SourceHandle,
    arrays: *const *const c_char,
    count: u64,
    kinds: u32,
    options: *const IndexOptions,
    report: *mut IndexReport,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (work, size) = unsafe {
            (Building::given(source, (arrays, count), kinds, options)?, IndexReport::given_size(report)?)
        };
        let did = work.run()?;
        // SAFETY: as above.
        unsafe { did.put(report, size) };
        Ok(())
    })
}

/// `sieva_start_index_build_with`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_index_build_with(
    source: *const SourceHandle,
    arrays: *const *const c_char,
    count: u64,
    kinds: u32,
    options: *const IndexOptions,
    report: *mut IndexReport,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let work = Building::given(source, (arrays, count), kinds, options)?;
            let (size, place) = (IndexReport::given_size(report)?, Place(report));
            RequestHandle::counting(Arc::clone(&work.options.cancel), move |_| {
                let place = place;
                let did = work.run()?;
                did.put(place.0, size);
                Ok(did.regions_built)
            })
        })
    }
}

/// `sieva_index_status`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_status(
    source: *const SourceHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let status = unsafe { opened(source) }?.source.index_status()?;
        // SAFETY: as above.
        unsafe { given::put_text(&status.to_json(), text, capacity, needed) }
    })
}

/// `sieva_start_index_status`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_index_status(
    source: *const SourceHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let source = Arc::clone(opened(source)?);
            RequestHandle::start(Arc::default(), move |_| {
                Ok(Outcome::Text(source.source.index_status()?.to_json().into()))
            })
        })
    }
}

/// `sieva_index_verify`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_verify(
    source: *const SourceHandle,
    all: i32,
    report: *mut IndexReport,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (source, size) = unsafe { (opened(source)?, IndexReport::given_size(report)?) };
        let found = verified(source, all != 0, &stop_of(source))?;
        // SAFETY: as above.
        unsafe {
            IndexReport::verified(&found).put(report, size);
            if text.is_null() && needed.is_null() && capacity == 0 {
                return Ok(());
            }
            given::put_text(&found.differences.join("\n"), text, capacity, needed)
        }
    })
}

/// `sieva_start_index_verify`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_index_verify(
    source: *const SourceHandle,
    all: i32,
    report: *mut IndexReport,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let source = Arc::clone(opened(source)?);
            let (size, place) = (IndexReport::given_size(report)?, Place(report));
            RequestHandle::start(stop_of(&source), move |stop| {
                let place = place;
                let found = verified(&source, all != 0, stop)?;
                IndexReport::verified(&found).put(place.0, size);
                Ok(Outcome::Text(found.differences.join("\n").into()))
            })
        })
    }
}

/// `sieva_index_drop`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_drop(source: *const SourceHandle, dropped: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(dropped, "dropped")?;
        // SAFETY: the promises of sieva.h.
        let was_there = unsafe { opened(source) }?.source.drop_index()?;
        // SAFETY: as above.
        unsafe { out.set(was_there.into()) };
        Ok(())
    })
}

/// `sieva_index_drop_replicas`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_drop_replicas(
    source: *const SourceHandle,
    arrays: *const *const c_char,
    count: u64,
    dropped: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(dropped, "dropped")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let n = source.source.drop_replicas(&unsafe { paths(source, (arrays, count)) }?)?;
        // SAFETY: as above.
        unsafe { out.set(n as u64) };
        Ok(())
    })
}

/// `sieva_start_index_drop`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_index_drop(
    source: *const SourceHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    unsafe {
        starting(request, || {
            let source = Arc::clone(opened(source)?);
            RequestHandle::counting(Arc::default(), move |_| source.source.drop_index().map(u64::from))
        })
    }
}
