//! Long calls in a form that starts them: opening, reading boxes, histograms, building indexes. What comes of them is
//! told as of all requests.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use sieva::Source;

use crate::boxes::{self, BoxArgs};
use crate::given;
use crate::histogram;
use crate::index::build_of;
use crate::options::{self, Options};
use crate::outcome::Outcome;
use crate::query::QueryHandle;
use crate::request::{RequestHandle, starting};
use crate::session::SessionHandle;
use crate::source::{Opened, SourceHandle, first_thread, opened};
use crate::status::invalid;
use crate::target::Target;

/// Memory of the caller that a request writes to.
pub struct Place<T>(pub *mut T);

// SAFETY: the header asks to leave the memory alone until the request has ended.
unsafe impl<T> Send for Place<T> {}

/// `sieva_start_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_open(
    session: *const SessionHandle,
    path: *const c_char,
    options: *const Options,
    request: *mut *mut RequestHandle,
) -> i32 {
    first_thread();
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let (path, (mut open, options)) =
                (given::text(path, "path")?.to_owned(), options::open_options(options)?);
            if let Some(session) = session.as_ref() {
                open.session = session.session().clone();
            }
            RequestHandle::start(Arc::clone(&open.cancel), move |_| {
                let source = Source::open_many(&[path], &open)?;
                Ok(Outcome::Opened(Opened::new(source, options, String::new())))
            })
        })
    }
}

/// `sieva_start_read_box`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_read_box(
    source: *const SourceHandle,
    array: *const c_char,
    rank: u32,
    start: *const u64,
    count: *const u64,
    stored: i32,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let source = Arc::clone(opened(source)?);
            let (index, bx) = boxes::checked(&source, BoxArgs { array, rank, start, count })?;
            let mut target = Target::new(r#type, values, capacity, missing)?;
            let n = bx.shape.iter().try_fold(1_u64, |n, &s| n.checked_mul(s));
            let n = n.ok_or_else(|| invalid(format!("a box of shape {:?}", bx.shape)))?;
            target.check_room(n)?;
            RequestHandle::counting(Arc::default(), move |stop| {
                boxes::read_into(&source, (index, &bx, stored != 0), &mut target, stop)?;
                Ok(n)
            })
        })
    }
}

/// `sieva_start_histogram`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_histogram(
    query: *const QueryHandle,
    array: *const c_char,
    bins: u64,
    counts: *mut u64,
    edges: *mut f64,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let (query, array) = (given::handle(query, "query")?, given::text(array, "array")?);
            let bins = histogram::room(bins, counts, edges)?;
            let value = query.file()?.value(array)?.to_string();
            let (asked, places) = (query.again()?.file()?, (Place(counts), Place(edges)));
            RequestHandle::counting(asked.cancel_flag(), move |_| {
                let (counts, edges) = places;
                let (own, own_edges) = asked.histogram(&value, bins)?;
                histogram::put(&own, &own_edges, counts.0, edges.0)?;
                Ok(own.iter().sum())
            })
        })
    }
}

/// `sieva_start_index_build`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_index_build(
    source: *const SourceHandle,
    array: *const c_char,
    kinds: u32,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let source = Arc::clone(opened(source)?);
            let (arrays, options) = build_of(&source, array, kinds)?;
            RequestHandle::counting(Arc::clone(&options.cancel), move |_| {
                source.source.build_index(&arrays, &options).map(|_| arrays.len() as u64)
            })
        })
    }
}
