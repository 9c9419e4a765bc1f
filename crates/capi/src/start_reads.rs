//! Batches, texts, prices and words of plans and sources in a form that starts them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::boxes::{BoxArgs, checked};
use crate::given::{self, Out};
use crate::outcome::Outcome;
use crate::plan::Price;
use crate::query::QueryHandle;
use crate::read::read_into;
use crate::request::RequestHandle;
use crate::selection::{SelectionHandle, range};
use crate::source::SourceHandle;
use crate::start::Place;
use crate::status::{guarded, invalid};
use crate::target::Target;
use crate::texts::{TextTarget, hits};

/// `sieva_start_read_batch`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_read_batch(
    selection: *const SelectionHandle,
    array: *const c_char,
    first: u64,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (handle, array) =
            unsafe { (given::handle(selection, "selection")?, given::text(array, "array")?) };
        let mut target = Target::new(r#type, values, capacity, missing)?;
        if capacity == 0 {
            return Err(invalid("a batch of 0 values"));
        }
        let n = range(&handle.selection, first, capacity)?;
        target.check_room(n)?;
        let cancel = Arc::<AtomicBool>::default();
        let mut points = handle.points(array, Arc::clone(&cancel))?;
        let (selection, stop) = (Arc::clone(&handle.selection), Arc::clone(&cancel));
        let started = RequestHandle::counting(cancel, move || {
            // SAFETY: the header asks to leave the memory alone until the request has ended.
            unsafe { read_into(&selection, &mut points, (first, n), &mut target, &stop) }?;
            Ok(n)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_read_texts`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_read_texts(
    selection: *const SelectionHandle,
    array: *const c_char,
    first: u64,
    count: u64,
    bytes: *mut c_char,
    capacity: u64,
    offsets: *mut u64,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (handle, array) =
            unsafe { (given::handle(selection, "selection")?, given::text(array, "array")?) };
        let positions = hits(&handle.selection, first, count)?;
        let target = TextTarget { bytes, capacity, offsets };
        let cancel = Arc::<AtomicBool>::default();
        let mut points = handle.points(array, Arc::clone(&cancel))?;
        let started = RequestHandle::counting(cancel, move || {
            let target = target;
            let mut needed = 0;
            // SAFETY: the header asks to leave the memory alone until the request has ended.
            unsafe { target.put(&points.read(&positions)?, |n| needed = n) }?;
            Ok(needed)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_read_box_texts`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_read_box_texts(
    source: *const SourceHandle,
    array: *const c_char,
    rank: u32,
    start: *const u64,
    count: *const u64,
    bytes: *mut c_char,
    capacity: u64,
    offsets: *mut u64,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let source = Arc::clone(unsafe { &given::handle(source, "source")?.0 });
        // SAFETY: as above.
        let (index, bx) = unsafe { checked(&source, BoxArgs { array, rank, start, count }) }?;
        let target = TextTarget { bytes, capacity, offsets };
        let cancel = Arc::<AtomicBool>::default();
        let stop = Arc::clone(&cancel);
        let started = RequestHandle::counting(cancel, move || {
            let target = target;
            let memory = source.source.memory();
            let column = source.source.read_box_with(index, &bx, false, memory, &stop)?;
            let mut needed = 0;
            // SAFETY: as above.
            unsafe { target.put(&column, |n| needed = n) }?;
            Ok(needed)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_query_price`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_query_price(
    query: *const QueryHandle,
    price: *mut Price,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let (query, size) = unsafe { (given::handle(query, "query")?, Price::given_size(price)?) };
        let (asked, place) = (query.again()?, Place(price));
        let started = RequestHandle::counting(asked.cancel_flag(), move || {
            let place = place;
            // SAFETY: the header asks to leave the memory alone until the request has ended.
            unsafe { Price::put(&asked, place.0, size) }?;
            Ok(1)
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_query_explain`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_query_explain(
    query: *const QueryHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let asked = unsafe { given::handle(query, "query") }?.again()?;
        let started = RequestHandle::start(asked.cancel_flag(), move || {
            Ok(Outcome::Text(asked.explain(false)?.into()))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}

/// `sieva_start_source_schema`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_source_schema(
    source: *const SourceHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(request, "request")?;
        // SAFETY: the promises of sieva.h.
        let source = Arc::clone(unsafe { &given::handle(source, "source")?.0 });
        let started = RequestHandle::start(Arc::default(), move || {
            Ok(Outcome::Text(source.source.schema_json()?.into()))
        })?;
        // SAFETY: as above.
        unsafe { out.set(started) };
        Ok(())
    })
}
