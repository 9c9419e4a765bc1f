//! Selections: the positions of a query's hits, and their set algebra.

use std::ffi::c_char;
use std::sync::{Arc, Mutex};

use sieva::{Points, Query, QueryOptions, Result, Selection};

use crate::given::{self, Out, check_room};
use crate::query::QueryHandle;
use crate::source::Opened;
use crate::status::{guarded, invalid};

/// `sieva_selection`.
pub struct SelectionHandle {
    /// The source of its positions.
    pub source: Arc<Opened>,
    /// The query whose row space they are positions of.
    pub query: Arc<Query>,
    /// What values are read with.
    pub options: QueryOptions,
    /// The positions.
    pub selection: Arc<Selection>,
    /// What reads the array that was read last: batches that follow each other share its decoded chunks.
    pub reader: Mutex<Option<(String, Points)>>,
}

impl SelectionHandle {
    /// The hits of a query.
    pub fn new(of: &QueryHandle, query: Arc<Query>, selection: Arc<Selection>) -> Box<Self> {
        Self::of(Arc::clone(&of.source), query, of.options(), selection)
    }

    /// Positions of the rows of a query of a source.
    pub fn of(
        source: Arc<Opened>,
        query: Arc<Query>,
        options: QueryOptions,
        selection: Arc<Selection>,
    ) -> Box<Self> {
        Box::new(Self { source, query, options, selection, reader: Mutex::new(None) })
    }

    /// Positions of the same rows.
    pub fn with(&self, selection: Arc<Selection>) -> Box<Self> {
        Self::of(Arc::clone(&self.source), Arc::clone(&self.query), self.options.clone(), selection)
    }
}

/// `sieva_query_selection`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_selection(
    query: *const QueryHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(selection, "selection")?;
        // SAFETY: the promises of sieva.h.
        let query = unsafe { given::handle(query, "query") }?;
        let bound = query.bound()?;
        let found = bound.selection()?;
        // SAFETY: as above.
        unsafe { out.set(SelectionHandle::new(query, bound, found)) };
        Ok(())
    })
}

/// `sieva_selection_nhits`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_nhits(selection: *const SelectionHandle, nhits: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(nhits, "nhits")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(selection, "selection")?.selection.len()) };
        Ok(())
    })
}

/// `sieva_selection_shape`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_shape(
    selection: *const SelectionHandle,
    rank: *mut u32,
    shape: *mut u64,
    capacity: u32,
) -> i32 {
    guarded(|| {
        let out = Out::new(rank, "rank")?;
        // SAFETY: the promises of sieva.h.
        let own = unsafe { given::handle(selection, "selection") }?.selection.shape();
        // SAFETY: as above.
        unsafe {
            out.set(own.len() as u32);
            if shape.is_null() { Ok(()) } else { given::copy_out(own, shape, capacity.into(), "shape") }
        }
    })
}

/// `sieva_selection_dimension`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_dimension(
    selection: *const SelectionHandle,
    axis: u32,
    name: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let dims = unsafe { given::handle(selection, "selection") }?.selection.dims();
        let own = dims
            .get(axis as usize)
            .ok_or_else(|| invalid(format!("no axis {axis}: the selection has {}, from 0 on", dims.len())))?;
        // SAFETY: as above.
        unsafe { given::put_text(own, name, capacity, needed) }
    })
}

/// `sieva_selection_positions`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_positions(
    selection: *const SelectionHandle,
    first: u64,
    capacity: u64,
    positions: *mut u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let own = unsafe { &given::handle(selection, "selection")?.selection };
        let n = range(own, first, capacity)?;
        check_room(n, capacity, positions.is_null(), "positions")?;
        for (i, position) in own.iter_from(first).take(n as usize).enumerate() {
            // SAFETY: there is room for `capacity`, by the caller's promise.
            unsafe { positions.add(i).write_unaligned(position) };
        }
        // SAFETY: as above.
        unsafe { out.set(n) };
        Ok(())
    })
}

/// `sieva_selection_coords`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_coords(
    selection: *const SelectionHandle,
    first: u64,
    capacity: u64,
    coords: *mut u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let own = unsafe { &given::handle(selection, "selection")?.selection };
        let (n, shape) = (range(own, first, capacity)?, own.shape());
        check_room(n, capacity, coords.is_null(), "coords")?;
        for (i, position) in own.iter_from(first).take(n as usize).enumerate() {
            let mut rest = position;
            for d in (0..shape.len()).rev() {
                // SAFETY: there is room for `capacity` times the rank, by the caller's promise.
                unsafe { coords.add(i * shape.len() + d).write_unaligned(rest % shape[d]) };
                rest /= shape[d];
            }
        }
        // SAFETY: as above.
        unsafe { out.set(n) };
        Ok(())
    })
}

/// How many of the hits from number `first` on there are, at most `capacity`.
///
/// # Errors
/// `invalid-value` where there are fewer than `first`.
pub fn range(selection: &Selection, first: u64, capacity: u64) -> Result<u64> {
    let all = selection.len();
    let left = all.checked_sub(first).ok_or_else(|| invalid(format!("no hit {first}: there are {all}")))?;
    Ok(left.min(capacity))
}

/// `sieva_selection_and`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_and(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { combine(a, b, selection, Selection::intersection) })
}

/// `sieva_selection_or`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_or(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { combine(a, b, selection, Selection::union) })
}

/// `sieva_selection_minus`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_minus(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { combine(a, b, selection, Selection::difference) })
}

unsafe fn combine(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
    with: fn(&Selection, &Selection) -> Result<Selection>,
) -> Result<()> {
    let out = Out::handle(selection, "selection")?;
    // SAFETY: the caller's promises.
    let (a, b) = unsafe { (given::handle(a, "a")?, given::handle(b, "b")?) };
    let both = a.with(Arc::new(with(&a.selection, &b.selection)?));
    // SAFETY: as above.
    unsafe { out.set(both) };
    Ok(())
}

/// `sieva_selection_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_free(selection: *mut SelectionHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(selection) }
}
