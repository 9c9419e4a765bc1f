//! Selections that the program makes itself: of positions, coordinates, boxes and bytes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::{Bx, CollectionSelection, Error, ErrorKind, Result, Selection, Session};

use crate::asked::Asked;
use crate::given::{self, Out};
use crate::query::QueryHandle;
use crate::selection::{Hits, SelectionHandle};
use crate::status::{guarded, invalid};

/// Makes a selection of the rows of a query; `make` gets names and lengths of their dimensions.
///
/// # Safety
/// The query must be NULL or live, the place NULL or valid for a handle.
unsafe fn of_rows(
    query: *const QueryHandle,
    selection: *mut *mut SelectionHandle,
    make: impl FnOnce(Vec<String>, Vec<u64>) -> Result<Selection>,
) -> Result<()> {
    let out = Out::handle(selection, "selection")?;
    // SAFETY: the caller's promises.
    let query = unsafe { given::handle(query, "query") }?;
    let (dims, shape) = query.rows()?;
    let made = make(dims, shape)?;
    let hits = Hits::File(query.bound_of_file()?, Arc::new(made));
    let handle = SelectionHandle::of(query.asked.clone(), query.options(), hits);
    // SAFETY: as above.
    unsafe { out.set(handle) };
    Ok(())
}

impl SelectionHandle {
    /// The hits as bytes; of a collection with what opening its sources needs.
    fn bytes(&self) -> Result<Vec<u8>> {
        match self.hits() {
            Hits::File(_, selection) => selection.to_bytes(),
            Hits::Collection(selection) => selection.to_bytes_carrying(),
        }
    }
}

/// `n` values, or `n` times `each`.
fn all(n: u64, each: u32, what: &str) -> Result<u64> {
    n.checked_mul(each.into()).ok_or_else(|| invalid(format!("{what}: {n} times {each} numbers")))
}

fn check_rank(given: u32, shape: &[u64], what: &str) -> Result<()> {
    if given as usize == shape.len() {
        return Ok(());
    }
    let message = format!("{what} of rank {given} for rows of shape {shape:?}");
    Err(Error::new(ErrorKind::DimensionMismatch, message).hint("sieva_query_all() has the rows of one array"))
}

/// `sieva_selection_from_positions`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_from_positions(
    query: *const QueryHandle,
    count: u64,
    positions: *const u64,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe {
        let positions = given::values(positions, count, "positions")?;
        of_rows(query, selection, |dims, shape| Selection::from_positions(dims, shape, positions))
    })
}

/// `sieva_selection_from_coords`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_from_coords(
    query: *const QueryHandle,
    count: u64,
    rank: u32,
    coords: *const u64,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe {
        of_rows(query, selection, |dims, shape| {
            // Before anything is read: how much there is follows from the rank.
            check_rank(rank, &shape, "coordinates")?;
            let coords = given::values(coords, all(count, rank, "coords")?, "coords")?;
            Selection::from_coords(dims, shape, &coords)
        })
    })
}

/// `sieva_selection_from_boxes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_from_boxes(
    query: *const QueryHandle,
    boxes: u64,
    rank: u32,
    starts: *const u64,
    counts: *const u64,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe {
        of_rows(query, selection, |dims, shape| {
            // Before anything is read, as above.
            check_rank(rank, &shape, "boxes")?;
            let n = all(boxes, rank, "boxes")?;
            let (starts, counts) = (given::values(starts, n, "starts")?, given::values(counts, n, "counts")?);
            let each = starts.chunks(rank.max(1) as usize).zip(counts.chunks(rank.max(1) as usize));
            let boxes: Vec<Bx> =
                each.map(|(start, count)| Bx { start: start.to_vec(), shape: count.to_vec() }).collect();
            Selection::from_boxes(
                dims,
                shape,
                &boxes,
                (Session::default().query_memory(), &AtomicBool::new(false)),
            )
        })
    })
}

/// `sieva_selection_from_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_from_bytes(
    query: *const QueryHandle,
    bytes: *const u8,
    count: u64,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe {
        let bytes = given::values(bytes, count, "bytes")?;
        let asked = given::handle(query, "query")?;
        if let Asked::Collection(all) = &asked.asked {
            let (out, plan) = (Out::handle(selection, "selection")?, asked.own_plan()?);
            let read = CollectionSelection::from_bytes(&all.collection, &plan, &bytes, &asked.options())?;
            let made = SelectionHandle::of(asked.asked.clone(), asked.options(), Hits::Collection(read));
            out.set(made);
            return Ok(());
        }
        of_rows(query, selection, |dims, shape| {
            let read = Selection::from_bytes(&bytes)?;
            if read.dims() == dims && read.shape() == shape {
                return Ok(read);
            }
            let message = format!(
                "a selection of ({}) of shape {:?} for rows of ({}) of shape {shape:?}",
                read.dims().join(", "),
                read.shape(),
                dims.join(", ")
            );
            Err(Error::new(ErrorKind::DimensionMismatch, message)
                .hint("give a query with the rows of the one that made it"))
        })
    })
}

/// `sieva_selection_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_bytes(
    selection: *const SelectionHandle,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let made = unsafe { given::handle(selection, "selection") }?.bytes()?;
        // SAFETY: as above.
        unsafe { given::put_bytes(&made, (bytes, capacity), place) }
    })
}
