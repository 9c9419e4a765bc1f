//! Batches, texts, prices and words of plans and sources in a form that starts them.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::boxes::{BoxArgs, checked};
use crate::given;
use crate::outcome::Outcome;
use crate::plan::Price;
use crate::query::QueryHandle;
use crate::request::{RequestHandle, start_reading, starting};
use crate::selection::SelectionHandle;
use crate::source::{SourceHandle, opened};
use crate::start::Place;
use crate::status::invalid;
use crate::target::Target;
use crate::texts::{TextTarget, check_hits, columns};

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
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let (handle, array) = (given::handle(selection, "selection")?, given::text(array, "array")?);
            let target = Target::new(r#type, values, capacity, missing)?;
            if capacity == 0 {
                return Err(invalid("a batch of 0 values"));
            }
            let n = handle.range(first, capacity)?;
            start_reading(handle, array, (first, n), target)
        })
    }
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
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let (handle, array) = (given::handle(selection, "selection")?, given::text(array, "array")?);
            check_hits(handle, first, count)?;
            let target = TextTarget { bytes, capacity, offsets };
            let cancel = Arc::<AtomicBool>::default();
            let mut reader = handle.reader(array, &cancel)?;
            RequestHandle::counting(cancel, move |stop| {
                let target = target;
                let mut needed = 0;
                target.put(&columns(&mut reader, (first, count), stop)?, |n| needed = n)?;
                Ok(needed)
            })
        })
    }
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
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let source = Arc::clone(opened(source)?);
            let (index, bx) = checked(&source, BoxArgs { array, rank, start, count })?;
            let target = TextTarget { bytes, capacity, offsets };
            RequestHandle::counting(Arc::default(), move |stop| {
                let target = target;
                let memory = source.source.memory();
                let column = source.source.read_box_with(index, &bx, false, memory, stop)?;
                let mut needed = 0;
                target.put(&[column], |n| needed = n)?;
                Ok(needed)
            })
        })
    }
}

/// `sieva_start_query_price`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_query_price(
    query: *const QueryHandle,
    price: *mut Price,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let (query, size) = (given::handle(query, "query")?, Price::given_size(price)?);
            let (asked, place) = (query.again()?, Place(price));
            RequestHandle::counting(asked.cancel_flag(), move |_| {
                let place = place;
                Price::put(&asked, place.0, size)?;
                Ok(1)
            })
        })
    }
}

/// `sieva_start_query_explain`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_query_explain(
    query: *const QueryHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let asked = given::handle(query, "query")?.again()?;
            RequestHandle::start(asked.cancel_flag(), move |_| Ok(Outcome::Text(asked.explain()?.into())))
        })
    }
}

/// `sieva_start_source_schema`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_source_schema(
    source: *const SourceHandle,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let source = Arc::clone(opened(source)?);
            RequestHandle::start(Arc::default(), move |_| {
                Ok(Outcome::Text(source.source.schema_json()?.into()))
            })
        })
    }
}
