//! Values at the positions of a selection, all at once or batch by batch.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use sieva::{Error, ErrorKind, Points, Result};

use crate::given::{self, Out};
use crate::selection::{SelectionHandle, range};
use crate::status::{guarded, invalid};
use crate::target::Target;

/// Positions that are fetched at once; besides the caller's memory, only they take any.
const PIECE: usize = 1 << 20;

impl SelectionHandle {
    /// A reader of an array or expression; `cancel` stops it.
    ///
    /// # Errors
    /// `unknown-array`, `dimension-mismatch` and the like.
    pub fn points(&self, array: &str, cancel: Arc<AtomicBool>) -> Result<Points> {
        let value = self.source.value(array)?;
        self.query.points(&value, &self.options, cancel).map_err(|e| match e.kind() {
            ErrorKind::DimensionMismatch => e.hint(
                "give the query a region of that array with sieva_query_set_region(), whole if need be: its \
                 rows then have the array's dimensions",
            ),
            _ => e,
        })
    }

    /// As [`SelectionHandle::points`], the one that was used last where it reads the same.
    pub fn points_again(&self, array: &str) -> Result<Points> {
        let last = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        match last {
            Some((name, points)) if name == array => Ok(points),
            _ => self.points(array, Arc::default()),
        }
    }

    /// Keeps a reader for the next batch.
    pub fn keep(&self, array: &str, points: Points) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some((array.to_string(), points));
    }
}

/// Reads `n` values from hit number `first` on.
///
/// # Errors
/// Reading errors, `cancelled`, and those of [`Target::put`].
///
/// # Safety
/// The target's memory must be as its maker said.
pub unsafe fn read_into(
    selection: &sieva::Selection,
    points: &mut Points,
    (first, n): (u64, u64),
    target: &mut Target,
    cancel: &AtomicBool,
) -> Result<()> {
    let mut positions = selection.iter_from(first).take(n as usize);
    loop {
        let piece: Vec<u64> = positions.by_ref().take(PIECE).collect();
        if piece.is_empty() {
            return Ok(());
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "reading was cancelled"));
        }
        // SAFETY: the caller's promise.
        unsafe { target.put(&points.read(&piece)?) }?;
    }
}

/// `sieva_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_read(
    selection: *const SelectionHandle,
    array: *const c_char,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let selection = unsafe { given::handle(selection, "selection") }?;
        let mut target = Target::new(r#type, values, capacity, missing)?;
        let n = selection.selection.len();
        target.check_room(n)?;
        // SAFETY: as above.
        unsafe {
            batch(selection, array, (0, n), &mut target)?;
            out.set(n);
        }
        Ok(())
    })
}

/// `sieva_read_batch`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_read_batch(
    selection: *const SelectionHandle,
    array: *const c_char,
    first: u64,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let selection = unsafe { given::handle(selection, "selection") }?;
        let mut target = Target::new(r#type, values, capacity, missing)?;
        if capacity == 0 {
            return Err(invalid("a batch of 0 values"));
        }
        let n = range(&selection.selection, first, capacity)?;
        target.check_room(n)?;
        // SAFETY: as above.
        unsafe {
            batch(selection, array, (first, n), &mut target)?;
            out.set(n);
        }
        Ok(())
    })
}

unsafe fn batch(
    selection: &SelectionHandle,
    array: *const c_char,
    which: (u64, u64),
    target: &mut Target,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let array = unsafe { given::text(array, "array") }?;
    let mut points = selection.points_again(array)?;
    let never = AtomicBool::new(false);
    // SAFETY: as above.
    unsafe { read_into(&selection.selection, &mut points, which, target, &never) }?;
    selection.keep(array, points);
    Ok(())
}
