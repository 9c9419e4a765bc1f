//! Long calls in a form that starts them: opening, reading boxes, histograms, building indexes. What comes of them is
//! told as of all requests.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::Source;

use crate::boxes::{self, BoxArgs};
use crate::given::{self, Out};
use crate::histogram;
use crate::index::build_of;
use crate::options::{self, Options};
use crate::outcome::Outcome;
use crate::query::QueryHandle;
use crate::request::RequestHandle;
use crate::session::SessionHandle;
use crate::source::{Opened, SourceHandle, first_thread};
use crate::status::{guarded, invalid};
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
    guarded(|| {
        first_thread();
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (path, (mut open, options)) =
            unsafe { (given::text(path, "path")?.to_owned(), options::open_options(options)?) };
        // SAFETY: as above.
        if let Some(session) = unsafe { session.as_ref() } {
            open.session = session.session().clone();
        }
        let cancel = Arc::clone(&open.cancel);
        let started = RequestHandle::start(cancel, move || {
            let source = Source::open_many(&[path], &open)?;
            Ok(Outcome::Opened(Opened::new(source, options, String::new())))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let source = Arc::clone(unsafe { &given::handle(source, "source")?.0 });
        // SAFETY: as above.
        let (index, bx) = unsafe { boxes::checked(&source, BoxArgs { array, rank, start, count }) }?;
        let mut target = Target::new(r#type, values, capacity, missing)?;
        let n = bx.shape.iter().try_fold(1_u64, |n, &s| n.checked_mul(s));
        let n = n.ok_or_else(|| invalid(format!("a box of shape {:?}", bx.shape)))?;
        target.check_room(n)?;
        let cancel = Arc::<AtomicBool>::default();
        let stop = Arc::clone(&cancel);
        let started = RequestHandle::counting(cancel, move || {
            // SAFETY: the header asks to leave the memory alone until the request has ended.
            unsafe { boxes::read_into(&source, (index, &bx, stored != 0), &mut target, &stop) }?;
            Ok(n)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
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
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (query, array) = unsafe { (given::handle(query, "query")?, given::text(array, "array")?) };
        if counts.is_null() || edges.is_null() {
            return Err(invalid(format!("counts or edges is NULL: room for {bins} and one more is needed")));
        }
        let value = query.source.value(array)?.to_string();
        let bins = given::in_memory::<u64>(bins, "counts")?;
        let asked = query.again()?;
        let (counts, edges) = (Place(counts), Place(edges));
        let started = RequestHandle::counting(asked.cancel_flag(), move || {
            let (counts, edges) = (counts, edges);
            let (own, own_edges) = asked.histogram(&value, bins)?;
            // SAFETY: the header asks for room for all of them.
            unsafe { histogram::put(&own, &own_edges, counts.0, edges.0) }?;
            Ok(own.iter().sum())
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_index_build`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_index_build(
    source: *const SourceHandle,
    array: *const c_char,
    kinds: u32,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let source = Arc::clone(unsafe { &given::handle(source, "source")?.0 });
        // SAFETY: as above.
        let (arrays, options) = unsafe { build_of(&source, array, kinds) }?;
        let started = RequestHandle::counting(Arc::clone(&options.cancel), move || {
            source.source.build_index(&arrays, &options).map(|_| arrays.len() as u64)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}
