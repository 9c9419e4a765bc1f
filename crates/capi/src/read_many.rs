//! Many boxes and selections of a source's arrays, read as one.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::{Error, ErrorKind, Request, Result};

use crate::boxes::{BoxArgs, checked};
use crate::given;
use crate::request::{RequestHandle, starting};
use crate::selection::{Hits, SelectionHandle};
use crate::source::{Opened, SourceHandle, opened};
use crate::start::Place;
use crate::status::{OK, code_of, guarded};
use crate::target::Target;

/// `sieva_part`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Part {
    /// The array's name.
    pub array: *const c_char,
    /// Whose positions are read; NULL: a box is.
    pub selection: *const SelectionHandle,
    /// First position of the box along each dimension; NULL: 0.
    pub start: *const u64,
    /// Its extent along each dimension; NULL: to the end.
    pub count: *const u64,
    /// Numbers in `start` and `count`.
    pub rank: u32,
    /// Whether values are wanted as stored.
    pub stored: i32,
    /// The type of `values`.
    pub r#type: i32,
    /// Set: what became of it.
    pub code: i32,
    /// Where values go.
    pub values: *mut c_void,
    /// Values that have room there.
    pub capacity: u64,
    /// A byte for each value, or NULL.
    pub missing: *mut u8,
    /// Set: the number of values.
    pub read: u64,
}

/// A part that was checked: what is asked of the engine, and where it goes.
type Checked = Result<(Request, Target)>;

/// Checks a part.
///
/// # Safety
/// The promises of sieva.h for its pointers.
unsafe fn check(source: &Opened, part: &Part, cancel: &Arc<AtomicBool>) -> Checked {
    let target = Target::new(part.r#type, part.values, part.capacity, part.missing)?;
    // SAFETY: the caller's promise.
    let mut request = match unsafe { part.selection.as_ref() }.map(SelectionHandle::hits) {
        Some(Hits::File(_, selection)) => {
            // SAFETY: as above.
            Request::of_positions(unsafe { source.array(part.array) }?, Arc::clone(selection))
        }
        Some(Hits::Collection(_)) => {
            let message = "a selection of a collection, of which the parts of a file cannot be read";
            return Err(Error::new(ErrorKind::Unsupported, message).hint("read it with sieva_read()"));
        }
        None => {
            let args = BoxArgs { array: part.array, rank: part.rank, start: part.start, count: part.count };
            // SAFETY: as above.
            let (array, bx) = unsafe { checked(source, args) }?;
            Request::of_box(array, bx)
        }
    };
    target.check_room(request.len())?;
    (request.raw, request.cancel) = (part.stored != 0, Arc::clone(cancel));
    Ok((request, target))
}

/// Reads parts that were checked, and notes what became of each.
///
/// # Errors
/// The first of theirs; `memory-limit` of all.
///
/// # Safety
/// As [`check`]; `parts` must lead to as many parts.
unsafe fn run(source: &Opened, checked: Vec<Checked>, parts: *mut Part) -> Result<u64> {
    let requests: Vec<Request> = checked.iter().flatten().map(|(request, _)| request.clone()).collect();
    let mut read = source.source.read_many(&requests)?.into_iter();
    let (mut first, mut all) = (None, 0);
    for (i, checked) in checked.into_iter().enumerate() {
        let done = checked.and_then(|(request, mut target)| {
            let column =
                read.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "nothing was read")))?;
            // SAFETY: the caller's promise.
            unsafe { target.put(&column) }?;
            Ok(request.len())
        });
        let code = done.as_ref().map_or_else(|e| code_of(e.kind()), |_| OK);
        let n = done.as_ref().map_or(0, |n| *n);
        // SAFETY: as above.
        unsafe {
            let part = parts.add(i);
            (&raw mut (*part).code).write_unaligned(code);
            (&raw mut (*part).read).write_unaligned(n);
        }
        all += n;
        if let Err(e) = done {
            first.get_or_insert(e);
        }
    }
    first.map_or(Ok(all), Err)
}

/// Checks all parts.
///
/// # Safety
/// As [`run`].
unsafe fn check_all(
    source: &Opened,
    parts: *const Part,
    n: u64,
    cancel: &Arc<AtomicBool>,
) -> Result<Vec<Checked>> {
    // SAFETY: the caller's promise.
    let given = unsafe { given::values(parts, n, "parts") }?;
    // SAFETY: as above.
    Ok(given.iter().map(|part| unsafe { check(source, part, cancel) }).collect())
}

/// `sieva_read_many`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_read_many(source: *const SourceHandle, parts: *mut Part, n: u64) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe {
            let source = opened(source)?;
            let checked = check_all(source, parts, n, &Arc::default())?;
            run(source, checked, parts).map(drop)
        }
    })
}

/// `sieva_start_read_many`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_read_many(
    source: *const SourceHandle,
    parts: *mut Part,
    n: u64,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let (source, cancel) = (Arc::clone(opened(source)?), Arc::<AtomicBool>::default());
            let checked = check_all(&source, parts, n, &cancel)?;
            let parts = Place(parts);
            RequestHandle::counting(cancel, move |_| {
                let parts = parts;
                run(&source, checked, parts.0)
            })
        })
    }
}
