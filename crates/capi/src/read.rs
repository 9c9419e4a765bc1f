//! Values at the positions of a selection, all at once or batch by batch.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use sieva::{CollectionSelection, Column, Error, ErrorKind, Points, Result, Selection};

use crate::given::{self, Out};
use crate::selection::{Hits, SelectionHandle};
use crate::status::{guarded, invalid};
use crate::target::Target;

/// Positions that are fetched at once; besides the caller's memory, only they take any.
const PIECE: usize = 1 << 20;

/// What reads an array or expression at the hits of a selection.
pub enum Reader {
    /// Of a file.
    File(Arc<Selection>, Box<Points>),
    /// Of a collection, by the name of the array in its objects.
    Collection(CollectionSelection, String),
}

impl SelectionHandle {
    /// A reader of an array or expression; `cancel` stops it.
    ///
    /// # Errors
    /// `unknown-array`, `dimension-mismatch` and the like; those of a collection are told when it reads.
    pub fn reader(&self, array: &str, cancel: &Arc<AtomicBool>) -> Result<Reader> {
        let (query, selection) = match self.hits() {
            Hits::File(query, selection) => (query, selection),
            Hits::Collection(selection) => {
                return Ok(Reader::Collection(selection.clone(), array.to_string()));
            }
        };
        let value = self.asked.file()?.value(array)?;
        let points = query.points(&value, &self.options, Arc::clone(cancel)).map_err(|e| match e.kind() {
            ErrorKind::DimensionMismatch => e.hint(
                "give the query a region of that array with sieva_query_set_region(), whole if need be: its \
                 rows then have the array's dimensions",
            ),
            _ => e,
        })?;
        Ok(Reader::File(Arc::clone(selection), Box::new(points)))
    }

    /// As [`SelectionHandle::reader`], the one that was used last where it reads the same.
    pub fn reader_again(&self, array: &str) -> Result<Reader> {
        let last = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        match last {
            Some((name, reader)) if name == array => Ok(reader),
            _ => self.reader(array, &Arc::default()),
        }
    }

    /// Keeps a reader for the next batch.
    pub fn keep(&self, array: &str, reader: Reader) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some((array.to_string(), reader));
    }
}

impl Reader {
    /// Hands on the values of `n` hits from number `first` on, in their order.
    ///
    /// # Errors
    /// Reading errors, `cancelled`, and those of `take`.
    pub fn each(
        &mut self,
        (first, n): (u64, u64),
        cancel: &Arc<AtomicBool>,
        mut take: impl FnMut(Column) -> Result<()>,
    ) -> Result<()> {
        let (selection, points) = match self {
            Self::File(selection, points) => (selection, points),
            Self::Collection(selection, array) => {
                return selection.read(array, first..first + n, cancel, take);
            }
        };
        let mut positions = selection.iter_from(first).take(n as usize);
        loop {
            let piece: Vec<u64> = positions.by_ref().take(PIECE).collect();
            if piece.is_empty() {
                return Ok(());
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "reading was cancelled"));
            }
            take(points.read(&piece)?)?;
        }
    }

    /// Reads `n` values from hit number `first` on.
    ///
    /// # Errors
    /// As [`Reader::each`], and those of [`Target::put`].
    ///
    /// # Safety
    /// The target's memory must be as its maker said.
    pub unsafe fn read(
        &mut self,
        which: (u64, u64),
        target: &mut Target,
        cancel: &Arc<AtomicBool>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        self.each(which, cancel, |column| unsafe { target.put(&column) })
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
        let n = selection.len();
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
        let n = selection.range(first, capacity)?;
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
    let mut reader = selection.reader_again(array)?;
    // SAFETY: as above.
    unsafe { reader.read(which, target, &Arc::default()) }?;
    selection.keep(array, reader);
    Ok(())
}
